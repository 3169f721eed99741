/* SPDX-License-Identifier: MIT */
/* Dependences through calls: the arguments that a parameter comes from, and the returned values of a call. */
#include "slicer/slice/walk.h"

#include <string.h>

/* ---- Arguments ---- */

static void need_argument(struct etch_walk *w, uint32_t from, LLVMValueRef argument);

void etch_walk_value(struct etch_walk *w, uint32_t from, LLVMValueRef value, Etch__StatementRole role)
{
    uint32_t insn;

    if (LLVMIsAArgument(value)) {
        need_argument(w, from, value);
        return;
    }
    insn = etch_model_insn(w->m, value);
    if (insn != ETCH_NONE && !LLVMIsAAllocaInst(value))
        etch_walk_need(w, from, insn, ETCH_FOR_VALUE, role);
}

/* The argument that parameter `index` gets from a call that starts a thread. */
static void need_thread_argument(struct etch_walk *w, uint32_t from, uint32_t call, uint32_t index)
{
    LLVMValueRef v = w->m->insns.v[call].value;
    const char *name = etch_called_name(v);
    bool cxx = strncmp(name, "_ZNSt6thread", 12) == 0;
    unsigned operand = strcmp(name, "pthread_create") == 0 ? 3 : strcmp(name, "thrd_create") == 0 ? 2 : index + 2;

    if (cxx && !LLVMIsAFunction(LLVMGetOperand(v, 1)))
        operand = index + 1; /* a lambda: `this` is the object itself */
    if ((!cxx && index != 0) || operand >= LLVMGetNumArgOperands(v))
        return;
    etch_walk_need(w, from, call, ETCH_FOR_RUNNING, ETCH__STATEMENT_ROLE__ROLE_THREAD);
    etch_walk_value(w, from, LLVMGetOperand(v, operand), ETCH__STATEMENT_ROLE__ROLE_THREAD);
    if (cxx) /* arguments come by reference */
        etch_walk_memory(w, from, call, LLVMGetOperand(v, operand), NULL);
}

void etch_walk_callback(struct etch_walk *w, uint32_t from, uint32_t call)
{
    LLVMValueRef v = w->m->insns.v[call].value;

    etch_walk_need(w, from, call, ETCH_FOR_RUNNING, ETCH__STATEMENT_ROLE__ROLE_ARGUMENT);
    for (unsigned i = 0; i < LLVMGetNumArgOperands(v); i++) {
        LLVMValueRef operand = LLVMGetOperand(v, i);

        if (!etch_is_pointer(operand) || LLVMIsAFunction(operand))
            continue;
        etch_walk_value(w, from, operand, ETCH__STATEMENT_ROLE__ROLE_ARGUMENT);
        etch_walk_memory(w, from, call, operand, NULL);
    }
}

static uint32_t index_of(LLVMValueRef argument)
{
    LLVMValueRef function = LLVMGetParamParent(argument);
    uint32_t i = 0;

    while (LLVMGetParam(function, i) != argument)
        i++;
    return i;
}

/* The argument that a call passes. The call's own context counts, not the context of the called function. */
static void need_passed(struct etch_walk *w, uint32_t from, uint32_t call, uint32_t index)
{
    LLVMValueRef v = w->m->insns.v[call].value;
    bool before = w->any_caller;

    if (index >= LLVMGetNumArgOperands(v))
        return;
    w->any_caller = before || (w->seen[call] & ETCH_ANY_CALLER);
    etch_walk_need(w, from, call, ETCH_FOR_RUNNING, ETCH__STATEMENT_ROLE__ROLE_ARGUMENT);
    etch_walk_value(w, from, LLVMGetOperand(v, index), ETCH__STATEMENT_ROLE__ROLE_ARGUMENT);
    w->any_caller = before;
}

static void need_argument(struct etch_walk *w, uint32_t from, LLVMValueRef argument)
{
    uint32_t function = etch_pointers_get(&w->m->function_of, LLVMGetParamParent(argument));
    uint32_t index = index_of(argument), seen = etch_pointers_get(&w->seen_argument, argument);
    const struct etch_function *f = function == ETCH_NONE ? NULL : &w->m->functions.v[function];

    if (!f || (seen != ETCH_NONE && seen >= 1u + w->any_caller))
        return;
    w->short_of_memory |= !etch_pointers_set(&w->seen_argument, argument, 1u + w->any_caller);
    for (size_t i = 0; i < f->callers.n; i++) {
        uint32_t call = f->callers.v[i].insn;

        if (f->callers.v[i].edge == ETCH_EDGE_THREAD)
            need_thread_argument(w, from, call, index);
        else if (f->callers.v[i].edge == ETCH_EDGE_CALLBACK)
            etch_walk_callback(w, from, call);
        else if (f->callers.v[i].edge == ETCH_EDGE_MADE)
            etch_walk_need(w, from, call, ETCH_FOR_RUNNING, ETCH__STATEMENT_ROLE__ROLE_THREAD);
        else if (f->callers.v[i].edge == ETCH_EDGE_CALL && (w->any_caller || (w->seen[call] & ETCH_FOR_VALUE)))
            need_passed(w, from, call, index);
    }
}

/* A call that comes into the slice after its function's parameters did. */
static void need_reached_arguments(struct etch_walk *w, uint32_t from, uint32_t call, uint32_t function)
{
    LLVMValueRef f = w->m->functions.v[function].value;

    for (unsigned i = 0; i < LLVMCountParams(f); i++)
        if (etch_pointers_get(&w->seen_argument, LLVMGetParam(f, i)) != ETCH_NONE)
            need_passed(w, from, call, i);
}
/* ---- Returned values ---- */

static void need_returns(struct etch_walk *w, uint32_t from, uint32_t function, Etch__StatementRole role)
{
    const struct etch_function *f = &w->m->functions.v[function];
    bool before = w->any_caller;

    w->any_caller = role == ETCH__STATEMENT_ROLE__ROLE_THREAD;
    for (uint32_t i = f->first_block; i < f->first_block + f->n_blocks; i++) {
        uint32_t last = w->m->blocks.v[i].first + w->m->blocks.v[i].n - 1;

        if (LLVMGetInstructionOpcode(w->m->insns.v[last].value) == LLVMRet &&
            LLVMGetNumOperands(w->m->insns.v[last].value))
            etch_walk_need(w, from, last, ETCH_FOR_VALUE, role);
    }
    w->any_caller = before;
}

/* The threads that a join may wait for: threads whose handle is kept at the location that the join reads, else all
 * threads. */
static void need_joined(struct etch_walk *w, uint32_t from, LLVMValueRef join)
{
    LLVMValueRef handle = LLVMGetOperand(join, 0);
    char mine[ETCH_KEY_SIZE], theirs[ETCH_KEY_SIZE];
    bool known = LLVMIsALoadInst(handle) && etch_memory_key(w->m, LLVMGetOperand(handle, 0), NULL, mine), found = false;

    for (int pass = 0; pass < 2 && !found; pass++) {
        for (uint32_t i = 0; i < w->m->functions.n; i++) {
            const struct etch_function *f = &w->m->functions.v[i];

            for (size_t k = 0; k < f->callers.n; k++) {
                LLVMValueRef create = w->m->insns.v[f->callers.v[k].insn].value;

                if (f->callers.v[k].edge != ETCH_EDGE_THREAD)
                    continue;
                if (pass == 0 && (!known || !etch_memory_key(w->m, LLVMGetOperand(create, 0), NULL, theirs) ||
                                  strcmp(mine, theirs) != 0))
                    continue;
                found = true;
                need_returns(w, from, i, ETCH__STATEMENT_ROLE__ROLE_THREAD);
                etch_walk_need(w, from, f->callers.v[k].insn, ETCH_FOR_RUNNING, ETCH__STATEMENT_ROLE__ROLE_THREAD);
            }
        }
    }
}

static bool reads_nothing(const char *name)
{
    return strcmp(name, "free") == 0 || strncmp(name, "_ZdlPv", 6) == 0 || strncmp(name, "_ZdaPv", 6) == 0 ||
           strncmp(name, "llvm.memset", 11) == 0 || strncmp(name, "llvm.lifetime", 13) == 0;
}

static void need_outside_call(struct etch_walk *w, uint32_t from, uint32_t insn)
{
    LLVMValueRef v = w->m->insns.v[insn].value;
    const char *name = etch_called_name(v);

    for (unsigned i = 0; i < LLVMGetNumArgOperands(v); i++) {
        LLVMValueRef operand = LLVMGetOperand(v, i);

        etch_walk_value(w, from, operand, ETCH__STATEMENT_ROLE__ROLE_DATA);
        if (etch_is_pointer(operand) && !LLVMIsAFunction(operand) && !LLVMIsAConstantPointerNull(operand) &&
            !reads_nothing(name))
            etch_walk_memory(w, from, insn, operand, NULL);
    }
    if (strcmp(name, "pthread_join") == 0 || strcmp(name, "thrd_join") == 0)
        need_joined(w, from, v);
}

void etch_walk_call(struct etch_walk *w, uint32_t from, uint32_t insn, uint8_t mode)
{
    const struct etch_insn *i = &w->m->insns.v[insn];
    const struct etch_target *targets;
    size_t n;

    if (i->callee == ETCH_NONE && etch_called(i->value)) {
        need_outside_call(w, from, insn);
        return;
    }
    if (mode & ETCH_FOR_ARGUMENTS)
        for (unsigned k = 0; k < LLVMGetNumArgOperands(i->value); k++)
            etch_walk_value(w, from, LLVMGetOperand(i->value, k), ETCH__STATEMENT_ROLE__ROLE_DATA);
    if (i->callee != ETCH_NONE) {
        need_returns(w, from, i->callee, ETCH__STATEMENT_ROLE__ROLE_RETURN);
        need_reached_arguments(w, from, insn, i->callee);
        return;
    }
    etch_walk_value(w, from, LLVMGetCalledValue(i->value), ETCH__STATEMENT_ROLE__ROLE_DATA);
    targets = etch_model_targets(w->m, insn, &n);
    for (size_t k = 0; k < n; k++) {
        need_returns(w, from, targets[k].function, ETCH__STATEMENT_ROLE__ROLE_RETURN);
        need_reached_arguments(w, from, insn, targets[k].function);
    }
}
