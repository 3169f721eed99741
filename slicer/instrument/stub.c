/* SPDX-License-Identifier: MIT */
/* The code between a call by name and the function that the linker or the loader chose for that name. A stub calls a
 * function of another file that has no recorder. A guard precedes a function of this file that another module may
 * replace when the program is loaded: the guard compares the address that the loader chose with its own. Both are the
 * module's own assembly, which LLVM leaves as it is. */
#include "slicer/instrument/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From here on the called function is assumed to have no recorder. Nothing is on the stack for it
 * (etch_fits_registers). After the call the cursor is read from the variable, because recorded code may have been
 * called back. */
static void write_way_out(const struct emitter *e, FILE *out, const char *function)
{
    const char *variable = e->shared ? "%fs:(%r11)" : "%fs:etch_soft_cur@TPOFF";
    const char *find = e->shared ? "movq etch_soft_cur@GOTTPOFF(%rip), %r11\n" : "";

    fprintf(out, "%smovq %%r10, %s\n", find, variable);
    fprintf(out, "testl $%u, %%r10d\njne 78f\ncall etch_soft_outside\n78:\n", ETCH_SOFT_FULL);
    fprintf(out, "pushq %%rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %%rbp, -16\n");
    fprintf(out, "movq %%rsp, %%rbp\n.cfi_def_cfa_register %%rbp\n");
    fprintf(out, "call \"%s\"@PLT\nmovq %%rdx, %%rcx\nmovq %%rax, %%rdx\n%smovq %s, %%rax\n", function, find, variable);
    fprintf(out, "popq %%rbp\n.cfi_def_cfa %%rsp, 8\nret\n");
}

/* Marks the code at label 77, which belongs to `symbol`. `code`: the code that a guard leads to; NULL for a stub.
 * `group`: the comdat, or NULL. */
static void write_mark(FILE *out, const char *symbol, const char *code, const char *group)
{
    fprintf(out, ".pushsection " ETCH_SOFT_MARK_SECTION ",\"%s\",@progbits,\"%s\"", group ? "Go" : "o", symbol);
    if (group)
        fprintf(out, ",\"%s\",comdat", group);
    if (code)
        fprintf(out, "\n.quad 77b,\"%s\"\n", code);
    else
        fprintf(out, "\n.quad 77b,0\n");
    fprintf(out, ".long 0,%u\n.popsection\n", (unsigned)ETCH_SOFT_MARK_STUB);
}

/* The assembly becomes part of the module. */
static bool add_text(struct emitter *e, FILE *out, char **text, size_t *n)
{
    bool whole = out && fclose(out) == 0;

    if (whole)
        LLVMAppendModuleInlineAsm(e->module, *text, *n);
    free(*text);
    return whole;
}

bool etch_emit_stub(struct emitter *e, const char *stub, const char *function, bool recorded)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);

    if (!out)
        return false;
    fprintf(out, ".pushsection .text.etch,\"ax\",@progbits\n.weak \"%s\"\n.hidden \"%s\"\n\"%s\":\n", stub, stub, stub);
    if (recorded) {
        fprintf(out, ".type \"%s" ETCH_SOFT_STUB_SUFFIX "\",@function\n", function);
        fprintf(out, "\"%s" ETCH_SOFT_STUB_SUFFIX "\":\n77:\n.cfi_startproc\n", function);
        fprintf(out, "movb $%u, (%%r10)\nincq %%r10\n", (unsigned)ETCH_SOFT_OUT);
        write_way_out(e, out, function);
        fprintf(out, ".cfi_endproc\n.size \"%s" ETCH_SOFT_STUB_SUFFIX "\",.-77b\n", function);
        write_mark(out, stub, NULL, NULL);
    } else {
        fprintf(out, "jmp \"%s\"@PLT\n", function);
    }
    fprintf(out, ".popsection\n");
    return add_text(e, out, &text, &n);
}

/* ---- Guards ---- */

/* Each in a section of its own, so that the linker can leave it out together with the function. */
static void write_head(FILE *out, const struct guard *g)
{
    if (g->comdat) {
        fprintf(out, ".pushsection \".text.%s\",\"axG\",@progbits,\"%s\",comdat\n", g->name, g->name);
    } else {
        fprintf(out, ".pushsection \".text.%s\",\"ax\",@progbits\n", g->name);
    }
    fprintf(out, "%s \"%s\"\n.hidden \"%s\"\n\"%s\":\n77:\n", g->weak ? ".weak" : ".globl", g->name, g->name, g->name);
    if (g->recorded && !g->comdat)
        fprintf(out, "\"%s" ETCH_SOFT_GUARD_SUFFIX "\":\n", g->function);
    if (g->recorded)
        fprintf(out, ".type \"%s" ETCH_SOFT_GUARD_SUFFIX "\",@function\n.cfi_startproc\n", g->function);
}

/* Checks whether the loader chose this module's own function. Goes to label 79 if not. The guard and the function of a
 * comdat may come from different files, and one of these may have no recorder. So the check for a comdat is whether the
 * chosen function is an entry that leads to the code (gate.c). */
static void write_question(FILE *out, const struct guard *g)
{
    if (!g->comdat) {
        fprintf(out, "leaq \"%s" ETCH_SOFT_HERE_SUFFIX "\"(%%rip), %%r11\n", g->function);
        fprintf(out, "cmpq \"%s\"@GOTPCREL(%%rip), %%r11\njne 79f\n", g->function);
        return;
    }
    fprintf(out, "movq \"%s\"@GOTPCREL(%%rip), %%r11\ntestb $%u, %%r11b\njne 79f\n", g->function, PASS - 1);
    fprintf(out, "cmpl $0x%x, 4(%%r11)\njne 79f\n", (unsigned)(PASS_WORD >> 32));
    fprintf(out, "movslq %u(%%r11), %%rax\nleaq %u(%%r11,%%rax), %%rax\n", PASS + 3, PASS + 7); /* behind its leaq */
    fprintf(out, "leaq \"%s\"(%%rip), %%r11\ncmpq %%rax, %%r11\njne 79f\n", g->code);
}

/* In the record of a call through a pointer a guard names itself: the loader chose another function. */
static void write_telling(const struct emitter *e, FILE *out, const struct guard *g)
{
    fprintf(out, "leaq 77b(%%rip), %%r11\nmovl %%r11d, 1(%%r10)\n");
    fprintf(out, "movb $%u, (%%r10)\naddq $%u, %%r10\n", (unsigned)ETCH_SOFT_PASSED, ETCH_SOFT_PASSED_SIZE);
    write_way_out(e, out, g->function);
    fprintf(out, ".cfi_endproc\n.size \"%s" ETCH_SOFT_GUARD_SUFFIX "\",.-77b\n", g->function);
    write_mark(out, g->name, g->code, g->comdat ? g->name : NULL);
}

bool etch_emit_guard(struct emitter *e, const struct guard *g)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);

    if (!out)
        return false;
    write_head(out, g);
    write_question(out, g);
    fprintf(out, "jmp \"%s\"\n79:\n", g->code);
    if (g->recorded)
        write_telling(e, out, g);
    else
        fprintf(out, "jmp \"%s\"@PLT\n", g->function);
    fprintf(out, ".popsection\n");
    return add_text(e, out, &text, &n);
}
