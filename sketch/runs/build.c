/* SPDX-License-Identifier: MIT */
/* From a recording to a run. Takes the parts of the recording in turn, each with the results of the parts before; see
 * run_build.h. */
#include "base/function_name.h"
#include "sketch/runs/build_model.h"
#include "sketch/runs/order.h"
#include "sketch/runs/seen.h"

#include "decoder/thrown.h"
#include "decoder/unwind.h"

#include <stdlib.h>
#include <string.h>

/* ---- Threads ---- */

uint32_t etch_build_thread(struct build *b, uint32_t tid)
{
    struct etch_run_thread thread = {
        .tid = tid, .parent = ETCH_NOWHERE, .wait_place = ETCH_NOWHERE, .made_at = ETCH_NOWHERE};

    for (size_t i = 0; i < b->run->threads.n; i++)
        if (b->run->threads.v[i].tid == tid)
            return (uint32_t)i;
    if (!etch_array_push(&b->run->threads, thread)) {
        b->failed = true;
        return ETCH_NOWHERE;
    }
    return (uint32_t)(b->run->threads.n - 1);
}

static int by_start(const void *x, const void *y)
{
    const Etch__Thread *const *a = x, *const *b = y;

    if ((*a)->start_tsc != (*b)->start_tsc)
        return (*a)->start_tsc < (*b)->start_tsc ? -1 : 1;
    return (*a)->tid<(*b)->tid ? -1 : (*a)->tid>(*b)->tid;
}

/* Numbers the threads in the order of their start, so that their numbers are the same in similar runs. Only threads of
 * the program's own process count: other processes are other programs. */
static void number_threads(struct build *b)
{
    struct etch_recording *r = b->recording;
    uint32_t pid = b->pid;

    if (r->threads.n)
        qsort(r->threads.v, r->threads.n, sizeof(*r->threads.v), by_start);
    if (pid)
        etch_build_thread(b, pid);
    for (size_t i = 0; i < r->threads.n; i++)
        if (!pid || r->threads.v[i]->pid == pid)
            etch_build_thread(b, r->threads.v[i]->tid);
    for (size_t i = 0; i < r->threads.n; i++) {
        const Etch__Thread *t = r->threads.v[i];
        uint32_t thread, parent;

        if ((pid && t->pid != pid) || !t->parent_tid || t->parent_tid == t->tid)
            continue;
        thread = etch_build_thread(b, t->tid);
        parent = etch_build_thread(b, t->parent_tid); /* a new one moves the array */
        if (thread != ETCH_NOWHERE)
            b->run->threads.v[thread].parent = parent;
    }
}

static void name_by_start(struct build *b, struct etch_run_thread *t)
{
    const struct etch_recording *r = b->recording;

    for (size_t k = 0; !t->name && k < r->syncs.n; k++)
        if (r->syncs.v[k].tid == t->tid && r->syncs.v[k].op == ETCH__SYNC_OP__SYNC_THREAD_START)
            t->name = etch_build_thread_name(b, r->syncs.v[k].other);
}

/* A thread of std::thread starts in a library. Its own work is the outermost call of the user's code on its stack, or
 * the first that was seen of it. */
static void name_by_work(struct build *b, uint32_t number)
{
    struct etch_run_thread *t = &b->run->threads.v[number];
    uint32_t place = ETCH_NOWHERE;
    char brief[128];

    for (size_t i = t->frames.n; i-- > 0 && !t->name;)
        if (etch_build_is_program(b, etch_build_image_at(b, t->frames.v[i])))
            t->name = etch_build_thread_name(b, t->frames.v[i] - (i > 0));
    for (size_t i = 0; !t->name && place == ETCH_NOWHERE && i < b->run->visits.n; i++)
        if (b->run->visits.v[i].thread == number)
            place = b->run->visits.v[i].place;
    if (!t->name && place < b->names->places.n)
        t->name = strdup(etch_function_short(b->names->places.v[place].function, brief, sizeof(brief)));
}

/* Without control flow a thread is named by the function that pthread_create got. */
static void name_threads(struct build *b)
{
    for (uint32_t i = 0; i < b->run->threads.n; i++) {
        struct etch_run_thread *t = &b->run->threads.v[i];

        if (!t->name && i == 0)
            t->name = strdup("main");
        if (!b->run->flow)
            name_by_start(b, t);
        if (!t->name)
            name_by_work(b, i);
    }
}

/* ---- All of it ---- */

/* By thread; the recording has them in the order of each thread already. */
static int list_syncs(struct build *b, struct etch_error *err)
{
    const struct etch_recording *r = b->recording;

    for (uint32_t t = 0; t < b->run->threads.n; t++)
        for (size_t i = 0; i < r->syncs.n; i++) {
            const Etch__Sync *from = &r->syncs.v[i];
            struct etch_run_sync sync = {.thread = t,
                                         .place = ETCH_NOWHERE,
                                         .op = from->op,
                                         .object = from->object,
                                         .other = from->other,
                                         .result = from->result,
                                         .tsc = from->tsc,
                                         .event = ETCH_NOWHERE};

            if (from->tid != b->run->threads.v[t].tid)
                continue;
            sync.place = etch_build_sync_place(b, i);
            if (b->run->order)
                sync.event = etch_run_order_event(b->run->order, i, 1);
            if (!etch_array_push(&b->run->syncs, sync))
                return etch_error_no_memory(err);
        }
    b->run->synced = r->syncs.n && !b->run->lost;
    return 0;
}

static int copy_losses(struct build *b, struct etch_error *err)
{
    for (size_t i = 0; i < b->recording->losses.n; i++) {
        const Etch__Loss *from = b->recording->losses.v[i];
        size_t size = etch__loss__get_packed_size(from);
        uint8_t *bytes = malloc(size + 1);
        Etch__Loss *copy = bytes ? etch__loss__unpack(NULL, etch__loss__pack(from, bytes), bytes) : NULL;

        free(bytes);
        if (!copy || !etch_array_push(&b->run->losses, copy)) {
            if (copy)
                etch__loss__free_unpacked(copy, NULL);
            return etch_error_no_memory(err);
        }
    }
    b->run->lost |= b->recording->losses.n > 0 || b->recording->cut || b->recording->damaged;
    return 0;
}

static int copy_command(struct build *b, struct etch_error *err)
{
    const Etch__Program *program = b->recording->program;

    for (size_t i = 0; program && i < program->n_argv; i++) {
        char *word = strdup(program->argv[i]);

        if (!word || !etch_array_push(&b->run->command, word)) {
            free(word);
            return etch_error_no_memory(err);
        }
    }
    return 0;
}

static int fill(struct build *b, struct etch_error *err)
{
    struct etch_timeline_options options = {0};

    if (etch_build_check_program(b, err) < 0 || copy_command(b, err) < 0)
        return -1;
    etch_build_find_program(b);
    if (!b->recording->unwound) {
        etch_unwind_failure(b->recording, b->symbols);
        etch_exception_settle(b->recording, b->symbols);
        b->recording->unwound = true;
    }
    number_threads(b);
    if (b->options->slice && etch_build_settle_accesses(b, err) < 0)
        return -1;
    if (b->options->slice && (etch_build_make_tables(b, err) < 0 || etch_build_index_operands(b, err) < 0 ||
                              etch_build_list_watches(b, err) < 0 || etch_build_list_accesses(b, err) < 0))
        return -1;
    if (b->options->slice && etch_build_list_syncs(b, err) < 0)
        return -1;
    if (etch_build_walk(b, err) < 0 || etch_build_conclude(b, err) < 0 || copy_losses(b, err) < 0)
        return -1;
    if (!b->options->slice)
        return 0;
    if (b->run->failing && b->run->flow)
        etch_build_place_last(b);
    options.marks = b->marks.v;
    options.n_marks = b->marks.n;
    options.ties = b->ties.v;
    options.n_ties = b->ties.n;
    if (b->accesses.n + b->recording->syncs.n && etch_run_order_build(&b->run->order, b->recording, &options, err) < 0)
        return -1;
    if (etch_run_order_clocks(b->run, b->recording, err) < 0)
        return -1;
    if (etch_build_sort_accesses(b, err) < 0 || etch_build_list_watched(b, err) < 0 || list_syncs(b, err) < 0)
        return -1;
    etch_build_find_null(b);
    if ((b->run->null_operand != ETCH_NOWHERE && etch_build_add_null(b, err) < 0) || etch_build_add_fatal(b, err) < 0)
        return -1;
    if (etch_build_recover(b, err) < 0)
        return -1;
    etch_build_arguments(b);
    if (!b->run->flow && etch_run_see(b->run, b->names) < 0)
        return etch_error_no_memory(err);
    name_threads(b);
    return etch_run_index(b->run) < 0 ? etch_error_no_memory(err) : 0;
}

int etch_run_build(struct etch_run **run, struct etch_names *names, struct etch_recording *recording,
                   const struct etch_run_options *options, struct etch_error *err)
{
    static const struct etch_symbols_options symbols_options = {0};
    struct build b = {.names = names, .recording = recording, .options = options};
    int status = -1;

    b.run = calloc(1, sizeof(*b.run));
    b.symbols = options->symbols ? options->symbols : etch_symbols_new(&symbols_options);
    if (b.run && b.symbols && (b.run->name = strdup(recording->path))) {
        b.run->source = recording->source;
        b.run->cut = recording->cut;
        b.run->names = options->slice ? names : NULL;
        b.run->null_operand = b.run->null_variable = ETCH_NOWHERE;
        b.run->key = recording->program ? recording->program->start_unix_ns : 0;
        status = fill(&b, err);
    } else {
        etch_error_no_memory(err);
    }
    if (status < 0) {
        etch_run_free(b.run);
        b.run = NULL;
    }
    *run = b.run;
    if (options->symbols)
        etch_symbols_forget_images(options->symbols);
    else
        etch_symbols_free(b.symbols);
    etch_trail_release(&b.trail);
    etch_array_free(&b.accesses);
    etch_array_free(&b.from);
    etch_array_free(&b.marks);
    etch_array_free(&b.ties);
    etch_array_free(&b.operands);
    etch_array_free(&b.operand_places);
    etch_array_free(&b.sync_places);
    etch_array_free(&b.sync_sites);
    etch_array_free(&b.sync_turns);
    etch_array_free(&b.watched);
    etch_index_release(&b.by_address);
    etch_index_release(&b.by_global);
    etch_index_release(&b.by_branch);
    free(b.of_thread);
    etch_build_release_tables(&b);
    return status;
}
