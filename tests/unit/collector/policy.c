/* SPDX-License-Identifier: MIT */
/* Policies: the grammar, the decisions, command lines, files. */
#include "collector/policy.h"
#include "tests/unit/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct etch_policy *parse(const char *text)
{
    struct etch_policy *p = NULL;
    struct etch_error err;

    assert_int_equal(etch_policy_parse(&p, text, strlen(text), "test", &err), 0);
    return p;
}

static void refuse(const char *text, const char *line)
{
    struct etch_policy *p = NULL;
    struct etch_error err;

    assert_int_equal(etch_policy_parse(&p, text, strlen(text), "test", &err), -1);
    assert_null(p);
    assert_non_null(strstr(err.what, line));
    assert_true(err.advice[0]);
}

static void parse_lines(void **state)
{
    struct etch_policy *p =
        parse("# a comment\n\n  mask value name=pin # why\r\nallow argument name=\"a b\"\ndeny all");

    (void)state;
    assert_int_equal(etch_policy_decide(p, ETCH_POLICY_VALUE, "PIN", "number", NULL), ETCH_POLICY_MASK);
    assert_int_equal(etch_policy_decide(p, ETCH_POLICY_ARGUMENT, "a b", "text", "x"), ETCH_POLICY_ALLOW);
    assert_int_equal(etch_policy_decide(p, ETCH_POLICY_ARGUMENT, "a", "text", "x"), ETCH_POLICY_DENY);
    assert_true(etch_policy_speaks_of(p, ETCH_POLICY_STACK));
    etch_policy_free(p);
}

static void parse_wrong(void **state)
{
    (void)state;
    refuse("hide value", "line 1: no such action: 'hide'");
    refuse("\nmask values", "line 2: no such kind: 'values'");
    refuse("mask", "line 1: no such kind: ''");
    refuse("mask value size=3", "no such selector: 'size=3'");
    refuse("mask value name", "no such selector: 'name'");
    refuse("mask value name=", "nothing can fit");
    refuse("mask value type=string", "nothing can fit");
    refuse("mask value name=a name=b", "given twice");
    refuse("mask value \"name=a", "a quote without its end");
    refuse("mask value name=a type=text text=b x y z w", "too many words");
}

static void parse_no_text(void **state)
{
    struct etch_policy *p = NULL;
    struct etch_error err;

    (void)state;
    assert_int_equal(etch_policy_parse(&p, "mask\0value", 10, "test", &err), -1);
    assert_non_null(strstr(err.what, "line 1"));
}

static void decide_first(void **state)
{
    struct etch_policy *p = parse("allow value name=user_*\nmask value name=*_id type=number\ndeny value name=x*\n");

    (void)state;
    assert_int_equal(etch_policy_decide(p, ETCH_POLICY_VALUE, "user_id", "number", NULL), ETCH_POLICY_ALLOW);
    assert_int_equal(etch_policy_decide(p, ETCH_POLICY_VALUE, "user_id", "text", NULL), ETCH_POLICY_ALLOW);
    assert_int_equal(etch_policy_decide(p, ETCH_POLICY_VALUE, "card_id", "number", NULL), ETCH_POLICY_MASK);
    assert_int_equal(etch_policy_decide(p, ETCH_POLICY_VALUE, "card_id", "pointer", NULL), ETCH_POLICY_ALLOW);
    assert_int_equal(etch_policy_decide(p, ETCH_POLICY_VALUE, "card_id", "text", NULL), ETCH_POLICY_MASK);
    assert_int_equal(etch_policy_decide(p, ETCH_POLICY_VALUE, "xy", "pointer", NULL), ETCH_POLICY_DENY);
    assert_int_equal(etch_policy_decide(p, ETCH_POLICY_VALUE, NULL, "number", NULL), ETCH_POLICY_ALLOW);
    etch_policy_free(p);
}

static void add_before(void **state)
{
    struct etch_policy *p = parse("allow value\n");
    struct etch_error err;

    (void)state;
    assert_int_equal(etch_policy_add(p, "mask value name=a", &err), 0);
    assert_int_equal(etch_policy_decide(p, ETCH_POLICY_VALUE, "a", "number", NULL), ETCH_POLICY_MASK);
    assert_int_equal(etch_policy_decide(p, ETCH_POLICY_VALUE, "b", "text", NULL), ETCH_POLICY_ALLOW);
    assert_int_equal(etch_policy_add(p, "nothing", &err), -1);
    etch_policy_free(p);
}

/* The words of a command line, NULL at the end, and what becomes of each. */
static void expect_words(const char *policy, enum etch_policy_kind kind, const char *const pairs[][2], size_t n)
{
    struct etch_policy *p = parse(policy);
    struct etch_policy_words words = {""};

    for (size_t i = 0; i < n; i++) {
        uint64_t hidden = 0;
        char *got = etch_policy_text(p, kind, pairs[i][0], &words, &hidden);

        assert_non_null(got);
        assert_string_equal(got, pairs[i][1]);
        assert_int_equal(hidden != 0, strcmp(pairs[i][0], pairs[i][1]) != 0);
        free(got);
    }
    etch_policy_free(p);
}

#define EXPECT_WORDS(policy, kind, pairs) expect_words(policy, kind, pairs, sizeof(pairs) / sizeof((pairs)[0]))

static void mask_arguments(void **state)
{
    const char *const pairs[][2] = {
        {"--password=hunter2", "--password=***"},
        {"--token", "--token"},
        {"abc def", "***"},
        {"--port", "--port"},
        {"8080", "8080"},
        {"DB_PASSWORD=x", "DB_PASSWORD=***"},
        {"Authorization: Bearer abc def", "Authorization:***"},
        {"-H", "-H"},
        {"X-Api-Key: q", "X-Api-Key:***"},
        {"postgres://joe:pw@db/x", "postgres://joe:***@db/x"},
        {"http://host:80/a", "http://host:80/a"},
        {"http://h/?q=1&access_token=zz&r=2", "http://h/?q=1&access_token=***&r=2"},
        {"mysql --password=x -u joe", "mysql --password=*** -u joe"},
        {"ghp_0123456789", "***"},
        {"--token", "--token"},
        {"--verbose", "--verbose"},
        {"file.c", "file.c"},
        {"--monkey=1", "--monkey=1"},
        {"--ssh-key=1", "--ssh-key=***"},
        {"--password=***", "--password=***"},
        {"", ""},
        {"-pSECRET", "-pSECRET"}, /* not to be told from other options: docs/policy.md says so */
    };

    (void)state;
    EXPECT_WORDS("", ETCH_POLICY_ARGUMENT, pairs);
}

static void mask_by_policy(void **state)
{
    const char *const pairs[][2] = {{"--token=7", "--token=7"},     {"--card=7", "--card=***"},
                                    {"--mail=a", "(denied)"},       {"joe@example.org", "(denied)"},
                                    {"--secret=1", "--secret=***"}, {"-pX", "***"}};

    (void)state;
    EXPECT_WORDS("allow argument name=token\nmask argument name=card\ndeny argument name=mail\n"
                 "deny argument text=*@example.org\nmask argument text=-p*\n",
                 ETCH_POLICY_ARGUMENT, pairs);
}

static void mask_messages(void **state)
{
    const char *const pairs[][2] = {
        {"a.c:12: main: Assertion `token==3' failed.", "a.c:12: main: Assertion `token==3' failed."},
        {"cannot log in with password=abc, sorry", "cannot log in with password=***, sorry"},
        {"no db://u:pw@h here", "no db://u:***@h here"},
    };

    (void)state;
    EXPECT_WORDS("", ETCH_POLICY_MESSAGE, pairs);
}

static void expect_path(const char *policy, const char *path, const char *want)
{
    struct etch_policy *p = parse(policy);
    uint64_t hidden = 0;
    char *got = etch_policy_path(p, path, &hidden);

    assert_string_equal(got, want);
    assert_int_equal(hidden, strcmp(path, want) != 0);
    free(got);
    etch_policy_free(p);
}

static void mask_paths(void **state)
{
    (void)state;
    expect_path("", "/home/joe/a", "/home/joe/a");
    expect_path("mask path", "/home/joe/a", "/home/***/a");
    expect_path("mask path", "/export/home/joe", "/export/home/***");
    expect_path("mask path", "/usr/bin/a", "/usr/bin/a");
    expect_path("deny path text=/srv/*", "/srv/customer/a", "(denied)/a");
}

static uint64_t word(const char *text)
{
    uint64_t w = 0;

    memcpy(&w, text, strnlen(text, 8));
    return w;
}

static void tell_types(void **state)
{
    (void)state;
    assert_string_equal(etch_policy_type(word("hunter2")), "text");
    assert_string_equal(etch_policy_type(word("12345678")), "text");
    assert_string_equal(etch_policy_type(word("abcde")), "text");
    assert_string_equal(etch_policy_type(0x7ffd41424344), "pointer");
    assert_string_equal(etch_policy_type(0x555555554a3b), "pointer");
    assert_string_equal(etch_policy_type(7), "number");
    assert_string_equal(etch_policy_type(UINT64_MAX), "number");
}

static void write_file(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void read_files(void **state)
{
    char folder[] = "/tmp/etch-policy-XXXXXX", path[64];
    struct etch_policy *p = NULL;
    struct etch_error err;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/policy", folder);
    assert_int_equal(etch_policy_read(&p, path, false, &err), 1);
    assert_int_equal(etch_policy_find(&p, path, &err), -1); /* what is asked for must be there */
    write_file(path, "mask value\n", 0644);
    assert_int_equal(etch_policy_read(&p, path, false, &err), 0);
    etch_policy_free(p);
    assert_int_equal(etch_policy_read(&p, path, true, &err), geteuid() == 0 ? 0 : -1);
    if (geteuid() == 0)
        etch_policy_free(p);
    write_file(path, "mask value\n", 0664);
    assert_int_equal(etch_policy_read(&p, path, true, &err), -1);
    assert_non_null(strstr(err.what, "others than root may change it"));
    write_file(path, "mask value\n", 0646);
    assert_int_equal(etch_policy_read(&p, path, false, &err), -1);
    write_file(path, "mask value\nmask nothing\n", 0600);
    assert_int_equal(etch_policy_read(&p, path, false, &err), -1);
    assert_non_null(strstr(err.what, "line 2"));
    if (geteuid() == 0) {
        write_file(path, "mask value\n", 0644);
        assert_int_equal(chown(path, 1, 1), 0);
        assert_int_equal(etch_policy_read(&p, path, true, &err), -1);
    }
    assert_int_equal(etch_policy_read(&p, folder, false, &err), -1); /* a folder is no policy */
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse_lines),    cmocka_unit_test(parse_wrong),   cmocka_unit_test(parse_no_text),
        cmocka_unit_test(decide_first),   cmocka_unit_test(add_before),    cmocka_unit_test(mask_arguments),
        cmocka_unit_test(mask_by_policy), cmocka_unit_test(mask_messages), cmocka_unit_test(mask_paths),
        cmocka_unit_test(tell_types),     cmocka_unit_test(read_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
