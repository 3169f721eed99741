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

static void parse_refuses(void **state)
{
    static const char *const bad[] = {"",      "a:3", "a:r",    "0x10",  "0x10:16",       "a[b]:4",
                                      "a[1",   "a+b", "@f=rdi", "@f:4",  "@f=xyz,,1,0:4", "@f=rdi,,9,0:4",
                                      "a:4:x", ":4",  "a.b",    "0xg:4", "@f=rip,,1,0:4"};
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
        cmocka_unit_test(parse_refuses),
        cmocka_unit_test_setup_teardown(find_variables, open_own, close_own),
        cmocka_unit_test_setup_teardown(find_refuses, open_own, close_own),
        cmocka_unit_test(operand_address),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
