/* SPDX-License-Identifier: MIT */
/* See lab_like.h. For each synchronisation b and each other thread, the newest synchronisation a of that thread that is
 * proven to be before b becomes an order. The visits of a line are counted by the calls at that line. */
#include "diagnose/lab_like.h"

#include "base/path.h"
#include "binary/symbols.h"
#include "decoder/recording.h"
#include "decoder/timeline.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_EVENTS 20000u /* the newest ones of the recording that are looked at */
#define LOOKED 2000u       /* synchronisations back in which an earlier one is looked for */

/* A synchronisation with its name. */
struct moment {
    uint32_t event; /* of the order */
    uint32_t task;  /* the thread */
    struct etch_lab_named named;
};

struct task {
    uint32_t tid, made;
    bool known;
    struct etch_lab_name name;
};

/* A thread that was made and has not begun. */
struct birth {
    uint64_t id;
    struct etch_lab_name name;
};

/* How often a thread called at a line. */
struct visit {
    uint32_t task, line, count;
    char file[64];
};

struct reading {
    struct etch_lab_like *like;
    struct etch_recording *recording;
    struct etch_symbols *symbols;
    struct etch_timeline timeline;
    struct etch_order *order;
    ETCH_ARRAY(struct moment) moments; /* by time */
    ETCH_ARRAY(struct task) tasks;
    ETCH_ARRAY(struct birth) births;
    ETCH_ARRAY(struct visit) visits;
};

/* ---- Threads ---- */

static struct task *task_of(struct reading *r, uint32_t tid)
{
    for (size_t i = 0; i < r->tasks.n; i++)
        if (r->tasks.v[i].tid == tid)
            return &r->tasks.v[i];
    return etch_array_push(&r->tasks, ((struct task){.tid = tid})) ? &r->tasks.v[r->tasks.n - 1] : NULL;
}

/* The creator names the thread before the thread begins. */
static bool follow_create(struct reading *r, struct task *t, const Etch__Sync *s)
{
    struct birth b = {s->other, t->name};

    if (s->result || !t->known || b.name.depth == ETCH_LAB_GENERATIONS)
        return true;
    b.name.ordinals[b.name.depth++] = ++t->made;
    return etch_array_push(&r->births, b);
}

static void follow_start(struct reading *r, struct task *t, const Etch__Sync *s)
{
    for (size_t i = r->births.n; i-- > 0 && !t->known;)
        if (r->births.v[i].id == s->object) {
            t->name = r->births.v[i].name;
            t->known = true;
        }
}

/* ---- Lines ---- */

/* A call, at which a thread in the lab comes to a point. Its other records are left out. That a thread is made before
 * it begins needs no order. */
static bool is_call(Etch__SyncOp op)
{
    switch (op) {
    case ETCH__SYNC_OP__SYNC_THREAD_JOIN:
    case ETCH__SYNC_OP__SYNC_MUTEX_LOCK:
    case ETCH__SYNC_OP__SYNC_MUTEX_UNLOCK:
    case ETCH__SYNC_OP__SYNC_RWLOCK_RDLOCK:
    case ETCH__SYNC_OP__SYNC_RWLOCK_WRLOCK:
    case ETCH__SYNC_OP__SYNC_RWLOCK_UNLOCK:
    case ETCH__SYNC_OP__SYNC_COND_WAIT_BEGIN:
    case ETCH__SYNC_OP__SYNC_COND_SIGNAL:
    case ETCH__SYNC_OP__SYNC_COND_BROADCAST:
    case ETCH__SYNC_OP__SYNC_BARRIER_ENTER:
    case ETCH__SYNC_OP__SYNC_SEM_POST:
    case ETCH__SYNC_OP__SYNC_SEM_WAIT:
    case ETCH__SYNC_OP__SYNC_SPIN_LOCK:
    case ETCH__SYNC_OP__SYNC_SPIN_UNLOCK:
    case ETCH__SYNC_OP__SYNC_MUTEX_DESTROY:
        return true;
    default:
        return false;
    }
}

/* The innermost line of the program's own source. */
static const struct etch_frame *own_frame(const struct etch_frame *f)
{
    while (f && (!f->file || !f->line || strncmp(f->file, "/usr/", 5) == 0))
        f = f->caller;
    return f;
}

/* Sets the line. False if it has none. */
static bool name_line(struct reading *r, const Etch__Sync *s, struct etch_lab_named *named)
{
    const Etch__Image *image = etch_recording_image_at(r->recording, 0, s->caller - 1);
    struct etch_location location = {0};
    const struct etch_frame *frame;

    if (!s->caller || !image)
        return false;
    etch_symbols_find(r->symbols, image, s->caller - 1, &location);
    frame = location.source == ETCH_LOCATION_DWARF ? own_frame(&location.frame) : NULL;
    if (!frame || strlen(etch_path_name(frame->file)) >= sizeof(named->file))
        return false;
    snprintf(named->file, sizeof(named->file), "%s", etch_path_name(frame->file));
    named->line = frame->line;
    named->kind = ETCH_LAB_WRITES;
    named->what = ETCH_LAB_AT_PLACE;
    return true;
}

static uint32_t count_visit(struct reading *r, uint32_t task, const struct etch_lab_named *named)
{
    struct visit v = {.task = task, .line = named->line, .count = 1};

    snprintf(v.file, sizeof(v.file), "%.63s", named->file);
    for (size_t i = 0; i < r->visits.n; i++) {
        struct visit *old = &r->visits.v[i];

        if (old->task == task && old->line == v.line && strcmp(old->file, v.file) == 0)
            return ++old->count;
    }
    return etch_array_push(&r->visits, v) ? 1 : 0;
}

/* ---- Moments ---- */

static bool add_moment(struct reading *r, uint32_t event, const Etch__Sync *s)
{
    struct task *t = task_of(r, s->tid);
    struct moment m = {.event = event};

    if (!t)
        return false;
    m.task = (uint32_t)(t - r->tasks.v);
    if (s->tid == r->recording->program->pid)
        t->known = true;
    if (s->op == ETCH__SYNC_OP__SYNC_THREAD_START)
        follow_start(r, t, s);
    if (s->op == ETCH__SYNC_OP__SYNC_THREAD_CREATE && !follow_create(r, t, s))
        return false;
    t = &r->tasks.v[m.task];
    m.named.thread = t->name;
    if (s->op == ETCH__SYNC_OP__SYNC_THREAD_START)
        m.named.what = ETCH_LAB_AT_BEGIN;
    else if (s->op == ETCH__SYNC_OP__SYNC_THREAD_EXIT)
        m.named.what = ETCH_LAB_AT_END;
    else if (!is_call(s->op) || !name_line(r, s, &m.named) || !(m.named.visit = count_visit(r, m.task, &m.named)))
        return true;
    return !t->known || etch_array_push(&r->moments, m);
}

struct timed {
    uint64_t tsc;
    uint32_t event;
};

static int by_time(const void *x, const void *y)
{
    const struct timed *a = x, *b = y;

    return a->tsc != b->tsc ? (a->tsc < b->tsc ? -1 : 1) : a->event < b->event ? -1 : a->event > b->event;
}

static bool list_moments(struct reading *r)
{
    const struct etch_timeline *t = &r->timeline;
    struct timed *all = calloc(t->events.n + 1, sizeof(*all));
    bool good = all != NULL;
    size_t n = 0;

    for (size_t i = 0; good && i < t->events.n; i++)
        if ((t->source.v[i] & 3) == 1)
            all[n++] = (struct timed){r->recording->syncs.v[t->source.v[i] >> 2].tsc, (uint32_t)i};
    if (good)
        qsort(all, n, sizeof(*all), by_time);
    r->like->syncs = n;
    for (size_t i = 0; good && i < n; i++)
        good = add_moment(r, all[i].event, &r->recording->syncs.v[t->source.v[all[i].event] >> 2]);
    free(all);
    r->like->named = r->moments.n;
    return good;
}

/* ---- Orders ---- */

/* The newest moment of `task` before moment `b` that is proven to be before; NULL: there is none. */
static const struct moment *newest_before(const struct reading *r, size_t b, uint32_t task)
{
    for (size_t i = b; i-- > 0 && b - i < LOOKED;)
        if (r->moments.v[i].task == task &&
            etch_order_ask(r->order, r->moments.v[i].event, r->moments.v[b].event) == ETCH_BEFORE)
            return &r->moments.v[i];
    return NULL;
}

/* Orders of one thread after another that an earlier order does not say already. */
static int list_orders(struct reading *r, struct etch_error *err)
{
    size_t n = r->moments.n, k = r->tasks.n, from = n > MOST_EVENTS ? n - MOST_EVENTS : 0;
    const struct moment **known = calloc(k * k + 1, sizeof(*known));
    ETCH_ARRAY(struct etch_lab_constraint) all = {0};
    bool good = known != NULL;

    for (size_t b = from; good && b < n; b++)
        for (uint32_t task = 0; good && task < k; task++) {
            const struct moment **before = &known[r->moments.v[b].task * k + task];
            const struct moment *a = task == r->moments.v[b].task ? NULL : newest_before(r, b, task);

            if (a && (!*before || a > *before)) {
                *before = a;
                good = r->moments.v[b].named.what == ETCH_LAB_AT_END ||
                       /* which cannot be held back */ etch_array_push(
                           &all, ((struct etch_lab_constraint){a->named, r->moments.v[b].named}));
            }
        }
    r->like->orders = all.n;
    for (size_t i = all.n > ETCH_LAB_MOST_RULES ? all.n - ETCH_LAB_MOST_RULES : 0; good && i < all.n; i++)
        good = etch_array_push(&r->like->script.orders, all.v[i]);
    etch_array_free(&all);
    free(known);
    return good ? 0 : etch_error_no_memory(err);
}

/* ---- The recording ---- */

static int take_program(struct reading *r, const char *bundle, struct etch_error *err)
{
    const Etch__Failure *f = r->recording->failure;
    const Etch__Program *p = r->recording->program;
    struct etch_lab_like *like = r->like;

    if (!p || !p->exe || !p->n_argv)
        return etch_error_set(err, "%s does not say which program ran", bundle);
    if (!f || f->kind == ETCH__FAILURE_KIND__FAILURE_NONE)
        return etch_error_set(err, "the run in %s did not fail: there is nothing to repeat", bundle);
    like->end = f->kind == ETCH__FAILURE_KIND__FAILURE_SIGNAL ? ETCH_LAB_SIGNALED
                : f->kind == ETCH__FAILURE_KIND__FAILURE_HANG || f->kind == ETCH__FAILURE_KIND__FAILURE_TIMEOUT
                    ? ETCH_LAB_HUNG
                    : ETCH_LAB_EXITED;
    like->number = like->end == ETCH_LAB_SIGNALED ? (int)f->signal : f->code;
    like->exe = strdup(p->exe);
    for (size_t i = 0; i < p->n_argv; i++) {
        char *copy = strdup(p->argv[i]);

        if (!copy || !etch_array_push(&like->argv, copy)) {
            free(copy);
            return etch_error_no_memory(err);
        }
    }
    return like->exe ? 0 : etch_error_no_memory(err);
}

static int read_orders(struct reading *r, struct etch_error *err)
{
    const struct etch_timeline_options none = {0};
    const struct etch_symbols_options plain = {0};

    r->symbols = etch_symbols_new(&plain);
    if (!r->symbols)
        return etch_error_no_memory(err);
    if (etch_timeline_build(&r->timeline, r->recording, &none, err) < 0 ||
        etch_order_build(&r->order, &r->timeline.input, err) < 0)
        return -1;
    return list_moments(r) ? list_orders(r, err) : etch_error_no_memory(err);
}

int etch_lab_like_read(struct etch_lab_like *like, const char *bundle, struct etch_error *err)
{
    struct reading r = {.like = like};
    int status;

    memset(like, 0, sizeof(*like));
    if (etch_recording_open(&r.recording, bundle, err) < 0)
        return -1;
    status = take_program(&r, bundle, err);
    if (status == 0)
        status = read_orders(&r, err);
    etch_order_free(r.order);
    etch_timeline_free(&r.timeline);
    etch_symbols_free(r.symbols);
    etch_array_free(&r.moments);
    etch_array_free(&r.tasks);
    etch_array_free(&r.births);
    etch_array_free(&r.visits);
    etch_recording_free(r.recording);
    return status;
}

/* A line without code in the lab build. */
static bool is_missing(struct etch_lab_names *names, const struct etch_lab_named *named)
{
    struct etch_lab_script one = {0};
    struct etch_lab_enforced ignored = {0};
    struct etch_error err;
    bool missing = named->what == ETCH_LAB_AT_PLACE &&
                   (!etch_array_push(&one.orders, ((struct etch_lab_constraint){*named, *named})) ||
                    etch_lab_names_resolve(names, &one, &ignored, &err) < 0);

    etch_lab_enforced_release(&ignored);
    etch_lab_script_release(&one);
    return missing;
}

/* Drops an order. Of the orders that are resolved too, if there are any. */
static void drop(struct etch_lab_like *like, struct etch_lab_enforced *orders, size_t i)
{
    size_t behind = --like->script.orders.n - i;

    memmove(&like->script.orders.v[i], &like->script.orders.v[i + 1], behind * sizeof(*like->script.orders.v));
    if (orders) {
        memmove(&orders->rules[i], &orders->rules[i + 1], behind * sizeof(*orders->rules));
        orders->n--;
    }
    like->dropped++;
}

int etch_lab_like_resolve(struct etch_lab_like *like, struct etch_lab_names *names, struct etch_lab_enforced *orders,
                          struct etch_error *err)
{
    for (size_t i = like->script.orders.n; i-- > 0;)
        if (is_missing(names, &like->script.orders.v[i].first) || is_missing(names, &like->script.orders.v[i].then))
            drop(like, NULL, i);
    return etch_lab_names_resolve(names, &like->script, orders, err);
}

bool etch_lab_like_adapt(struct etch_lab_like *like, struct etch_lab_enforced *orders,
                         const struct etch_lab_result *result)
{
    uint32_t i = result->shared->unkept - 1;

    if (result->end != ETCH_LAB_UNKEPT || i >= orders->n)
        return false;
    drop(like, orders, i);
    return true;
}

void etch_lab_like_release(struct etch_lab_like *like)
{
    etch_lab_script_release(&like->script);
    for (size_t i = 0; i < like->argv.n; i++)
        free(like->argv.v[i]);
    etch_array_free(&like->argv);
    free(like->exe);
    like->exe = NULL;
}

bool etch_lab_like_is(const struct etch_lab_like *like, const struct etch_lab_result *result)
{
    if (result->end == ETCH_LAB_WRONG)
        return like->end == ETCH_LAB_SIGNALED &&
               (like->number == SIGSEGV || like->number == SIGABRT || like->number == SIGBUS);
    return result->end == like->end && (like->end == ETCH_LAB_HUNG || result->number == like->number);
}
