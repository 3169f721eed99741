/* SPDX-License-Identifier: MIT */
/* The inside of the program model. Instructions, blocks, functions and memory keys have small numbers; LLVM's own
 * values are looked up once. Private to slicer/. */
#ifndef ETCH_SLICER_MODEL_MODEL_H
#define ETCH_SLICER_MODEL_MODEL_H

#include "base/array.h"
#include "base/strings.h"
#include "binary/line_table.h"
#include "slicer/model/libraries.h"
#include "slicer/program.h"

#include <llvm-c/Core.h>
#include <stdbool.h>

typedef ETCH_ARRAY(uint32_t) etch_numbers;

struct etch_insn {
    LLVMValueRef value;
    uint32_t block;
    uint32_t file; /* in files; ETCH_NONE: belongs to no place in the source */
    uint32_t line, column;
    bool own;        /* that place is in the program's own source, not in a system header */
    uint32_t callee; /* the called function, for a direct call of a function in the model */
};

struct etch_ir_block {
    uint32_t function;
    uint32_t first, n; /* instructions */
};

/* MADE: a virtual function that no code of the model calls. The instruction made the object, which then went to outside
 * code. */
enum etch_edge { ETCH_EDGE_CALL, ETCH_EDGE_THREAD, ETCH_EDGE_CALLBACK, ETCH_EDGE_MADE, ETCH_EDGE_TAKEN };

/* An entry into a function: the calling instruction, and which of its operands the first parameter gets. */
struct etch_caller {
    uint32_t insn;
    enum etch_edge edge;
};

/* A call through a pointer and one of the functions that it may reach. */
struct etch_target {
    uint32_t insn, function;
};

struct etch_function {
    LLVMValueRef value;
    char *name;   /* in the source */
    char *symbol; /* in the object file */
    uint32_t module;
    uint32_t first_block, n_blocks;
    uint32_t line; /* of its declaration */
    uint32_t file;
    bool address_taken;
    uint32_t returns;     /* how many instructions return */
    uint32_t only_return; /* the only return instruction; ETCH_NONE: several, or none */
    ETCH_ARRAY(struct etch_caller) callers;
    struct etch_cfg *cfg; /* made when first asked for */
    etch_numbers *throws; /* likewise: see classes.h */
};

struct etch_ir_module {
    uint32_t image; /* 0: the program; else the number of a library */
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMMemoryBufferRef buffer;
};

/* The definition of a name that the linker kept. */
struct etch_copy {
    LLVMValueRef value;
    uint32_t image;
};

/* The location of a variable in its function's frame, according to the machine code. */
struct etch_ir_slot {
    int64_t displacement;
    bool known;
};

struct etch_effect_table;

struct etch_model {
    char *path;
    etch_paths images; /* the program's file and its libraries'; the number is that of the line table's */
    etch_paths notes;  /* the parts that are left out, and why */
    struct etch_line_table *lines;
    ETCH_ARRAY(struct etch_ir_module) modules;
    ETCH_ARRAY(struct etch_function) functions;
    ETCH_ARRAY(struct etch_ir_block) blocks;
    ETCH_ARRAY(struct etch_insn) insns;
    struct etch_pointers insn_of;     /* LLVM instruction -> number */
    struct etch_pointers block_of;    /* LLVM block -> number */
    struct etch_pointers function_of; /* LLVM function, declarations too -> number of the definition */
    struct etch_pointers variable_of; /* alloca or global -> index in variables */
    struct etch_pointers file_of;     /* DIFile -> file */
    ETCH_ARRAY(LLVMMetadataRef) variables;
    struct etch_pointers slot_of; /* alloca -> index in slots; made as they are asked for */
    ETCH_ARRAY(struct etch_ir_slot) slots;
    struct etch_strings symbols; /* external definitions; the number indexes the next two */
    etch_numbers symbol_function;
    ETCH_ARRAY(struct etch_copy) copies;
    struct etch_strings files;    /* absolute paths */
    ETCH_ARRAY(char *) checksums; /* by file: its MD5 as the compiler saw it, in hexadecimal; NULL: not known */
    struct etch_strings shared;   /* globals whose address goes around */
    struct etch_strings keys;     /* memory locations; the number indexes writers */
    ETCH_ARRAY(etch_numbers) writers;
    ETCH_ARRAY(struct etch_target) targets; /* of calls through pointers, by call */
    size_t n_stores, n_calls;
    struct etch_effect_table *effects; /* made when first asked for */
};

/* The slice fills the table (slice/effects.c); the model owns it. */
void etch_effect_table_free(struct etch_effect_table *table);

/* ---- program.c ---- */

static inline uint32_t etch_insn_function(const struct etch_model *m, uint32_t insn)
{
    return m->blocks.v[m->insns.v[insn].block].function;
}

/* The number of an instruction; ETCH_NONE for any other value. */
uint32_t etch_model_insn(const struct etch_model *m, LLVMValueRef value);

bool etch_is_call(LLVMValueRef value);

/* The function that a call names, through aliases and casts; NULL for a pointer. */
LLVMValueRef etch_called(LLVMValueRef call);

/* The name of the function that a call names, "" for a pointer. */
const char *etch_called_name(LLVMValueRef call);

static inline uint32_t etch_function_image(const struct etch_model *m, uint32_t function)
{
    return m->modules.v[m->functions.v[function].module].image;
}

/* ---- load.c ---- */

/* Fills modules, images, notes and lines; `more`: libraries that were loaded though no file asks for them. */
int etch_model_load(struct etch_model *m, const char *const *more, size_t n_more, struct etch_error *err);
void etch_module_release(struct etch_ir_module *module);

/* ---- ranges.c ---- */

/* etch_line_table_find() with a log line if there is more code than `limit` ranges. */
size_t etch_code_ranges(const struct etch_model *m, const char *file, uint32_t line, uint32_t column, uint64_t *starts,
                        uint64_t *ends, size_t limit);

/* ---- callers.c ---- */

/* Fills the callees of calls and the callers of functions. False when memory is short. */
bool etch_model_find_callers(struct etch_model *m);

/* Fills the targets from the callers. False when memory is short. */
bool etch_model_index_targets(struct etch_model *m);

/* The targets of a call through a pointer. */
const struct etch_target *etch_model_targets(const struct etch_model *m, uint32_t insn, size_t *n);

/* ---- memory.c ----
 * A location has a key. Two accesses with the same key may be of the same location:
 *   a:N     a local variable (alloca N), with its path: a:N.2[]
 *   g:NAME  a global, with its path
 *   f:T.2   field 2 of any object of struct T, array elements as f:T.2[]
 *   p:F.N   the target of parameter N of function F
 *   d:KEY   the target of the pointer kept at KEY
 *   c:N     the target of the pointer that call N returned
 *   t:T     a whole object of struct T, for code that frees or copies it */

#define ETCH_KEY_SIZE 320

/* The location that a pointer points to, for an access of this type (NULL: of all that is there); false where nothing
 * sure can be said. */
bool etch_memory_key(struct etch_model *m, LLVMValueRef pointer, LLVMTypeRef access, char key[ETCH_KEY_SIZE]);

/* The t: key of the outermost struct that the location is a field of. */
bool etch_memory_owner_key(struct etch_model *m, LLVMValueRef pointer, char key[ETCH_KEY_SIZE]);

/* The f: key of the same location, if it is a field of a variable that other code can reach by a pointer. */
bool etch_memory_field_key(struct etch_model *m, LLVMValueRef pointer, LLVMTypeRef access, char key[ETCH_KEY_SIZE]);

/* The first array of integers in a struct, as its field. A pointer to it and a pointer to the struct are the same value,
 * so code that reads a text through the pointer reads this field. */
bool etch_memory_text_key(struct etch_model *m, LLVMValueRef pointer, char key[ETCH_KEY_SIZE]);

/* Fills keys and writers. */
int etch_memory_index(struct etch_model *m, struct etch_error *err);

/* The instructions that may write `key`; NULL for none. */
const etch_numbers *etch_memory_writers(const struct etch_model *m, const char *key);

/* The variable on the stack that a pointer points into; NULL for none. */
LLVMValueRef etch_memory_local(LLVMValueRef pointer);

/* True if code other than this function can reach the variable. */
bool etch_memory_escapes(LLVMValueRef variable);

/* True if a call of a function outside of the model does not change the target of its argument. */
bool etch_call_only_reads(const char *name, unsigned argument);

/* A definition: an instruction that may change a local variable. */
struct etch_def {
    uint32_t insn;
    LLVMValueRef pointer; /* through which */
    bool whole;           /* a store to all of the variable: the old value is gone */
    bool call;
};
typedef ETCH_ARRAY(struct etch_def) etch_defs;

/* All definitions, by instruction number. False when memory is short. */
bool etch_memory_defs(struct etch_model *m, LLVMValueRef variable, etch_defs *defs);

/* ---- names.c ---- */

/* The name of the object that an access of this type through a pointer reaches, as in the source ("fifo->mut"). False
 * if there is no name. */
bool etch_name_object(const struct etch_model *m, LLVMValueRef pointer, LLVMTypeRef access, char *text, size_t size);

/* The name of the member at `offset` within a library's object, as a C++ programmer would write it: a smart pointer or
 * an atomic is its own value ("session"), a string's length is "name.size()". */
bool etch_name_within(const struct etch_model *m, LLVMValueRef pointer, int64_t offset, char *text, size_t size);

#define ETCH_MEMBERS_MAX 4u

struct etch_members {
    uint64_t offset[ETCH_MEMBERS_MAX];
    size_t n;
};

/* The members in which an object of a library's class keeps the data that its users see: the text and the length of a
 * string. */
void etch_name_members(const struct etch_model *m, LLVMValueRef pointer, struct etch_members *found);

/* The name of the struct type that `pointer` points to, by the source's types; false if it is no struct. */
bool etch_name_pointee_struct(const struct etch_model *m, LLVMValueRef pointer, char *text, size_t size);

/* The identifier of that type, "_ZTS" and the mangled name of a C++ class; false if it has none. */
bool etch_name_pointee_identifier(const struct etch_model *m, LLVMValueRef pointer, char *text, size_t size);

/* ---- cfg.c ---- */

struct etch_cfg {
    uint32_t first, n;        /* blocks */
    etch_numbers *preds;      /* of each block, numbers within the function */
    etch_numbers *succs;      /* likewise; that any call may throw is no way on */
    etch_numbers *unwound;    /* of each landing pad: the blocks whose call leads there when it throws */
    etch_numbers *controlled; /* the blocks whose branch decides whether the block runs */
    uint32_t *postdominator;  /* immediate; n: the end of the function */
    uint32_t *dominator;      /* immediate; of the entry and of blocks never reached: itself */
};

/* The control-flow graph of a function, made once. NULL when memory is short. */
const struct etch_cfg *etch_cfg_of(struct etch_model *m, uint32_t function);
void etch_cfg_free(struct etch_cfg *cfg);

/* The same from the successors alone, for n blocks. The first block is the entry. Takes the lists over. */
struct etch_cfg *etch_cfg_make(uint32_t n, etch_numbers *succs);

/* True if a dominates b, or if both are the same. */
bool etch_cfg_dominates(const struct etch_cfg *cfg, uint32_t a, uint32_t b);

#endif
