/* SPDX-License-Identifier: MIT */
/* The walk: each thread's steps once, from its first to its last. Takes along which statements ran and how often, how
 * branches went, and who called whom. */
#include "sketch/runs/build_model.h"
#include "sketch/runs/limit.h"

#include <stdlib.h>
#include <string.h>

#define HISTORY 16u /* visits of a place that are kept */

/* ---- Statements ---- */

static struct etch_run_visit *visit_of(struct build *b, struct walk *w, uint32_t place)
{
    struct etch_run_visit visit = {.thread = w->thread, .place = place};

    if (place >= w->n_visit) {
        size_t n = b->names->places.n + 64;
        uint32_t *bigger = realloc(w->visit, n * sizeof(*bigger));

        if (!bigger)
            return NULL;
        memset(bigger + w->n_visit, 0, (n - w->n_visit) * sizeof(*bigger));
        w->visit = bigger;
        w->n_visit = n;
    }
    if (!w->visit[place]) {
        if (!etch_array_push(&b->run->visits, visit))
            return NULL;
        w->visit[place] = (uint32_t)b->run->visits.n;
    }
    return &b->run->visits.v[w->visit[place] - 1];
}

/* Each visit has some room of its own, which it fills round and round. */
static void keep_visit(struct build *b, const struct etch_run_visit *visit)
{
    const struct etch_run_visit none = {0};
    size_t at = (size_t)(visit - b->run->visits.v) * HISTORY;

    while (!b->failed && b->run->history.n < at + HISTORY)
        b->failed = !etch_array_push(&b->run->history, none);
    if (!b->failed)
        b->run->history.v[at + visit->count % HISTORY] = *visit;
}

void etch_walk_visit(struct build *b, struct walk *w, const struct etch_step *step, uint32_t place, bool begins,
                     uint32_t index)
{
    struct frame *frame = &w->frames[w->depth < DEPTH_MAX ? w->depth : DEPTH_MAX - 1];
    struct etch_run_visit *visit;

    if (w->pending_branch >= 0) {
        b->run->branches.v[w->pending_branch].to = place;
        w->pending_branch = -1;
    }
    if (frame->last == place && !begins)
        return;
    frame->last = place;
    visit = visit_of(b, w, place);
    if (!visit) {
        b->failed = true;
        return;
    }
    visit->count++;
    visit->seq = w->block << IN_BLOCK_BITS | (index & ((1u << IN_BLOCK_BITS) - 1));
    visit->lo = step->time.lo;
    visit->hi = step->time.hi;
    visit->depth = w->depth;
    if (b->failing)
        keep_visit(b, visit);
}

/* The index of a branch's outcome in the run; ETCH_INDEX_NONE: the branch has not had it yet. */
static uint32_t find_branch(const struct build *b, uint64_t address, bool taken)
{
    uint64_t hash = etch_hash(taken, &address, sizeof(address));
    size_t probe = 0;
    uint32_t i;

    while ((i = etch_index_next(&b->by_branch, hash, &probe)) != ETCH_INDEX_NONE)
        if (b->run->branches.v[i].address == address && b->run->branches.v[i].taken == taken)
            return i;
    return ETCH_INDEX_NONE;
}

static bool add_branch(struct build *b, const struct etch_run_branch *branch)
{
    return etch_array_push(&b->run->branches, *branch) &&
           etch_index_add(&b->by_branch, etch_hash(branch->taken, &branch->address, sizeof(branch->address)),
                          (uint32_t)b->run->branches.n - 1);
}

/* The newest outcomes of all branches are the state in which a thread has its next outcome. */
static void note_pairs(struct build *b, struct walk *w, uint32_t outcome, uint32_t opposite, uint64_t seq)
{
    uint64_t *known = b->with[outcome % PAIRED];

    if (outcome >= PAIRED) {
        w->unpaired++;
        return;
    }
    for (uint32_t i = 0; i < PAIRED / 64; i++) {
        uint64_t fresh = w->newest[i] & ~known[i];

        known[i] |= fresh;
        for (; fresh && !b->failed; fresh &= fresh - 1) {
            struct etch_run_branch_pair pair = {i * 64 + (uint32_t)__builtin_ctzll(fresh), outcome, seq};

            b->failed = !etch_array_push(&b->run->branch_pairs, pair);
        }
    }
    w->newest[outcome / 64] |= (uint64_t)1 << outcome % 64;
    if (opposite < PAIRED)
        w->newest[opposite / 64] &= ~((uint64_t)1 << opposite % 64);
}

static int by_second(const void *x, const void *y)
{
    const struct etch_run_branch_pair *a = x, *b = y;

    return a->second != b->second ? (a->second < b->second ? -1 : 1) : a->first < b->first ? -1 : a->first > b->first;
}

static void note_branch(struct build *b, struct walk *w, const struct etch_step *step, uint32_t place)
{
    struct etch_run_branch branch = {.place = place,
                                     .address = step->last - b->bias,
                                     .taken = step->to != step->end,
                                     .to = ETCH_NOWHERE,
                                     .thread = w->thread,
                                     .first = w->block << IN_BLOCK_BITS};
    uint32_t i, other;

    w->pending_branch = -1;
    if (!b->names->places.v[place].branches)
        return; /* a recorder's own, say */
    i = find_branch(b, branch.address, branch.taken);
    if (i == ETCH_INDEX_NONE) {
        if (!add_branch(b, &branch)) {
            b->failed = true;
            return;
        }
        i = (uint32_t)b->run->branches.n - 1;
        w->pending_branch = (int)i;
    } else if (b->run->branches.v[i].thread != w->thread) {
        b->run->branches.v[i].thread = ETCH_NOWHERE;
    }
    b->run->branches.v[i].last = branch.first;
    b->run->branches.v[i].at_last = true;
    other = find_branch(b, branch.address, !branch.taken);
    if (other != ETCH_INDEX_NONE)
        b->run->branches.v[other].at_last = false;
    note_pairs(b, w, i, other, branch.first);
}

/* ---- Blocks and calls ---- */

/* Called only if it matters: for a run that failed and yet ended by itself. Its last lines are all that is known. */
static bool has_line(struct build *b, const struct etch_step *step)
{
    struct etch_location location;

    if (!etch_build_ended_itself(b))
        return false;
    etch_symbols_find(b->symbols, step->image, step->last, &location);
    return location.frame.line != 0;
}

static void walk_block(struct build *b, struct walk *w, const struct etch_step *step)
{
    bool program = etch_build_use_image(b, step->image), look = program && b->options->slice;
    bool trail = etch_trail_wants(b, w);
    uint32_t place = ETCH_NOWHERE, index = 0;

    for (uint64_t ip = look || trail || etch_walk_has_access(b, w, step) ? step->first : 0; ip;
         ip = etch_step_next_ip(step, ip), index++) {
        if (look) {
            place = etch_build_table_place(b, ip - b->bias);
            if (place != ETCH_NOWHERE)
                etch_walk_visit(b, w, step, place, etch_build_begins(b, ip - b->bias), index);
        }
        if (trail)
            etch_trail_take(b, w, ip, index, place);
        if (w->held.n && etch_walk_is_held(b, w))
            etch_walk_run_handler(b, w);
        if (w->next_access < b->accesses.n)
            etch_walk_take_accesses(b, w, step, ip, index);
    }
    if (program)
        etch_walk_pass_exits(b, w, step);
    if (program && b->recording->source == ETCH__SOURCE__SOURCE_SOFT)
        etch_walk_take_outside(b, w, step, index);
    if (program && b->options->slice && step->branch == ETCH_BRANCH_CONDITIONAL && step->to && place != ETCH_NOWHERE)
        note_branch(b, w, step, place);
    w->last_ip = step->last;
    w->last_lo = step->time.lo;
    if (program && has_line(b, step))
        w->last_program_ip = step->last;
    else if (w->in_program && w->depth && w->depth < DEPTH_MAX &&
             etch_build_is_program(b, etch_build_image_at(b, w->frames[w->depth].return_address)))
        w->last_outside = w->frames[w->depth].return_address;
    w->in_program = program;
}

/* A thread's name is that of the first of the user's functions that it ran; the first thread's is main. */
static void name_thread(struct build *b, struct walk *w, const struct etch_step *step)
{
    struct etch_run_thread *t = &b->run->threads.v[w->thread];

    if (t->name || !etch_build_is_program(b, step->image))
        return;
    t->name = w->tid == b->run->threads.v[0].tid ? strdup("main") : etch_build_thread_name(b, step->first);
}

uint32_t etch_walk_own_place(struct build *b, const struct walk *w, uint64_t ip)
{
    uint32_t place = etch_build_place_of(b, etch_build_image_at(b, ip), ip);

    for (uint32_t d = w->depth < DEPTH_MAX ? w->depth : DEPTH_MAX - 1; d > 0 && place == ETCH_NOWHERE; d--) {
        uint64_t caller = w->frames[d].return_address;

        place = etch_build_place_of(b, etch_build_image_at(b, caller), caller - 1);
    }
    return place;
}

static bool makes_thread(const char *function)
{
    return strncmp(function, "pthread_create", 14) == 0 || strncmp(function, "std::thread::_M_start_thread", 28) == 0;
}

static void note_create(struct build *b, struct walk *w, uint64_t target, uint64_t caller)
{
    struct etch_location location;

    etch_symbols_find(b->symbols, etch_build_image_at(b, target), target, &location);
    if (!location.symbol || !makes_thread(location.symbol))
        return;
    if (!etch_array_push(&w->creates, etch_walk_own_place(b, w, caller - 1)))
        b->failed = true;
}

void etch_walk_return_to(struct walk *w, uint64_t address)
{
    for (uint32_t d = w->depth; d > 0; d--) {
        if (d < DEPTH_MAX && w->frames[d].return_address == address) {
            w->depth = d - 1;
            return;
        }
    }
}

static void follow_call(struct build *b, struct walk *w, const struct etch_step *step)
{
    if (step->branch == ETCH_BRANCH_CALL || step->branch == ETCH_BRANCH_CALL_INDIRECT) {
        if (step->to == step->end)
            return;
        etch_walk_take_syncs(b, w, step);
        w->depth++;
        w->calls++;
        w->too_deep += w->depth >= DEPTH_MAX;
        if (w->depth < DEPTH_MAX)
            w->frames[w->depth] = (struct frame){step->end, ETCH_NOWHERE, w->calls};
        if (step->to && etch_build_is_program(b, step->image))
            note_create(b, w, step->to, step->end);
    } else if (step->branch == ETCH_BRANCH_RETURN && step->to) {
        etch_walk_return_to(w, step->to);
    }
}

/* ---- Steps ---- */

void etch_walk_take_step(struct build *b, struct walk *w, const struct etch_step *step)
{
    const Etch__Failure *f = b->recording->failure;

    etch_trail_take_step(b, w, step);
    if (step->kind == ETCH_STEP_LOSS) {
        w->lost = true;
    } else if (step->kind == ETCH_STEP_INTERRUPT && f && f->tid == step->tid && f->ip == step->ip &&
               (step->nowhere || step->time.hi >= f->tsc)) {
        if (step->nowhere && w->last_branch != ETCH_BRANCH_CALL && w->last_branch != ETCH_BRANCH_CALL_INDIRECT)
            w->went_from = w->last_ip;
        b->nowhere |= step->nowhere;
        w->last_ip = step->ip;
        w->over = true; /* the later steps of a handler did not lead to the failure */
    } else if (step->kind == ETCH_STEP_BLOCK) {
        w->block++;
        name_thread(b, w, step);
        if (w->interrupted)
            etch_walk_begin_again(b, w, step->first);
        walk_block(b, w, step);
        follow_call(b, w, step);
        w->expected = step->branch == ETCH_BRANCH_FAR ? step->end : 0;
    } else if (step->ip) {
        if (step->kind == ETCH_STEP_BEGIN) {
            etch_walk_begin_again(b, w, step->ip);
        } else if (step->kind == ETCH_STEP_INTERRUPT) {
            w->interrupted = true;
            w->expected = step->ip;
        }
        w->last_ip = step->ip;
    }
}

static void begin_walk(struct build *b, const struct etch_step *step)
{
    struct walk *w = b->walk;

    w->begun = true;
    w->tid = step->tid;
    w->thread = etch_build_thread(b, step->tid);
    w->pending_branch = -1;
    w->frames[0] = (struct frame){0, ETCH_NOWHERE, w->calls = 1};
    if (w->thread < b->n_of_thread)
        w->next_access = w->next_outside = b->of_thread[w->thread].first;
}

/* The losses by a limit of this walk. */
static void report_limits(struct build *b, const struct walk *w)
{
    b->failed |=
        etch_run_limit(b->run, w->tid, w->too_deep, "calls deeper than 4,096 have no known caller") < 0 ||
        etch_run_limit(b->run, w->tid, w->unkept_handlers,
                       "signal handlers nested deeper than 8 count as the code that they interrupted") < 0 ||
        etch_run_limit(b->run, w->tid, w->early_handlers,
                       "signal handlers of more than 4,096 steps may stand before the code that they "
                       "interrupted") < 0 ||
        etch_run_limit(b->run, w->tid, w->unpaired, "outcomes of branches beyond 1,024 are not combined") < 0 ||
        etch_run_limit(b->run, w->tid, w->unkept_frames, "the outermost calls of a deep stack are not kept") < 0;
}

static void end_walk(struct build *b)
{
    struct walk *w = b->walk;
    uint32_t child = 0;

    if (!w->begun)
        return;
    if (w->held.n)
        etch_walk_run_handler(b, w);
    etch_walk_go_to_end(b, w);
    etch_walk_visit_failure(b, w);
    etch_walk_stand(b, w);
    for (size_t i = 0; i < b->run->threads.n; i++) {
        struct etch_run_thread *t = &b->run->threads.v[i];

        if (t->parent == w->thread && child < w->creates.n)
            t->made_at = w->creates.v[child++];
    }
    b->run->threads.v[w->thread].lost = w->lost;
    b->run->lost |= w->lost;
    report_limits(b, w);
    free(w->visit);
    etch_array_free(&w->creates);
    etch_array_free(&w->held_sizes);
    memset(w, 0, sizeof(*w));
}

static int on_step(void *context, const struct etch_step *step)
{
    struct build *b = context;
    struct walk *w = b->walk;

    if (b->pid && step->pid && b->pid != step->pid)
        return 0;
    if (!w->begun || w->tid != step->tid) {
        end_walk(b);
        begin_walk(b, step);
    }
    if (w->thread == ETCH_NOWHERE || b->failed)
        return -1;
    if (w->over)
        return 0;
    if (!etch_walk_take_handler(b, w, step)) {
        if (w->held.n && etch_walk_is_nowhere(b, w))
            etch_walk_run_handler(b, w);
        etch_walk_take_step(b, w, step);
    }
    w->last_kind = step->kind;
    if (step->kind == ETCH_STEP_BLOCK)
        w->last_branch = step->branch;
    return 0;
}

int etch_build_walk(struct build *b, struct etch_error *err)
{
    struct etch_steps_options options = {.jobs = b->options->jobs};
    int status;

    if (!b->recording->streams.n)
        return 0;
    b->failing = etch_build_is_failing(b);
    etch_build_bound_exits(b);
    b->walk = calloc(1, sizeof(*b->walk));
    if (!b->walk)
        return etch_error_no_memory(err);
    status = b->options->kept ? etch_steps_kept(b->options->kept, b->recording, options.jobs, on_step, b, err)
                              : etch_steps(b->recording, &options, on_step, b, NULL, err);
    if (b->failed)
        status = etch_error_no_memory(err);
    if (status == 0) {
        end_walk(b);
        if (b->run->branch_pairs.n)
            qsort(b->run->branch_pairs.v, b->run->branch_pairs.n, sizeof(*b->run->branch_pairs.v), by_second);
        b->run->flow = true;
    }
    free(b->walk->visit);
    etch_array_free(&b->walk->creates);
    etch_array_free(&b->walk->held);
    etch_array_free(&b->walk->held_sizes);
    free(b->walk);
    return status;
}
