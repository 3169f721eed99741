/* SPDX-License-Identifier: MIT */
/* base/sandbox: what a reader in it can do, and what it cannot. Each case is a process of its own: there is no way out.
 */
#include "base/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#ifdef ETCH_SANITIZED
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static char home[4000], output[4096];

/* Runs `what` in the sandbox. Its result must be below 100. */
static int in_sandbox(int (*what)(const struct etch_sandbox *))
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        const char *outputs[] = {output};
        struct etch_sandbox sandbox;

        etch_sandbox_enter(&sandbox, outputs, 1);
        _exit(what(&sandbox));
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int try_write(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

static int writes_output(const struct etch_sandbox *s)
{
    char beside[4200];

    (void)s;
    snprintf(beside, sizeof(beside), "%s.new", output);
    return try_write(output) || try_write("/dev/null") || try_write(beside) || rename(beside, output) ? 1 : 0;
}

static int writes_elsewhere(const struct etch_sandbox *s)
{
    /* Not beside the test: the tree may lie in a temporary folder, where reading may write. */
    return s->landlock ? try_write("/etc/etch-sandbox-test") : EACCES;
}

static void *nothing(void *context)
{
    return context;
}

static int reads_and_threads(const struct etch_sandbox *s)
{
    int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    FILE *spool = tmpfile();
    pthread_t thread;

    (void)s;
    if (fd < 0 || !spool || pthread_create(&thread, NULL, nothing, NULL) != 0)
        return 1;
    return pthread_join(thread, NULL);
}

static int opens_sockets(const struct etch_sandbox *s)
{
    return s->seccomp && (socket(AF_INET, SOCK_STREAM, 0) >= 0 || errno != EPERM) ? 1 : 0;
}

static int signals_others(const struct etch_sandbox *s)
{
    return s->seccomp && (kill(getppid(), 0) == 0 || errno != EPERM) ? 1 : 0;
}

static int runs_programs(const struct etch_sandbox *s)
{
    if (s->seccomp || s->landlock)
        execl("/bin/true", "true", (char *)NULL);
    return 7;
}

static void can_do_its_work(void **state)
{
    (void)state;
    assert_int_equal(in_sandbox(writes_output), 0);
    assert_int_equal(in_sandbox(reads_and_threads), 0);
}

static void can_do_nothing_else(void **state)
{
    (void)state;
    assert_int_equal(in_sandbox(writes_elsewhere), EACCES);
    assert_int_equal(in_sandbox(opens_sockets), 0);
    assert_int_equal(in_sandbox(signals_others), 0);
    if (!SANITIZED) /* which runs its own */
        assert_int_equal(in_sandbox(runs_programs), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(can_do_its_work),
        cmocka_unit_test(can_do_nothing_else),
    };
    struct etch_sandbox sandbox;
    char command[4200];
    int status;

    etch_sandbox_probe(&sandbox);
    printf("landlock %d, seccomp %d\n", sandbox.landlock, sandbox.seccomp);
    /* A folder that is no temporary place for the sandbox: the current one, the build's. */
    if (!getcwd(home, sizeof(home) - 64))
        return 1;
    snprintf(home + strlen(home), 64, "/sandbox-%d", (int)getpid());
    if (mkdir(home, 0700) < 0)
        return 1;
    snprintf(output, sizeof(output), "%s/out/result", home);
    snprintf(command, sizeof(command), "%s/out", home);
    mkdir(command, 0700);
    status = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(command, sizeof(command), "rm -rf '%s'", home);
    return system(command) == 0 ? status : 1;
}
