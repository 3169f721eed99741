/* SPDX-License-Identifier: MIT */
#include "decoder/calls.h"
#include "tests/unit/steps_made.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

MADE_FUNCTION(top);
MADE_FUNCTION(middle);
MADE_FUNCTION(inner);
MADE_FUNCTION(handler);
MADE_FUNCTION(other);

#define CALL ETCH_BRANCH_CALL
#define JUMP ETCH_BRANCH_JUMP
#define RETURN ETCH_BRANCH_RETURN
#define FAR ETCH_BRANCH_FAR
#define NONE ETCH_BRANCH_NONE

struct log {
    char text[2000];
    size_t open;
    bool nested;
};

static const char *const why[] = {"", "(began)", "(tail)", "(signal)", "(jump)", "(unwound)", "(lost)", "(end)"};

static void note(struct log *log, const char *fmt, ...)
{
    size_t n = strlen(log->text);
    va_list args;

    va_start(args, fmt);
    vsnprintf(log->text + n, sizeof(log->text) - n, fmt, args);
    va_end(args);
}

static int visit(void *context, const struct etch_call *call)
{
    struct log *log = context;

    switch (call->kind) {
    case ETCH_CALL_ENTER:
        note(log, " +%s%s", call->name ? call->name : "?", why[call->why]);
        log->open++;
        break;
    case ETCH_CALL_LEAVE:
        note(log, " -%s%s", call->name ? call->name : "?", why[call->why]);
        log->nested &= log->open > 0;
        log->open--;
        break;
    case ETCH_CALL_BELOW:
        note(log, " below:%s@%d", call->name ? call->name : "?", call->depth);
        log->nested &= log->open == 0;
        log->open = 1;
        break;
    case ETCH_CALL_PART:
        note(log, " part");
        log->nested &= log->open == 0;
        break;
    case ETCH_CALL_LOSS:
        note(log, " loss");
        break;
    case ETCH_CALL_NOWHERE:
        note(log, " nowhere@%d", call->depth);
        break;
    case ETCH_CALL_THREAD_END:
        log->nested &= log->open == 0;
        break;
    case ETCH_CALL_THREAD:
        break;
    }
    return 0;
}

/* Plays the steps and compares what is heard of them. */
static void expect(const char *expected, const struct etch_step *steps, size_t n)
{
    struct log log = {.nested = true};
    struct etch_symbols_options options = {0};
    struct etch_symbols *symbols = etch_symbols_new(&options);
    struct etch_calls *calls = etch_calls_new(symbols, visit, &log);

    for (size_t i = 0; i < n; i++)
        assert_int_equal(etch_calls_step(calls, &steps[i]), 0);
    assert_int_equal(etch_calls_finish(calls), 0);
    assert_string_equal(log.text, expected);
    assert_true(log.nested);
    etch_calls_free(calls);
    etch_symbols_free(symbols);
}

#define EXPECT(expected, ...)                                                                                          \
    do {                                                                                                               \
        struct etch_step steps[] = {__VA_ARGS__};                                                                      \
        expect(expected, steps, sizeof(steps) / sizeof(steps[0]));                                                     \
    } while (0)

static void match_call_and_return(void **state)
{
    (void)state;
    EXPECT(" +top +middle +inner -inner -middle -top(end)", made_block(top, CALL), made_block(middle, CALL),
           made_block(inner, RETURN), made_block(middle + 16, RETURN), made_block(top + 16, NONE));
}

static void match_recursion(void **state)
{
    (void)state;
    EXPECT(" +top +top +top -top -top -top(end)", made_block(top, CALL), made_block(top, CALL), made_block(top, RETURN),
           made_block(top + 16, RETURN), made_block(top + 16, NONE));
}

static void ignore_call_to_next_instruction(void **state)
{
    (void)state;
    EXPECT(" +top -top(end)", made_block(top, CALL), made_block(top + 16, NONE));
}

static void shift_below_beginning(void **state)
{
    (void)state;
    EXPECT(" +inner(began) -inner below:middle@-1 -middle below:top@-2 +other -other -top(end)",
           made_block(inner + 32, RETURN), made_block(middle + 16, RETURN), made_block(top + 16, CALL),
           made_block(other, RETURN), made_block(top + 32, NONE));
}

static void shift_below_recursive_beginning(void **state)
{
    (void)state;
    EXPECT(" +top(began) -top below:top@-1 -top(end)", made_block(top + 32, RETURN), made_block(top + 16, NONE));
}

static void follow_tail_call(void **state)
{
    (void)state;
    EXPECT(" +top +middle -middle(tail) +inner(tail) -inner -top(end)", made_block(top, CALL), made_block(middle, JUMP),
           made_block(inner, RETURN), made_block(top + 16, NONE));
}

static void unwind_longjmp(void **state)
{
    (void)state;
    EXPECT(" +top +middle +inner -inner(unwound) -middle(unwound) -top(end)", made_block(top, CALL),
           made_block(middle, CALL), made_block(inner, ETCH_BRANCH_JUMP_INDIRECT), made_block(top + 32, NONE));
}

static void unwind_return_to_landing_pad(void **state)
{
    (void)state;
    EXPECT(" +top +middle +inner -inner(unwound) -middle(unwound) -top(end)", made_block(top, CALL),
           made_block(middle, CALL), made_block(inner, RETURN), made_block(top + 48, NONE));
}

static void return_past_callers(void **state)
{
    (void)state;
    EXPECT(" +top +middle +inner -inner(unwound) -middle -top(end)", made_block(top, CALL), made_block(middle, CALL),
           made_block(inner, RETURN), made_block(top + 16, NONE));
}

static void nest_signal_handler(void **state)
{
    (void)state;
    EXPECT(" +top +handler(signal) +inner -inner -handler -top(end)", made_block(top, NONE),
           made_event(ETCH_STEP_INTERRUPT, top + 16), made_event(ETCH_STEP_END, NULL),
           made_event(ETCH_STEP_BEGIN, handler), made_block(handler, CALL), made_block(inner, RETURN),
           made_block(handler + 16, RETURN), made_block(other + 16, FAR), made_event(ETCH_STEP_END, NULL),
           made_event(ETCH_STEP_BEGIN, top + 16), made_block(top + 16, NONE));
}

static void nest_signal_between_call_and_callee(void **state)
{
    (void)state;
    EXPECT(" +top +handler(signal) -handler +middle -middle -top(end)", made_block(top, CALL),
           made_event(ETCH_STEP_INTERRUPT, middle), made_block(handler, RETURN), made_block(other + 16, FAR),
           made_event(ETCH_STEP_END, NULL), made_block(middle, RETURN), made_block(top + 16, NONE));
}

static void nest_signal_in_system_call(void **state)
{
    (void)state;
    EXPECT(" +top +handler(signal) -handler -top(end)", made_block(top, FAR), made_event(ETCH_STEP_END, NULL),
           made_block(handler, RETURN), made_block(other + 16, FAR), made_event(ETCH_STEP_END, NULL),
           made_block(top + 16, NONE));
}

static void leave_handler_by_longjmp(void **state)
{
    (void)state;
    EXPECT(" +top +middle +handler(signal) +inner -inner(unwound) -handler(unwound) -middle(unwound) -top(end)",
           made_block(top, CALL), made_block(middle, NONE), made_event(ETCH_STEP_INTERRUPT, middle + 16),
           made_block(handler, CALL), made_block(inner, ETCH_BRANCH_JUMP_INDIRECT), made_block(top + 32, NONE));
}

static void ignore_interrupt_that_resumes(void **state)
{
    (void)state;
    EXPECT(" +top +middle -middle(end) -top(end)", made_block(top, CALL), made_event(ETCH_STEP_INTERRUPT, middle),
           made_block(middle, NONE));
}

/* A call to nowhere is none of a function: it is told where it would have been. */
static void tell_where_the_thread_died(void **state)
{
    struct etch_step nowhere = made_event(ETCH_STEP_INTERRUPT, (const char *)0x1234);

    (void)state;
    nowhere.nowhere = true;
    EXPECT(" +top +middle nowhere@2 -middle(end) -top(end)", made_block(top, CALL), made_block(middle, CALL), nowhere,
           made_event(ETCH_STEP_END, NULL));
}

static void keep_frame_across_loss(void **state)
{
    (void)state;
    EXPECT(" +top +middle +inner loss -inner(lost) -middle -top(end)", made_block(top, CALL), made_block(middle, CALL),
           made_block(inner, NONE), made_event(ETCH_STEP_LOSS, NULL), made_block(middle + 32, RETURN),
           made_block(top + 16, NONE));
}

static void begin_anew_after_loss(void **state)
{
    (void)state;
    EXPECT(" +top loss -top(lost) part +other(began) -other below:middle@-1 -middle(end)", made_block(top, CALL),
           made_event(ETCH_STEP_LOSS, NULL), made_block(other + 16, RETURN), made_block(middle + 16, NONE));
}

static void tell_threads_apart(void **state)
{
    struct etch_step second = made_block(inner, NONE);

    (void)state;
    second.tid = 9;
    EXPECT(" +top -top(end) +inner -inner(end)", made_block(top, CALL), second);
}

static void name_nothing_without_image(void **state)
{
    (void)state;
    struct log log = {0};
    struct etch_symbols_options options = {0};
    struct etch_symbols *symbols = etch_symbols_new(&options);
    struct etch_calls *calls = etch_calls_new(symbols, visit, &log);
    struct etch_step nowhere = made_block(top, CALL);

    nowhere.image = NULL; /* a block of no known mapping is a function of no known name */
    assert_int_equal(etch_calls_step(calls, &nowhere), 0);
    assert_int_equal(etch_calls_finish(calls), 0);
    assert_string_equal(log.text, " +?(began) -?(end)");
    etch_calls_free(calls);
    etch_symbols_free(symbols);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(match_call_and_return),
        cmocka_unit_test(match_recursion),
        cmocka_unit_test(ignore_call_to_next_instruction),
        cmocka_unit_test(shift_below_beginning),
        cmocka_unit_test(shift_below_recursive_beginning),
        cmocka_unit_test(follow_tail_call),
        cmocka_unit_test(unwind_longjmp),
        cmocka_unit_test(unwind_return_to_landing_pad),
        cmocka_unit_test(return_past_callers),
        cmocka_unit_test(nest_signal_handler),
        cmocka_unit_test(nest_signal_between_call_and_callee),
        cmocka_unit_test(nest_signal_in_system_call),
        cmocka_unit_test(leave_handler_by_longjmp),
        cmocka_unit_test(ignore_interrupt_that_resumes),
        cmocka_unit_test(tell_where_the_thread_died),
        cmocka_unit_test(keep_frame_across_loss),
        cmocka_unit_test(begin_anew_after_loss),
        cmocka_unit_test(tell_threads_apart),
        cmocka_unit_test(name_nothing_without_image),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
