/* SPDX-License-Identifier: MIT */
/* The journal of answers from outside, and the policy of what is kept. */
#include "collector/lab_journal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static size_t add(uint8_t *to, size_t at, uint32_t thread, enum etch_lab_call call, uint32_t size)
{
    struct etch_lab_answer a = {.thread = thread, .call = (uint16_t)call, .size = size, .next = 77};

    memcpy(to + at, &a, sizeof(a));
    memset(to + at + sizeof(a), 'x', (size + 7) & ~7u);
    return at + sizeof(a) + ((size + 7) & ~7u);
}

static struct etch_lab_answer answer_at(const uint8_t *from, uint64_t at)
{
    struct etch_lab_answer a;

    memcpy(&a, from + at, sizeof(a));
    return a;
}

static void test_link_joins_the_answers_of_each_thread(void **state)
{
    uint64_t words[64], first[ETCH_LAB_THREADS + 1], answers;
    uint8_t *journal = (uint8_t *)words;
    size_t second = add(journal, 0, 1, ETCH_LAB_CALL_READ, 5), third, size;

    (void)state;
    third = add(journal, second, ETCH_LAB_THREADS, ETCH_LAB_CALL_JUMP, 0);
    size = add(journal, third, 1, ETCH_LAB_CALL_WRITE, 0);
    assert_true(etch_lab_journal_link(journal, size, first, &answers));
    assert_int_equal(answers, 3);
    assert_int_equal(first[0], 0);
    assert_int_equal(first[1], 1);
    assert_int_equal(first[ETCH_LAB_THREADS], second + 1);
    assert_int_equal(answer_at(journal, 0).next, third + 1);
    assert_int_equal(answer_at(journal, second).next, 0);
    assert_int_equal(answer_at(journal, third).next, 0);
}

static void test_link_refuses_what_is_no_journal(void **state)
{
    uint64_t words[64], first[ETCH_LAB_THREADS + 1], answers;
    uint8_t *journal = (uint8_t *)words;
    size_t size = add(journal, 0, 1, ETCH_LAB_CALL_READ, 8);

    (void)state;
    for (size_t cut = 1; cut < size; cut++)
        assert_false(etch_lab_journal_link(journal, cut, first, &answers));
    add(journal, 0, ETCH_LAB_THREADS + 1, ETCH_LAB_CALL_READ, 8);
    assert_false(etch_lab_journal_link(journal, size, first, &answers));
    add(journal, 0, 1, ETCH_LAB_CALLS, 8);
    assert_false(etch_lab_journal_link(journal, size, first, &answers));
    assert_true(etch_lab_journal_link(journal, 0, first, &answers));
    assert_int_equal(answers, 0);
}

static uint32_t kept_by(const char *text)
{
    struct etch_error err;
    uint32_t kept;

    return etch_lab_policy_parse(&kept, text, strlen(text), &err) == 0 ? kept : UINT32_MAX;
}

static void test_policy_says_what_is_kept(void **state)
{
    (void)state;
    assert_int_equal(kept_by(""), ETCH_LAB_ALL_SOURCES);
    assert_int_equal(kept_by("# nothing\n\n"), ETCH_LAB_ALL_SOURCES);
    assert_int_equal(kept_by("sockets repeat\n  random \t repeat"),
                     ETCH_LAB_ALL_SOURCES & ~(ETCH_LAB_SOCKETS | ETCH_LAB_RANDOM_NUMBERS));
    assert_int_equal(kept_by("pipes repeat\r\npipes record\r\n"), ETCH_LAB_ALL_SOURCES);
    assert_int_equal(kept_by("files record\n"), UINT32_MAX);
    assert_int_equal(kept_by("sockets\n"), UINT32_MAX);
    assert_int_equal(kept_by("sockets forget\n"), UINT32_MAX);
    assert_int_equal(kept_by("sockets repeat now\n"), UINT32_MAX);
}

static void test_each_call_has_a_name(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < ETCH_LAB_CALLS; i++)
        assert_non_null(etch_lab_call_name(i));
    assert_string_equal(etch_lab_call_name(ETCH_LAB_CALLS), "unknown call");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_link_joins_the_answers_of_each_thread),
        cmocka_unit_test(test_link_refuses_what_is_no_journal),
        cmocka_unit_test(test_policy_says_what_is_kept),
        cmocka_unit_test(test_each_call_has_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
