/* SPDX-License-Identifier: MIT */
/* decode_without FILE NAME: decodes a recording whole, and again without the code of the modules whose path holds NAME.
 * What the second decode lists between two losses must stand in the first just so, in the same order. Prints how many
 * instructions of the code that is left it listed, of how many there were, and in percent. */
#include "decoder/steps.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct thread {
    uint32_t pid, tid;
    ETCH_ARRAY(uint64_t) ips; /* 0: something is missing here, or tracing was off */
    uint64_t kept;            /* of code that the second decode has */
};

struct list {
    const char *without;
    ETCH_ARRAY(struct thread) threads;
};

static struct thread *thread_of(struct list *list, const struct etch_step *step)
{
    struct thread thread = {.pid = step->pid, .tid = step->tid};

    for (size_t i = list->threads.n; i > 0; i--)
        if (list->threads.v[i - 1].pid == step->pid && list->threads.v[i - 1].tid == step->tid)
            return &list->threads.v[i - 1];
    if (!etch_array_push(&list->threads, thread))
        abort();
    return &list->threads.v[list->threads.n - 1];
}

static bool is_left_out(const Etch__Image *image, const char *name)
{
    return image->path && strstr(image->path, name);
}

static int note(void *context, const struct etch_step *step)
{
    struct list *list = context;
    struct thread *thread = thread_of(list, step);
    uint64_t ip = step->first;

    if (step->kind == ETCH_STEP_LOSS && !etch_array_push(&thread->ips, 0))
        abort();
    for (uint32_t i = 0; i < step->count; ip += step->sizes[i++]) {
        thread->kept += !is_left_out(step->image, list->without);
        if (!etch_array_push(&thread->ips, ip))
            abort();
    }
    return 0;
}

static void leave_out(struct etch_recording *r, const char *name)
{
    for (size_t i = 0; i < r->images.n; i++)
        if (is_left_out(r->images.v[i], name)) {
            r->images.v[i]->path[0] = '[';
            r->images.v[i]->build_id.len = r->images.v[i]->code.len = 0;
        }
}

static void decode(const char *path, struct list *list, bool whole)
{
    struct etch_steps_options options = {.jobs = 2};
    struct etch_recording *r;
    struct etch_error err;

    if (etch_recording_open(&r, path, &err) < 0) {
        fprintf(stderr, "%s\n", err.what);
        exit(1);
    }
    if (!whole)
        leave_out(r, list->without);
    if (etch_steps(r, &options, note, list, NULL, &err) != 0) {
        fprintf(stderr, "%s\n", err.what);
        exit(1);
    }
    etch_recording_free(r);
}

/* Where `run` stands in `all` at or after `from`; all->ips.n where it does not. */
static size_t find(const struct thread *all, size_t from, const uint64_t *run, size_t n)
{
    for (; from + n <= all->ips.n; from++)
        if (memcmp(all->ips.v + from, run, n * sizeof(*run)) == 0)
            return from;
    return all->ips.n;
}

static bool compare(const struct thread *all, const struct thread *some)
{
    size_t at = 0;

    for (size_t i = 0, n; i < some->ips.n; i += n + 1) {
        size_t found;

        for (n = 0; i + n < some->ips.n && some->ips.v[i + n]; n++)
            ;
        found = find(all, at, some->ips.v + i, n);
        if (n && found == all->ips.n) {
            fprintf(stderr, "thread %" PRIu32 ": %zu instructions from %" PRIx64 " on did not run so\n", some->tid, n,
                    some->ips.v[i]);
            return false;
        }
        at = n ? found + n : at;
    }
    return true;
}

static const struct thread *same(const struct list *list, const struct thread *thread)
{
    for (size_t i = 0; i < list->threads.n; i++)
        if (list->threads.v[i].pid == thread->pid && list->threads.v[i].tid == thread->tid)
            return &list->threads.v[i];
    return NULL;
}

static void release(struct list *list)
{
    for (size_t i = 0; i < list->threads.n; i++)
        etch_array_free(&list->threads.v[i].ips);
    etch_array_free(&list->threads);
}

int main(int argc, char **argv)
{
    struct list all = {.without = argc == 3 ? argv[2] : ""}, some = all;
    uint64_t there = 0, listed = 0;
    bool right = true;

    if (argc != 3)
        return 2;
    decode(argv[1], &all, true);
    decode(argv[1], &some, false);
    for (size_t i = 0; i < all.threads.n; i++)
        there += all.threads.v[i].kept;
    for (size_t i = 0; i < some.threads.n && right; i++) {
        const struct thread *whole = same(&all, &some.threads.v[i]);

        right = whole ? compare(whole, &some.threads.v[i]) : some.threads.v[i].kept == 0;
        listed += some.threads.v[i].kept;
    }
    printf("%" PRIu64 " of %" PRIu64 ", %.1f %%\n", listed, there,
           there ? 100.0 * (double)listed / (double)there : 100.0);
    release(&all);
    release(&some);
    return right ? 0 : 1;
}
