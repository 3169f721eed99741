/* SPDX-License-Identifier: MIT */
/* base/input: regular files only, at once; and which files may be shown. */
#include "base/input.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/etch-input-XXXXXX";

static const char *below(const char *name)
{
    static char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void make(const char *name, const char *text)
{
    int fd = open(below(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    mkdir(below("project"), 0700);
    mkdir(below("project/src"), 0700);
    mkdir(below("project/build"), 0700);
    mkdir(below("project/.secret"), 0700);
    make("project/src/a.c", "int a;\n");
    make("project/build/prog", "x");
    make("project/.secret/key", "key\n");
    make("outside.c", "outside\n");
    mkfifo(below("pipe"), 0600);
    return 0;
}

static int tear_down(void **state)
{
    char command[PATH_MAX + 16];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

static void refuses(const char *path, int cause)
{
    errno = 0;
    assert_int_equal(etch_input_open(path), -1);
    assert_int_equal(errno, cause);
}

static void opens_regular_files_only(void **state)
{
    char *text;
    size_t n;
    int fd;

    (void)state;
    refuses(below("pipe"), ENOTSUP); /* without a writer: open() would wait for one */
    refuses("/dev/zero", ENOTSUP);
    refuses("/dev/tty", ENOTSUP);
    refuses(folder, EISDIR);
    refuses(below("nothing"), ENOENT);
    fd = etch_input_open(below("outside.c"));
    assert_true(fd >= 0);
    assert_int_equal(etch_input_size(fd), 8);
    assert_null(etch_input_read(fd, 7, &n));
    text = etch_input_read(fd, 8, &n);
    assert_string_equal(text, "outside\n");
    assert_int_equal(n, 8);
    free(text);
    close(fd);
}

static void follows_no_link_in_a_folder(void **state)
{
    int at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;

    (void)state;
    assert_int_equal(symlink("outside.c", below("link")), 0);
    fd = etch_input_open_at(at, "outside.c");
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(etch_input_open_at(at, "link"), -1);
    assert_int_equal(etch_input_open_at(at, "pipe"), -1);
    close(at);
    unlink(below("link"));
}

static bool may_show(const char *name, const char *program)
{
    char path[PATH_MAX];
    int fd;
    bool may;

    snprintf(path, sizeof(path), "%s", name[0] == '/' ? name : below(name));
    fd = etch_input_open(path);
    assert_true(fd >= 0);
    may = etch_input_is_below_roots(fd, path, program);
    close(fd);
    return may;
}

static void shows_below_the_current_folder(void **state)
{
    (void)state;
    assert_int_equal(chdir(below("project")), 0);
    assert_true(may_show("project/src/a.c", NULL));
    assert_false(may_show("outside.c", NULL));
    assert_false(may_show("project/.secret/key", NULL));
    assert_false(may_show("/etc/passwd", NULL));
    assert_int_equal(symlink("/etc/passwd", below("project/src/b.c")), 0);
    assert_false(may_show("project/src/b.c", NULL)); /* the file counts, not its name */
    assert_int_equal(chdir("/"), 0);
    assert_false(may_show("/etc/passwd", NULL)); /* below "/" lies everything */
}

static void shows_below_the_program(void **state)
{
    char program[PATH_MAX];

    (void)state;
    snprintf(program, sizeof(program), "%s", below("project/build/prog"));
    assert_int_equal(chdir("/"), 0);
    assert_true(may_show("project/build/prog", program));
    assert_false(may_show("project/src/a.c", program));
    mkdir(below("project/.git"), 0700); /* the work tree that the program lies in */
    assert_true(may_show("project/src/a.c", program));
    assert_false(may_show("outside.c", program));
    assert_int_equal(chdir(below("project/build")), 0);
    assert_true(may_show("project/src/a.c", NULL));
    rmdir(below("project/.git"));
}

static void shows_below_roots_that_are_set(void **state)
{
    char roots[2 * PATH_MAX];

    (void)state;
    assert_int_equal(chdir(below("project")), 0);
    snprintf(roots, sizeof(roots), "/nowhere:%s", folder);
    etch_input_set_roots(roots);
    assert_true(may_show("outside.c", NULL));
    etch_input_set_roots("/nowhere");
    assert_false(may_show("project/src/a.c", NULL)); /* in place of the others */
    etch_input_set_roots(NULL);
    setenv("ETCH_SOURCE_ROOT", folder, 1);
    assert_true(may_show("outside.c", NULL));
    unsetenv("ETCH_SOURCE_ROOT");
    assert_false(may_show("outside.c", NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_regular_files_only),       cmocka_unit_test(follows_no_link_in_a_folder),
        cmocka_unit_test(shows_below_the_current_folder), cmocka_unit_test(shows_below_the_program),
        cmocka_unit_test(shows_below_roots_that_are_set),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
