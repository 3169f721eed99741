/* SPDX-License-Identifier: MIT */
/* Tells whether a watched access read or wrote, and the value, from the registers right after the access and the bytes
 * of the instruction. A debug register traps behind the instruction, so the instruction is the one that ends where the
 * sample's ip begins. Other facts stay unknown; nothing is guessed. */
#ifndef ETCH_DECODER_VALUES_H
#define ETCH_DECODER_VALUES_H

#include "proto/etch.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct etch_value_question {
    uint64_t ip;      /* as sampled */
    bool ip_is_after; /* `ip` is the instruction behind the access; else the accessing instruction */
    const uint8_t *code;
    uint64_t code_address; /* of code[0] */
    size_t code_size;
    bool boundary_known;       /* code[0] begins an instruction (a function's first, say); else any byte of it might */
    const uint64_t *registers; /* 24, by perf's x86 numbers, after the access */
    uint32_t masked;           /* a bit for each register that is not known */
    uint64_t address;
    uint32_t size; /* of the watched location, at most 8 */
    bool previous_known;
    uint64_t previous; /* what the location held before */
};

struct etch_value_answer {
    uint64_t instruction; /* its address; 0: not found */
    bool read, write;     /* both for a read-modify-write; neither: not known */
    bool known;
    uint64_t value; /* of the location, after the access */
};

/* Pure: no file, no memory of the program. */
void etch_value_find(const struct etch_value_question *question, struct etch_value_answer *answer);

/* The pointer by which an instruction faulted: the value of the base register of its memory operand before the
 * instruction, if that operand is at `fault`. `code` begins with the instruction, which is at `ip`. Returns false where
 * no operand, or more than one register, had a part in it. */
bool etch_value_pointer(const uint8_t *code, size_t size, uint64_t ip, const uint64_t registers[24], uint64_t fault,
                        uint64_t *pointer);

/* Gives the code around an address: points `code` at bytes that begin at `start` and go beyond `ip`. Returns false
 * where there is none. */
struct etch_value_code {
    const uint8_t *bytes;
    uint64_t start;
    size_t size;
    bool boundary; /* start begins an instruction */
};
typedef bool etch_value_reader(void *context, uint64_t ip, struct etch_value_code *code);

/* Fills in direction, instruction and value of the accesses of one watch. The accesses are in the order of their times.
 * Writes are replayed from the value at arm time. `lost[i]` says that accesses were lost before the i-th; NULL: none
 * were. If the instruction of an access is found, `ip` becomes the address of this instruction and ip_is_after becomes
 * false. */
void etch_values_fill(const Etch__Watch *watch, Etch__Access **accesses, size_t n, const bool *lost,
                      etch_value_reader *reader, void *context);

#endif
