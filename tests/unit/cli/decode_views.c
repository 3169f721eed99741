/* SPDX-License-Identifier: MIT */
#include "cli/decode_view.h"
#include "tests/unit/steps_made.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

MADE_FUNCTION(top);
MADE_FUNCTION(middle);
MADE_FUNCTION(inner);

static Etch__Host host;
static Etch__Program program;
static Etch__Thread thread;
static Etch__Thread *threads[] = {&thread};
static struct etch_recording recording;

static void make_recording(void)
{
    etch__host__init(&host);
    etch__program__init(&program);
    etch__thread__init(&thread);
    host.tsc_hz = 1000000000;
    program.start_tsc = 1000;
    program.exe = (char *)"/bin/sam\"ple";
    thread.pid = 7;
    thread.tid = 8;
    thread.name = (char *)"main\n";
    recording.host = &host;
    recording.program = &program;
    recording.threads.v = threads;
    recording.threads.n = 1;
    made_clock = 1000;
}

static char *show(const struct etch_view *view, const char *fields, const struct etch_step *steps, size_t n)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct etch_symbols_options symbol_options = {0};
    struct etch_symbols *symbols = etch_symbols_new(&symbol_options);
    struct etch_view_options options = {out, &recording, symbols, fields};
    struct etch_error err;
    void *context;

    assert_int_equal(view->begin(&context, &options, &err), 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(view->step(context, &steps[i]), 0);
    assert_int_equal(view->end(context, &err), 0);
    etch_symbols_free(symbols);
    fclose(out);
    return text;
}

#define SHOW(view, fields, steps) show(view, fields, steps, sizeof(steps) / sizeof((steps)[0]))

static void expect_text(char *text, const char *expected)
{
    assert_string_equal(text, expected);
    free(text);
}

static void show_call_tree(void **state)
{
    make_recording();
    struct etch_step steps[] = {
        made_block(middle + 32, ETCH_BRANCH_RETURN), made_block(top + 16, ETCH_BRANCH_CALL),
        made_block(inner, ETCH_BRANCH_RETURN),       made_block(top + 32, ETCH_BRANCH_CALL),
        made_block(inner, ETCH_BRANCH_RETURN),       made_event(ETCH_STEP_LOSS, NULL),
        made_block(top + 48, ETCH_BRANCH_NONE),
    };

    (void)state;
    expect_text(SHOW(&etch_view_call, NULL, steps),
                "thread 7/8 main?\n"
                "                            | top  (called before the trace began)\n"
                "               1.000..2.500 |   middle  (running when the trace began)\n"
                "               3.000..6.500 |   inner  x2\n"
                "               6.000..7.500 |     -- overflow: made by hand\n"
                "               7.000..8.500 | (the trace ends in top)\n");
}

static void fold_no_call_that_calls(void **state)
{
    make_recording();
    struct etch_step steps[] = {
        made_block(top, ETCH_BRANCH_CALL),      made_block(inner, ETCH_BRANCH_RETURN),
        made_block(top + 16, ETCH_BRANCH_CALL), made_block(inner, ETCH_BRANCH_CALL),
        made_block(middle, ETCH_BRANCH_RETURN), made_block(inner + 16, ETCH_BRANCH_RETURN),
        made_block(top + 32, ETCH_BRANCH_NONE),
    };

    (void)state;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        steps[i].time = (struct etch_interval){0, UINT64_MAX};
    expect_text(SHOW(&etch_view_call, NULL, steps), "thread 7/8 main?\n"
                                                    "                          ? | top\n"
                                                    "                          ? |   inner\n"
                                                    "                          ? |   inner\n"
                                                    "                          ? |     middle\n"
                                                    "                          ? | (the trace ends in top)\n");
}

__attribute__((noinline)) static int three_lines(int x)
{
    volatile int a = x;
    a = a + 1;
    a = a * 3;
    return a;
}
enum { LAST_LINE = __LINE__ - 2 };

static void show_lines_once_each(void **state)
{
    make_recording();
    struct etch_step whole = made_block((const char *)(uintptr_t)three_lines, ETCH_BRANCH_NONE);
    struct etch_step steps[] = {whole, made_event(ETCH_STEP_LOSS, NULL), made_block(top, ETCH_BRANCH_NONE)};
    static const char title[] = "thread 7/8 main?\n";
    int line, n, previous = LAST_LINE - 6, lines = 0;
    char *text, *at;

    (void)state;
    three_lines(1);
    steps[0].end = steps[0].first + 12; /* the entry, whatever the compiler made of the rest */
    text = SHOW(&etch_view_line, NULL, steps);
    /* Which lines 12 bytes reach is the compiler's affair: those of the function, each once and in order. */
    assert_int_equal(strncmp(text, title, strlen(title)), 0);
    at = text + strlen(title);
    while (sscanf(at, "decode_views.c:%d three_lines%n", &line, &n) == 1) {
        assert_in_range(line, previous + 1, LAST_LINE);
        previous = line;
        lines++;
        at += n + 1;
    }
    assert_in_range(lines, 1, 5);
    at = strstr(text, "-- overflow: made by hand (stream 0, byte 0)\n");
    assert_non_null(at);
    assert_non_null(strstr(at, "top (unit_decode_views)\n"));
    free(text);
}

static void show_line_fields(void **state)
{
    make_recording();
    struct etch_step steps[] = {made_block(top, ETCH_BRANCH_NONE), made_block(middle, ETCH_BRANCH_NONE)};

    (void)state;
    expect_text(SHOW(&etch_view_line, "sym", steps), "top\nmiddle\n");
    expect_text(SHOW(&etch_view_line, "tid,time,sym", steps), "8 2000..3500 top\n8 3000..4500 middle\n");
}

static void reject_unknown_field(void **state)
{
    struct etch_view_options options = {.fields = "ip,colour"};
    struct etch_error err;
    void *context;

    (void)state;
    assert_int_equal(etch_view_line.begin(&context, &options, &err), -1);
    assert_non_null(strstr(err.what, "colour"));
}

/* Every two events of a thread lie apart or one within the other; returns how many calls there are. */
static size_t check_nesting(const json_t *events)
{
    size_t calls = 0, i, k;
    json_t *a, *b;

    json_array_foreach(events, i, a)
    {
        if (strcmp(json_string_value(json_object_get(a, "ph")), "X") != 0)
            continue;
        calls++;
        double a0 = json_number_value(json_object_get(a, "ts")) * 1000;
        double a1 = a0 + json_number_value(json_object_get(a, "dur")) * 1000;

        json_array_foreach(events, k, b)
        {
            double b0 = json_number_value(json_object_get(b, "ts")) * 1000;
            double b1 = b0 + json_number_value(json_object_get(b, "dur")) * 1000;

            if (k == i || strcmp(json_string_value(json_object_get(b, "ph")), "X") != 0)
                continue;
            /* Half a nanosecond of slack for the decimals. */
            assert_true(b0 >= a1 - 0.5 || b1 <= a0 + 0.5 || (b0 > a0 - 0.5 && b1 < a1 + 0.5) ||
                        (a0 > b0 - 0.5 && a1 < b1 + 0.5));
            assert_true(b0 != a0); /* no two begin together: readers need not guess which is outside */
        }
    }
    return calls;
}

static json_t *load_events(char *text, json_t **root)
{
    json_error_t error;

    *root = json_loads(text, 0, &error);
    if (!*root)
        print_message("%s\n%s\n", error.text, text);
    assert_non_null(*root);
    free(text);
    return json_object_get(*root, "traceEvents");
}

static void write_nested_events(void **state)
{
    make_recording();
    struct etch_step steps[] = {
        made_block(middle + 32, ETCH_BRANCH_RETURN), made_block(top + 16, ETCH_BRANCH_CALL),
        made_block(inner, ETCH_BRANCH_CALL),         made_block(middle, ETCH_BRANCH_RETURN),
        made_block(inner + 16, ETCH_BRANCH_RETURN),  made_block(top + 32, ETCH_BRANCH_CALL),
        made_block(inner, ETCH_BRANCH_NONE),         made_event(ETCH_STEP_LOSS, NULL),
        made_block(middle + 48, ETCH_BRANCH_RETURN), made_block(inner + 32, ETCH_BRANCH_NONE),
    };
    json_t *root, *events;

    (void)state;
    for (int variant = 0; variant < 3; variant++) {
        for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
            if (variant == 1) /* all within one interval */
                steps[i].time = (struct etch_interval){5000, 6000};
            if (variant == 2)
                steps[i].time = (struct etch_interval){0, UINT64_MAX};
        }
        events = load_events(SHOW(&etch_view_chrome, NULL, steps), &root);
        assert_int_equal(check_nesting(events), 7);
        json_decref(root);
    }
}

static void write_intervals_and_names(void **state)
{
    make_recording();
    struct etch_step steps[] = {made_block(top, ETCH_BRANCH_CALL), made_block(inner, ETCH_BRANCH_RETURN),
                                made_block(top + 16, ETCH_BRANCH_NONE)};
    json_t *root, *events = load_events(SHOW(&etch_view_chrome, NULL, steps), &root), *call;

    (void)state;
    assert_string_equal(json_string_value(json_object_get(json_object_get(json_array_get(events, 0), "args"), "name")),
                        "sam\"ple");
    assert_string_equal(json_string_value(json_object_get(json_object_get(json_array_get(events, 1), "args"), "name")),
                        "main\n");
    call = json_array_get(events, 2);
    assert_string_equal(json_string_value(json_object_get(call, "name")), "inner");
    call = json_object_get(json_object_get(call, "args"), "entered");
    assert_int_equal(json_integer_value(json_object_get(call, "lo")), 3000);
    assert_int_equal(json_integer_value(json_object_get(call, "hi")), 4500);
    json_decref(root);
}

static void write_nothing_as_json(void **state)
{
    json_t *root, *events;

    (void)state;
    make_recording();
    events = load_events(show(&etch_view_chrome, NULL, NULL, 0), &root);
    assert_int_equal(json_array_size(events), 0);
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(show_call_tree),
        cmocka_unit_test(fold_no_call_that_calls),
        cmocka_unit_test(show_lines_once_each),
        cmocka_unit_test(show_line_fields),
        cmocka_unit_test(reject_unknown_field),
        cmocka_unit_test(write_nested_events),
        cmocka_unit_test(write_intervals_and_names),
        cmocka_unit_test(write_nothing_as_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
