/* SPDX-License-Identifier: MIT */
/* See link_note.h. */
#include "slicer/link_note.h"

#include "slicer/bitcode.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char magic[8] = {'E', 'T', 'C', 'H', 'L', 'N', 'K', '1'};

/* The names of the object's sections, one behind the other. */
static const char names[] = "\0" ETCH_LINK_SECTION "\0.note.GNU-stack\0.shstrtab";
enum { NAME_NOTE = 1, NAME_STACK = NAME_NOTE + sizeof(ETCH_LINK_SECTION), NAME_NAMES = NAME_STACK + 16 };

/* ---- Writing ---- */

static size_t text_size(const char *folder, const char *const *words, size_t n)
{
    size_t size = strlen(folder) + 1;

    for (size_t i = 0; i < n; i++)
        size += strlen(words[i]) + 1;
    return size;
}

static uint8_t *put(uint8_t *at, const void *bytes, size_t size)
{
    memcpy(at, bytes, size);
    return at + size;
}

static uint8_t *put_note(uint8_t *at, const char *folder, const char *const *words, size_t n)
{
    uint32_t text = (uint32_t)text_size(folder, words, n);

    at = put(at, magic, sizeof(magic));
    at = put(at, &text, sizeof(text));
    at = put(at, folder, strlen(folder) + 1);
    for (size_t i = 0; i < n; i++)
        at = put(at, words[i], strlen(words[i]) + 1);
    return at;
}

uint8_t *etch_link_note_object(const char *folder, const char *const *words, size_t n, size_t *size)
{
    const size_t note = sizeof(magic) + sizeof(uint32_t) + text_size(folder, words, n);
    const size_t heads = (sizeof(Elf64_Ehdr) + note + sizeof(names) + 7) & ~(size_t)7;
    Elf64_Shdr s[4] = {
        {0},
        {.sh_name = NAME_NOTE, .sh_type = SHT_PROGBITS, .sh_offset = sizeof(Elf64_Ehdr), .sh_size = note},
        {.sh_name = NAME_STACK, .sh_type = SHT_PROGBITS, .sh_offset = sizeof(Elf64_Ehdr)},
        {.sh_name = NAME_NAMES,
         .sh_type = SHT_STRTAB,
         .sh_offset = sizeof(Elf64_Ehdr) + note,
         .sh_size = sizeof(names)}};
    Elf64_Ehdr e = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                    .e_type = ET_REL,
                    .e_machine = EM_X86_64,
                    .e_version = EV_CURRENT,
                    .e_ehsize = sizeof(e),
                    .e_shoff = heads,
                    .e_shentsize = sizeof(s[0]),
                    .e_shnum = 4,
                    .e_shstrndx = 3};
    uint8_t *bytes;

    for (size_t i = 1; i < 4; i++)
        s[i].sh_addralign = 1;
    *size = heads + sizeof(s);
    bytes = calloc(1, *size);
    if (!bytes)
        return NULL;
    put(put_note(put(bytes, &e, sizeof(e)), folder, words, n), names, sizeof(names));
    put(bytes + heads, s, sizeof(s));
    return bytes;
}

/* ---- Reading ---- */

static bool take_text(struct etch_link_note *note, const char *text, size_t size)
{
    note->folder = NULL;
    note->words.n = 0;
    if (!size || text[size - 1] != '\0')
        return false;
    for (const char *at = text; at < text + size; at += strlen(at) + 1) {
        if (!note->folder)
            note->folder = at;
        else if (!etch_array_push(&note->words, at))
            return false;
    }
    return note->words.n > 0;
}

static int take_section(void *context, const uint8_t *section, size_t size, struct etch_error *err)
{
    struct etch_link_note *note = context;

    while (size >= sizeof(magic) + sizeof(uint32_t) && memcmp(section, magic, sizeof(magic)) == 0) {
        uint32_t text;

        memcpy(&text, section + sizeof(magic), sizeof(text));
        section += sizeof(magic) + sizeof(text);
        size -= sizeof(magic) + sizeof(text);
        if (text > size || !take_text(note, (const char *)section, text))
            return etch_error_set(err, "the note of how it was linked is damaged");
        section += text;
        size -= text;
    }
    return 0;
}

int etch_link_note_read(struct etch_link_note *note, const uint8_t *elf, size_t size, struct etch_error *err)
{
    memset(note, 0, sizeof(*note));
    if (etch_bitcode_named(elf, size, ETCH_LINK_SECTION, take_section, note, err) < 0) {
        etch_link_note_release(note);
        return -1;
    }
    if (note->words.n)
        return 0;
    etch_error_set(err, "it does not say how it was linked");
    return etch_error_advise(err, "link it with etch cc or etch c++");
}

void etch_link_note_release(struct etch_link_note *note)
{
    etch_array_free(&note->words);
}
