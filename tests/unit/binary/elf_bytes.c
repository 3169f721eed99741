/* SPDX-License-Identifier: MIT */
/* ELF files in memory: found sections and segments, and bytes that lie. */
#include "binary/elf_bytes.h"
#include "tests/unit/test.h"

#include <string.h>

struct made {
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    char names[32];
    uint8_t contents[8];
    Elf64_Shdr sections[4];
};

static void make(struct made *m)
{
    *m = (struct made){.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                                  .e_phoff = offsetof(struct made, segment),
                                  .e_phentsize = sizeof(Elf64_Phdr),
                                  .e_phnum = 1,
                                  .e_shoff = offsetof(struct made, sections),
                                  .e_shentsize = sizeof(Elf64_Shdr),
                                  .e_shnum = 4,
                                  .e_shstrndx = 1},
                       .segment = {.p_type = PT_LOAD, .p_vaddr = 0x1000},
                       .names = "\0.names\0.own\0.bss",
                       .contents = "8 bytes"};
    m->sections[1] = (Elf64_Shdr){.sh_name = 1, .sh_offset = offsetof(struct made, names), .sh_size = 32};
    m->sections[2] =
        (Elf64_Shdr){.sh_name = 8, .sh_type = SHT_PROGBITS, .sh_offset = offsetof(struct made, contents), .sh_size = 8};
    m->sections[3] = (Elf64_Shdr){.sh_name = 13, .sh_type = SHT_NOBITS, .sh_size = 1 << 20};
}

static void find_parts(void **state)
{
    struct etch_elf_section section;
    struct etch_elf_bytes elf;
    Elf64_Phdr segment;
    struct made m;

    (void)state;
    make(&m);
    assert_true(etch_elf_bytes_open(&elf, (uint8_t *)&m, sizeof(m)));
    assert_true(etch_elf_bytes_section(&elf, 2, &section));
    assert_true(etch_elf_section_is(&elf, &section, ".own"));
    assert_false(etch_elf_section_is(&elf, &section, ".ow"));
    assert_ptr_equal(section.bytes, m.contents);
    assert_int_equal(section.size, 8);
    assert_true(etch_elf_bytes_section(&elf, 3, &section));
    assert_null(section.bytes);
    assert_false(etch_elf_bytes_section(&elf, 4, &section));
    assert_true(etch_elf_bytes_segment(&elf, 0, &segment));
    assert_int_equal(segment.p_vaddr, 0x1000);
    assert_false(etch_elf_bytes_segment(&elf, 1, &segment));
}

static void refuse_what_reaches_out(void **state)
{
    struct etch_elf_section section;
    struct etch_elf_bytes elf;
    Elf64_Phdr segment;
    struct made m;

    (void)state;
    make(&m);
    for (size_t n = 0; n < sizeof(m); n++) /* the sections' headers come last */
        assert_false(etch_elf_bytes_open(&elf, (uint8_t *)&m, n));
    m.sections[2].sh_offset = sizeof(m) - 7;
    m.sections[2].sh_name = 31;
    m.header.e_phoff = UINT64_MAX - 8;
    assert_true(etch_elf_bytes_open(&elf, (uint8_t *)&m, sizeof(m)));
    assert_true(etch_elf_bytes_section(&elf, 2, &section));
    assert_null(section.bytes);
    assert_false(etch_elf_section_is(&elf, &section, ".own"));
    assert_false(etch_elf_bytes_segment(&elf, 0, &segment));
    m.sections[1].sh_size = UINT64_MAX;
    assert_false(etch_elf_bytes_open(&elf, (uint8_t *)&m, sizeof(m)));
    make(&m);
    m.header.e_shstrndx = 4;
    assert_false(etch_elf_bytes_open(&elf, (uint8_t *)&m, sizeof(m)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(find_parts),
        cmocka_unit_test(refuse_what_reaches_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
