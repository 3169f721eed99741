/* SPDX-License-Identifier: MIT */
#include "collector/standby.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/etch-standby-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char path[512];
    struct dirent *entry;
    DIR *dir = opendir(folder);

    (void)state;
    while (dir && (entry = readdir(dir))) {
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        unlink(path);
    }
    if (dir)
        closedir(dir);
    return rmdir(folder);
}

/* In a child: asks, and exits with the number of recorders that said yes. */
static pid_t ask(pid_t pid, const char *name)
{
    pid_t child = fork();

    if (child == 0)
        _exit((int)etch_standby_ask(folder, pid, name));
    return child;
}

static int result(pid_t child)
{
    int status = 0;

    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void take(struct etch_standby *s, struct etch_standby_request *r)
{
    while (!etch_standby_take(s, r))
        usleep(1000);
}

static void ask_answered(void **state)
{
    struct etch_standby_request r;
    struct etch_standby s;
    struct etch_error err;
    char want[256];
    pid_t child;

    (void)state;
    assert_int_equal(etch_standby_open(&s, folder, &err), 0);
    child = ask(4711, "server.4711.99");
    take(&s, &r);
    assert_int_equal(r.pid, 4711);
    snprintf(want, sizeof(want), "%s/server.4711.99.pt.etch", folder);
    assert_string_equal(r.output, want);
    etch_standby_answer(&r, true);
    assert_int_equal(result(child), 1);
    child = ask(4712, "other.4712.99");
    take(&s, &r);
    etch_standby_answer(&r, false);
    assert_int_equal(result(child), 0);
    etch_standby_close(&s);
    assert_int_equal(result(ask(4711, "server.4711.99")), 0);
}

/* Nobody answers: the dying process does not wait for long. A killed recorder leaves a socket, which goes. */
static void ask_stuck_and_killed(void **state)
{
    struct etch_standby s, other;
    struct etch_error err;
    char path[108];
    pid_t killed;

    (void)state;
    assert_int_equal(etch_standby_open(&s, folder, &err), 0);
    assert_int_equal(result(ask(1, "a.1.1")), 0);
    etch_standby_close(&s);
    killed = fork();
    if (killed == 0) {
        etch_standby_open(&other, folder, &err);
        _exit(0);
    }
    result(killed);
    snprintf(path, sizeof(path), "%s/%d.pt.sock", folder, (int)killed);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(result(ask(1, "a.1.1")), 0);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void send_bytes(const struct etch_standby *s, const void *bytes, size_t size)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

    memcpy(address.sun_path, s->path, sizeof(s->path));
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(send(fd, bytes, size, 0), (ssize_t)size);
    close(fd);
}

/* The layout of a question is that of standby.c. */
static void take_hostile(void **state)
{
    static const char *const names[] = {"../etc/passwd", "a/b", ".hidden", "", "new\nline"};
    struct etch_standby_request r;
    struct etch_standby s;
    struct etch_error err;
    char bytes[208];
    int32_t pid;

    (void)state;
    assert_int_equal(etch_standby_open(&s, folder, &err), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) + 4; i++) {
        memset(bytes, 0, sizeof(bytes));
        memcpy(bytes, "etchpt1", 7);
        pid = i == 5 ? -1 : 7;
        memcpy(bytes + 8, &pid, 4);
        strcpy(bytes + 12, i < 5 ? names[i] : "good");
        if (i == 6)
            bytes[0] = 'x';
        if (i == 7)
            memset(bytes + 12, 'a', sizeof(bytes) - 12); /* no end */
        send_bytes(&s, bytes, i == 8 ? 20 : sizeof(bytes));
        assert_false(etch_standby_take(&s, &r));
    }
    memset(bytes, 0, sizeof(bytes));
    memcpy(bytes, "etchpt1", 7);
    pid = 7;
    memcpy(bytes + 8, &pid, 4);
    strcpy(bytes + 12, "good");
    send_bytes(&s, bytes, sizeof(bytes));
    assert_true(etch_standby_take(&s, &r)); /* so that the refusals above are not by layout */
    etch_standby_answer(&r, false);
    etch_standby_close(&s);
}

/* Others could write into it. */
static void open_shared_folder(void **state)
{
    struct etch_standby s;
    struct etch_error err;

    (void)state;
    assert_int_equal(chmod(folder, 0777), 0);
    assert_int_equal(etch_standby_open(&s, folder, &err), -1);
    etch_standby_close(&s);
    assert_int_equal(chmod(folder, 0700), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ask_answered, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(ask_stuck_and_killed, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(take_hostile, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(open_shared_folder, make_folder, remove_folder),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
