/* SPDX-License-Identifier: MIT */
/* Records before they are written: stacks, registers, values, names, captured memory. */
#include "collector/privacy.h"
#include "collector/policy/stack_mask.h"
#include "tests/unit/test.h"

#include <string.h>

#define SP 0x7ffc00001000u
#define CODE 0x555500001000u

static struct etch_privacy *made(const char *rules, bool keep_stack)
{
    struct etch_policy *policy = NULL;
    struct etch_privacy *p;
    struct etch_error err;

    assert_int_equal(etch_policy_parse(&policy, rules, strlen(rules), "test", &err), 0);
    p = etch_privacy_new(policy, keep_stack);
    assert_non_null(p);
    return p;
}

static const Etch__Record *pass(struct etch_privacy *p, Etch__Record__BodyCase kind, void *message)
{
    Etch__Record record = ETCH__RECORD__INIT;
    const Etch__Record *got;

    record.body_case = kind;
    record.program = message;
    got = etch_privacy_pass(p, &record);
    assert_non_null(got);
    return got;
}

static void learn_code(struct etch_privacy *p)
{
    Etch__Image image = ETCH__IMAGE__INIT;

    image.start = CODE;
    image.size = 0x1000;
    image.prot = 5;
    pass(p, ETCH__RECORD__BODY_IMAGE, &image);
}

static bool by_table(void *context, uint64_t address, uint64_t word)
{
    (void)context;
    (void)address;
    return word == CODE;
}

static void mask_words(void **state)
{
    uint64_t words[] = {CODE, SP + 8, 0x6465736f6c63, SP - 8, 0, 5};
    struct etch_stack_mask mask = {SP, SP, SP + 0x1000, by_table, NULL};

    (void)state;
    assert_int_equal(etch_stack_mask(&mask, (uint8_t *)words, sizeof(words)), 3);
    assert_true(words[0] == CODE && words[1] == SP + 8 && !words[2] && !words[3] && !words[4] && !words[5]);
}

static void mask_edges(void **state)
{
    char text[] = "a secret that is not aligned";
    struct etch_stack_mask mask = {SP + 3, SP, SP + 0x1000, by_table, NULL};

    (void)state;
    for (size_t size = 0; size <= sizeof(text); size++) {
        char copy[sizeof(text)];

        memcpy(copy, text, sizeof(text));
        etch_stack_mask(&mask, (uint8_t *)copy, size);
        for (size_t i = 0; i < sizeof(text); i++)
            assert_int_equal(copy[i], i < size ? 0 : text[i]);
    }
}

static void mask_sampled(void **state)
{
    struct etch_privacy *p = made("", false);
    uint64_t registers[24] = {[0] = 7, [1] = 0x327265746e7568, [7] = SP, [8] = CODE}, stack[] = {CODE + 4, 0x32726574};
    Etch__Accesses list = ETCH__ACCESSES__INIT;
    Etch__Access access = ETCH__ACCESS__INIT, *accesses[] = {&access};
    const Etch__Access *got;

    (void)state;
    learn_code(p);
    access.n_registers = 24;
    access.registers = registers;
    access.stack = (ProtobufCBinaryData){sizeof(stack), (uint8_t *)stack};
    list.n_accesses = 1;
    list.accesses = accesses;
    got = pass(p, ETCH__RECORD__BODY_ACCESSES, &list)->accesses->accesses[0];
    assert_int_equal(got->masked, 1 << 1);
    assert_true(got->registers[0] == 7 && got->registers[7] == SP && got->registers[1] == ETCH_PRIVACY_MASKED_WORD);
    assert_memory_equal(got->stack.data, (&(uint64_t[]){CODE + 4, 0}), 16);
    assert_true(registers[1] == 0x327265746e7568 && stack[1]); /* what the caller has stays */
    assert_int_equal(etch_privacy_count(p)->registers, 1);
    assert_int_equal(etch_privacy_count(p)->stack_words, 1);
    access.n_registers = 23; /* as no recorder writes them */
    got = pass(p, ETCH__RECORD__BODY_ACCESSES, &list)->accesses->accesses[0];
    assert_true(!got->n_registers && !got->stack.len);
    etch_privacy_free(p);
}

static void keep_stacks(void **state)
{
    struct etch_privacy *p = made("", true);
    Etch__Failure failure = ETCH__FAILURE__INIT;
    Etch__ThreadState thread = ETCH__THREAD_STATE__INIT, *threads[] = {&thread};
    uint64_t stack[] = {1, 2};

    (void)state;
    thread.stack_start = SP;
    thread.stack = (ProtobufCBinaryData){sizeof(stack), (uint8_t *)stack};
    failure.n_threads = 1;
    failure.threads = threads;
    assert_memory_equal(pass(p, ETCH__RECORD__BODY_FAILURE, &failure)->failure->threads[0]->stack.data, stack, 16);
    etch_privacy_free(p);
    p = made("deny stack", false);
    assert_int_equal(pass(p, ETCH__RECORD__BODY_FAILURE, &failure)->failure->threads[0]->stack.len, 0);
    etch_privacy_free(p);
}

static void hide_values(void **state)
{
    struct etch_privacy *p = made("deny value name=*pin*\n", false);
    Etch__Watch watch = ETCH__WATCH__INIT;
    Etch__Accesses list = ETCH__ACCESSES__INIT;
    Etch__Access one = ETCH__ACCESS__INIT, other = ETCH__ACCESS__INIT, *accesses[] = {&one, &other};
    const Etch__Record *got;

    (void)state;
    watch.id = 3;
    watch.name = (char *)(uintptr_t)"card->pin";
    watch.initially_case = ETCH__WATCH__INITIALLY_INITIAL_VALUE;
    watch.initial_value = 1234;
    got = pass(p, ETCH__RECORD__BODY_WATCH, &watch);
    assert_string_equal(got->watch->name, "(denied)");
    assert_int_equal(got->watch->initially_case, ETCH__WATCH__INITIALLY__NOT_SET);
    one.watch = 3;
    one.known_case = other.known_case = ETCH__ACCESS__KNOWN_VALUE;
    one.value = other.value = 4321;
    list.n_accesses = 2;
    list.accesses = accesses;
    got = pass(p, ETCH__RECORD__BODY_ACCESSES, &list);
    assert_int_equal(got->accesses->accesses[0]->known_case, ETCH__ACCESS__KNOWN__NOT_SET);
    assert_int_equal(got->accesses->accesses[0]->value, 0);
    assert_int_equal(got->accesses->accesses[1]->value, 4321);
    assert_int_equal(etch_privacy_count(p)->values, 2);
    etch_privacy_free(p);
}

static void hide_exceptions(void **state)
{
    struct etch_privacy *p = made("", false);
    Etch__Failure failure = ETCH__FAILURE__INIT;
    Etch__Exception e = ETCH__EXCEPTION__INIT;
    const Etch__Exception *got;

    (void)state;
    e.said_case = ETCH__EXCEPTION__SAID_WHAT;
    e.what = (char *)(uintptr_t)"bad password=hunter2 given";
    e.known_case = ETCH__EXCEPTION__KNOWN_VALUE;
    e.value = 0x327265746e7568;
    failure.message = (char *)(uintptr_t)"token=abc";
    failure.exception = &e;
    got = pass(p, ETCH__RECORD__BODY_FAILURE, &failure)->failure->exception;
    assert_string_equal(got->what, "bad password=*** given");
    assert_int_equal(got->known_case, ETCH__EXCEPTION__KNOWN__NOT_SET);
    assert_string_equal(pass(p, ETCH__RECORD__BODY_FAILURE, &failure)->failure->message, "token=***");
    etch_privacy_free(p);
}

/* A stack that can be executed is no code. */
static void hide_memory(void **state)
{
    struct etch_privacy *p = made("", false);
    Etch__Image image = ETCH__IMAGE__INIT;
    uint8_t bytes[] = "HOME=/root";

    (void)state;
    image.prot = 7;
    image.code = (ProtobufCBinaryData){sizeof(bytes), bytes};
    image.path = (char *)(uintptr_t)"[stack]";
    assert_int_equal(pass(p, ETCH__RECORD__BODY_IMAGE, &image)->image->code.len, 0);
    image.path = (char *)(uintptr_t)"";
    assert_int_equal(pass(p, ETCH__RECORD__BODY_IMAGE, &image)->image->code.len, sizeof(bytes));
    etch_privacy_free(p);
}

static void drop_unknown_fields(void **state)
{
    struct etch_privacy *p = made("", false);
    uint8_t data[] = {6, 's', 'e', 'c', 'r', 'e', 't'};
    ProtobufCMessageUnknownField unknown = {999, PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED, sizeof(data), data};
    Etch__Thread thread = ETCH__THREAD__INIT;
    const Etch__Record *got;

    (void)state;
    thread.base.n_unknown_fields = 1;
    thread.base.unknown_fields = &unknown;
    got = pass(p, ETCH__RECORD__BODY_THREAD, &thread);
    assert_int_equal(got->thread->base.n_unknown_fields, 0);
    assert_int_equal(etch_privacy_count(p)->unknown, 1);
    etch_privacy_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mask_words),  cmocka_unit_test(mask_edges),          cmocka_unit_test(mask_sampled),
        cmocka_unit_test(keep_stacks), cmocka_unit_test(hide_values),         cmocka_unit_test(hide_exceptions),
        cmocka_unit_test(hide_memory), cmocka_unit_test(drop_unknown_fields),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
