/* SPDX-License-Identifier: MIT */
/* The callers of each function: by calls, through pointers, as threads, as callbacks of outside code. */
#include "slicer/model/classes.h"
#include "slicer/model/model.h"

#include <stdio.h>
#include <string.h>

static bool add_caller(struct etch_model *m, uint32_t function, uint32_t insn, enum etch_edge edge)
{
    struct etch_function *f = &m->functions.v[function];
    struct etch_caller caller = {insn, edge};

    for (size_t i = f->callers.n; i-- > 0 && i + 4 > f->callers.n;)
        if (f->callers.v[i].insn == insn)
            return true;
    return etch_array_push(&f->callers, caller);
}

static bool creates_thread(const char *name)
{
    return strcmp(name, "pthread_create") == 0 || strcmp(name, "thrd_create") == 0 ||
           strncmp(name, "_ZNSt6threadC1", 14) == 0 || strncmp(name, "_ZNSt6threadC2", 14) == 0;
}

/* A lambda goes to a thread as an object of a class without a name: any operator() within the same function may be it.
 */
static bool note_lambda(struct etch_model *m, LLVMValueRef pointer, uint32_t insn)
{
    LLVMTypeRef type = LLVMIsAAllocaInst(pointer) ? LLVMGetAllocatedType(pointer) : NULL;
    const char *name = type && LLVMGetTypeKind(type) == LLVMStructTypeKind ? LLVMGetStructName(type) : NULL;
    const struct etch_function *home = &m->functions.v[etch_insn_function(m, insn)];
    char inside[512];

    if (!name || strncmp(name, "class.anon", 10) != 0)
        return true;
    snprintf(inside, sizeof(inside), "%.500s::{lambda:", home->name);
    for (uint32_t i = 0; i < m->functions.n; i++) {
        const struct etch_function *f = &m->functions.v[i];

        if (f->module == home->module && strncmp(f->name, inside, strlen(inside)) == 0 &&
            !add_caller(m, i, insn, ETCH_EDGE_THREAD))
            return false;
    }
    return true;
}

static bool note_functions_in(struct etch_model *m, LLVMValueRef constant, int depth);

static bool note_function_value(struct etch_model *m, LLVMValueRef value, uint32_t insn, enum etch_edge edge)
{
    uint32_t function = LLVMIsAFunction(value) ? etch_pointers_get(&m->function_of, value) : ETCH_NONE;

    if (function == ETCH_NONE && LLVMIsAConstant(value) && !LLVMIsAGlobalValue(value))
        return note_functions_in(m, value, 0); /* a pointer to a member function */
    if (function == ETCH_NONE)
        return edge != ETCH_EDGE_THREAD || note_lambda(m, value, insn);
    m->functions.v[function].address_taken = true;
    return add_caller(m, function, insn, edge);
}

static bool note_call(struct etch_model *m, uint32_t i)
{
    struct etch_insn *insn = &m->insns.v[i];
    LLVMValueRef callee = etch_called(insn->value);
    const char *name = etch_called_name(insn->value);
    enum etch_edge edge = creates_thread(name) ? ETCH_EDGE_THREAD : ETCH_EDGE_CALLBACK;

    m->n_calls++;
    insn->callee = callee ? etch_pointers_get(&m->function_of, callee) : ETCH_NONE;
    if (insn->callee != ETCH_NONE && !add_caller(m, insn->callee, i, ETCH_EDGE_CALL))
        return false;
    if (insn->callee != ETCH_NONE && edge != ETCH_EDGE_THREAD)
        edge = ETCH_EDGE_TAKEN;
    for (unsigned k = 0; k < LLVMGetNumArgOperands(insn->value); k++)
        if (!note_function_value(m, LLVMGetOperand(insn->value, k), i, edge))
            return false;
    return true;
}

static bool note_functions_in(struct etch_model *m, LLVMValueRef constant, int depth)
{
    if (LLVMIsAFunction(constant)) {
        uint32_t function = etch_pointers_get(&m->function_of, constant);

        if (function != ETCH_NONE)
            m->functions.v[function].address_taken = true;
        return true;
    }
    if (depth > 8 || !LLVMIsAUser(constant) || LLVMIsAGlobalVariable(constant))
        return true;
    for (int k = 0; k < LLVMGetNumOperands(constant); k++) {
        LLVMValueRef operand = LLVMGetOperand(constant, (unsigned)k);

        if (operand && !note_functions_in(m, operand, depth + 1))
            return false;
    }
    return true;
}

static bool note_uses(struct etch_model *m)
{
    for (uint32_t i = 0; i < m->insns.n; i++) {
        LLVMValueRef v = m->insns.v[i].value;
        LLVMOpcode op = LLVMGetInstructionOpcode(v);

        if (etch_is_call(v)) {
            if (!note_call(m, i))
                return false;
        } else if (op == LLVMStore || op == LLVMPHI || op == LLVMSelect || op == LLVMRet) {
            for (int k = 0; k < LLVMGetNumOperands(v); k++)
                if (!note_function_value(m, LLVMGetOperand(v, (unsigned)k), i, ETCH_EDGE_TAKEN))
                    return false;
        }
    }
    for (size_t i = 0; i < m->modules.n; i++)
        for (LLVMValueRef g = LLVMGetFirstGlobal(m->modules.v[i].module); g; g = LLVMGetNextGlobal(g))
            if (LLVMGetInitializer(g) && !note_functions_in(m, LLVMGetInitializer(g), 0))
                return false;
    return true;
}

/* Functions whose address is taken, by type. */
struct by_type {
    struct etch_strings types;
    ETCH_ARRAY(etch_numbers) of_type;
};

static bool sort_by_type(struct etch_model *m, struct by_type *t)
{
    bool ok = true;

    for (uint32_t i = 0; ok && i < m->functions.n; i++) {
        char *text;
        uint32_t type;

        if (!m->functions.v[i].address_taken)
            continue;
        text = LLVMPrintTypeToString(LLVMGlobalGetValueType(m->functions.v[i].value));
        type = etch_strings_add(&t->types, text);
        LLVMDisposeMessage(text);
        ok = type != ETCH_NONE;
        if (ok && type == t->of_type.n)
            ok = etch_array_push(&t->of_type, (etch_numbers){0});
        ok = ok && type < t->of_type.n && etch_array_push(&t->of_type.v[type], i);
    }
    return ok;
}

static bool note_targets(struct etch_model *m, uint32_t insn, const etch_numbers *targets)
{
    for (size_t i = 0; i < targets->n; i++)
        if (!add_caller(m, targets->v[i], insn, ETCH_EDGE_CALL))
            return false;
    return true;
}

/* A call through a pointer may reach each function whose address is taken and whose type is the call's; a virtual one,
 * those that override it. */
static bool note_pointer_call(struct etch_model *m, const struct etch_classes *classes, const struct by_type *t,
                              uint32_t insn)
{
    LLVMValueRef v = m->insns.v[insn].value;
    etch_numbers targets = {0};
    bool is_virtual, ok = etch_classes_targets(classes, v, &is_virtual, &targets);
    uint32_t type;
    char *text;

    ok = ok && note_targets(m, insn, &targets);
    etch_array_free(&targets);
    if (!ok || is_virtual)
        return ok;
    text = LLVMPrintTypeToString(LLVMGetCalledFunctionType(v));
    type = etch_strings_find(&t->types, text);
    LLVMDisposeMessage(text);
    return type >= t->of_type.n || note_targets(m, insn, &t->of_type.v[type]);
}

static bool note_pointer_calls(struct etch_model *m, const struct etch_classes *classes)
{
    struct by_type t = {0};
    bool ok = sort_by_type(m, &t);

    for (uint32_t i = 0; ok && i < m->insns.n; i++) {
        LLVMValueRef v = m->insns.v[i].value;

        if (etch_is_call(v) && !etch_called(v) && !LLVMIsAInlineAsm(LLVMGetCalledValue(v)))
            ok = note_pointer_call(m, classes, &t, i);
    }
    for (size_t i = 0; i < t.of_type.n; i++)
        etch_array_free(&t.of_type.v[i]);
    etch_array_free(&t.of_type);
    etch_strings_release(&t.types);
    return ok;
}

/* The C++ library calls virtual functions of objects that it gets: the body of a thread, a task. If no code of the
 * model calls such a function, the code that made the object counts as its caller. */
static bool note_made(struct etch_model *m, uint32_t function, uint32_t insn)
{
    const struct etch_function *f = &m->functions.v[function];

    for (size_t i = 0; i < f->callers.n; i++)
        if (f->callers.v[i].edge == ETCH_EDGE_CALL || f->callers.v[i].edge == ETCH_EDGE_THREAD)
            return true;
    return add_caller(m, function, insn, ETCH_EDGE_MADE);
}

static int by_insn(const void *a, const void *b)
{
    const struct etch_target *x = a, *y = b;

    if (x->insn != y->insn)
        return x->insn < y->insn ? -1 : 1;
    return x->function < y->function ? -1 : x->function > y->function;
}

bool etch_model_index_targets(struct etch_model *m)
{
    m->targets.n = 0;
    for (uint32_t i = 0; i < m->functions.n; i++) {
        const struct etch_function *f = &m->functions.v[i];

        for (size_t k = 0; k < f->callers.n; k++) {
            struct etch_target t = {f->callers.v[k].insn, i};

            if (f->callers.v[k].edge == ETCH_EDGE_CALL && m->insns.v[t.insn].callee == ETCH_NONE &&
                !etch_array_push(&m->targets, t))
                return false;
        }
    }
    if (m->targets.n)
        qsort(m->targets.v, m->targets.n, sizeof(*m->targets.v), by_insn);
    return true;
}

const struct etch_target *etch_model_targets(const struct etch_model *m, uint32_t insn, size_t *n)
{
    size_t lo = 0, hi = m->targets.n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (m->targets.v[mid].insn < insn)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (*n = 0; lo + *n < m->targets.n && m->targets.v[lo + *n].insn == insn;)
        ++*n;
    return *n ? &m->targets.v[lo] : NULL;
}

bool etch_model_find_callers(struct etch_model *m)
{
    struct etch_classes *classes = etch_classes_new(m);
    bool ok = classes && note_uses(m) && note_pointer_calls(m, classes) && etch_classes_visit(classes, note_made, m) &&
              etch_model_index_targets(m);

    etch_classes_free(classes);
    return ok;
}
