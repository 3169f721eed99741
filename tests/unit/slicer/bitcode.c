/* SPDX-License-Identifier: MIT */
/* Finding, renaming and splitting embedded bitcode, on bytes made here. */
#include "slicer/bitcode.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* An identification block with "LLVM" and a version in six-bit letters, then an empty module block. */
static size_t make_module(uint8_t *out, const char *version)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._";
    uint8_t head[12] = {'B', 'C', 0xc0, 0xde, 0x35, 0x14, 0, 0, 4, 0, 0, 0}; /* block 13, 4 words */
    uint8_t module[8] = {0x21, 0x0c, 0, 0, 0, 0, 0, 0};                      /* block 8, no words */
    char text[32];
    size_t bit = 5;

    memcpy(out, head, 12);
    memset(out + 12, 0, 16);
    strcpy(text, "LLVM");
    strcat(text, version);
    for (const char *c = text; *c; c++, bit += 6) {
        unsigned code = (unsigned)(strchr(letters, *c) - letters);

        for (unsigned k = 0; k < 6; k++)
            out[12 + (bit + k) / 8] = (uint8_t)(out[12 + (bit + k) / 8] | ((code >> k) & 1) << ((bit + k) % 8));
    }
    memcpy(out + 28, module, 8);
    return 36;
}

static void splits_two_modules(void **state)
{
    uint8_t bytes[128] = {0};
    etch_bitcode_modules modules = {0};
    struct etch_error err;
    size_t n = make_module(bytes, "19.1.7");

    (void)state;
    n += 4; /* the linker's padding */
    n += make_module(bytes + n, "14.0.6");
    assert_int_equal(etch_bitcode_split(bytes, n, &modules, &err), 0);
    assert_int_equal(modules.n, 2);
    assert_int_equal(modules.v[0].offset, 0);
    assert_int_equal(modules.v[0].size, 36);
    assert_string_equal(modules.v[0].producer, "LLVM19.1.7");
    assert_int_equal(modules.v[1].offset, 40);
    assert_string_equal(modules.v[1].producer, "LLVM14.0.6");
    etch_array_free(&modules);
}

static void refuses_cut_modules(void **state)
{
    uint8_t bytes[64];
    size_t whole = make_module(bytes, "19");

    (void)state;
    for (size_t n = 1; n < whole; n++) {
        uint8_t *copy = malloc(n); /* so that a read behind the end is seen */
        etch_bitcode_modules modules = {0};
        struct etch_error err;

        memcpy(copy, bytes, n);
        assert_int_equal(etch_bitcode_split(copy, n, &modules, &err), -1);
        assert_non_null(strstr(err.what, "damaged"));
        etch_array_free(&modules);
        free(copy);
    }
}

struct object {
    Elf64_Ehdr head;
    uint8_t bitcode[8];
    char names[32];
    Elf64_Shdr sections[3];
};

static void make_object(struct object *o)
{
    memset(o, 0, sizeof(*o));
    memcpy(o->head.e_ident, ELFMAG, SELFMAG);
    o->head.e_ident[EI_CLASS] = ELFCLASS64;
    o->head.e_ident[EI_DATA] = ELFDATA2LSB;
    o->head.e_shoff = offsetof(struct object, sections);
    o->head.e_shentsize = sizeof(Elf64_Shdr);
    o->head.e_shnum = 3;
    o->head.e_shstrndx = 1;
    memcpy(o->bitcode, "8 bytes", 8);
    memcpy(o->names, "\0.shstrtab\0.llvmbc", 19);
    o->sections[1] = (Elf64_Shdr){.sh_name = 1, .sh_offset = offsetof(struct object, names), .sh_size = 32};
    o->sections[2] = (Elf64_Shdr){
        .sh_name = 11, .sh_type = SHT_PROGBITS, .sh_offset = offsetof(struct object, bitcode), .sh_size = 8};
}

static int count(void *context, const uint8_t *section, size_t size, struct etch_error *err)
{
    (void)err;
    assert_int_equal(size, 8);
    assert_memory_equal(section, "8 bytes", 8);
    ++*(int *)context;
    return 0;
}

static void finds_section_by_either_name(void **state)
{
    struct etch_error err;
    struct object o;
    int n = 0;

    (void)state;
    make_object(&o);
    assert_int_equal(etch_bitcode_sections((uint8_t *)&o, sizeof(o), count, &n, &err), 0);
    assert_int_equal(n, 1);
    assert_int_equal(etch_bitcode_rename((uint8_t *)&o, sizeof(o)), 7);
    assert_string_equal(o.names + 11, ".etchbc");
    assert_int_equal(etch_bitcode_rename((uint8_t *)&o, sizeof(o)), 0);
    assert_int_equal(etch_bitcode_sections((uint8_t *)&o, sizeof(o), count, &n, &err), 0);
    assert_int_equal(n, 2);
}

static void refuses_bytes_that_lie(void **state)
{
    struct etch_error err;
    struct object o;
    int n = 0;

    (void)state;
    for (size_t size = 0; size < sizeof(o); size++) {
        uint8_t *copy = malloc(size + 1);

        make_object(&o);
        memcpy(copy, &o, size);
        assert_int_equal(etch_bitcode_sections(copy, size, count, &n, &err), -1);
        free(copy);
    }
    make_object(&o);
    o.sections[2].sh_size = 1u << 30;
    assert_int_equal(etch_bitcode_sections((uint8_t *)&o, sizeof(o), count, &n, &err), -1);
    make_object(&o);
    o.head.e_shoff = UINT64_MAX - 8;
    assert_int_equal(etch_bitcode_sections((uint8_t *)&o, sizeof(o), count, &n, &err), -1);
    assert_int_equal(etch_bitcode_rename((uint8_t *)&o, sizeof(o)), 0);
    assert_int_equal(n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits_two_modules),
        cmocka_unit_test(refuses_cut_modules),
        cmocka_unit_test(finds_section_by_either_name),
        cmocka_unit_test(refuses_bytes_that_lie),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
