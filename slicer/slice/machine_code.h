/* SPDX-License-Identifier: MIT */
/* The machine code of functions, variables and instructions of the bitcode. Private to slicer/. */
#ifndef ETCH_SLICER_SLICE_MACHINE_CODE_H
#define ETCH_SLICER_SLICE_MACHINE_CODE_H

#include "slicer/model/model.h"

#include <Zydis/Zydis.h>

/* ---- Symbols: static addresses; 0: not found ---- */

/* The symbol `name` in the image of a function or variable. */
uint64_t etch_code_symbol(const struct etch_model *m, LLVMValueRef global, const char *name);

/* The symbol of a function with an ending: the recorder gives each form of a function its own. */
uint64_t etch_code_symbol_with(const struct etch_model *m, LLVMValueRef function, const char *ending);

/* `offset` bytes behind the start of a variable that is not thread-local. */
uint64_t etch_code_variable(const struct etch_model *m, LLVMValueRef global, int64_t offset);

/* The start of a function's code. With a recorder that is not the symbol that other code calls. */
uint64_t etch_code_entry(const struct etch_model *m, LLVMValueRef function);

/* True if the address lies in the very function of an instruction. Instances of a template share their lines. */
bool etch_code_is_of(const struct etch_model *m, uint64_t address, uint32_t insn);

/* ---- Instructions ---- */

/* Gets one instruction; false ends the visit. */
typedef bool etch_code_visitor(void *context, uint64_t address, const ZydisDecodedInstruction *insn,
                               const ZydisDecodedOperand *ops);

/* Calls `visit` for the instructions in [start, end), in order. */
void etch_code_visit(const struct etch_model *m, uint64_t start, uint64_t end, etch_code_visitor *visit, void *context);

/* True if code at the address can be watched. Watched programs run their recorded code, not its plain copy. */
bool etch_code_is_watched(const struct etch_model *m, uint64_t address);

/* ---- Registers ---- */

const char *etch_register_name(ZydisRegister reg);

/* The register that a parameter comes in. NONE: it comes in another way, or not all parameters before it are integers
 * and pointers. */
ZydisRegister etch_register_of(LLVMValueRef function, LLVMValueRef parameter);

/* True if the function of an instruction keeps a frame pointer. If not, rbp is a register like any other. */
bool etch_code_keeps_frame_pointer(const struct etch_model *m, uint32_t insn);

#endif
