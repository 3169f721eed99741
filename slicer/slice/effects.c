/* SPDX-License-Identifier: MIT */
/* Effects of library code, one summary a function; see effects.h. The bitcode is the compiler's before optimisation:
 * parameters are put into variables first, and read from there. */
#include "slicer/slice/effects.h"

#include "base/function_name.h"
#include "base/log.h"
#include "slicer/slice/slicing.h"

#include <llvm-c/Target.h>
#include <stdlib.h>

#define EFFECTS_MAX 32u /* of a function */
#define STEPS_MAX 32u   /* from a pointer back to the parameter that it is made from */
#define DEPTH_MAX 64u   /* of calls */

struct summary {
    enum { UNKNOWN, UNDER_WAY, KNOWN } state;
    etch_effects effects;
    bool returns; /* a pointer into the target of a parameter */
    struct etch_effect returned;
};

struct etch_effect_table {
    ETCH_ARRAY(struct summary) of; /* by function */
    uint32_t depth;
};

void etch_effect_table_free(struct etch_effect_table *table)
{
    if (!table)
        return;
    for (size_t i = 0; i < table->of.n; i++)
        etch_array_free(&table->of.v[i].effects);
    etch_array_free(&table->of);
    free(table);
}

static bool is_library(const struct etch_model *m, uint32_t function)
{
    uint32_t file = m->functions.v[function].file;

    return file != ETCH_NONE && etch_file_is_system(m->files.all.v[file]);
}

static const struct summary *summary_of(struct etch_model *m, uint32_t function);

/* ---- Where a pointer comes from ---- */

/* The value of a variable that is written once, such as the copy of a parameter. NULL: the variable is written more
 * often, or by other code. */
static LLVMValueRef only_value(LLVMValueRef variable)
{
    LLVMValueRef value = NULL;

    for (LLVMUseRef use = LLVMGetFirstUse(variable); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);

        if (LLVMIsALoadInst(user))
            continue;
        if (!LLVMIsAStoreInst(user) || LLVMGetOperand(user, 1) != variable || value)
            return NULL;
        value = LLVMGetOperand(user, 0);
    }
    return value;
}

/* A call that returns a pointer into one of its arguments. Returns that argument. */
static LLVMValueRef returned_argument(struct etch_model *m, LLVMValueRef call, int64_t *offset)
{
    uint32_t insn = etch_model_insn(m, call), callee = insn == ETCH_NONE ? ETCH_NONE : m->insns.v[insn].callee;
    const struct summary *s = callee == ETCH_NONE ? NULL : summary_of(m, callee);

    if (!s || !s->returns || s->returned.parameter >= LLVMGetNumArgOperands(call))
        return NULL;
    *offset += s->returned.offset;
    return LLVMGetOperand(call, s->returned.parameter);
}

static uint32_t number_of(LLVMValueRef argument)
{
    LLVMValueRef function = LLVMGetParamParent(argument);
    uint32_t i = 0;

    while (LLVMGetParam(function, i) != argument)
        i++;
    return i;
}

/* The parameter that a pointer is made from, and how far from it; `insn` is any of the function. */
static bool origin_of(struct etch_model *m, uint32_t insn, LLVMValueRef pointer, struct etch_effect *origin)
{
    for (unsigned i = 0; pointer && i < STEPS_MAX; i++) {
        int64_t offset;
        bool constant;

        pointer = etch_constant_offset(m, insn, pointer, &offset, &constant);
        if (!constant)
            return false;
        origin->offset += offset;
        if (LLVMIsAArgument(pointer)) {
            origin->parameter = number_of(pointer);
            return true;
        }
        if (LLVMIsALoadInst(pointer) && LLVMIsAAllocaInst(LLVMGetOperand(pointer, 0)))
            pointer = only_value(LLVMGetOperand(pointer, 0));
        else if (etch_is_call(pointer))
            pointer = returned_argument(m, pointer, &origin->offset);
        else
            return false;
    }
    return false;
}

/* ---- Effects ---- */

static bool add_effect(etch_effects *effects, const struct etch_effect *e)
{
    for (size_t i = 0; i < effects->n; i++) {
        const struct etch_effect *other = &effects->v[i];

        if (other->parameter == e->parameter && other->offset == e->offset && other->size == e->size &&
            other->write == e->write)
            return true;
    }
    if (effects->n == EFFECTS_MAX) {
        etch_log(ETCH_LOG_SLICE, ETCH_LOG_INFO, "a library function has more than %u effects: one is left out",
                 EFFECTS_MAX);
        return true;
    }
    return etch_array_push(effects, *e);
}

static bool add_access(struct etch_model *m, uint32_t insn, LLVMValueRef pointer, LLVMTypeRef type, bool write,
                       etch_effects *effects)
{
    struct etch_effect e = {.write = write, .insn = insn};

    if (!LLVMTypeIsSized(type) || !origin_of(m, insn, pointer, &e))
        return true;
    e.size = (uint32_t)LLVMStoreSizeOfType(etch_layout_of(m, insn), type);
    return e.size == 0 || e.size > 8 || add_effect(effects, &e);
}

/* Adds the effects of a called function, for the arguments that are parameters of this function. */
static bool add_called(struct etch_model *m, uint32_t insn, etch_effects *effects)
{
    const struct etch_insn *call = &m->insns.v[insn];
    const struct summary *s = call->callee == ETCH_NONE ? NULL : summary_of(m, call->callee);

    for (size_t i = 0; s && i < s->effects.n; i++) {
        struct etch_effect e = s->effects.v[i];

        if (e.parameter >= LLVMGetNumArgOperands(call->value) ||
            !origin_of(m, insn, LLVMGetOperand(call->value, e.parameter), &e))
            continue;
        if (!add_effect(effects, &e))
            return false;
    }
    return true;
}

static bool add_insn(struct etch_model *m, uint32_t insn, struct summary *s)
{
    LLVMValueRef v = m->insns.v[insn].value;

    switch (LLVMGetInstructionOpcode(v)) {
    case LLVMLoad:
        return add_access(m, insn, LLVMGetOperand(v, 0), LLVMTypeOf(v), false, &s->effects);
    case LLVMStore:
        return add_access(m, insn, LLVMGetOperand(v, 1), LLVMTypeOf(LLVMGetOperand(v, 0)), true, &s->effects);
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg:
        return add_access(m, insn, LLVMGetOperand(v, 0), LLVMTypeOf(LLVMGetOperand(v, 1)), false, &s->effects) &&
               add_access(m, insn, LLVMGetOperand(v, 0), LLVMTypeOf(LLVMGetOperand(v, 1)), true, &s->effects);
    case LLVMCall:
    case LLVMInvoke:
        return add_called(m, insn, &s->effects);
    case LLVMRet:
        s->returned = (struct etch_effect){0};
        s->returns = LLVMGetNumOperands(v) && origin_of(m, insn, LLVMGetOperand(v, 0), &s->returned);
        return true;
    default:
        return true;
    }
}

static bool fill_summary(struct etch_model *m, uint32_t function, struct summary *s)
{
    const struct etch_function *f = &m->functions.v[function];
    bool ok = true;

    for (uint32_t b = f->first_block; ok && b < f->first_block + f->n_blocks; b++)
        for (uint32_t i = m->blocks.v[b].first; ok && i < m->blocks.v[b].first + m->blocks.v[b].n; i++)
            ok = add_insn(m, i, s);
    return ok;
}

/* NULL: the function is the user's own, is being looked at already, or memory is short. */
static const struct summary *summary_of(struct etch_model *m, uint32_t function)
{
    struct etch_effect_table *l = m->effects ? m->effects : (m->effects = calloc(1, sizeof(*l)));
    const struct summary none = {0};
    struct summary *s, made = {0};

    if (!l || !is_library(m, function))
        return NULL;
    while (l->of.n < m->functions.n)
        if (!etch_array_push(&l->of, none))
            return NULL;
    if (function >= l->of.n)
        return NULL;
    s = &l->of.v[function];
    if (s->state != UNKNOWN)
        return s->state == KNOWN ? s : NULL;
    if (l->depth == DEPTH_MAX) {
        etch_log(ETCH_LOG_SLICE, ETCH_LOG_INFO, "%s is called %u levels deep: its effects are left out",
                 m->functions.v[function].name, DEPTH_MAX);
        return NULL;
    }
    s->state = UNDER_WAY;
    l->depth++;
    if (!fill_summary(m, function, &made)) {
        etch_array_free(&made.effects);
        made = none;
    }
    l->depth--;
    made.state = KNOWN;
    l->of.v[function] = made;
    return &l->of.v[function];
}

const etch_effects *etch_effects_of(struct etch_model *m, uint32_t function)
{
    const struct summary *s = summary_of(m, function);

    return s ? &s->effects : NULL;
}
