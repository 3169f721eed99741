/* SPDX-License-Identifier: MIT */
/* The gate of a recorded function, and calls through pointers, which may pass by its report to the runtime.
 *
 * A call through a pointer reaches the gate. The gate reports an entry to the runtime, which is expensive. Compiled
 * code with a recorder need not report, because its frame can be followed. Such code checks whether the called code
 * starts with the no-operation PASS_NOP, which nothing else has. If so, the call goes to PASS bytes after the start,
 * where the gate itself records which function it is. The check reads the aligned 16 bytes that the pointer points
 * into, so it never reads a page other than the page that the call would run. */
#include "slicer/instrument/asm_text.h"

#include <stdlib.h>
#include <string.h>

#define PASS_NOP "0x0f,0x1f,0x84,0x00,0x65,0xd3,0x1c,0xb7"

/* Only if the compiler puts nothing before our first instruction, and the calling convention is that of C. */
bool etch_can_pass(const struct emitter *e, LLVMValueRef function)
{
    return LLVMGetFunctionCallConv(function) == LLVMCCallConv &&
           !LLVMGetModuleFlag(e->module, "cf-protection-branch", strlen("cf-protection-branch")) &&
           !LLVMGetModuleFlag(e->module, "kcfi", 4);
}

/* The runtime sets etch_soft_on, or all that is lit, before the program runs. The code changes flags only. */
static void add_gate(struct asm_text *t, LLVMValueRef plain, LLVMValueRef lit)
{
    if (!plain)
        return;
    etch_asm_add(t, "cmpb $$0, ");
    if (lit)
        etch_asm_add_symbol(t, lit);
    else
        etch_asm_add(t, "etch_soft_on");
    etch_asm_add(t, "(%%rip)\nje ");
    etch_asm_add_symbol(t, plain);
    etch_asm_add(t, "\n");
}

/* A dark function calls: what it calls is dark, too. Else calls that are jumps, from plain code to recorded code and
 * back, would fill the stack. A dark function that was left by longjmp is above. r11 is free at the begin of a C
 * function. */
static void add_shade(const struct emitter *e, struct asm_text *t, LLVMValueRef reporter, LLVMValueRef plain)
{
    const char *shade = e->shared ? "%fs:(%r11)" : "%fs:etch_soft_shade@TPOFF";

    if (plain) {
        if (e->shared)
            etch_asm_add(t, "movq etch_soft_shade@GOTTPOFF(%%rip), %%r11\n");
        etch_asm_add(t, "cmpq %%rsp, %s\nja ", shade);
        etch_asm_add_symbol(t, plain);
        etch_asm_add(t, "\nmovq $$0, %s\n", shade);
    }
    etch_asm_add(t, "jmp ");
    etch_asm_add_symbol(t, reporter);
}

/* The caller checked the slack. */
static void add_pass(struct asm_text *t, LLVMValueRef body)
{
    etch_asm_add(t, ".balign %u\nleaq ", PASS);
    etch_asm_add_symbol(t, body);
    etch_asm_add(t, "(%%rip), %%r11\nmovl %%r11d, 1(%%r10)\nmovb $$%u, (%%r10)\naddq $$%u, %%r10\njmp ",
                 (unsigned)ETCH_SOFT_PASSED, ETCH_SOFT_PASSED_SIZE);
    etch_asm_add_symbol(t, body);
}

LLVMValueRef etch_emit_gate(struct emitter *e, LLVMValueRef body, LLVMValueRef like, LLVMValueRef reporter,
                            LLVMValueRef plain, LLVMValueRef lit, const char *name)
{
    LLVMValueRef gate = LLVMAddFunction(e->module, name, LLVMGlobalGetValueType(like));
    LLVMAttributeIndex self = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    bool passable = etch_has_cursor_abi(body) && etch_can_pass(e, body);
    struct asm_text t = {0};

    etch_copy_shape(like, gate);
    LLVMRemoveStringAttributeAtIndex(gate, self, "frame-pointer", strlen("frame-pointer"));
    etch_set_flag(e, gate, "naked");
    etch_set_flag(e, gate, "noinline");
    if (LLVMGetSection(body) && LLVMGetSection(body)[0])
        LLVMSetSection(gate, LLVMGetSection(body));
    etch_emit_at_end(e, LLVMAppendBasicBlockInContext(e->context, gate, ""));
    if (passable) {
        LLVMSetAlignment(gate, PASS);
        etch_asm_add(&t, ".byte " PASS_NOP "\n");
    }
    add_gate(&t, plain, lit);
    if (passable) {
        etch_asm_add(&t, "jmp 5f\n");
        add_pass(&t, body);
        etch_asm_add(&t, "\n5:\n");
    }
    add_shade(e, &t, reporter, plain);
    etch_asm_build(e, &t, e->void_type, "", NULL, 0);
    LLVMBuildUnreachable(e->builder);
    free(t.v);
    return t.failed ? NULL : gate;
}

bool etch_emit_passing(struct emitter *e, LLVMValueRef call)
{
    LLVMValueRef callee = LLVMGetCalledValue(call), at, begin, is, distance;

    if (LLVMIsAConstant(callee) || LLVMGetInstructionCallConv(call) != LLVMCCallConv ||
        !etch_can_pass_by(LLVMGetCalledFunctionType(call)) || etch_call_returns_twice(call))
        return true;
    etch_emit_before(e, call);
    at = LLVMBuildPtrToInt(e->builder, callee, e->quad, "");
    begin = LLVMBuildAnd(e->builder, at, LLVMConstInt(e->quad, ~(uint64_t)15, false), "");
    begin = LLVMBuildLoad2(e->builder, e->quad, LLVMBuildIntToPtr(e->builder, begin, e->pointer, ""), "");
    LLVMSetVolatile(begin, true);
    is = LLVMBuildICmp(e->builder, LLVMIntEQ, begin, LLVMConstInt(e->quad, PASS_WORD, false), "");
    if (etch_can_stay_tail(e, call)) {
        at = LLVMBuildAdd(e->builder, at, LLVMConstInt(e->quad, PASS, false), "");
        return etch_cursor_abi_tail(e, call, LLVMBuildIntToPtr(e->builder, at, e->pointer, ""), is);
    }
    distance = LLVMBuildSelect(e->builder, is, LLVMConstInt(e->quad, PASS, false), LLVMConstInt(e->quad, 0, false), "");
    at = LLVMBuildIntToPtr(e->builder, LLVMBuildAdd(e->builder, at, distance, ""), e->pointer, "");
    return etch_cursor_abi_call(e, call, at, distance) != NULL;
}
