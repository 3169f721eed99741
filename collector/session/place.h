/* SPDX-License-Identifier: MIT */
/* A place to watch: its grammar, which is the same for all sources, and where it lies in the running program.
 *
 *   ADDRESS:LENGTH[:MODE]                         0x4010:4:rw
 *   [*]NAME[[INDEX]][+OFFSET][:LENGTH][:MODE]     counter   ns::counter   table[3]:8   ring+16:4   *queue+8:4
 *   @SITE=BASE,INDEX,SCALE,OFFSET:LENGTH[:MODE]   @push+21=rdi,,1,8:4
 *   @SITE:LENGTH[:MODE][:here]                    @0x401136:4   @push+21:4:here
 *
 * MODE is r, w or rw. A SITE is an instruction: an address of the file, or NAME[+OFFSET]. With =BASE,... the watched
 * location is what these registers say when the instruction is first reached. Without, it is what the instruction
 * itself reads or writes; with :here only the accesses by that instruction count.
 *
 * The grammar takes all of these. No source can watch all of them: etch_place_suits_debug_register() and
 * etch_place_suits_emulator() refuse, and say why. */
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
    char name[256];   /* empty: the place is `address` */
    uint64_t address; /* added to the address of `name`, if there is a name */
    uint64_t index;   /* in elements of `size` */
    bool indexed, dereference;
    uint32_t size; /* 0: the symbol's */
    bool reads, writes;
    bool in_file;    /* the address is in the file's numbering */
    bool site;       /* name and address are an instruction's, in the file's numbering */
    bool by_operand; /* of a site: `operand` gives the location; else the instruction's own operand does */
    bool here;       /* of a site: only that instruction's own accesses */
    struct etch_place_operand operand;
};

/* Returns 0, or -1 with `err` set. */
int etch_place_parse(struct etch_place *place, const char *text, struct etch_error *err);

/* Check if a debug register can watch the place (sources pt, soft, none), or QEMU (vpt). Both return 0, or -1 with
 * `err` set to the reason and to a form that the source takes. */
int etch_place_suits_debug_register(const struct etch_place *place, struct etch_error *err);
int etch_place_suits_emulator(const struct etch_place *place, struct etch_error *err);

/* Finds a place in the file `path`, for an emulator: any length, not aligned. `address` and `size` are in the file's
 * numbering. Returns 0, or -1 with `err` set. */
int etch_place_find_in_file(const struct etch_place *place, const char *path, uint64_t *address, uint64_t *size,
                            struct etch_error *err);

/* Returns true if a debug register takes this address and length. */
bool etch_place_fits(uint64_t address, uint64_t size);

/* Reads memory of the program; returns how many bytes. */
typedef size_t etch_place_read(void *context, uint64_t address, void *buffer, size_t size);

/* Finds a place in a program whose file is `object`, moved by `bias`. `size` is 0 for a site's instruction. Returns 0,
 * or -1 with `err` set. */
int etch_place_find(const struct etch_place *place, const struct etch_object *object, uint64_t bias,
                    etch_place_read *read, void *context, uint64_t *address, uint32_t *size, struct etch_error *err);

/* Parses "base,index,scale,offset" with registers by name, the form in plans. */
int etch_place_operand_parse(struct etch_place_operand *operand, const char *text, struct etch_error *err);

uint64_t etch_place_operand_address(const struct etch_place_operand *operand, const uint64_t registers[24]);

#endif
