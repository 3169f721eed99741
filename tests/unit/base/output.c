/* SPDX-License-Identifier: MIT */
/* Files that etch writes: what is there before, meanwhile and afterwards. */
#include "base/output.h"
#include "tests/unit/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/etch-output-XXXXXX";
static struct etch_output *output;
static struct etch_error err;

static int setup(void **state)
{
    (void)state;
    umask(0);
    memcpy(folder + sizeof(folder) - 7, "XXXXXX", 6);
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return chdir("/") < 0 || system(command);
}

static void put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static void assert_text(const char *path, const char *text)
{
    char got[64] = "";
    int fd = open(path, O_RDONLY);

    assert_true(fd >= 0 && read(fd, got, sizeof(got) - 1) >= 0);
    close(fd);
    assert_string_equal(got, text);
}

static void assert_gone(const char *path)
{
    assert_int_equal(access(path, F_OK), -1);
}

static unsigned mode_of(const char *path)
{
    struct stat st;

    assert_int_equal(lstat(path, &st), 0);
    return st.st_mode & 07777;
}

static int record(const char *path)
{
    return etch_output_recording(&output, path, "MAGIC", 5, &err);
}

static void write_words(const char *words)
{
    assert_int_equal(write(etch_output_descriptor(output), words, strlen(words)), (ssize_t)strlen(words));
}

static void report_is_whole_or_not_there(void **state)
{
    (void)state;
    put("r", "old");
    assert_int_equal(etch_output_report(&output, "r", &err), 0);
    fputs("new", etch_output_stream(output));
    fflush(etch_output_stream(output));
    assert_text("r", "old");
    assert_int_equal(etch_output_finish(output, &err), 0);
    assert_text("r", "new");
    assert_int_equal(mode_of("r"), 0600);
    assert_int_equal(etch_output_report(&output, "r", &err), 0);
    fputs("newer", etch_output_stream(output));
    etch_output_discard(output);
    assert_text("r", "new");
    assert_int_equal(system("test $(ls | wc -l) -eq 1"), 0);
}

static void recording_grows_under_its_name(void **state)
{
    (void)state;
    assert_int_equal(record("a"), 0);
    assert_null(etch_output_aside(output));
    write_words("MAGIC1");
    assert_text("a", "MAGIC1");
    assert_int_equal(mode_of("a"), 0600);
    etch_output_leave(output); /* as a killed etch does */
    assert_text("a", "MAGIC1");
}

static void recording_keeps_the_older_one_until_it_is_whole(void **state)
{
    (void)state;
    put("a", "MAGIC1");
    put("a.old", "mine"); /* not this run's */
    assert_int_equal(record("a"), 0);
    assert_string_equal(etch_output_aside(output), "a.2.old");
    write_words("MAGIC2");
    assert_text("a.2.old", "MAGIC1");
    etch_output_discard(output);
    assert_text("a", "MAGIC1");
    assert_gone("a.2.old");
    assert_int_equal(record("a"), 0);
    write_words("MAGIC2");
    assert_int_equal(etch_output_finish(output, &err), 0);
    assert_text("a", "MAGIC2");
    assert_gone("a.2.old");
    assert_text("a.old", "mine");
}

static void recording_refuses_what_is_not_its_own(void **state)
{
    (void)state;
    put("prog.c", "int main;");
    assert_int_equal(record("prog.c"), -1);
    assert_non_null(strstr(err.what, "not etch's"));
    assert_text("prog.c", "int main;");
    put("empty", "");
    assert_int_equal(record("empty"), 0); /* as mktemp makes it */
    etch_output_discard(output);
    assert_text("empty", "");
}

static void links_are_not_followed(void **state)
{
    (void)state;
    put("target", "MAGIC");
    assert_int_equal(symlink("target", "link"), 0);
    assert_int_equal(symlink("nowhere", "dangling"), 0);
    assert_int_equal(record("link"), -1);
    assert_non_null(strstr(err.what, "it is a link"));
    assert_int_equal(record("dangling"), -1);
    assert_int_equal(etch_output_report(&output, "link", &err), -1);
    assert_int_equal(etch_output_report(&output, "dangling", &err), -1);
    assert_int_equal(etch_output_lasting("link"), -1);
    assert_int_equal(etch_output_fresh("dangling"), -1);
    assert_text("target", "MAGIC");
    assert_gone("nowhere");
}

static void others_are_written_to_as_they_are(void **state)
{
    char got[8] = "", name[32];
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    snprintf(name, sizeof(name), "/dev/fd/%d", ends[1]);
    assert_int_equal(record(name), 0);
    write_words("MAGIC");
    assert_int_equal(etch_output_finish(output, &err), 0);
    assert_int_equal(read(ends[0], got, sizeof(got)), 5);
    assert_string_equal(got, "MAGIC");
    assert_int_equal(etch_output_write("/dev/null", "x", 1, &err), 0);
    assert_int_equal(etch_output_write(".", "x", 1, &err), -1);
    assert_non_null(strstr(err.what, "it is a folder"));
}

static void a_full_disk_is_said(void **state)
{
    (void)state;
    assert_int_equal(etch_output_write("/dev/full", "x", 1, &err), -1);
    assert_non_null(strstr(err.what, "No space left"));
    assert_int_equal(etch_output_report(&output, "/dev/full", &err), 0);
    fputs("words", etch_output_stream(output));
    assert_int_equal(etch_output_finish(output, &err), -1);
    assert_non_null(strstr(err.what, "No space left"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(report_is_whole_or_not_there),
        CASE(recording_grows_under_its_name),
        CASE(recording_keeps_the_older_one_until_it_is_whole),
        CASE(recording_refuses_what_is_not_its_own),
        CASE(links_are_not_followed),
        CASE(others_are_written_to_as_they_are),
        CASE(a_full_disk_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
