/* SPDX-License-Identifier: MIT */
/* The equations of a sequence of instructions. Each value that a register ever had is a variable. Each variable gets
 * its value once. Operations relate variables to each other, accesses relate variables to memory. */
#ifndef ETCH_DECODER_VALUES_BACKWARD_MODEL_H
#define ETCH_DECODER_VALUES_BACKWARD_MODEL_H

#include "base/array.h"
#include "decoder/backward.h"

#define NO_VAR UINT32_MAX

enum {
    R_SP = 4,              /* general registers as Zydis orders them: ax, cx, dx, bx, sp, bp, si, di, r8 .. r15 */
    R_FLAGS = 16,          /* only the bits of FLAG_ALL */
    R_SNAPSHOT = 17,       /* registers up to here are kept for every instruction */
    R_VECTOR = R_SNAPSHOT, /* xmm0 .. xmm15, two halves each */
    R_COUNT = R_VECTOR + 32,
};

enum { FLAG_CARRY = 0x1, FLAG_PARITY = 0x4, FLAG_ZERO = 0x40, FLAG_SIGN = 0x80, FLAG_OVERFLOW = 0x800 };
#define FLAG_ALL ((uint64_t)(FLAG_CARRY | FLAG_PARITY | FLAG_ZERO | FLAG_SIGN | FLAG_OVERFLOW))

/* A variable of 64 bits; the bits of `known` have their value in `value`, all others are 0 there. */
struct var {
    uint64_t value, known;
    uint32_t reason; /* the newest of model.reasons; NO_VAR: none */
    uint8_t how;
};

/* What an operation does: out = f(in). All results have zeros above `width`. */
enum op_kind {
    OP_EXTRACT, /* `width` bits of in[0] from `shift` on */
    OP_INSERT,  /* in[0] with `width` bits from `shift` on replaced by in[1] */
    OP_EXTEND,  /* in[0], a signed number of `shift` bits, as one of `width` bits */
    OP_ADD,
    OP_SUB,
    OP_AND,
    OP_OR,
    OP_XOR,
    OP_MULTIPLY,
    OP_HIGH_UNSIGNED, /* upper half of a product */
    OP_HIGH_SIGNED,
    OP_QUOTIENT_UNSIGNED, /* of in[0]:in[1] by in[2] */
    OP_REMAINDER_UNSIGNED,
    OP_QUOTIENT_SIGNED,
    OP_REMAINDER_SIGNED,
    OP_SHIFT_LEFT, /* in[0] by in[1] */
    OP_SHIFT_RIGHT,
    OP_SHIFT_SIGNED,
    OP_ROTATE_LEFT,
    OP_SWAP,      /* bytes */
    OP_FLAGS_ADD, /* flags of in[0] + in[1] = in[2] */
    OP_FLAGS_SUB,
    OP_FLAGS_LOGIC,  /* in[2] is the result; carry and overflow are 0 */
    OP_FLAGS_RESULT, /* the same; carry and overflow are not known */
    OP_CONDITION,    /* whether the flags in[0] fulfil condition `shift`, as the processor numbers them: 0 or 1 */
    OP_SELECT,       /* in[0] ? in[1] : in[2] */
};

struct op {
    uint8_t kind, width, shift;
    uint32_t out, in[3];
};

enum access_kind {
    ACCESS_READ,
    ACCESS_WRITE,
    ACCESS_RANGE,   /* writes from the value of `address` to that of `value`, or back; nothing is known of what */
    ACCESS_WIDE,    /* writes `length` bytes; nothing is known of what */
    ACCESS_ALL,     /* may write everything */
    ACCESS_SYSCALL, /* `value` is its number */
    ACCESS_UNSEEN,  /* `length` is an enum etch_unseen, `address` the stack pointer of the caller */
};

/* The index of an access is its time. */
struct access {
    uint8_t kind, size, memory; /* memory: enum etch_memory_kind, once located */
    bool located, implicit, ring;
    bool late;               /* located by values that were carried through memory */
    bool frame;              /* at the stack or frame pointer, of a function that keeps its frame to itself */
    bool at_stack;           /* its address has the stack or frame pointer in it */
    uint32_t activation;     /* of the function whose frame it is */
    uint32_t address, value; /* variables */
    uint32_t length;
    uint32_t instruction;
    uint64_t at; /* once located: [at, at + length) */
};

/* A variable that is known from the start. */
struct root {
    uint32_t var;
    uint8_t how;
    uint64_t value, known;
};

/* Why bits of a variable are known: an operation, or a byte of memory. */
struct reason {
    uint32_t before; /* an earlier reason of the same variable */
    uint32_t op;     /* NO_VAR: memory */
    uint64_t address;
};

/* Where a variable is from that no operation and no access gives a value. */
struct origin {
    uint32_t instruction;
    uint8_t why; /* enum etch_why_unknown */
};

/* A byte of a located access. */
struct cell {
    uint64_t address;
    uint32_t access;
    uint32_t byte;
};

/* What a store to an unknown place is taken to have written. */
enum bold {
    BOLD_NOTHING,   /* none of the bytes that are carried across it */
    BOLD_ELSEWHERE, /* only the bytes at the hint */
    BOLD_NEVER,     /* everything that it may have written */
};

/* Accesses that may have written everything. */
struct clobbers {
    uint32_t *before; /* how many there are before each access */
    uint32_t *which;
};

/* How many bytes of an access are those of an earlier access. */
struct link {
    uint32_t earlier, bytes;
};

struct model {
    const struct etch_backward_question *question;
    ETCH_ARRAY(struct var) vars;
    ETCH_ARRAY(struct origin) origins; /* of each variable */
    ETCH_ARRAY(struct op) ops;
    ETCH_ARRAY(struct access) accesses;
    ETCH_ARRAY(struct root) roots;
    ETCH_ARRAY(struct reason) reasons;
    ETCH_ARRAY(struct cell) cells;   /* by address and time */
    ETCH_ARRAY(uint64_t) distrusted; /* pages of memory whose values contradict each other */
    ETCH_ARRAY(uint32_t) unseen;     /* accesses of kind ACCESS_UNSEEN */
    ETCH_ARRAY(uint32_t) registers;  /* R_SNAPSHOT variables for each instruction, before it */
    uint32_t *use_start, *uses;      /* operations of each variable */
    uint32_t *maker;                 /* the operation that computes each variable; NO_VAR: none */
    ETCH_ARRAY(uint32_t) alive;      /* activations that have not returned at the end */
    uint8_t *bold;                   /* enum bold, of each access */
    uint64_t *hint;                  /* of each access that is BOLD_ELSEWHERE: where it goes */
    uint32_t *same;                  /* a variable with the same value, of an earlier access; NO_VAR: none */
    bool *heap;                      /* of each variable: it points into the heap */
    struct link *links;              /* of each access */
    uint32_t *holder;                /* the access that reads each variable; NO_VAR: none */
    bool *wild;                      /* of each access: it wrote a private frame, against all expectation */
    struct clobbers clobbers[3];     /* see count_clobbers() */
    uint32_t *queue;
    bool *queued;
    size_t queue_head, queue_n;
    size_t sorted;             /* cells in order; those behind are new */
    bool doubted;              /* a contradiction came while stores were taken for harmless */
    bool carried;              /* values have been carried through memory */
    uint32_t conflict;         /* a variable with two values; NO_VAR: none */
    uint64_t conflict_address; /* of a byte with two values; valid if conflict_in_memory */
    bool conflict_in_memory, conflict_wild;
    bool no_memory; /* memory is not trusted at all */
    bool failed;    /* memory is short */
    struct etch_backward_count count;
};

/* ---- backward_lift.c: instructions to equations ---- */

/* perf's numbers of the registers. */
extern const uint8_t etch_backward_perf_numbers[R_SNAPSHOT];

/* Fills vars, ops, accesses, roots, registers. False: memory is short. */
bool etch_backward_lift(struct model *m);

/* ---- backward_solve.c ---- */

uint64_t etch_backward_mask(unsigned bits);

/* Says that the bits `known` of a variable are those of `value`. `op` is the reason; NO_VAR: the byte of memory at
 * `address`. */
void etch_backward_learn(struct model *m, uint32_t var, uint64_t value, uint64_t known, enum etch_how_known how,
                         uint32_t op, uint64_t address);

/* Takes a variable's uses into the queue. */
void etch_backward_wake(struct model *m, uint32_t var);

/* Evaluates operations until nothing changes or there is a conflict. */
void etch_backward_propagate(struct model *m);

/* ---- backward_heap.c ---- */

/* Whether a variable points into the heap: it was computed from what a function returned that allocates memory. */
bool etch_backward_is_heap(struct model *m, uint32_t var);

/* ---- backward_bold.c ---- */

/* Returns whether a store does not account for itself: all must be done again. */
bool etch_backward_judge_stores(struct model *m);

/* Takes no store for harmless whose place is unknown, or no store at all. Returns whether there was one. */
bool etch_backward_doubt_stores(struct model *m, bool all);

/* ---- backward_why.c ---- */

enum etch_why_unknown etch_backward_find_why(const struct model *m, uint32_t access, uint32_t *instruction);

/* ---- backward_eval.c ---- */

/* Learns what one operation shows, in both directions. */
void etch_backward_evaluate(struct model *m, uint32_t op);

/* ---- backward_memory.c ---- */

/* Locates accesses and carries values between accesses of the same byte. Returns whether anything was learned. */
bool etch_backward_carry(struct model *m);

/* The first cell of a byte. */
size_t etch_backward_first_cell(const struct model *m, uint64_t address);

/* The access behind `from` and before `to` that may have changed the byte; NO_VAR: none. */
uint32_t etch_backward_breaker(const struct model *m, uint64_t address, size_t from, size_t to);

#endif
