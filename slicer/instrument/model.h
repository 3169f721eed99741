/* SPDX-License-Identifier: MIT */
/* Private to instrument*.c: a function's control flow cut into nodes, and how its paths are numbered. */
#ifndef ETCH_SLICER_INSTRUMENT_MODEL_H
#define ETCH_SLICER_INSTRUMENT_MODEL_H

#include "base/array.h"
#include "base/strings.h"
#include "proto/soft_layout.h"
#include "slicer/instrument.h"

#include <llvm-c/Core.h>

#define NO_NODE UINT32_MAX

struct edge {
    uint32_t target;
    uint32_t value;
    bool cut, silent;
    bool asks; /* whether the chunk has room, with its byte */
};

/* A block, or the part of one up to or behind a call. */
struct node {
    LLVMBasicBlockRef block;
    LLVMValueRef begin, end; /* end: the call or the terminator */
    enum etch_soft_node_kind kind;
    uint32_t first_edge, n_edges;
    uint32_t unwind;    /* of an invoke; NO_NODE */
    uint32_t paths;     /* to the segment's ends */
    uint32_t tells;     /* number among the targets of computed gotos, plus one; 0: is none */
    bool head;          /* a segment begins here */
    bool loop;          /* a back edge leads here */
    bool live;          /* what is counted here matters */
    bool known_call;    /* of a function of this module that has a recorder */
    bool stubbed;       /* a call of another file's function, which has one, or else the stub tells */
    bool lands;         /* control can come here by another way than an edge */
    bool forks;         /* perhaps in a child process */
    bool unmarked;      /* nothing of it is in the machine code but a return */
    bool asks;          /* whether the chunk has room, at its end */
    LLVMValueRef count; /* the path number so far, plus ETCH_SOFT_PATH */
};

struct flow_graph {
    LLVMValueRef function;
    ETCH_ARRAY(struct node) nodes;
    ETCH_ARRAY(struct edge) edges;
    uint32_t *order; /* of nodes: each before those that its uncut edges lead to */
    uint32_t n_order, n_tells;
    bool calls; /* anything but code that it knows to write nothing, or asks: its frame can be looked for */
    struct etch_pointers first_of; /* block -> its first node */
};

enum call_kind { CALL_PLAIN, CALL_KNOWN, CALL_STUBBED, CALL_OUTSIDE };

/* How a call is to be treated; CALL_PLAIN ends no node. */
typedef enum call_kind call_classifier(void *context, LLVMValueRef call);

/* Builds the nodes, decides where segments end, and numbers the paths. False where memory is short. */
bool etch_flow_graph_build(struct flow_graph *graph, LLVMValueRef function, call_classifier *classify, void *context);
void etch_flow_graph_release(struct flow_graph *graph);

/* Decides where the code asks whether the chunk has room. False where memory is short. */
bool etch_ask_for_room(struct flow_graph *graph);

bool etch_call_returns_twice(LLVMValueRef call);
bool etch_call_forks(LLVMValueRef call);
bool etch_has_attribute(LLVMValueRef function, const char *name);

/* ---- Functions that are only declared, by name ---- */

/* A library's function that may wait for other threads or processes, or that they may wait for: calls of it get the
 * time. Of a program's own function of that name with as many parameters it is not known. */
bool etch_may_wait(const char *name, LLVMTypeRef type);

/* A library's function that calls nobody back, so that no segment need end before it. Where one does after all, because
 * the program has its own, the entry is recorded all the same and only its place in the segment is not. */
bool etch_calls_nobody(const char *name);

typedef ETCH_ARRAY(LLVMValueRef) values;

/* Does code of one of the scopes stand in the function? */
bool etch_has_scope(LLVMValueRef function, const struct etch_instrument_options *options);

/* ---- Copies without a recorder ---- */

struct plain_copy {
    LLVMValueRef function;
    LLVMValueRef plain; /* out */
    bool wanted;
};

/* Can there be another function with the same code? Tables of its labels that it then needs too go to `tables`. */
bool etch_can_copy(LLVMValueRef function, values *tables);

/* Copies functions within the module; all else, the address of a copied function too, stays what it is. False where
 * memory is short, and then the module is of no use. */
bool etch_copy_plain(LLVMModuleRef module, struct plain_copy *all, size_t n, const values *tables);

/* All that speak of the function speak of another from now on; the addresses of its labels stay its own. */
void etch_replace_function(LLVMValueRef function, LLVMValueRef by);

/* ---- Calls that hand over where the next byte goes ---- */

struct emitter;

bool etch_can_carry(LLVMValueRef function);

/* Are all arguments, and what is returned, in registers, so that a stub can be between? */
bool etch_fits_registers(LLVMTypeRef type, LLVMValueRef function_or_call);

/* Can a call of such a function be of one with a recorder or without, as it comes? */
bool etch_can_pass_by(LLVMTypeRef type);

/* A function with the code of this one, which has none then. NULL where memory is short. */
LLVMValueRef etch_carry(struct emitter *emitter, LLVMValueRef function, const char *name);
bool etch_carries(LLVMValueRef function);

/* Makes a call, which is gone then, one of a function that carries; `distance` says at run time whether it does: other
 * than 0, or NULL. NULL where memory is short. */
LLVMValueRef etch_carry_call(struct emitter *emitter, LLVMValueRef call, LLVMValueRef callee, LLVMValueRef distance);
void etch_carry_returns(struct emitter *emitter, LLVMValueRef body);

/* A call with nothing behind it but a return of the same kind becomes two: of a function that carries, if `is`, and as
 * it was. False where memory is short. */
bool etch_can_stay_tail(const struct emitter *emitter, LLVMValueRef call);
bool etch_carry_tail(struct emitter *emitter, LLVMValueRef call, LLVMValueRef callee, LLVMValueRef is);

/* A call with nothing behind it but the return stays one that the compiler can make a jump. */
bool etch_is_tail_call(LLVMValueRef call);

/* ---- Code ---- */

/* Of the module at hand. */
struct emitter {
    LLVMModuleRef module;
    LLVMContextRef context;
    LLVMBuilderRef builder;
    LLVMTypeRef void_type, byte, word, quad, pointer;
    LLVMValueRef top;           /* thread-local: etch_soft_top */
    LLVMValueRef cursor;        /* thread-local: etch_soft_cur */
    LLVMValueRef slot;          /* of the function at hand: what stands for it, which becomes a register */
    LLVMValueRef passed;        /* and for whether a call through a pointer was of recorded code */
    LLVMValueRef opened;        /* the instruction that fills it first */
    struct etch_pointers bytes; /* code of the function at hand that writes one */
    /* Its calls that take and return the place in the ring: 0, or the number in `is`, plus one, of the value that says
     * whether what was called through a pointer has a recorder. */
    struct etch_pointers carrying;
    values is;
    LLVMValueRef enter, leave, unwind, land, stamp;
    LLVMTypeRef enter_type, leave_type, land_type, stamp_type;
    bool shared; /* for a shared library: thread-local variables by the GOT */
};

void etch_emitter_open(struct emitter *emitter, LLVMModuleRef module);
void etch_emitter_close(struct emitter *emitter);

/* Before anything else is done in a function, and when all its code is there. False where memory is short. */
void etch_cursor_open(struct emitter *emitter, LLVMValueRef function);
bool etch_cursor_close(struct emitter *emitter, LLVMValueRef function);

LLVMValueRef etch_emit_byte(const struct emitter *emitter, unsigned value);

/* Puts the builder before an instruction. The code has no place in the source. */
void etch_emit_before(const struct emitter *emitter, LLVMValueRef instruction);

void etch_set_flag(const struct emitter *emitter, LLVMValueRef function, const char *name);

/* Stands the builder at a block's end, where code has no place in the source. */
void etch_emit_at_end(struct emitter *emitter, LLVMBasicBlockRef block);

/* PHIs of a block take what came from one block from another. The counts of `graph` follow, where it is not NULL. */
void etch_redirect_phis(struct emitter *emitter, struct flow_graph *graph, LLVMBasicBlockRef block,
                        LLVMBasicBlockRef from, LLVMBasicBlockRef by);

/* Each way of a switch gets a place of its own: what a table of jumps leads to is known by nothing but its mark. */
void etch_split_switches(struct emitter *emitter, LLVMValueRef function);

/* Puts the recording code, the marks and the function's table in. False where memory is short. `enters`: the function
 * itself tells that it was entered. */
bool etch_emit_function(struct emitter *emitter, struct flow_graph *graph, bool enters);

/* The stub that stands for a function which has no recorder after all. False where memory is short. */
bool etch_emit_stub(struct emitter *emitter, const char *stub, const char *function, bool tells);

/* What calls by name come to, where another module may replace the function when the program is loaded. */
struct guard {
    const char *name;     /* of the guard itself */
    const char *function; /* which may be replaced; FUNCTION.etch.here is where this module has it */
    const char *code;     /* what runs if it is not */
    bool tells;           /* of recorded code; else of the copy without a recorder */
    bool weak;            /* as the function is */
    bool comdat;          /* the guard is one, and so is the code, each for itself */
};

/* False where memory is short. */
bool etch_emit_guard(struct emitter *emitter, const struct guard *guard);

/* What one function has, besides its code, the other gets. */
void etch_copy_shape(LLVMValueRef from, LLVMValueRef to);

/* In a function that tells itself that it was entered, where the builder stands. Returns what the runtime is told on
 * leaving. */
LLVMValueRef etch_emit_own_entry(struct emitter *emitter, LLVMValueRef body);

/* A function like `like`, entered from outside, that tells so and calls the body. */
LLVMValueRef etch_emit_entry(struct emitter *emitter, LLVMValueRef body, LLVMValueRef like, const char *name);

/* What the rest of the program sees, like `like`: it leads to `teller`, or where nothing is recorded to `plain`, if
 * there is one. Where that can be, of fixed layout: at a fixed distance compiled code comes to the body. */
LLVMValueRef etch_emit_gate(struct emitter *emitter, LLVMValueRef body, LLVMValueRef like, LLVMValueRef teller,
                            LLVMValueRef plain, const char *name);

/* Such an entry begins with a certain no-operation. PASS bytes behind, the address of the body is loaded. */
#define PASS 32u
#define PASS_WORD 0xb71cd36500841f0fu

/* Can the entry of a function that carries be of fixed layout? */
bool etch_can_pass(const struct emitter *emitter, LLVMValueRef function);

/* A call through a pointer passes by the teller where the pointer leads to such an entry. False where memory is short.
 */
bool etch_emit_passing(struct emitter *emitter, LLVMValueRef call);

#endif
