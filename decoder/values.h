/* SPDX-License-Identifier: MIT */
/* What a watched access did, from the registers right after it and the instruction's own bytes: read or write, and the
 * value. A debug register traps behind the instruction, so the instruction is the one that ends where the sample's ip
 * begins. What cannot be known from that stays unknown; nothing is guessed. */
#ifndef ETCH_DECODER_VALUES_H
#define ETCH_DECODER_VALUES_H

#include "proto/etch.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct etch_value_question {
    uint64_t ip;      /* as sampled */
    bool ip_is_after; /* it is the instruction behind; else the one that made the access */
    const uint8_t *code;
    uint64_t code_address; /* of code[0] */
    size_t code_size;
    bool boundary_known;       /* code[0] begins an instruction (a function's first, say); else any byte of it might */
    const uint64_t *registers; /* 24, by perf's x86 numbers, after the access */
    uint32_t masked;           /* of the registers: not known, by their bits */
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

/* The pointer by which an instruction went wrong: what the base register of its memory operand held, by the registers
 * before it, where that operand is at `fault`. `code` begins with the instruction, which is at `ip`. Returns false
 * where no operand, or more than one register, had a part in it. */
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

/* Fills in direction, instruction and value of the accesses of one watch, which are in the order of their times. Writes
 * are replayed from the value at arm time. `lost[i]` says that accesses were lost before the i-th; NULL: none were. An
 * access whose instruction was found gets its ip set to it, and is no longer ip_is_after. */
void etch_values_fill(const Etch__Watch *watch, Etch__Access **accesses, size_t n, const bool *lost,
                      etch_value_reader *reader, void *context);

#endif
