/* SPDX-License-Identifier: MIT */
/* Values backwards from the end of a thread. The instructions that ran, the last registers and the last memory are
 * known. From them follow values that earlier instructions read and wrote: some instructions can be undone, others can
 * be executed again, and memory keeps a value until something writes it. Values that cannot be proven stay unknown. The
 * idea is that of REPT (OSDI 2018); unlike REPT, nothing is assumed and corrected later: see docs/values.md. */
#ifndef ETCH_DECODER_BACKWARD_H
#define ETCH_DECODER_BACKWARD_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ETCH_BACKWARD_LIMIT 200000u /* instructions of one question */
#define ETCH_BACKWARD_REGISTERS 24u /* of perf's x86 numbers */

/* Code that ran between two instructions of the sequence and is not in the sequence. The engine itself adds
 * ETCH_UNSEEN_ANY where an instruction cannot follow the one before. */
enum etch_unseen {
    ETCH_UNSEEN_NOTHING,
    ETCH_UNSEEN_QUIET,   /* a function that was called and returned. It wrote only the stack below its caller's */
    ETCH_UNSEEN_LIBRARY, /* the same, but it may have written the heap, and variables of libraries */
    ETCH_UNSEEN_CALL,    /* the same, but it may have written any memory */
    ETCH_UNSEEN_ANY,     /* anything may have been changed, registers too */
};

/* What a function writes that was called and returned. */
struct etch_library_effect {
    enum etch_unseen unseen;
    uint8_t pointer; /* it also writes through this argument, counted from 1; 0: through none */
    uint8_t length;  /* as many bytes at most as this argument says, counted from 1; 0: `bytes` */
    uint32_t bytes;
    uint8_t other;  /* it also writes `bytes` through this argument; 0: no */
    bool same;      /* it returns the same to this thread every time */
    bool allocates; /* it returns memory of the heap, or NULL */
};

/* The effect of a function of the C or C++ library, by its symbol; NULL or unknown: everything. Never NULL. The program
 * must not have a function of that name itself. */
const struct etch_library_effect *etch_library_effect_of(const char *symbol);

/* Who writes a piece of memory. */
enum etch_memory_kind {
    ETCH_MEMORY_PLAIN,    /* only this thread, while the instructions ran */
    ETCH_MEMORY_STACK,    /* the same; the thread's own stack */
    ETCH_MEMORY_STATIC,   /* the same; variables of the program's own files */
    ETCH_MEMORY_SHARED,   /* others too, at any time. No value is carried from one moment to another */
    ETCH_MEMORY_CONSTANT, /* nobody: a value holds at all times */
};

enum etch_how_known {
    ETCH_HOW_UNKNOWN,
    ETCH_HOW_CORE,     /* it is the last value, of a register or of memory */
    ETCH_HOW_CONSTANT, /* the instruction has it, or memory that nobody writes */
    ETCH_HOW_FLOW,     /* the way that the thread took shows it: a branch, a return */
    ETCH_HOW_UNDONE,   /* from a later value */
    ETCH_HOW_EXECUTED, /* from earlier values, by executing again */
};

/* A function keeps its part of the stack to itself if it takes no address of it. Only accesses at the register that
 * holds the frame are meant. */
enum etch_stack_frame {
    ETCH_FRAME_OPEN,
    ETCH_FRAME_BY_SP,    /* private; the stack pointer alone holds it */
    ETCH_FRAME_BY_SP_BP, /* private; the frame pointer holds it too */
};

struct etch_backward_instruction {
    uint64_t address;
    const uint8_t *bytes; /* `size` of them, at least of the instruction; they stay the caller's */
    uint8_t size;
    uint8_t unseen;                           /* enum etch_unseen: what ran right before this instruction */
    const struct etch_library_effect *effect; /* more about `unseen`; NULL: nothing */
    uint8_t frame;                            /* enum etch_stack_frame: of the function */
    bool into_ring;  /* its stores go to memory that the program does not use: the recorder's */
    bool incomplete; /* only of the last: it did not finish, for example because it faulted */
};

struct etch_backward_question {
    const struct etch_backward_instruction *instructions;
    size_t n;
    enum etch_unseen unseen_after;                  /* what ran behind the last instruction */
    const struct etch_library_effect *effect_after; /* more about it; NULL: nothing */
    uint64_t registers[ETCH_BACKWARD_REGISTERS];    /* at the end, by perf's x86 numbers */
    uint32_t masked;                                /* a bit for each register that is not known */
    bool threads;       /* there are other threads: the stack is private only where `frame` says so */
    bool fs_base_known; /* of the thread, all the time */
    uint64_t fs_base;
    /* Reads memory at the end. Returns how many bytes of `size` were read. */
    size_t (*read)(void *context, uint64_t address, void *to, size_t size);
    /* NULL: all memory is plain. */
    enum etch_memory_kind (*kind)(void *context, uint64_t address);
    void *context;
};

/* One memory access of one instruction: at most eight bytes. Greater operands are several accesses. */
struct etch_backward_access {
    uint32_t instruction; /* its index */
    uint32_t size;
    bool write;    /* else read */
    bool implicit; /* of a push, pop, call, return */
    bool address_known;
    enum etch_how_known how; /* of the value */
    uint64_t address, value;
};

/* The first reason, seen from the earlier instructions, why a value could not be computed. */
enum etch_why_unknown {
    ETCH_WHY_START_REGISTER, /* a register has it from before the first instruction */
    ETCH_WHY_START_MEMORY,   /* memory has it from before the first instruction */
    ETCH_WHY_ALLOCATED,      /* an unseen function returned it: memory of the heap */
    ETCH_WHY_RESULT,         /* an unseen function returned it, or left it in a register */
    ETCH_WHY_GAP,            /* anything ran unseen */
    ETCH_WHY_SYSTEM_CALL,    /* the kernel returned it */
    ETCH_WHY_INSTRUCTION,    /* the engine does not know the instruction, or not its result */
    ETCH_WHY_SHARED,         /* others may write the memory */
    ETCH_WHY_CALL_WROTE,     /* an unseen function may have written the memory */
    ETCH_WHY_STORE_WROTE,    /* a store to an unknown place may have written it */
    ETCH_WHY_COPIED,         /* a known place, unknown bytes: a string instruction, a wide store, memcpy */
    ETCH_WHY_COUNT,
};

struct etch_backward_count {
    size_t rounds, contradictions;
    bool gave_up; /* too many contradictions: nothing is known */
};

struct etch_backward;

/* Answers a question. Returns 0 with `*answer` to be freed, or -1 with `err` set. */
int etch_backward_solve(struct etch_backward **answer, const struct etch_backward_question *question,
                        struct etch_error *err);

void etch_backward_free(struct etch_backward *answer);

/* The accesses in the order in which they ran. `i` is below the count. */
size_t etch_backward_accesses(const struct etch_backward *answer);
void etch_backward_access(const struct etch_backward *answer, size_t i, struct etch_backward_access *access);

/* A general register before instruction `i`, by perf's number. */
enum etch_how_known etch_backward_register(const struct etch_backward *answer, size_t i, unsigned perf_register,
                                           uint64_t *value);

/* Only of an access whose value is unknown. `*instruction` is where the reason lies. */
enum etch_why_unknown etch_backward_why(struct etch_backward *answer, size_t access, uint32_t *instruction);
const char *etch_why_unknown_name(enum etch_why_unknown why);

struct etch_backward_count etch_backward_count(const struct etch_backward *answer);

/* The length of the instruction at the beginning of `bytes`; 0: it is none. */
unsigned etch_backward_length(const uint8_t *bytes, size_t size);

const char *etch_how_known_name(enum etch_how_known how);

#endif
