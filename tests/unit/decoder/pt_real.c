/* SPDX-License-Identifier: MIT */
/* The decoder on what real CPUs wrote: every instruction, in order, against lists that another decoder made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/memory_recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *at(const char *name)
{
    static char path[8192];

    snprintf(path, sizeof(path), "%s/%s", real_captures(), name);
    return path;
}

static struct etch_recording *capture(const char *trace, uint32_t pid)
{
    struct etch_recording *r = memory_recording(at(trace));
    size_t size;
    uint8_t *bytes = slurp(r->path, &size);

    assert_non_null(bytes);
    memory_stream(r, UINT32_MAX, pid, pid, bytes, size);
    free(bytes);
    return r;
}

static void assert_ips(const struct seen *seen, const char *name)
{
    FILE *file = fopen(at(name), "r");
    unsigned long long ip;
    size_t n = 0;

    assert_non_null(file);
    for (; fscanf(file, "%llx", &ip) == 1; n++) {
        assert_true(n < seen->ips.n);
        assert_int_equal(seen->ips.v[n], ip);
    }
    assert_int_equal(seen->ips.n, n);
    fclose(file);
}

static void decode(struct etch_recording *r, struct seen *seen)
{
    struct etch_steps_options options = {.jobs = 1};
    struct etch_error err;

    memory_done(r);
    assert_int_equal(etch_steps(r, &options, see_step, seen, NULL, &err), 0);
}

static size_t losses(const struct seen *seen, Etch__LossCause cause)
{
    size_t n = 0;

    for (size_t i = 0; i < seen->events.n; i++)
        n += seen->events.v[i].kind == ETCH_STEP_LOSS && seen->events.v[i].cause == cause;
    return n;
}

static void decode_single(void **state)
{
    struct etch_recording *r = capture("lldb-single/3842849.trace", 1234);
    struct seen seen = {0};

    (void)state;
    memory_image(r, 1234, 0x400000, 9344, at("lldb-single/a.out"), NULL);
    decode(r, &seen);
    assert_ips(&seen, "lldb-single/expected.ips");
    assert_int_equal(losses(&seen, ETCH__LOSS_CAUSE__LOSS_UNMAPPED_CODE), 0);
    assert_int_equal(losses(&seen, ETCH__LOSS_CAUSE__LOSS_DECODE), 0);
    seen_free(&seen);
    etch_recording_free(r);
}

static void decode_multi_file(void **state)
{
    struct etch_recording *r = capture("lldb-multi-file/multi-file.trace", 815455);
    struct seen seen = {0};

    (void)state;
    memory_image(r, 815455, 0x400000, 9840, at("lldb-multi-file/a.out"), NULL);
    memory_image(r, 815455, 0x7ffff7bd9000, 9184, at("lldb-multi-file/libfoo.so"), NULL);
    memory_image(r, 815455, 0x7ffff79d7000, 9144, at("lldb-multi-file/libbar.so"), NULL);
    decode(r, &seen);
    assert_ips(&seen, "lldb-multi-file/expected.ips");
    assert_int_equal(losses(&seen, ETCH__LOSS_CAUSE__LOSS_UNMAPPED_CODE), 1);
    assert_int_equal(losses(&seen, ETCH__LOSS_CAUSE__LOSS_DECODE), 0);
    for (size_t i = 0; i < seen.events.n; i++)
        if (seen.events.v[i].kind == ETCH_STEP_LOSS)
            assert_int_equal(seen.events.v[i].ip, 0x7ffff7df1950);
    seen_free(&seen);
    etch_recording_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decode_single),
        cmocka_unit_test(decode_multi_file),
    };

    if (!real_captures()) {
        fputs("skipped: no real captures here (ETCH_PTDATA)\n", stderr);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
