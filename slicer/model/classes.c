/* SPDX-License-Identifier: MIT */
/* See classes.h. */
#include "slicer/model/classes.h"

#include "base/log.h"

#include <stdio.h>
#include <string.h>

#define BASES_MAX 32 /* depth of a hierarchy */

/* One entry of a table of virtual functions. */
struct slot {
    uint32_t class;    /* by the name behind _ZTV */
    uint32_t index;    /* from where the object points to */
    uint32_t function; /* of the model */
};

/* Class `derived` has `base` among its direct bases. */
struct heir {
    uint32_t derived, base;
};

/* An instruction that writes the table's address into an object. */
struct maker {
    uint32_t class, insn;
};

struct etch_classes {
    struct etch_model *m;
    struct etch_strings names; /* as mangled, behind _ZTV, _ZTI or _ZTS */
    ETCH_ARRAY(struct slot) slots;
    ETCH_ARRAY(struct heir) heirs;
    ETCH_ARRAY(struct maker) makers;
};

/* ---- Reading the tables ---- */

static const char *behind(LLVMValueRef global, const char *prefix)
{
    size_t n = 0, k = strlen(prefix);
    const char *name = LLVMGetValueName2(global, &n);

    return n > k && strncmp(name, prefix, k) == 0 ? name + k : NULL;
}

/* A table is a struct of arrays, one for each part of the object that has a table pointer. Each begins with an offset
 * and the type information; what the object points to is behind these. */
static bool add_array(struct etch_classes *c, uint32_t class, LLVMValueRef array)
{
    int n = LLVMIsAUser(array) ? LLVMGetNumOperands(array) : 0, first = -1;

    for (int i = 0; i < n; i++) {
        LLVMValueRef entry = LLVMGetOperand(array, (unsigned)i);
        uint32_t function;

        if (LLVMIsAGlobalVariable(entry) && behind(entry, "_ZTI")) {
            first = i + 1;
            continue;
        }
        function = first >= 0 && LLVMIsAFunction(entry) ? etch_pointers_get(&c->m->function_of, entry) : ETCH_NONE;
        if (function != ETCH_NONE &&
            !etch_array_push(&c->slots, ((struct slot){class, (uint32_t)(i - first), function})))
            return false;
    }
    return true;
}

static bool add_table(struct etch_classes *c, const char *name, LLVMValueRef table)
{
    uint32_t class = etch_strings_add(&c->names, name);

    if (class == ETCH_NONE)
        return false;
    for (int i = 0; LLVMIsAUser(table) && i < LLVMGetNumOperands(table); i++)
        if (!add_array(c, class, LLVMGetOperand(table, (unsigned)i)))
            return false;
    return true;
}

/* Type information points to that of the bases. */
static bool add_bases(struct etch_classes *c, const char *name, LLVMValueRef information)
{
    uint32_t class = etch_strings_add(&c->names, name);

    for (int i = 0; LLVMIsAUser(information) && i < LLVMGetNumOperands(information); i++) {
        LLVMValueRef entry = LLVMGetOperand(information, (unsigned)i);
        const char *base = LLVMIsAGlobalVariable(entry) ? behind(entry, "_ZTI") : NULL;
        uint32_t number = base ? etch_strings_add(&c->names, base) : ETCH_NONE;

        if (base && (number == ETCH_NONE || !etch_array_push(&c->heirs, ((struct heir){class, number}))))
            return false;
    }
    return class != ETCH_NONE;
}

/* The table whose address is stored, as constructors do. */
static LLVMValueRef stored_table(LLVMValueRef value)
{
    for (int i = 0; i < 4 && LLVMIsAConstantExpr(value) && LLVMGetNumOperands(value); i++)
        value = LLVMGetOperand(value, 0);
    return LLVMIsAGlobalVariable(value) ? value : NULL;
}

static bool add_makers(struct etch_classes *c)
{
    for (uint32_t i = 0; i < c->m->insns.n; i++) {
        LLVMValueRef v = c->m->insns.v[i].value;
        LLVMValueRef table = LLVMIsAStoreInst(v) ? stored_table(LLVMGetOperand(v, 0)) : NULL;
        const char *name = table ? behind(table, "_ZTV") : NULL;
        uint32_t class = name ? etch_strings_find(&c->names, name) : ETCH_NONE;

        if (class != ETCH_NONE && !etch_array_push(&c->makers, ((struct maker){class, i})))
            return false;
    }
    return true;
}

static bool read_module(struct etch_classes *c, LLVMModuleRef module)
{
    for (LLVMValueRef g = LLVMGetFirstGlobal(module); g; g = LLVMGetNextGlobal(g)) {
        LLVMValueRef value = LLVMGetInitializer(g);
        const char *table = value ? behind(g, "_ZTV") : NULL, *information = value ? behind(g, "_ZTI") : NULL;

        if ((table && !add_table(c, table, value)) || (information && !add_bases(c, information, value)))
            return false;
    }
    return true;
}

struct etch_classes *etch_classes_new(struct etch_model *m)
{
    struct etch_classes *c = calloc(1, sizeof(*c));
    bool ok = c != NULL;

    if (ok)
        c->m = m;
    for (size_t i = 0; ok && i < m->modules.n; i++)
        ok = read_module(c, m->modules.v[i].module);
    if (ok && add_makers(c))
        return c;
    etch_classes_free(c);
    return NULL;
}

void etch_classes_free(struct etch_classes *c)
{
    if (!c)
        return;
    etch_strings_release(&c->names);
    etch_array_free(&c->slots);
    etch_array_free(&c->heirs);
    etch_array_free(&c->makers);
    free(c);
}

/* ---- Virtual calls ---- */

static bool derives(const struct etch_classes *c, uint32_t class, uint32_t base, int depth)
{
    if (class == base)
        return true;
    if (depth == BASES_MAX) {
        etch_log(ETCH_LOG_MODEL, ETCH_LOG_INFO, "a class hierarchy is deeper than %d: the search ends there",
                 BASES_MAX);
        return false;
    }
    for (size_t i = 0; i < c->heirs.n; i++)
        if (c->heirs.v[i].derived == class && derives(c, c->heirs.v[i].base, base, depth + 1))
            return true;
    return false;
}

/* call (load (gep (load OBJECT), INDEX)) (OBJECT, ...): the object's first word is its table. */
static bool is_virtual_call(LLVMValueRef call, LLVMValueRef *object, uint32_t *index)
{
    LLVMValueRef entry = LLVMGetCalledValue(call), place, table;

    *index = 0;
    if (!LLVMIsALoadInst(entry) || !LLVMGetNumArgOperands(call))
        return false;
    place = table = LLVMGetOperand(entry, 0);
    if (LLVMIsAGetElementPtrInst(place)) {
        LLVMValueRef number = LLVMGetOperand(place, 1);

        if (LLVMGetNumOperands(place) != 2 || !LLVMIsAConstantInt(number))
            return false;
        *index = (uint32_t)LLVMConstIntGetZExtValue(number);
        table = LLVMGetOperand(place, 0);
    }
    if (!LLVMIsALoadInst(table))
        return false;
    *object = LLVMGetOperand(table, 0);
    return *object == LLVMGetOperand(call, 0) ||
           (LLVMGetNumArgOperands(call) > 1 && *object == LLVMGetOperand(call, 1)); /* behind a returned struct */
}

static bool push_once(etch_numbers *list, uint32_t number)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->v[i] == number)
            return true;
    return etch_array_push(list, number);
}

bool etch_classes_targets(const struct etch_classes *c, LLVMValueRef call, bool *is_virtual, etch_numbers *functions)
{
    LLVMTypeRef type = LLVMGetCalledFunctionType(call);
    LLVMValueRef object;
    char identifier[512];
    uint32_t index, class = ETCH_NONE;

    *is_virtual = is_virtual_call(call, &object, &index);
    if (!*is_virtual)
        return true;
    if (etch_name_pointee_identifier(c->m, object, identifier, sizeof(identifier)) &&
        strncmp(identifier, "_ZTS", 4) == 0)
        class = etch_strings_find(&c->names, identifier + 4);
    for (size_t i = 0; i < c->slots.n; i++) {
        const struct slot *s = &c->slots.v[i];
        LLVMTypeRef theirs = LLVMGlobalGetValueType(c->m->functions.v[s->function].value);

        if (s->index == index && LLVMCountParamTypes(theirs) == LLVMCountParamTypes(type) &&
            (class == ETCH_NONE || derives(c, s->class, class, 0)) && !push_once(functions, s->function))
            return false;
    }
    return true;
}

bool etch_classes_visit(const struct etch_classes *c,
                        bool (*visit)(struct etch_model *m, uint32_t function, uint32_t insn), struct etch_model *m)
{
    for (size_t i = 0; i < c->slots.n; i++)
        for (size_t k = 0; k < c->makers.n; k++)
            if (c->makers.v[k].class == c->slots.v[i].class && !visit(m, c->slots.v[i].function, c->makers.v[k].insn))
                return false;
    return true;
}

/* ---- Exceptions ---- */

static const char *plain_name(LLVMValueRef information)
{
    size_t n;

    return LLVMIsAGlobalVariable(information) ? LLVMGetValueName2(information, &n) : "";
}

/* Is an exception of this type caught as one of that type? Where the hierarchy is not known it may be. */
static bool is_caught_as(LLVMValueRef thrown, LLVMValueRef caught, int depth)
{
    LLVMValueRef information = LLVMIsAGlobalVariable(thrown) ? LLVMGetInitializer(thrown) : NULL;

    if (strcmp(plain_name(thrown), plain_name(caught)) == 0)
        return true;
    if (!information || depth > BASES_MAX) /* the library's own types do not derive from the program's */
        return strncmp(plain_name(thrown), "_ZTISt", 6) != 0 || strncmp(plain_name(caught), "_ZTISt", 6) == 0;
    for (int i = 0; i < LLVMGetNumOperands(information); i++) {
        LLVMValueRef base = LLVMGetOperand(information, (unsigned)i);

        if (strncmp(plain_name(base), "_ZTI", 4) == 0 && is_caught_as(base, caught, depth + 1))
            return true;
    }
    return false;
}

static bool is_caught(LLVMValueRef landing, LLVMValueRef thrown)
{
    unsigned n = LLVMGetNumClauses(landing);

    if (!thrown)
        return true;
    for (unsigned i = 0; i < n; i++) {
        LLVMValueRef clause = LLVMGetClause(landing, i);

        if (!LLVMIsAGlobalVariable(clause) || is_caught_as(thrown, clause, 0))
            return true; /* null catches all, an array is a filter */
    }
    return n == 0; /* destructors only: whatever it is */
}

/* True for a call that throws. `thrown`: the type information of the exception, NULL if it is not known. */
static bool is_throw(LLVMValueRef call, LLVMValueRef *thrown)
{
    const char *name = etch_called_name(call);

    *thrown = strcmp(name, "__cxa_throw") == 0 ? LLVMGetOperand(call, 1) : NULL;
    return *thrown || strcmp(name, "__cxa_rethrow") == 0 ||
           (strncmp(name, "_ZSt", 4) == 0 && (strstr(name, "__throw_") || strstr(name, "rethrow_exception")));
}

struct reach {
    struct etch_model *m;
    bool *seen; /* functions */
    etch_numbers work;
};

static bool reach_function(struct reach *r, uint32_t function)
{
    if (r->seen[function])
        return true;
    r->seen[function] = true;
    return etch_array_push(&r->work, function);
}

static bool reach_insn(struct reach *r, uint32_t insn, etch_numbers *throws)
{
    LLVMValueRef v = r->m->insns.v[insn].value, thrown;
    const struct etch_target *targets;
    size_t n = 0;
    bool ok = true;

    if (!etch_is_call(v) || LLVMIsAInlineAsm(LLVMGetCalledValue(v)))
        return true;
    if (r->m->insns.v[insn].callee != ETCH_NONE)
        return reach_function(r, r->m->insns.v[insn].callee);
    if (etch_called(v))
        return !is_throw(v, &thrown) || etch_array_push(throws, insn);
    targets = etch_model_targets(r->m, insn, &n);
    for (size_t i = 0; ok && i < n; i++)
        ok = reach_function(r, targets[i].function);
    return ok;
}

/* All that a function may let out, found once. */
static const etch_numbers *throws_of(struct etch_model *m, uint32_t function)
{
    struct reach r = {.m = m};
    etch_numbers *throws = m->functions.v[function].throws;
    bool ok;

    if (throws)
        return throws;
    throws = calloc(1, sizeof(*throws));
    r.seen = calloc(m->functions.n + 1, sizeof(*r.seen));
    ok = throws && r.seen && reach_function(&r, function);
    while (ok && r.work.n) {
        const struct etch_function *f = &m->functions.v[r.work.v[--r.work.n]];

        for (uint32_t b = f->first_block; ok && b < f->first_block + f->n_blocks; b++)
            for (uint32_t i = 0; ok && i < m->blocks.v[b].n; i++)
                ok = reach_insn(&r, m->blocks.v[b].first + i, throws);
    }
    etch_array_free(&r.work);
    free(r.seen);
    if (!ok && throws)
        etch_array_free(throws);
    if (!ok)
        free(throws);
    return m->functions.v[function].throws = ok ? throws : NULL;
}

static bool add_caught(struct etch_model *m, LLVMValueRef landing, uint32_t insn, etch_numbers *throws)
{
    LLVMValueRef thrown;

    return !is_throw(m->insns.v[insn].value, &thrown) || !is_caught(landing, thrown) || push_once(throws, insn);
}

static bool add_all_caught(struct etch_model *m, LLVMValueRef landing, uint32_t function, etch_numbers *throws)
{
    const etch_numbers *all = throws_of(m, function);

    for (size_t i = 0; all && i < all->n; i++)
        if (!add_caught(m, landing, all->v[i], throws))
            return false;
    return all != NULL;
}

bool etch_throws_find(struct etch_model *m, uint32_t call, LLVMValueRef landing, etch_numbers *throws)
{
    LLVMValueRef v = m->insns.v[call].value;
    const struct etch_target *targets;
    size_t n = 0;

    if (!etch_is_call(v) || LLVMIsAInlineAsm(LLVMGetCalledValue(v)))
        return true;
    if (m->insns.v[call].callee != ETCH_NONE)
        return add_all_caught(m, landing, m->insns.v[call].callee, throws);
    if (etch_called(v))
        return add_caught(m, landing, call, throws);
    targets = etch_model_targets(m, call, &n);
    for (size_t i = 0; i < n; i++)
        if (!add_all_caught(m, landing, targets[i].function, throws))
            return false;
    return true;
}
