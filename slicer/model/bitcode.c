/* SPDX-License-Identifier: MIT */
/* Finding and splitting embedded bitcode. LLVM-C parses a buffer with one module only, and says nothing of where it
 * ends; the top level of a bitstream is simple enough to walk: blocks with their lengths in words. */
#include "slicer/bitcode.h"

#include "binary/elf_bytes.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int foreign(struct etch_error *err)
{
    return etch_error_set(err, "not a 64-bit little-endian ELF file, or one that was cut");
}

/* Calls `visit` with each section that `a` or `b` names; `b` may be NULL. */
static int visit_named(const uint8_t *bytes, size_t size, const char *a, const char *b, etch_bitcode_visitor *visit,
                       void *context, struct etch_error *err)
{
    struct etch_elf_bytes elf;
    struct etch_elf_section s;

    if (!etch_elf_bytes_open(&elf, bytes, size))
        return foreign(err);
    for (uint32_t i = 0; etch_elf_bytes_section(&elf, i, &s); i++) {
        int result;

        if (!etch_elf_section_is(&elf, &s, a) && !(b && etch_elf_section_is(&elf, &s, b)))
            continue;
        if (!s.bytes)
            return foreign(err);
        result = visit(context, s.bytes, s.size, err);
        if (result != 0)
            return result;
    }
    return 0;
}

int etch_bitcode_sections(const uint8_t *bytes, size_t size, etch_bitcode_visitor *visit, void *context,
                          struct etch_error *err)
{
    return visit_named(bytes, size, ETCH_BITCODE_CLANG, ETCH_BITCODE_OWN, visit, context, err);
}

int etch_bitcode_named(const uint8_t *bytes, size_t size, const char *name, etch_bitcode_visitor *visit, void *context,
                       struct etch_error *err)
{
    return visit_named(bytes, size, name, NULL, visit, context, err);
}

size_t etch_bitcode_rename(uint8_t *bytes, size_t size)
{
    size_t changed = 0;
    struct etch_elf_bytes elf;
    struct etch_elf_section s;

    if (!etch_elf_bytes_open(&elf, bytes, size))
        return 0;
    for (uint32_t i = 0; etch_elf_bytes_section(&elf, i, &s); i++) {
        if (etch_elf_section_is(&elf, &s, ETCH_BITCODE_CLANG)) {
            memcpy(bytes + elf.names.sh_offset + s.header.sh_name, ETCH_BITCODE_OWN, sizeof(ETCH_BITCODE_OWN) - 1);
            changed += sizeof(ETCH_BITCODE_OWN) - 1;
        }
    }
    return changed;
}

struct bits {
    const uint8_t *bytes;
    size_t size; /* in bytes */
    size_t at;   /* in bits */
    bool bad;
};

static uint32_t fixed(struct bits *b, unsigned width)
{
    uint32_t value = 0;

    if (b->at + width > b->size * 8) {
        b->bad = true;
        return 0;
    }
    for (unsigned i = 0; i < width; i++, b->at++)
        value |= (uint32_t)((b->bytes[b->at / 8] >> (b->at % 8)) & 1) << i;
    return value;
}

static uint32_t vbr(struct bits *b, unsigned width)
{
    uint32_t high = 1u << (width - 1), value = 0;

    for (unsigned shift = 0; shift < 32; shift += width - 1) {
        uint32_t piece = fixed(b, width);

        value |= (piece & (high - 1)) << shift;
        if (!(piece & high) || b->bad)
            return value;
    }
    b->bad = true;
    return 0;
}

static bool at_magic(const struct bits *b)
{
    size_t byte = b->at / 8;

    return byte + 4 <= b->size && memcmp(b->bytes + byte, "BC\xc0\xde", 4) == 0;
}

enum { IDENTIFICATION_BLOCK = 13, MODULE_BLOCK = 8, ENTER_SUBBLOCK = 1, UNABBREVIATED = 3, STRING_CODE = 1 };

/* The producer's name is the first record of the identification block: abbreviated by a definition of its own, so
 * rather than reading abbreviations, look for the letters, which are six-bit or eight-bit characters at any bit. */
static void read_producer(const struct bits *block, size_t words, char producer[32])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._";
    static const uint32_t want[4] = {37, 37, 47, 38}; /* LLVM */
    size_t end = block->at + words * 32;

    for (size_t from = block->at; from + 24 <= end; from++) {
        struct bits b = *block;
        size_t n = 0;

        b.at = from;
        while (n < 4 && fixed(&b, 6) == want[n])
            n++;
        if (n < 4)
            continue;
        b.at = from;
        for (n = 0; n < 31 && b.at + 6 <= end; n++) {
            uint32_t c = fixed(&b, 6);

            producer[n] = letters[c];
            if (n >= 4 && (letters[c] != '.' && (letters[c] < '0' || letters[c] > '9')))
                break;
        }
        producer[n] = '\0';
        return;
    }
}

/* Reads one block's head and passes over the block. */
static bool skip_block(struct bits *b, struct etch_bitcode_module *module, bool *has_module)
{
    uint32_t id, words;

    if (fixed(b, 2) != ENTER_SUBBLOCK)
        return false;
    id = vbr(b, 8);
    vbr(b, 4);
    b->at = (b->at + 31) / 32 * 32;
    words = fixed(b, 32);
    if (b->bad || (uint64_t)words * 4 > b->size - b->at / 8)
        return false;
    if (id == IDENTIFICATION_BLOCK)
        read_producer(b, words, module->producer);
    *has_module = *has_module || id == MODULE_BLOCK;
    b->at += (size_t)words * 32;
    return true;
}

int etch_bitcode_split(const uint8_t *section, size_t size, etch_bitcode_modules *modules, struct etch_error *err)
{
    struct bits b = {.bytes = section, .size = size};

    while (b.at / 8 < size) {
        struct etch_bitcode_module module = {.offset = b.at / 8};
        bool has_module = false;

        if (section[b.at / 8] == 0) { /* padding of the linker's */
            b.at += 8;
            continue;
        }
        if (!at_magic(&b))
            return etch_error_set(err, "its bitcode is damaged at byte %zu of the section", b.at / 8);
        b.at += 32;
        while (b.at / 8 + 4 <= size && !at_magic(&b) && section[b.at / 8] != 0)
            if (!skip_block(&b, &module, &has_module))
                return etch_error_set(err, "its bitcode is damaged at byte %zu of the section", b.at / 8);
        module.size = b.at / 8 - module.offset;
        if (!has_module)
            return etch_error_set(err, "its bitcode is damaged: no module at byte %zu of the section", module.offset);
        if (!etch_array_push(modules, module))
            return etch_error_no_memory(err);
    }
    return 0;
}
