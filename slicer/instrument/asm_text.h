/* SPDX-License-Identifier: MIT */
/* The text of inline assembly. Private to instrument/. */
#ifndef ETCH_SLICER_INSTRUMENT_ASM_TEXT_H
#define ETCH_SLICER_INSTRUMENT_ASM_TEXT_H

#include "slicer/instrument/model.h"

/* Starts as zeros; `v` is to be freed. */
struct asm_text {
    char *v;
    size_t n, capacity;
    bool failed; /* memory is short */
};

/* Adds to the text, which is in LLVM's template language: there a dollar is written twice. */
void etch_asm_add(struct asm_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds a function's symbol, in quotes. */
void etch_asm_add_symbol(struct asm_text *text, LLVMValueRef function);

/* Switches to a section that the linker keeps or drops together with the function. `.popsection` ends it. */
void etch_asm_add_section(struct asm_text *text, const char *section, LLVMValueRef function);

/* Inserts the text as inline assembly where the builder stands, with up to three arguments. NULL if memory was short.
 */
LLVMValueRef etch_asm_build(struct emitter *emitter, struct asm_text *text, LLVMTypeRef result, const char *constraints,
                            LLVMValueRef *arguments, unsigned n);

#endif
