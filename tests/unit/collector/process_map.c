/* SPDX-License-Identifier: MIT */
/* Processes, threads and mappings from records that come out of order. */
#include "collector/pt/process_map.h"
#include "tests/unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What was written, a line each. */
struct written {
    char lines[64][160];
    size_t n;
};

static void take(void *context, Etch__Record__BodyCase kind, void *message)
{
    struct written *w = context;
    const Etch__Image *i = message;
    const Etch__Thread *t = message;

    assert_true(w->n < 64);
    if (kind == ETCH__RECORD__BODY_IMAGE)
        snprintf(w->lines[w->n++], sizeof(w->lines[0]), "image %u %llx+%llx@%llx %s %llu-%llu", i->pid,
                 (unsigned long long)i->start, (unsigned long long)i->size, (unsigned long long)i->file_offset, i->path,
                 (unsigned long long)i->mapped_tsc, (unsigned long long)i->unmapped_tsc);
    else
        snprintf(w->lines[w->n++], sizeof(w->lines[0]), "thread %u/%u %s %llu-%llu of %u/%u", t->pid, t->tid, t->name,
                 (unsigned long long)t->start_tsc, (unsigned long long)t->end_tsc, t->parent_pid, t->parent_tid);
}

static struct etch_process_map *make(struct written *w)
{
    struct etch_sink sink = {.context = w, .write = take};
    struct etch_process_map *s = etch_process_map_new(&sink);

    memset(w, 0, sizeof(*w));
    assert_non_null(s);
    return s;
}

static void map(struct etch_process_map *s, uint32_t pid, uint64_t start, uint64_t size, const char *path,
                uint64_t time)
{
    struct etch_side side = {.kind = ETCH_SIDE_MAPPED,
                             .time = time,
                             .pid = pid,
                             .tid = pid,
                             .start = start,
                             .size = size,
                             .prot = 5,
                             .build_id_size = 20,
                             .text = path};

    etch_process_map_take(s, &side, 10 * time);
}

static void fork_(struct etch_process_map *s, uint32_t pid, uint32_t tid, uint32_t ppid, uint32_t ptid, uint64_t time)
{
    struct etch_side side = {
        .kind = ETCH_SIDE_FORKED, .time = time, .pid = pid, .tid = tid, .ppid = ppid, .ptid = ptid};

    etch_process_map_take(s, &side, 10 * time);
}

static void exit_(struct etch_process_map *s, uint32_t pid, uint32_t tid, uint64_t time)
{
    struct etch_side side = {.kind = ETCH_SIDE_EXITED, .time = time, .pid = pid, .tid = tid};

    etch_process_map_take(s, &side, 10 * time);
}

static void name(struct etch_process_map *s, uint32_t pid, uint32_t tid, const char *text, bool exec, uint64_t time)
{
    struct etch_side side = {.kind = ETCH_SIDE_NAMED, .time = time, .pid = pid, .tid = tid, .text = text, .exec = exec};

    etch_process_map_take(s, &side, 10 * time);
}

static void check(const struct written *w, const char *const *lines, size_t n)
{
    for (size_t i = 0; i < n && i < w->n; i++)
        assert_string_equal(w->lines[i], lines[i]);
    assert_int_equal(w->n, n);
}

#define CHECK(w, ...)                                                                                                  \
    check(w, (const char *const[]){__VA_ARGS__}, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *))

static void apply_waits_for_other_cpus(void **state)
{
    struct written w;
    struct etch_process_map *s = make(&w);

    (void)state;
    map(s, 5, 0x2000, 0x1000, "/late", 20);
    etch_process_map_apply(s, 10);
    assert_int_equal(w.n, 0);
    map(s, 5, 0x1000, 0x1000, "/early", 10);
    etch_process_map_apply(s, 10);
    assert_int_equal(w.n, 1);
    etch_process_map_apply(s, UINT64_MAX);
    CHECK(&w, "image 5 1000+1000@0 /early 100-0", "image 5 2000+1000@0 /late 200-0");
    etch_process_map_free(s);
}

static void map_over_another(void **state)
{
    struct written w;
    struct etch_process_map *s = make(&w);

    (void)state;
    map(s, 5, 0x1000, 0x4000, "/old", 1);
    map(s, 5, 0x2000, 0x1000, "/new", 2);
    map(s, 5, 0x2000, 0x1000, "//anon", 3); /* generated code: its bytes are nowhere, but /new is gone */
    etch_process_map_apply(s, UINT64_MAX);
    CHECK(&w, "image 5 1000+4000@0 /old 10-0", "image 5 1000+4000@0 /old 10-20", "image 5 1000+1000@0 /old 20-0",
          "image 5 3000+2000@2000 /old 20-0", "image 5 2000+1000@0 /new 20-0", "image 5 2000+1000@0 /new 20-30");
    etch_process_map_free(s);
}

static void fork_inherits_and_exec_forgets(void **state)
{
    struct written w;
    struct etch_process_map *s = make(&w);

    (void)state;
    etch_process_map_leave(s, 5);
    map(s, 5, 0x1000, 0x1000, "/parent", 1);
    fork_(s, 6, 6, 5, 5, 2);
    name(s, 6, 6, "child", true, 3);
    map(s, 6, 0x9000, 0x1000, "/child", 4);
    exit_(s, 6, 6, 5);
    etch_process_map_apply(s, UINT64_MAX);
    CHECK(&w, "image 5 1000+1000@0 /parent 10-0", "image 6 1000+1000@0 /parent 20-0",
          "image 6 1000+1000@0 /parent 20-30", "image 6 9000+1000@0 /child 40-0", "thread 6/6 child 20-50 of 5/5");
    assert_int_equal(etch_process_map_processes(s), 1);
    assert_int_equal(etch_process_map_threads(s), 1);
    assert_false(etch_process_map_alive(s));
    etch_process_map_free(s);
}

static void threads_of_the_own_process_are_left(void **state)
{
    struct written w;
    struct etch_process_map *s = make(&w);

    (void)state;
    etch_process_map_leave(s, 5);
    fork_(s, 5, 7, 5, 5, 1);
    fork_(s, 8, 8, 5, 7, 2);
    name(s, 5, 7, "own", false, 3);
    exit_(s, 5, 7, 4);
    etch_process_map_apply(s, UINT64_MAX);
    assert_int_equal(w.n, 0);
    etch_process_map_conclude(s);
    CHECK(&w, "thread 8/8  20-0 of 5/7");
    etch_process_map_free(s);
}

/* A number that comes again is another process. */
static void number_used_again(void **state)
{
    struct written w;
    struct etch_process_map *s = make(&w);

    (void)state;
    map(s, 5, 0x1000, 0x1000, "/parent", 1);
    fork_(s, 6, 6, 5, 5, 2);
    exit_(s, 6, 6, 3);
    fork_(s, 6, 6, 5, 5, 4);
    etch_process_map_apply(s, UINT64_MAX);
    CHECK(&w, "image 5 1000+1000@0 /parent 10-0", "image 6 1000+1000@0 /parent 20-0", "thread 6/6  20-30 of 5/5",
          "image 6 1000+1000@0 /parent 40-0");
    etch_process_map_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(apply_waits_for_other_cpus),
        cmocka_unit_test(map_over_another),
        cmocka_unit_test(fork_inherits_and_exec_forgets),
        cmocka_unit_test(threads_of_the_own_process_are_left),
        cmocka_unit_test(number_used_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
