/* SPDX-License-Identifier: MIT */
/* What the user wants watched, as he writes it, and where that lies in the running program.
 *
 *   ADDRESS:LENGTH[:w|:rw]               0x4010:4:rw
 *   [*]NAME[[INDEX]][+OFFSET][:LENGTH][:w|:rw]    counter   table[3]:8   ring+16:4   *queue+8:4
 *   @PLACE=BASE,INDEX,SCALE,OFFSET:LENGTH[:w|:rw]   at the instruction PLACE (an address of the file, or NAME+OFFSET)
 *                                                the location that these registers then say: @push+21=rdi,,1,8:4
 *
 * Lengths are 1, 2, 4 or 8, aligned: what a debug register takes. x86 has none for reads alone. */
#ifndef ETCH_COLLECTOR_SESSION_PLACE_H
#define ETCH_COLLECTOR_SESSION_PLACE_H

#include "base/error.h"
#include "binary/object.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ETCH_NO_REGISTER 0xffu

/* base + index * scale + offset, registers by their perf x86 numbers. */
struct etch_place_operand {
    uint8_t base, index, scale;
    int64_t offset;
};

struct etch_place {
    char text[256];
    char name[256];   /* empty: `address` alone says it */
    uint64_t address; /* added to the name's, where there is one */
    uint64_t index;   /* in elements of `size` */
    bool indexed, dereference;
    uint32_t size; /* 0: the symbol's */
    bool reads, writes;
    bool in_file; /* the address is in the file's numbering */
    bool site;    /* name and address are an instruction's, in the file's numbering */
    struct etch_place_operand operand;
};

int etch_place_parse(struct etch_place *place, const char *text, struct etch_error *err);

/* Whether a debug register can take it. */
bool etch_place_fits(uint64_t address, uint64_t size);

/* Reads memory of the program; returns how many bytes. */
typedef size_t etch_place_read(void *context, uint64_t address, void *buffer, size_t size);

/* Where a place lies in a program whose file is `object`, moved by `bias`. `size` is 0 for a site's instruction.
 * Returns 0, or -1 with `err` set. */
int etch_place_find(const struct etch_place *place, const struct etch_object *object, uint64_t bias,
                    etch_place_read *read, void *context, uint64_t *address, uint32_t *size, struct etch_error *err);

/* "base,index,scale,offset" with registers by name, as plans have it. */
int etch_place_operand_parse(struct etch_place_operand *operand, const char *text, struct etch_error *err);

uint64_t etch_place_operand_address(const struct etch_place_operand *operand, const uint64_t registers[24]);

#endif
