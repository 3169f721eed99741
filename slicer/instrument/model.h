/* SPDX-License-Identifier: MIT */
/* A function's control flow cut into nodes, how its paths are numbered, and the code that records them. Private to
 * instrument/. */
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
    bool checks_slack; /* the code of the edge checks the slack of the chunk */
};

/* A block, or the part of a block up to a call or after it. */
struct node {
    LLVMBasicBlockRef block;
    LLVMValueRef begin, end; /* end: the call or the terminator */
    enum etch_soft_node_kind kind;
    uint32_t first_edge, n_edges;
    uint32_t unwind;  /* of an invoke; NO_NODE */
    uint32_t paths;   /* to the segment's ends */
    uint32_t reports; /* number among the targets of computed gotos, plus one; 0: is none */
    bool head;        /* a segment begins here */
    bool loop;        /* a back edge leads here */
    bool live;        /* the count here is used */
    bool known_call;  /* of a function of this module that has a recorder */
    bool stubbed;     /* a call of another file's function: the function has a recorder, or the stub reports the call */
    bool lands;       /* control can come here other than by an edge: setjmp, a landing pad */
    bool forks;       /* the node runs after a fork, perhaps in a child process */
    bool unmarked;    /* its machine code is only a return */
    LLVMValueRef point; /* what rest.c noted here: the rest of the function can run from here on; NULL: it cannot */
    LLVMBasicBlockRef leave; /* leads from there to the rest; NULL: there is no such code yet */
    bool checks_slack;       /* the code at the node's end checks the slack of the chunk */
    LLVMValueRef count;      /* the path number so far, plus ETCH_SOFT_PATH */
};

struct flow_graph {
    LLVMValueRef function;
    ETCH_ARRAY(struct node) nodes;
    ETCH_ARRAY(struct edge) edges;
    uint32_t *order; /* of nodes: each before those that its uncut edges lead to */
    uint32_t n_order, n_reports;
    LLVMValueRef lit;       /* the function's entry of the section etch_soft_lit; NULL: it cannot go dark */
    LLVMValueRef rest;      /* what runs if it goes dark in a loop (rest.h); NULL: there is none */
    LLVMValueRef record;    /* the values that the rest takes */
    LLVMBasicBlockRef gone; /* calls the rest, and returns */
    bool checks;            /* the function checks the slack */
    bool calls;             /* the function calls other code or checks the slack, so its frame can be searched for */
    struct etch_pointers first_of; /* block -> its first node */
};

enum call_kind { CALL_PLAIN, CALL_KNOWN, CALL_STUBBED, CALL_OUTSIDE };

/* How a call is to be treated; CALL_PLAIN ends no node. */
typedef enum call_kind call_classifier(void *context, LLVMValueRef call);

/* Builds the nodes, decides where segments end, and numbers the paths. False where memory is short. */
bool etch_flow_graph_build(struct flow_graph *graph, LLVMValueRef function, call_classifier *classify, void *context);
void etch_flow_graph_release(struct flow_graph *graph);

/* Decides where the code checks the slack of the chunk. False if memory is short. */
bool etch_slack_check(struct flow_graph *graph);

bool etch_call_returns_twice(LLVMValueRef call);
bool etch_call_forks(LLVMValueRef call);
bool etch_has_attribute(LLVMValueRef function, const char *name);

/* ---- Functions that are only declared, by name ---- */

/* Where the time is noted at the call of a library function. */
enum stamp_place {
    STAMP_BEFORE = 1,
    STAMP_AFTER = 2,
    STAMP_IF_HELD = 4 /* before, if the lock is held that the first argument points to */
};

/* Not 0 for a library function that may wait for other threads or processes, or that they may wait for: a set of enum
 * stamp_place. A function of the program with the same name and number of parameters counts, too. */
unsigned etch_stamps_of(const char *name, LLVMTypeRef type);

/* True for a library function that calls no function of the program. No segment needs to end before its call. If the
 * program has its own version that does call back, the entry is recorded, but not its place in the segment. */
bool etch_calls_nobody(const char *name);

typedef ETCH_ARRAY(LLVMValueRef) values;

/* True if the function has code of one of the scopes. */
bool etch_has_scope(LLVMValueRef function, const struct etch_instrument_options *options);

/* ---- Functions that can go dark ---- */

struct emitter;

/* True if the function can be worth that: it calls, or has several blocks. */
bool etch_may_go_dark(LLVMValueRef function);

/* The function's entry of the section etch_soft_lit. `name` is the function's own. NULL if memory is short. */
LLVMValueRef etch_emit_lit(struct emitter *emitter, LLVMValueRef function, const char *name);

/* Adds the nodes of the call of the plain copy, or of the rest. False if memory is short. */
bool etch_dark_nodes(struct flow_graph *graph);

/* Before all other code of the function: if the entry is not lit, the plain copy runs in its place. False if memory is
 * short. */
bool etch_emit_dark(struct emitter *emitter, const struct flow_graph *graph, LLVMValueRef plain);

/* Fills `gone`: the rest of the function runs in the place of the recorded code. False if memory is short. */
bool etch_emit_gone(struct emitter *emitter, const struct flow_graph *graph);

/* ---- Copies without a recorder ---- */

struct plain_copy {
    LLVMValueRef function;
    LLVMValueRef plain; /* out */
    bool wanted;
};

/* True if the function can be copied. Tables of its labels, which the copy needs too, go to `tables`. */
bool etch_can_copy(LLVMValueRef function, values *tables);

/* Copies functions within the module, under their names with `suffix`. All other values, and the address of a copied
 * function, stay unchanged. False if memory is short; the module is then unusable. */
bool etch_copy_plain(LLVMModuleRef module, struct plain_copy *all, size_t n, const values *tables, const char *suffix);

/* Lets etch lead the calls of a plain copy to `to` while the program runs (ETCH_SOFT_DETOUR). */
void etch_allow_detour(const struct emitter *emitter, LLVMValueRef plain, LLVMValueRef to);

/* Moves the code of a function, its place and its debug information to another function. */
void etch_move_code(LLVMValueRef from, LLVMValueRef to);

/* Copies the attributes of a function and of its result to a function with other parameters. */
void etch_copy_result_shape(LLVMValueRef from, LLVMValueRef to);

/* Replaces all uses of a function by another one, except the addresses of its labels. */
void etch_replace_function(LLVMValueRef function, LLVMValueRef by);

/* ---- The cursor ABI: the cursor of the ring is an argument and a result of each call ---- */

bool etch_cursor_abi_allows(LLVMValueRef function);

/* True if all arguments and the result are in registers. Such a function can have a stub. */
bool etch_fits_registers(LLVMTypeRef type, LLVMValueRef function_or_call);

/* True if a single call instruction can reach functions of this type with and without a recorder. */
bool etch_can_pass_by(LLVMTypeRef type);

/* Moves the code of a function into a new one with the cursor ABI. NULL if memory is short. */
LLVMValueRef etch_cursor_abi_apply(struct emitter *emitter, LLVMValueRef function, const char *name);
bool etch_has_cursor_abi(LLVMValueRef function);

/* Replaces a call by one of a function with the cursor ABI. `distance`: a value that is 0 at run time if the function
 * does not have that ABI; NULL: the function has it. NULL if memory is short. */
LLVMValueRef etch_cursor_abi_call(struct emitter *emitter, LLVMValueRef call, LLVMValueRef callee,
                                  LLVMValueRef distance);
void etch_cursor_abi_returns(struct emitter *emitter, LLVMValueRef body);

/* A call that is followed only by a return of the same kind becomes two calls: a call with the cursor ABI, which runs
 * if `is`, and the old call. False if memory is short. */
bool etch_can_stay_tail(const struct emitter *emitter, LLVMValueRef call);
bool etch_cursor_abi_tail(struct emitter *emitter, LLVMValueRef call, LLVMValueRef callee, LLVMValueRef is);

/* True if only the return follows the call. The compiler can make such a call a jump. */
bool etch_is_tail_call(LLVMValueRef call);

/* ---- Code ---- */

/* The emitter of a module. */
struct emitter {
    LLVMModuleRef module;
    LLVMContextRef context;
    LLVMBuilderRef builder;
    LLVMTypeRef void_type, byte, word, quad, pointer;
    LLVMValueRef top;           /* thread-local: etch_soft_top */
    LLVMValueRef cursor;        /* thread-local: etch_soft_cur */
    LLVMValueRef shade;         /* thread-local: etch_soft_shade */
    LLVMValueRef slot;          /* the cursor in the function at hand: a variable that becomes a register */
    LLVMValueRef passed;        /* likewise: shows whether a call through a pointer was of recorded code */
    LLVMValueRef opened;        /* the instruction that first fills `slot` */
    struct etch_pointers bytes; /* code of the function at hand that writes a byte */
    /* Calls of the function at hand with the cursor ABI -> 0, or index + 1 in `is`: the value that is true if the
     * function called through a pointer has a recorder. */
    struct etch_pointers cursor_calls;
    values is;
    LLVMValueRef enter, leave, unwind, land, stamp, stamp_held;
    LLVMTypeRef enter_type, leave_type, land_type, stamp_type;
    bool shared; /* for a shared library: thread-local variables by the GOT */
};

void etch_emitter_open(struct emitter *emitter, LLVMModuleRef module);
void etch_emitter_close(struct emitter *emitter);

/* Before anything else is done in a function, and when all its code is there. False where memory is short. */
void etch_cursor_open(struct emitter *emitter, LLVMValueRef function);
bool etch_cursor_close(struct emitter *emitter, LLVMValueRef function);

LLVMValueRef etch_emit_byte(const struct emitter *emitter, unsigned value);

/* Inserts the assembly that turns to the next chunk, behind which the code takes `edge` of `node`, and returns the new
 * cursor. NULL if memory is short. */
LLVMValueRef etch_emit_turn(struct emitter *emitter, const struct flow_graph *graph, uint32_t node, unsigned edge,
                            LLVMValueRef cursor);

/* Notes that this code writes bytes. False if memory is short. */
bool etch_emit_note(struct emitter *emitter, LLVMValueRef code);

/* Puts the builder before an instruction. The code has no place in the source. */
void etch_emit_before(const struct emitter *emitter, LLVMValueRef instruction);

/* Inserts the mark of a node where the builder stands. False if memory is short. */
bool etch_emit_mark(struct emitter *emitter, const struct flow_graph *graph, uint32_t node);

void etch_set_flag(const struct emitter *emitter, LLVMValueRef function, const char *name);

/* Puts the builder at a block's end. The code has no place in the source. */
void etch_emit_at_end(struct emitter *emitter, LLVMBasicBlockRef block);

/* PHIs of a block take the values that came from block `from` from block `by`. The counts of `graph` follow, unless it
 * is NULL. */
void etch_redirect_phis(struct emitter *emitter, struct flow_graph *graph, LLVMBasicBlockRef block,
                        LLVMBasicBlockRef from, LLVMBasicBlockRef by);

/* Each edge of a switch gets a block of its own: the target of a jump table is known only by its mark. */
void etch_split_switches(struct emitter *emitter, LLVMValueRef function);

/* Puts the recording code, the marks and the function's table in. False where memory is short. `enters`: the function
 * itself reports that it was entered. `plain`: its plain copy, or NULL. */
bool etch_emit_function(struct emitter *emitter, struct flow_graph *graph, bool enters, LLVMValueRef plain);

/* The stub for a function that turns out to have no recorder when the program is linked. False if memory is short. */
bool etch_emit_stub(struct emitter *emitter, const char *stub, const char *function, bool recorded);

/* Calls by name reach a guard if another module may replace the function when the program is loaded. */
struct guard {
    const char *name;     /* of the guard itself */
    const char *function; /* the replaceable function; FUNCTION.etch.here is its address in this module */
    const char *code;     /* runs if the function is not replaced */
    bool recorded;        /* the guard is of recorded code, else of the copy without a recorder */
    bool weak;            /* the function is weak, too */
    bool comdat;          /* the guard and the code are comdats, each its own */
};

/* False where memory is short. */
bool etch_emit_guard(struct emitter *emitter, const struct guard *guard);

/* Copies the calling convention and all attributes from one function to another. */
void etch_copy_shape(LLVMValueRef from, LLVMValueRef to);

/* Copies the attributes of a function's arguments and result to a call of it. */
void etch_copy_call_shape(LLVMValueRef from, LLVMValueRef call);

/* Branches to `rare` if so, else to `next`. */
void etch_emit_rarely(struct emitter *emitter, LLVMValueRef so, LLVMBasicBlockRef rare, LLVMBasicBlockRef next);

/* Builds the report of an entry in a function that reports its entries itself. Returns the argument for the runtime's
 * leave function. */
LLVMValueRef etch_emit_own_entry(struct emitter *emitter, LLVMValueRef body);

/* A function like `like` that reports an entry from outside and calls the body. */
LLVMValueRef etch_emit_entry(struct emitter *emitter, LLVMValueRef body, LLVMValueRef like, const char *name);

/* The function that the rest of the program sees, like `like`. It jumps to `reporter`, or to `plain` (NULL: there is
 * none) if `lit` is not lit, or, where that is NULL, if the process does not record. If etch_can_pass() allows, its
 * layout is fixed, and compiled code can call it at a fixed distance to reach the body. */
LLVMValueRef etch_emit_gate(struct emitter *emitter, LLVMValueRef body, LLVMValueRef like, LLVMValueRef reporter,
                            LLVMValueRef plain, LLVMValueRef lit, const char *name);

/* A gate of fixed layout starts with a certain no-operation. The code PASS bytes after its start loads the address of
 * the body. */
#define PASS 32u
#define PASS_WORD 0xb71cd36500841f0fu

/* True if the gate of a function with the cursor ABI can have a fixed layout. */
bool etch_can_pass(const struct emitter *emitter, LLVMValueRef function);

/* Makes a call through a pointer skip the reporter if the pointer leads to a gate of fixed layout. False if memory is
 * short. */
bool etch_emit_passing(struct emitter *emitter, LLVMValueRef call);

#endif
