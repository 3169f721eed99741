/* SPDX-License-Identifier: MIT */
/* The text of inline assembly, built piece by piece. See asm_text.h. */
#include "slicer/instrument/asm_text.h"

#include <llvm-c/Comdat.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void etch_asm_add(struct asm_text *t, const char *format, ...)
{
    for (;;) {
        va_list arguments;
        int n;

        va_start(arguments, format);
        n = vsnprintf(t->v ? t->v + t->n : NULL, t->capacity - t->n, format, arguments);
        va_end(arguments);
        if (n < 0 || (t->v && (size_t)n < t->capacity - t->n)) {
            t->n += n > 0 ? (size_t)n : 0;
            return;
        }
        if (!etch_array_grow((void **)&t->v, &t->capacity, 1, t->n + (size_t)n + 1)) {
            t->failed = true;
            return;
        }
    }
}

void etch_asm_add_symbol(struct asm_text *t, LLVMValueRef function)
{
    size_t n;
    const char *name = LLVMGetValueName2(function, &n);

    etch_asm_add(t, "\"");
    for (size_t i = name[0] == 1; i < n; i++)
        etch_asm_add(t, name[i] == '$' ? "$$" : "%c", name[i]);
    etch_asm_add(t, "\"");
}

/* The empty .ascii makes the assembler put a pending entry of the line table into the code, where it belongs, and not
 * into our section. */
void etch_asm_add_section(struct asm_text *t, const char *section, LLVMValueRef function)
{
    LLVMComdatRef comdat = LLVMGetComdat(function);

    etch_asm_add(t, ".ascii \"\"\n.pushsection %s,\"%s\",@progbits,", section, comdat ? "Go" : "o");
    etch_asm_add_symbol(t, function);
    if (comdat) {
        etch_asm_add(t, ",");
        etch_asm_add_symbol(t, function); /* our comdats are named after their function */
        etch_asm_add(t, ",comdat");
    }
    etch_asm_add(t, "\n");
}

LLVMValueRef etch_asm_build(struct emitter *e, struct asm_text *t, LLVMTypeRef result, const char *constraints,
                            LLVMValueRef *arguments, unsigned n)
{
    LLVMTypeRef types[3], type;
    LLVMValueRef code;

    if (t->failed)
        return NULL;
    for (unsigned i = 0; i < n; i++)
        types[i] = LLVMTypeOf(arguments[i]);
    type = LLVMFunctionType(result, types, n, false);
    code = LLVMGetInlineAsm(type, t->v, t->n, constraints, strlen(constraints), true, false, LLVMInlineAsmDialectATT,
                            false);
    return LLVMBuildCall2(e->builder, type, code, arguments, n, "");
}
