/* SPDX-License-Identifier: MIT */
/* What can be watched, as text and as a place in a program: this test's own variables are the program. */
#include "collector/session/place.h"
#include "tests/unit/test.h"

#include <string.h>

/* The address sanitizer would make them larger than they are. */
#if defined(__clang__)
#define PLAIN __attribute__((no_sanitize("address")))
#else
#define PLAIN
#endif

PLAIN long place_long = 7;
PLAIN int place_array[4];
PLAIN char place_big[40];
PLAIN long *place_pointer = &place_long;

static void parse_forms(void **state)
{
    struct etch_place p;
    struct etch_error err;

    (void)state;
    assert_int_equal(etch_place_parse(&p, "counter", &err), 0);
    assert_string_equal(p.name, "counter");
    assert_true(p.reads && p.writes && !p.size && !p.site && !p.dereference);
    assert_int_equal(etch_place_parse(&p, "0x4010:4:w", &err), 0);
    assert_true(!p.name[0] && p.address == 0x4010 && p.size == 4 && !p.reads && p.writes);
    assert_int_equal(etch_place_parse(&p, "*queue+8:4:rw", &err), 0);
    assert_true(p.dereference && p.address == 8 && p.size == 4 && strcmp(p.name, "queue") == 0);
    assert_int_equal(etch_place_parse(&p, "table[3]:8", &err), 0);
    assert_true(p.indexed && p.index == 3 && p.size == 8 && strcmp(p.name, "table") == 0);
    assert_int_equal(etch_place_parse(&p, "@push+21=rdi,rcx,4,-8:4", &err), 0);
    assert_true(p.site && p.address == 21 && strcmp(p.name, "push") == 0);
    assert_int_equal(p.operand.base, 5);
    assert_int_equal(p.operand.index, 2);
    assert_int_equal(p.operand.scale, 4);
    assert_int_equal(p.operand.offset, -8);
}

static void parse_sites(void **state)
{
    struct etch_place p;
    struct etch_error err;

    (void)state;
    assert_int_equal(etch_place_parse(&p, "@0x401136:4", &err), 0);
    assert_true(p.site && !p.by_operand && !p.here && p.address == 0x401136 && p.size == 4 && !p.name[0]);
    assert_int_equal(etch_place_parse(&p, "@push+21:16:w:here", &err), 0);
    assert_true(p.site && p.here && !p.reads && p.writes && p.address == 21 && p.size == 16);
    assert_string_equal(p.name, "push");
    assert_int_equal(etch_place_parse(&p, "@ns::push=rdi,,1,8:8", &err), 0);
    assert_true(p.site && p.by_operand && strcmp(p.name, "ns::push") == 0);
}

static void parse_names(void **state)
{
    struct etch_place p;
    struct etch_error err;

    (void)state;
    assert_int_equal(etch_place_parse(&p, "ns::counter:4:w", &err), 0);
    assert_true(strcmp(p.name, "ns::counter") == 0 && p.size == 4 && !p.reads && p.writes);
    assert_int_equal(etch_place_parse(&p, "a::b::c", &err), 0);
    assert_true(strcmp(p.name, "a::b::c") == 0 && !p.size);
    assert_int_equal(etch_place_parse(&p, "counter.0:r", &err), 0);
    assert_true(strcmp(p.name, "counter.0") == 0 && p.reads && !p.writes);
}

/* Each form is taken by one grammar; a source that cannot watch it says why. */
static void suit_sources(void **state)
{
    static const struct {
        const char *text, *native, *emulator; /* a word of the refusal; NULL: it is taken */
    } forms[] = {
        {"counter", NULL, NULL},
        {"counter:w", NULL, NULL},
        {"ns::counter:4", NULL, NULL},
        {"counter.0", NULL, NULL},
        {"table[3]:8", NULL, NULL},
        {"ring+16:4:rw", NULL, NULL},
        {"0x4010:4", NULL, NULL},
        {"counter:r", "reads alone", NULL},
        {"counter:3", "1, 2, 4 or 8", NULL},
        {"0x10:16", "1, 2, 4 or 8", NULL},
        {"@f:4", "only vpt", NULL},
        {"@0x1136:4:here", ":here", NULL},
        {"*queue+8:4", NULL, "points nowhere"},
        {"@f+2=rdi,,1,8:4", NULL, "not from registers"},
        {"a.b", "debug information", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct etch_error err;
        struct etch_place p;

        assert_int_equal(etch_place_parse(&p, forms[i].text, &err), 0);
        assert_int_equal(etch_place_suits_debug_register(&p, &err), forms[i].native ? -1 : 0);
        if (forms[i].native)
            assert_non_null(strstr(err.what, forms[i].native));
        assert_int_equal(etch_place_suits_emulator(&p, &err), forms[i].emulator ? -1 : 0);
        if (forms[i].emulator)
            assert_non_null(strstr(err.what, forms[i].emulator));
    }
}

static void parse_refuses(void **state)
{
    static const char *const bad[] = {
        "",      "0x10", "a[b]:4", "a[1",          "a+b",           "@f=rdi",        "@f",     "@f=xyz,,1,0:4",
        "a:4:x", ":4",   "0xg:4",  "a:here",       "@f=rip,,1,0:4", "@f=rdi,,9,0:4", "0x40:0", "0xffffffffffffffff:8",
        "12:",   "9z:4", "a:b",    "1:99999999999"};
    char longer[300];
    struct etch_place p;
    struct etch_error err;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (etch_place_parse(&p, bad[i], &err) == 0)
            fail_msg("'%s' was taken", bad[i]);
    memset(longer, 'a', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    assert_int_equal(etch_place_parse(&p, longer, &err), -1);
}

static size_t read_own(void *context, uint64_t address, void *buffer, size_t size)
{
    (void)context;
    memcpy(buffer, (void *)(uintptr_t)address, size);
    return size;
}

struct own {
    struct etch_object *object;
    uint64_t bias;
};

static int open_own(void **state)
{
    static struct own own;
    struct etch_symbol symbol;
    struct etch_error err;

    if (etch_object_open(&own.object, "/proc/self/exe", &err) < 0 ||
        etch_object_symbol(own.object, "place_long", &symbol) != 1)
        return -1;
    own.bias = (uint64_t)(uintptr_t)&place_long - symbol.address;
    *state = &own;
    return 0;
}

static int close_own(void **state)
{
    etch_object_free(((struct own *)*state)->object);
    return 0;
}

static int find(const struct own *own, const char *text, uint64_t *address, uint32_t *size, struct etch_error *err)
{
    struct etch_place p;

    if (etch_place_parse(&p, text, err) < 0)
        return -1;
    return etch_place_find(&p, own->object, own->bias, read_own, NULL, address, size, err);
}

static void find_variables(void **state)
{
    const struct own *own = *state;
    struct etch_error err;
    uint64_t at;
    uint32_t size;

    assert_int_equal(find(own, "place_long", &at, &size, &err), 0);
    assert_true(at == (uint64_t)(uintptr_t)&place_long && size == 8);
    assert_int_equal(find(own, "place_array[2]:4", &at, &size, &err), 0);
    assert_true(at == (uint64_t)(uintptr_t)&place_array[2] && size == 4);
    assert_int_equal(find(own, "place_array+4:4", &at, &size, &err), 0);
    assert_true(at == (uint64_t)(uintptr_t)&place_array[1]);
    assert_int_equal(find(own, "*place_pointer", &at, &size, &err), 0);
    assert_true(at == (uint64_t)(uintptr_t)&place_long && size == 8);
    assert_int_equal(find(own, "0x1000:8", &at, &size, &err), 0);
    assert_true(at == 0x1000 && size == 8);
}

static void find_refuses(void **state)
{
    static const char *const bad[] = {"place_big",      "place_array[4]:4", "place_array[1]", "place_nosuch",
                                      "place_long+8:4", "place_array+1:4",  "0x1001:2"};
    struct etch_error err;
    uint64_t at;
    uint32_t size;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (find(*state, bad[i], &at, &size, &err) == 0)
            fail_msg("'%s' was found at %lx", bad[i], (unsigned long)at);
        assert_non_null(strstr(err.what, "cannot watch"));
    }
    place_pointer = NULL;
    assert_int_equal(find(*state, "*place_pointer", &at, &size, &err), -1);
    assert_non_null(strstr(err.what, "points nowhere"));
    place_pointer = &place_long;
}

static void operand_address(void **state)
{
    uint64_t registers[24] = {[5] = 0x1000, [2] = 3, [23] = 0x7000};
    struct etch_place_operand o;
    struct etch_error err;

    (void)state;
    assert_int_equal(etch_place_operand_parse(&o, "rdi,rcx,8,-16", &err), 0);
    assert_int_equal(etch_place_operand_address(&o, registers), 0x1000 + 24 - 16);
    assert_int_equal(etch_place_operand_parse(&o, "r15,,1,0x10", &err), 0);
    assert_int_equal(etch_place_operand_address(&o, registers), 0x7010);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse_forms),
        cmocka_unit_test(parse_sites),
        cmocka_unit_test(parse_names),
        cmocka_unit_test(suit_sources),
        cmocka_unit_test(parse_refuses),
        cmocka_unit_test_setup_teardown(find_variables, open_own, close_own),
        cmocka_unit_test_setup_teardown(find_refuses, open_own, close_own),
        cmocka_unit_test(operand_address),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
