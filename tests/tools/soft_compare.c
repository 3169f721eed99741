/* SPDX-License-Identifier: MIT */
/* Was what the software recorder replays what ran? Takes two recordings of one run: a truth, made by vpt (or any other
 * source that sees every instruction), and the rings. Compares, thread by thread, the sequence of nodes that were
 * passed, which the truth gives by the addresses of executed instructions and the rings by their bytes.
 *
 *   soft_compare TRUTH RINGS [part | pieces | apart | cut]
 *
 * Calls of functions that the recorder left out, because of its budget, are no loss: their plain copies have no nodes.
 *
 * part: the rings may lack the begin (they wrapped) and the end (they were cut). pieces: and anything where a loss is
 * told. apart: each function's nodes for
 * themselves, for programs with signal handlers, whose place within a segment the rings do not tell. cut: threads that
 * end in the middle of something, when the process does, of which either side may have seen a little more.
 */
#include "decoder/code.h"
#include "decoder/flow/soft_map.h"
#include "decoder/recording.h"
#include "decoder/steps.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct thread {
    uint32_t tid;
    ETCH_ARRAY(uint64_t) marks;
    ETCH_ARRAY(uint64_t) gaps; /* before which mark something was lost */
};

struct side {
    struct etch_recording *recording;
    const struct etch_recording *rings; /* of the two the one that knows where recorded code is */
    const struct etch_soft_map *map;
    ETCH_ARRAY(struct thread) threads;
    uint64_t instructions, losses, dark;
};

static struct thread *thread_of(struct side *s, uint32_t tid)
{
    for (size_t i = 0; i < s->threads.n; i++)
        if (s->threads.v[i].tid == tid)
            return &s->threads.v[i];
    if (!etch_array_push(&s->threads, (struct thread){.tid = tid}))
        abort();
    return &s->threads.v[s->threads.n - 1];
}

/* After an exec other code may stand at the same addresses. */
static bool is_recorded_code(const struct side *s, const struct etch_step *step)
{
    const struct etch_recording *r = s->rings;

    for (size_t i = 0; i < r->images.n; i++)
        if (step->first >= r->images.v[i]->start && step->first - r->images.v[i]->start < r->images.v[i]->size &&
            step->image && strcmp(r->images.v[i]->path, step->image->path) == 0)
            return true;
    return false;
}

static int take(void *context, const struct etch_step *step)
{
    struct side *s = context;
    struct thread *t = thread_of(s, step->tid);
    uint64_t ip = step->first;

    if (step->kind == ETCH_STEP_LOSS && step->cause == ETCH__LOSS_CAUSE__LOSS_BUDGET) {
        s->dark++;
    } else if (step->kind == ETCH_STEP_LOSS) {
        s->losses++;
        fprintf(stderr, "loss in thread %u: %s\n", step->tid, step->detail ? step->detail : "");
        if (!etch_array_push(&t->gaps, t->marks.n))
            abort();
    }
    if (step->kind != ETCH_STEP_BLOCK || !is_recorded_code(s, step))
        return 0;
    s->instructions += step->count;
    for (uint32_t i = 0; i < step->count; i++) {
        size_t at = etch_soft_map_mark_at(s->map, ip);

        if (at < s->map->marks.n && s->map->marks.v[at].address == ip && !etch_array_push(&t->marks, ip))
            abort();
        ip += step->sizes[i];
    }
    return 0;
}

static int read_side(struct side *s)
{
    const struct etch_steps_options options = {.jobs = 1};
    struct etch_error err;

    if (etch_steps(s->recording, &options, take, s, NULL, &err) < 0) {
        fprintf(stderr, "%s\n", err.what);
        return -1;
    }
    return 0;
}

static uint32_t pid_of(const struct etch_recording *r)
{
    return r->streams.n ? r->streams.v[0].about->pid : 0;
}

static const char *name_of(const struct side *s, uint64_t ip)
{
    static char text[64];
    size_t at = etch_soft_map_mark_at(s->map, ip);

    snprintf(text, sizeof(text), "%#" PRIx64 " (function %#" PRIx64 ", node %u)", ip,
             s->map->functions.v[s->map->marks.v[at].function].address, s->map->marks.v[at].node);
    return text;
}

/* Where `b` begins within `a`, for the longest way; SIZE_MAX: nowhere. */
static size_t align(const struct thread *a, const struct thread *b, bool part)
{
    if (!part)
        return 0;
    if (b->marks.n > a->marks.n)
        return SIZE_MAX;
    for (size_t i = a->marks.n - b->marks.n + 1; i > 0; i--)
        if (memcmp(a->marks.v + i - 1, b->marks.v, b->marks.n * sizeof(*b->marks.v)) == 0)
            return i - 1;
    return SIZE_MAX;
}

static int compare(const struct side *truth, const struct thread *a, const struct thread *b, bool part)
{
    size_t at = align(a, b, part);

    if (at != SIZE_MAX && (part || a->marks.n == b->marks.n) &&
        (b->marks.n == 0 || memcmp(a->marks.v + at, b->marks.v, b->marks.n * sizeof(*b->marks.v)) == 0))
        return 0;
    printf("thread %u: %zu nodes ran, %zu were replayed\n", a->tid, a->marks.n, b->marks.n);
    for (size_t i = 0; i < a->marks.n && i < b->marks.n; i++)
        if (a->marks.v[i] != b->marks.v[i]) {
            for (size_t k = i > 3 ? i - 3 : 0; k < i; k++)
                printf("  node %zu: both %s\n", k, name_of(truth, a->marks.v[k]));
            printf("  node %zu: ran %s,", i, name_of(truth, a->marks.v[i]));
            printf(" replayed %s\n", name_of(truth, b->marks.v[i]));
            return -1;
        }
    for (size_t i = a->marks.n; i < b->marks.n && i < a->marks.n + 4; i++)
        printf("  node %zu: replayed %s\n", i, name_of(truth, b->marks.v[i]));
    for (size_t i = b->marks.n; i < a->marks.n && i < b->marks.n + 4; i++)
        printf("  node %zu: ran %s\n", i, name_of(truth, a->marks.v[i]));
    return -1;
}

/* What lies between two losses ran in one piece, and behind the piece before. */
static int compare_pieces(const struct side *truth, const struct thread *a, const struct thread *b)
{
    size_t at = 0, from = 0;

    for (size_t gap = 0; gap <= b->gaps.n; gap++) {
        size_t to = gap < b->gaps.n ? b->gaps.v[gap] : b->marks.n, n = to - from;

        while (n && at + n <= a->marks.n && memcmp(a->marks.v + at, b->marks.v + from, n * sizeof(*b->marks.v)) != 0)
            at++;
        if (at + n > a->marks.n) {
            printf("thread %u: nodes %zu to %zu did not run so: %s ...\n", a->tid, from, to,
                   name_of(truth, b->marks.v[from]));
            return -1;
        }
        at += n;
        from = to;
    }
    return 0;
}

/* A thread's nodes function by function, in the order in which each ran. */
static const struct etch_soft_map *sort_map;

static uint32_t function_at(uint64_t ip)
{
    return sort_map->marks.v[etch_soft_map_mark_at(sort_map, ip)].function;
}

struct item {
    uint64_t ip;
    size_t at;
};

static int compare_items(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    uint32_t f = function_at(x->ip), g = function_at(y->ip);

    if (f != g)
        return f < g ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static void set_apart(const struct etch_soft_map *map, struct thread *t)
{
    struct item *items = calloc(t->marks.n + 1, sizeof(*items));

    if (!items)
        abort();
    for (size_t i = 0; i < t->marks.n; i++)
        items[i] = (struct item){t->marks.v[i], i};
    sort_map = map;
    qsort(items, t->marks.n, sizeof(*items), compare_items);
    for (size_t i = 0; i < t->marks.n; i++)
        t->marks.v[i] = items[i].ip;
    free(items);
}

/* To what both have, unless that is a small part. */
static void cut(struct thread *a, struct thread *b)
{
    size_t least = a->marks.n < b->marks.n ? a->marks.n : b->marks.n;

    if (least < a->marks.n / 2 || least < b->marks.n / 2)
        return;
    a->marks.n = b->marks.n = least;
}

static void release(struct side *s)
{
    for (size_t i = 0; i < s->threads.n; i++) {
        etch_array_free(&s->threads.v[i].marks);
        etch_array_free(&s->threads.v[i].gaps);
    }
    etch_array_free(&s->threads);
    etch_recording_free(s->recording);
}

int main(int argc, char **argv)
{
    struct side truth = {0}, rings = {0};
    struct etch_soft_map *map;
    struct etch_code *code;
    struct etch_error err;
    bool part = argc == 4 && strcmp(argv[3], "part") == 0, apart = argc == 4 && strcmp(argv[3], "apart") == 0;
    bool cuts = argc == 4 && strcmp(argv[3], "cut") == 0, pieces = argc == 4 && strcmp(argv[3], "pieces") == 0;
    size_t nodes = 0;
    int status = 0;

    if (argc < 3 || etch_recording_open(&truth.recording, argv[1], &err) < 0 ||
        etch_recording_open(&rings.recording, argv[2], &err) < 0 ||
        etch_code_open(&code, rings.recording, NULL, &err) < 0) {
        fprintf(stderr, "soft_compare: %s\n", argc < 3 ? "TRUTH RINGS [part | pieces | apart | cut]" : err.what);
        return 2;
    }
    truth.rings = rings.rings = rings.recording;
    truth.map = rings.map = map = etch_soft_map_new(code, pid_of(rings.recording));
    if (!truth.map || read_side(&truth) < 0 || read_side(&rings) < 0)
        return 2;
    for (size_t i = 0; i < rings.threads.n; i++) {
        struct thread *b = &rings.threads.v[i], *a = thread_of(&truth, b->tid);

        if (cuts)
            cut(a, b);
        nodes += b->marks.n;
        if (apart)
            set_apart(truth.map, a);
        if (apart)
            set_apart(truth.map, b);
        if ((pieces ? compare_pieces(&truth, a, b) : compare(&truth, a, b, part)) < 0)
            status = 1;
    }
    if (rings.threads.n == 0 || nodes == 0 || truth.map->damaged) {
        printf("nothing was replayed\n");
        status = 1;
    }
    printf("%zu threads, %zu nodes replayed, %" PRIu64 " losses, %" PRIu64 " dark calls, %" PRIu64 " of %" PRIu64
           " instructions: %s\n",
           rings.threads.n, nodes, rings.losses, rings.dark, rings.instructions, truth.instructions,
           status ? "different" : "the same");
    if (!part && !pieces && rings.losses)
        status = 1;
    release(&truth);
    release(&rings);
    etch_soft_map_free(map);
    etch_code_free(code);
    return status;
}
