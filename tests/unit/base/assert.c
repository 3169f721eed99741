/* SPDX-License-Identifier: MIT */
/* base/assert: a broken invariant is reported, and ends the process. */
#include "base/assert.h"
#include "tests/unit/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void check_plain(int n)
{
    ETCH_ASSERT(n < 3);
}

static void check_with_values(int n)
{
    ETCH_ASSERT_MSG(n < 3, "n is %d\x1b[31m", n);
}

/* Runs `check` in a child process. Returns how the child ended; `text` gets its standard error. */
static int run(void (*check)(int n), int n, char *text, size_t size)
{
    int ends[2], status;
    size_t used = 0;
    ssize_t got;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        signal(SIGABRT, SIG_DFL); /* cmocka and sanitizers have handlers */
        dup2(ends[1], STDERR_FILENO);
        check(n);
        _exit(0);
    }
    close(ends[1]);
    while (used < size - 1 && (got = read(ends[0], text + used, size - 1 - used)) > 0)
        used += (size_t)got;
    text[used] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void holding_is_silent(void **state)
{
    char text[1024];
    int status = run(check_plain, 2, text, sizeof(text));

    (void)state;
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_string_equal(text, "");
}

static void broken_aborts_and_says_where(void **state)
{
    char text[1024];
    int status = run(check_plain, 3, text, sizeof(text));

    (void)state;
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(text, "etch: internal error at tests/unit/base/assert.c:"));
    assert_non_null(strstr(text, " in check_plain(): 'n < 3' does not hold\n"));
    assert_non_null(strstr(text, "please report it"));
}

static void broken_says_values_printably(void **state)
{
    char text[1024];
    int status = run(check_with_values, 7, text, sizeof(text));

    (void)state;
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(text, "'n < 3' does not hold: n is 7?[31m\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holding_is_silent),
        cmocka_unit_test(broken_aborts_and_says_where),
        cmocka_unit_test(broken_says_values_printably),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
