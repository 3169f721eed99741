/* SPDX-License-Identifier: MIT */
/* See lab_file.h. */
#include "cli/lab_file.h"

#include "base/function_name.h"
#include "base/path.h"
#include "base/printable.h"
#include "binary/symbols.h"
#include "proto/bundle.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Writing ---- */

static int write_program(struct etch_bundle_writer *w, const struct etch_lab_file *f, struct etch_error *err)
{
    Etch__Program program = ETCH__PROGRAM__INIT;
    Etch__Record record = ETCH__RECORD__INIT;
    char folder[PATH_MAX] = "";

    program.etch_version = (char *)ETCH_VERSION;
    program.argv = f->argv.v;
    program.n_argv = f->argv.n;
    program.exe = (char *)f->exe;
    program.cwd = getcwd(folder, sizeof(folder)) ? folder : (char *)"";
    record.body_case = ETCH__RECORD__BODY_PROGRAM;
    record.program = &program;
    return etch_bundle_write(w, &record, err);
}

/* The threads, the counts and the sites, as arrays for the message. */
struct lists {
    uint32_t *threads, *counts;
    uint64_t *sites;
    size_t n_sites;
};

static bool make_lists(struct lists *l, const struct etch_lab_schedule *s)
{
    size_t n = s->segments.n;

    l->threads = malloc((n + 1) * sizeof(*l->threads));
    l->counts = malloc((n + 1) * sizeof(*l->counts));
    l->sites = malloc(ETCH_LAB_SITES * sizeof(*l->sites));
    if (!l->threads || !l->counts || !l->sites)
        return false;
    for (size_t i = 0; i < n; i++) {
        l->threads[i] = s->segments.v[i].thread;
        l->counts[i] = s->segments.v[i].count;
    }
    for (uint32_t i = 0; i < ETCH_LAB_SITES; i++)
        if (s->sites[i])
            l->sites[l->n_sites++] = s->sites[i];
    return true;
}

static int write_schedule(struct etch_bundle_writer *w, const struct etch_lab_file *f, struct etch_error *err)
{
    Etch__Schedule schedule = ETCH__SCHEDULE__INIT;
    Etch__Record record = ETCH__RECORD__INIT;
    struct lists l = {0};
    int status = -1;

    if (make_lists(&l, &f->schedule)) {
        schedule.program = (ProtobufCBinaryData){sizeof(f->program), (uint8_t *)f->program};
        schedule.strategy = (char *)etch_lab_strategy_name(f->schedule.spec.kind);
        schedule.seed = f->schedule.spec.seed;
        schedule.points = f->schedule.points;
        schedule.hash = f->schedule.hash;
        schedule.threads = l.threads;
        schedule.counts = l.counts;
        schedule.n_threads = schedule.n_counts = f->schedule.segments.n;
        schedule.sites = l.sites;
        schedule.n_sites = l.n_sites;
        schedule.input = (char *)f->input;
        schedule.real_time = f->real_time;
        schedule.no_heap_check = f->no_heap_check;
        schedule.misuse = f->schedule.end == ETCH_LAB_WRONG ? (uint32_t)f->schedule.number : 0;
        record.body_case = ETCH__RECORD__BODY_SCHEDULE;
        record.schedule = &schedule;
        status = etch_bundle_write(w, &record, err);
    } else {
        etch_error_no_memory(err);
    }
    free(l.threads);
    free(l.counts);
    free(l.sites);
    return status;
}

/* A hang has neither a signal nor an exit status. */
static int write_outcome(struct etch_bundle_writer *w, const struct etch_lab_schedule *s, struct etch_error *err)
{
    Etch__Outcome outcome = ETCH__OUTCOME__INIT;
    Etch__Record record = ETCH__RECORD__INIT;

    if (s->end == ETCH_LAB_SIGNALED) {
        outcome.how_case = ETCH__OUTCOME__HOW_SIGNAL;
        outcome.signal = (uint32_t)s->number;
    } else if (s->end == ETCH_LAB_EXITED) {
        outcome.how_case = ETCH__OUTCOME__HOW_EXIT_STATUS;
        outcome.exit_status = (uint32_t)s->number;
    }
    record.body_case = ETCH__RECORD__BODY_OUTCOME;
    record.outcome = &outcome;
    return etch_bundle_write(w, &record, err);
}

int etch_lab_file_write(const char *path, const struct etch_lab_file *file, struct etch_error *err)
{
    struct etch_bundle_writer *w = NULL;
    int status = etch_bundle_create(&w, path, err);

    if (status == 0 && (write_program(w, file, err) < 0 || write_schedule(w, file, err) < 0 ||
                        write_outcome(w, &file->schedule, err) < 0 || etch_bundle_finish(w, err) < 0))
        status = -1;
    etch_bundle_writer_free(w);
    return status;
}

/* ---- Reading ---- */

static int damaged(struct etch_error *err)
{
    return etch_error_set(err, "the schedule is damaged");
}

static int take_program(struct etch_lab_file *f, const Etch__Program *p, struct etch_error *err)
{
    if (strlen(p->exe) >= sizeof(f->exe) || p->n_argv == 0 || f->argv.n)
        return damaged(err);
    snprintf(f->exe, sizeof(f->exe), "%s", p->exe);
    for (size_t i = 0; i < p->n_argv; i++) {
        char *copy = strdup(p->argv[i]);

        if (!copy || !etch_array_push(&f->argv, copy)) {
            free(copy);
            return etch_error_no_memory(err);
        }
    }
    if (!etch_array_reserve(&f->argv, f->argv.n + 1))
        return etch_error_no_memory(err);
    f->argv.v[f->argv.n] = NULL;
    return 0;
}

static int take_schedule(struct etch_lab_file *f, const Etch__Schedule *s, struct etch_error *err)
{
    struct etch_lab_schedule *k = &f->schedule;

    if (s->n_threads != s->n_counts || s->n_threads > ETCH_LAB_SEGMENTS || s->n_sites >= ETCH_LAB_SITES ||
        s->program.len != sizeof(f->program) || strlen(s->input) >= sizeof(f->input) || k->sites)
        return damaged(err);
    k->sites = calloc(ETCH_LAB_SITES, sizeof(*k->sites));
    if (!k->sites || !etch_array_reserve(&k->segments, s->n_threads + 1))
        return etch_error_no_memory(err);
    for (size_t i = 0; i < s->n_threads; i++) {
        if (s->threads[i] >= ETCH_LAB_THREADS || s->counts[i] == 0)
            return damaged(err);
        k->segments.v[k->segments.n++] = (struct etch_lab_segment){s->threads[i], s->counts[i]};
    }
    for (size_t i = 0; i < s->n_sites; i++)
        if (s->sites[i])
            k->sites[etch_lab_site_slot(k->sites, s->sites[i])] = s->sites[i];
    memcpy(f->program, s->program.data, sizeof(f->program));
    snprintf(f->input, sizeof(f->input), "%s", s->input);
    f->real_time = s->real_time;
    f->no_heap_check = s->no_heap_check;
    f->misuse = s->misuse;
    k->spec = (struct etch_lab_spec){.kind = ETCH_LAB_QUEUE, .seed = s->seed, .depth = 1};
    k->points = s->points;
    k->hash = s->hash;
    return 0;
}

static void take_outcome(struct etch_lab_schedule *k, const Etch__Outcome *o, uint32_t misuse)
{
    if (misuse) {
        k->end = ETCH_LAB_WRONG;
        k->number = (int)misuse;
        return;
    }
    k->end = o->how_case == ETCH__OUTCOME__HOW_SIGNAL        ? ETCH_LAB_SIGNALED
             : o->how_case == ETCH__OUTCOME__HOW_EXIT_STATUS ? ETCH_LAB_EXITED
                                                             : ETCH_LAB_HUNG;
    k->number = o->how_case == ETCH__OUTCOME__HOW_SIGNAL        ? (int)o->signal
                : o->how_case == ETCH__OUTCOME__HOW_EXIT_STATUS ? (int)o->exit_status
                                                                : 0;
}

static int read_all(struct etch_lab_file *f, struct etch_bundle_reader *reader, struct etch_error *err)
{
    enum etch_bundle_event event;
    struct etch_bundle_item item;
    int status = 0;

    while (status == 0 &&
           ((event = etch_bundle_next(reader, &item, err)) == ETCH_BUNDLE_RECORD || event == ETCH_BUNDLE_DAMAGED)) {
        if (event == ETCH_BUNDLE_DAMAGED || !item.record)
            continue;
        if (item.record->body_case == ETCH__RECORD__BODY_PROGRAM)
            status = take_program(f, item.record->program, err);
        else if (item.record->body_case == ETCH__RECORD__BODY_SCHEDULE)
            status = take_schedule(f, item.record->schedule, err);
        else if (item.record->body_case == ETCH__RECORD__BODY_OUTCOME)
            take_outcome(&f->schedule, item.record->outcome, f->misuse);
    }
    if (status < 0 || event == ETCH_BUNDLE_FAILED)
        return -1;
    if (f->schedule.sites && f->argv.n)
        return 0;
    etch_error_set(err, "the file holds no schedule");
    return etch_error_advise(err, "etch explore writes files that can be replayed");
}

int etch_lab_file_read(struct etch_lab_file *file, const char *path, struct etch_error *err)
{
    struct etch_bundle_reader *reader = NULL;
    int status;

    memset(file, 0, sizeof(*file));
    if (etch_bundle_open(&reader, path, err) < 0)
        return -1;
    status = read_all(file, reader, err);
    etch_bundle_reader_free(reader);
    if (status == 0)
        return 0;
    etch_lab_file_release(file);
    return etch_error_prefix(err, "cannot replay %s", path);
}

void etch_lab_file_release(struct etch_lab_file *file)
{
    for (size_t i = 0; i < file->argv.n; i++)
        free(file->argv.v[i]);
    etch_array_free(&file->argv);
    etch_lab_schedule_release(&file->schedule);
}

/* ---- Places of the threads ---- */

static const char *wait_name(uint32_t wait)
{
    static const char *const names[] = {"",
                                        "waits for a mutex",
                                        "waits for a read-write lock",
                                        "waits for a condition",
                                        "waits for a semaphore",
                                        "waits at a barrier",
                                        "waits for a thread to end",
                                        "waits for an initialisation by another thread",
                                        "waits for a futex",
                                        "sleeps",
                                        "waits for a descriptor",
                                        "waits for a child process"};

    return wait < sizeof(names) / sizeof(names[0]) ? names[wait] : "waits";
}

/* Finds the line of the user's own code at `address`: the innermost inlined function that is not in a system header.
 * Returns false if there is none. */
static bool find_line(struct etch_symbols *symbols, const Etch__Image *image, uint64_t address,
                      struct etch_frame *frame)
{
    struct etch_location at;

    memset(&at, 0, sizeof(at));
    if (!symbols || address <= image->start || address - image->start >= image->size)
        return false;
    etch_symbols_find(symbols, image, address - 1, &at); /* the call itself, not the return address */
    for (const struct etch_frame *f = &at.frame; f; f = f->caller)
        if (f->file && f->line && !etch_file_is_system(f->file)) {
            *frame = *f;
            return true;
        }
    return false;
}

static void print_place(struct etch_symbols *symbols, const Etch__Image *image, const struct etch_lab_thread *t,
                        FILE *out)
{
    uint64_t depth = t->depth < ETCH_LAB_FRAMES ? t->depth : ETCH_LAB_FRAMES;
    struct etch_frame frame;
    bool found = find_line(symbols, image, t->site, &frame);
    char brief[256];

    while (!found && depth > 0)
        found = find_line(symbols, image, t->frames[--depth], &frame);
    if (!found) {
        fprintf(out, "0x%" PRIx64, t->site);
        return;
    }
    fprintf(out, "%s:%u", etch_shown(etch_path_name(frame.file)), frame.line);
    if (frame.function)
        fprintf(out, " %s", etch_shown(etch_function_short(frame.function, brief, sizeof(brief))));
}

static void print_block_end(struct etch_symbols *symbols, const Etch__Image *image, const char *what, uint32_t thread,
                            uint64_t site, FILE *out)
{
    struct etch_frame frame;

    if (!site)
        return;
    fprintf(out, ", %s by T%u", what, thread + 1);
    if (!find_line(symbols, image, site, &frame))
        return; /* the block is made by a library, for example in operator new */
    fprintf(out, " at %s:%u", etch_shown(etch_path_name(frame.file)), frame.line);
}

/* Prints the misused block. */
static void print_block(struct etch_symbols *symbols, const Etch__Image *image, const struct etch_lab_shared *s,
                        FILE *out)
{
    fprintf(out, "  byte %" PRId64 " of a block of %" PRIu64 " bytes", s->misuse_offset, s->misuse_size);
    print_block_end(symbols, image, "made", s->misuse_made_by, s->misuse_made, out);
    print_block_end(symbols, image, "freed", s->misuse_freed_by, s->misuse_freed, out);
    fputc('\n', out);
}

void etch_lab_print_threads(const struct etch_lab_result *result, const char *twin, FILE *out)
{
    const struct etch_lab_shared *s = result->shared;
    struct etch_symbols_options options = {0};
    struct etch_symbols *symbols = etch_symbols_new(&options);
    Etch__Image image = ETCH__IMAGE__INIT;

    image.path = (char *)twin;
    image.start = s->base;
    image.size = s->end - s->base;
    image.prot = 5;
    for (uint32_t i = 0; i < s->threads && i < ETCH_LAB_THREADS; i++) {
        const struct etch_lab_thread *t = &s->thread[i];

        if (t->dead || !t->site)
            continue;
        fprintf(out, "  T%u  ", i + 1);
        print_place(symbols, &image, t, out);
        fprintf(out, "%s%s", t->wait ? "  " : "", wait_name(t->wait));
        if (t->wait == ETCH_LAB_MUTEX && t->holder < s->threads)
            fprintf(out, " that T%u holds%s", t->holder + 1, s->thread[t->holder].dead ? ", which has ended" : "");
        fprintf(out, "%s\n", result->end != ETCH_LAB_HUNG && i == s->running ? "  ran last" : "");
    }
    if (result->end == ETCH_LAB_WRONG)
        print_block(symbols, &image, s, out);
    etch_symbols_free(symbols);
}

/* ---- The cause ---- */

static void print_moment(struct etch_symbols *symbols, const Etch__Image *image, const struct etch_lab_event *e,
                         FILE *out)
{
    struct etch_lab_thread at = {.site = e->site};

    for (uint32_t i = ETCH_LAB_CALLERS; i-- > 0;)
        if (e->callers[i])
            at.frames[at.depth++] = e->callers[i];
    fprintf(out, "T%u ", e->thread + 1);
    print_place(symbols, image, &at, out);
    if (e->visit > 1)
        fprintf(out, " #%u", e->visit);
    fprintf(out, " (%s)", e->write ? "write" : "read");
}

static void print_order(struct etch_symbols *symbols, const Etch__Image *image, const struct etch_lab_order *o,
                        FILE *out)
{
    fprintf(out, "  %-9s  ", etch_lab_order_is_proven(o) ? "proven" : "necessary");
    print_moment(symbols, image, &o->before, out);
    fprintf(out, " before ");
    print_moment(symbols, image, &o->after, out);
    fprintf(out, "\n             turned round%s: %u of %u fail; enforced alone: %u of %u fail\n",
            o->whole ? " (held until the other thread has ended)" : "", o->turned.failed + o->turned.otherwise,
            o->turned.of, o->alone.failed, o->alone.of);
}

void etch_lab_print_cause(const struct etch_lab_cause *c, const char *twin, FILE *out)
{
    struct etch_symbols_options options = {0};
    struct etch_symbols *symbols = etch_symbols_new(&options);
    Etch__Image image = ETCH__IMAGE__INIT;
    size_t switches = c->schedule.segments.n ? c->schedule.segments.n - 1 : 0;

    image.path = (char *)twin;
    image.start = c->base;
    image.size = c->end - c->base;
    image.prot = 5;
    fprintf(out, "shortened  to %zu switch%s\n", switches, switches == 1 ? "" : "es");
    fprintf(out, "%s\n", c->n_orders ? "cause" : "cause      no order of two accesses alone decides the failure");
    for (uint32_t i = 0; i < c->n_orders && i < 4; i++)
        print_order(symbols, &image, &c->orders[i], out);
    if (c->n_orders > 4)
        fprintf(out, "  %u more\n", c->n_orders - 4);
    if (c->together.of)
        fprintf(out, "  all of them enforced together: %u of %u fail\n", c->together.failed, c->together.of);
    fprintf(out, "           %u order%s tried, %" PRIu64 " runs\n", c->n_tried, c->n_tried == 1 ? "" : "s", c->runs);
    etch_symbols_free(symbols);
}
