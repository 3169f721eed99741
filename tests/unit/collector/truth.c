/* SPDX-License-Identifier: MIT */
/* The truth log: its lines, repeated string instructions, faults, and that it goes on where it was left. */
#include "collector/vpt/truth.h"
#include "tests/unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static size_t read_log(const char *folder, char *text, size_t size)
{
    char path[128];
    FILE *file;
    size_t n;

    snprintf(path, sizeof(path), "%s/1.2.truth", folder);
    file = fopen(path, "r");
    assert_non_null(file);
    if (!file)
        return 0;
    n = fread(text, 1, size, file);
    fclose(file);
    return n;
}

static void remove_log(const char *folder)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/1.2.truth", folder);
    unlink(path);
    rmdir(folder);
}

static void log_lines(void **state)
{
    char folder[] = P_tmpdir "/etch-truth-XXXXXX", text[256];
    struct etch_vpt_truth t;
    size_t n;

    (void)state;
    assert_non_null(mkdtemp(folder));
    etch_vpt_truth_open(&t, folder, 1, 2);
    etch_vpt_truth_add(&t, 0x401000, false);
    etch_vpt_truth_add(&t, 0x401000, false); /* a jump to itself is two */
    etch_vpt_truth_add(&t, 0x401005, true);
    etch_vpt_truth_add(&t, 0x401005, true); /* one string instruction */
    etch_vpt_truth_add(&t, 0, false);
    etch_vpt_truth_add(&t, 0xffffffffffffffff, false);
    etch_vpt_truth_fault(&t);
    etch_vpt_truth_close(&t);
    n = read_log(folder, text, sizeof(text) - 1);
    text[n] = '\0';
    assert_string_equal(text, "401000\n401000\n401005\n0\nffffffffffffffff fault\n");
    remove_log(folder);
}

static void go_on_after_exec(void **state)
{
    char folder[] = P_tmpdir "/etch-truth-XXXXXX", text[64];
    struct etch_vpt_truth t;
    size_t n;

    (void)state;
    assert_non_null(mkdtemp(folder));
    etch_vpt_truth_open(&t, folder, 1, 2);
    etch_vpt_truth_add(&t, 0x1, false);
    etch_vpt_truth_abandon(&t); /* as after a kill: zeros behind the text */
    etch_vpt_truth_open(&t, folder, 1, 2);
    etch_vpt_truth_add(&t, 0x2, false);
    etch_vpt_truth_close(&t);
    n = read_log(folder, text, sizeof(text) - 1);
    text[n] = '\0';
    assert_string_equal(text, "1\n2\n");
    remove_log(folder);
}

/* More than a window holds. */
static void log_many(void **state)
{
    char folder[] = P_tmpdir "/etch-truth-XXXXXX";
    size_t size = 4u << 20, n, lines = 0;
    char *text = malloc(size);
    struct etch_vpt_truth t;

    (void)state;
    assert_non_null(mkdtemp(folder));
    etch_vpt_truth_open(&t, folder, 1, 2);
    for (uint64_t i = 0; i < 200000; i++)
        etch_vpt_truth_add(&t, 0x400000 + i, false);
    etch_vpt_truth_close(&t);
    n = read_log(folder, text, size);
    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    assert_int_equal(lines, 200000);
    assert_int_equal(strtoull(text + n - 7, NULL, 16), 0x400000 + 199999);
    free(text);
    remove_log(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_lines),
        cmocka_unit_test(go_on_after_exec),
        cmocka_unit_test(log_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
