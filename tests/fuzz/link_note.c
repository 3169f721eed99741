/* SPDX-License-Identifier: MIT */
/* The note of how a program was linked, damaged: an input stands in the place of the note's bytes. */
#include "slicer/link_note.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const words[] = {"clang"};
    char *folder = malloc(size + 1);
    struct etch_link_note note;
    struct etch_error err;
    size_t all, sum = 0;
    uint8_t *object;

    if (!folder)
        return -1;
    memset(folder, 'f', size);
    folder[size] = '\0';
    object = etch_link_note_object(folder, words, 1, &all);
    free(folder);
    if (!object)
        return -1;
    memcpy(object + sizeof(Elf64_Ehdr), data, size);
    if (etch_link_note_read(&note, object, all, &err) == 0) {
        for (size_t i = 0; i < note.words.n; i++) /* reads every byte */
            sum += strlen(note.words.v[i]);
        if (sum + strlen(note.folder) > all)
            abort();
        etch_link_note_release(&note);
    }
    free(object);
    return 0;
}
