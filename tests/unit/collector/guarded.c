/* SPDX-License-Identifier: MIT */
/* Mappings whose file somebody cuts, and memory that nobody can cut. */
#include "collector/session/guarded.h"
#include "collector/sync/reader.h"
#include "tests/unit/test.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096u

static int file_of(size_t pages)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    char page[PAGE];

    memset(page, 'x', sizeof(page));
    for (size_t i = 0; i < pages; i++)
        assert_int_equal(write(fd, page, sizeof(page)), PAGE);
    return fd;
}

static void read_whole(void **state)
{
    int fd = file_of(3);
    struct etch_guarded *g = etch_guarded_map(fd, 3 * PAGE, true);

    (void)state;
    assert_non_null(g);
    assert_int_equal(((char *)etch_guarded_at(g))[3 * PAGE - 1], 'x');
    assert_false(etch_guarded_cut(g));
    etch_guarded_unmap(g);
    assert_null(etch_guarded_map(fd, 4 * PAGE, true));
    close(fd);
}

static void read_cut(void **state)
{
    int fd = file_of(3);
    struct etch_guarded *g = etch_guarded_map(fd, 3 * PAGE, true), *other = etch_guarded_map(fd, PAGE, false);
    const volatile char *at = etch_guarded_at(g);

    (void)state;
    assert_int_equal(ftruncate(fd, PAGE), 0);
    assert_int_equal(at[0], 'x');
    assert_false(etch_guarded_cut(g));
    assert_int_equal(at[PAGE + 5], 0);
    assert_int_equal(at[2 * PAGE + 5], 0);
    assert_int_equal(at[0], 'x');
    assert_true(etch_guarded_cut(g));
    assert_false(etch_guarded_cut(other));
    ((char *)etch_guarded_at(g))[PAGE] = 'y'; /* and to write does no harm */
    etch_guarded_unmap(other);
    etch_guarded_unmap(g);
    close(fd);
}

/* What is not ours still ends the process, as it would without us. */
static void die_elsewhere(void **state)
{
    int fd = file_of(1), status = 0;
    struct etch_guarded *g;
    pid_t pid;

    (void)state;
    signal(SIGBUS, SIG_DFL); /* cmocka's own would go on with the next test */
    g = etch_guarded_map(fd, PAGE, true);
    pid = fork();
    if (pid == 0) {
        volatile char *at = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);

        signal(SIGALRM, SIG_DFL);
        alarm(20);
        _exit(ftruncate(fd, 0) == 0 && at[0] == 'x');
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    etch_guarded_unmap(g);
    close(fd);
}

static void keep_sealed(void **state)
{
    struct etch_sync_reader *reader;
    struct etch_error err;
    char path[64];
    int fd;

    (void)state;
    assert_int_equal(etch_sync_reader_new(&reader, &err), 0);
    etch_sync_reader_path(reader, path, sizeof(path));
    fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_non_null(etch_sync_reader_memory(reader));
    assert_int_equal(etch_sync_reader_joined(reader), 0); /* reads it */
    close(fd);
    etch_sync_reader_free(reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_whole),
        cmocka_unit_test(read_cut),
        cmocka_unit_test(die_elsewhere),
        cmocka_unit_test(keep_sealed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
