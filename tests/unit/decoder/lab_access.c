/* SPDX-License-Identifier: MIT */
/* The instruction that makes an access of the lab: the next one that fits, up to a call or a jump. */
#include "decoder/lab_access.h"
#include "tests/unit/test.h"

#define IP 0x401000u

struct row {
    const char *what, *code;
    size_t length;
    uint32_t size;
    bool write;
    uint64_t offset; /* of the instruction */
    bool none;
};

static const struct row rows[] = {
    /* mov rax, [rbp-8]; mov eax, [rax] */
    {"behind a value from the stack", "\x48\x8b\x45\xf8\x8b\x00", 6, 4, false, 4, false},
    /* mov rax, [rbp-8]; mov dword [rax], 5 */
    {"a write", "\x48\x8b\x45\xf8\xc7\x00\x05\x00\x00\x00", 10, 4, true, 4, false},
    /* mov rax, [rbp-8] */
    {"only the stack fits", "\x48\x8b\x45\xf8\xc3", 5, 8, false, 0, false},
    /* mov eax, [rip+0x10] */
    {"a global", "\x8b\x05\x10\x00\x00\x00", 6, 4, false, 0, false},
    /* mov [rax], ecx */
    {"another direction", "\x89\x08", 2, 4, false, 0, true},
    /* mov ecx, [rax] */
    {"another size", "\x8b\x08", 2, 1, false, 0, true},
    /* call +0; mov eax, [rax] */
    {"behind a call", "\xe8\x00\x00\x00\x00\x8b\x00", 7, 4, false, 0, true},
    {"half an instruction", "\x48\x8b", 2, 8, false, 0, true},
    {"nothing", "", 0, 8, false, 0, true},
};

static void find_each(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *r = &rows[i];
        uint64_t found = etch_lab_access_find((const uint8_t *)r->code, r->length, IP, r->size, r->write);

        if (found != (r->none ? 0 : IP + r->offset))
            fail_msg("%s: 0x%llx", r->what, (unsigned long long)found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(find_each)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
