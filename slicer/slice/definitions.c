/* SPDX-License-Identifier: MIT */
/* The definitions that may reach a read: stores to memory by the keys of memory.c, and of local variables along the
 * control flow. */
#include "slicer/slice/walk.h"

#include <stdio.h>
#include <string.h>

static void need_key(struct etch_walk *w, uint32_t from, const char *key);
static void need_variable(struct etch_walk *w, uint32_t from, const char *key);
static void need_pointees(struct etch_walk *w, uint32_t from, const char *key);

static void need_writers(struct etch_walk *w, uint32_t from, const char *key, LLVMValueRef but_local)
{
    const etch_numbers *writers = etch_memory_writers(w->m, key);
    bool before = w->any_caller;

    for (size_t i = 0; writers && i < writers->n; i++) {
        LLVMValueRef v = w->m->insns.v[writers->v[i]].value;

        if (but_local && LLVMIsAStoreInst(v) && etch_memory_local(LLVMGetOperand(v, 1)) == but_local)
            continue;
        w->any_caller = before || from == ETCH_NONE ||
                        etch_insn_function(w->m, writers->v[i]) != w->slice->statements.v[from].function;
        etch_walk_need(w, from, writers->v[i], ETCH_FOR_VALUE | ETCH_FOR_ARGUMENTS, ETCH__STATEMENT_ROLE__ROLE_MEMORY);
    }
    w->any_caller = before;
}

/* A parameter points to the targets of the callers' arguments. */
static void need_pointees_of_callers(struct etch_walk *w, uint32_t from, const char *key)
{
    uint32_t function, index;

    if (sscanf(key, "p:%u.%u", &function, &index) != 2 || function >= w->m->functions.n)
        return;
    for (size_t i = 0; i < w->m->functions.v[function].callers.n; i++) {
        const struct etch_caller *c = &w->m->functions.v[function].callers.v[i];
        LLVMValueRef v = w->m->insns.v[c->insn].value;

        if (c->edge == ETCH_EDGE_CALL && index < LLVMGetNumArgOperands(v))
            etch_walk_memory(w, from, c->insn, LLVMGetOperand(v, index), NULL);
        else if (c->edge == ETCH_EDGE_THREAD && index == 0 && strcmp(etch_called_name(v), "pthread_create") == 0)
            etch_walk_memory(w, from, c->insn, LLVMGetOperand(v, 3), NULL);
        else if (c->edge == ETCH_EDGE_THREAD && index == 0 && strcmp(etch_called_name(v), "thrd_create") == 0)
            etch_walk_memory(w, from, c->insn, LLVMGetOperand(v, 2), NULL);
        else if (c->edge == ETCH_EDGE_CALLBACK)
            etch_walk_callback(w, from, c->insn);
    }
}

/* The wholes that a location is part of: g:x.1[] -> g:x.1, g:x; f:T.2[] -> f:T.2, t:T. */
static void need_wholes(struct etch_walk *w, uint32_t from, const char *key)
{
    char whole[ETCH_KEY_SIZE];
    size_t n = strlen(key);

    snprintf(whole, sizeof(whole), "%s", key);
    while (n > 2 && strcmp(whole + n - 2, "[]") == 0) {
        whole[n -= 2] = '\0';
        need_writers(w, from, whole, NULL);
    }
    if (key[0] == 'f') {
        char *dot = strrchr(whole, '.');

        if (dot)
            *dot = '\0';
        whole[0] = 't';
        need_writers(w, from, whole, NULL);
    } else if (key[0] == 'g') {
        char *dot = strchr(whole, '.');

        if (dot) {
            *dot = '\0';
            need_writers(w, from, whole, NULL);
        }
    }
}

static void need_key(struct etch_walk *w, uint32_t from, const char *key)
{
    size_t before = w->seen_keys.all.n;

    if (etch_strings_add(&w->seen_keys, key) == ETCH_NONE)
        w->short_of_memory = true;
    if (w->seen_keys.all.n == before)
        return;
    need_writers(w, from, key, NULL);
    need_wholes(w, from, key);
    if (key[0] == 'p')
        need_pointees_of_callers(w, from, key);
    else if (key[0] == 'a')
        need_variable(w, from, key);
    else if (key[0] == 'd')
        need_pointees(w, from, key + 2);
}

static const etch_defs *defs_of(struct etch_walk *w, LLVMValueRef variable)
{
    uint32_t number = etch_pointers_get(&w->defs_of, variable);
    etch_defs defs = {0};

    if (number != ETCH_NONE)
        return &w->defs.v[number];
    number = (uint32_t)w->defs.n;
    if (!etch_memory_defs(w->m, variable, &defs) || !etch_pointers_set(&w->defs_of, variable, number) ||
        !etch_array_push(&w->defs, defs)) {
        etch_array_free(&defs);
        w->short_of_memory = true;
        return NULL;
    }
    return &w->defs.v[number];
}

/* True if one location is part of the other, by their keys. */
static bool overlaps(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return (!*a && (!*b || *b == '.' || *b == '[')) || (!*b && (*a == '.' || *a == '['));
}

/* A call that got the variable's address may have written to the variable. */
static void need_call_effect(struct etch_walk *w, uint32_t from, const struct etch_def *def, LLVMValueRef pointer,
                             LLVMTypeRef access)
{
    const struct etch_insn *insn = &w->m->insns.v[def->insn];
    char key[ETCH_KEY_SIZE];

    for (unsigned i = 0; i < LLVMGetNumArgOperands(insn->value); i++) {
        if (LLVMGetOperand(insn->value, i) != def->pointer)
            continue;
        if (insn->callee == ETCH_NONE && !etch_call_only_reads(etch_called_name(insn->value), i)) {
            etch_walk_need(w, from, def->insn, ETCH_FOR_VALUE | ETCH_FOR_ARGUMENTS, ETCH__STATEMENT_ROLE__ROLE_MEMORY);
        } else if (insn->callee != ETCH_NONE) {
            snprintf(key, sizeof(key), "p:%u.%u", insn->callee, i);
            need_writers(w, from, key, NULL);
            if (etch_memory_field_key(w->m, pointer, access, key))
                need_key(w, from, key);
        }
    }
}

/* A read of a local variable, or of a part of it. */
struct read {
    const etch_defs *defs;
    LLVMValueRef pointer;
    LLVMTypeRef access;
    char key[ETCH_KEY_SIZE];
};

static LLVMTypeRef written_type(LLVMValueRef insn)
{
    if (LLVMIsAStoreInst(insn))
        return LLVMTypeOf(LLVMGetOperand(insn, 0));
    return LLVMIsAAtomicRMWInst(insn) || LLVMIsAAtomicCmpXchgInst(insn) ? LLVMTypeOf(LLVMGetOperand(insn, 1)) : NULL;
}

/* A destructor leaves nothing that can be read by name. */
static bool ends_life(const char *name)
{
    size_t n = strlen(name);

    return n > 6 && strncmp(name, "_ZN", 3) == 0 &&
           (strcmp(name + n - 4, "D1Ev") == 0 || strcmp(name + n - 4, "D2Ev") == 0);
}

/* Takes the definitions in [first, before) that a read after them may see. True if a definition hides all definitions
 * before it. */
static bool take_defs(struct etch_walk *w, uint32_t from, const struct read *read, uint32_t first, uint32_t before)
{
    const etch_defs *defs = read->defs;
    size_t lo = 0, hi = defs->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (defs->v[mid].insn < before)
            lo = mid + 1;
        else
            hi = mid;
    }
    while (lo-- > 0 && defs->v[lo].insn >= first) {
        const struct etch_def *def = &defs->v[lo];
        char written[ETCH_KEY_SIZE] = "";

        if (def->call && ends_life(etch_called_name(w->m->insns.v[def->insn].value)))
            continue;
        if (def->call && strncmp(etch_called_name(w->m->insns.v[def->insn].value), "llvm.", 5) != 0) {
            need_call_effect(w, from, def, read->pointer, read->access);
            continue;
        }
        if (etch_memory_key(w->m, def->pointer, written_type(w->m->insns.v[def->insn].value), written) &&
            !overlaps(written, read->key))
            continue;
        etch_walk_need(w, from, def->insn, ETCH_FOR_VALUE | ETCH_FOR_ARGUMENTS, ETCH__STATEMENT_ROLE__ROLE_DATA);
        if (strcmp(written, read->key) == 0 && !strstr(read->key, "[]"))
            return true;
    }
    return false;
}

static void need_local(struct etch_walk *w, uint32_t from, uint32_t at, LLVMValueRef variable, LLVMValueRef pointer,
                       LLVMTypeRef access)
{
    struct read read = {defs_of(w, variable), pointer, access, ""};
    uint32_t function = etch_insn_function(w->m, at), block = w->m->insns.v[at].block;
    const struct etch_cfg *cfg = etch_cfg_of(w->m, function);
    etch_numbers work = {0};

    if (!read.defs || !cfg || !etch_memory_key(w->m, pointer, access, read.key)) {
        w->short_of_memory |= !read.defs || !cfg;
        return;
    }
    w->stamps++;
    if (take_defs(w, from, &read, w->m->blocks.v[block].first, at))
        return;
    for (uint32_t b = block;;) {
        const etch_numbers *preds = &cfg->preds[b - cfg->first], *unwound = &cfg->unwound[b - cfg->first];

        for (size_t i = 0; i < preds->n + unwound->n; i++) {
            uint32_t pred = (i < preds->n ? preds->v[i] : unwound->v[i - preds->n]) + cfg->first;
            const struct etch_ir_block *p = &w->m->blocks.v[pred];

            if (w->stamp[pred] == w->stamps)
                continue;
            w->stamp[pred] = w->stamps;
            if (!take_defs(w, from, &read, p->first, p->first + p->n))
                w->short_of_memory |= !etch_array_push(&work, pred);
        }
        if (!work.n)
            break;
        b = work.v[--work.n];
    }
    etch_array_free(&work);
}

/* A local variable that is read through a pointer from elsewhere: all its definitions count. */
static void need_variable(struct etch_walk *w, uint32_t from, const char *key)
{
    uint32_t insn;
    const etch_defs *defs;

    if (sscanf(key, "a:%u", &insn) != 1 || insn >= w->m->insns.n)
        return;
    defs = defs_of(w, w->m->insns.v[insn].value);
    for (size_t i = 0; defs && i < defs->n; i++)
        if (defs->v[i].call)
            need_call_effect(w, from, &defs->v[i], w->m->insns.v[insn].value, NULL);
}

/* A pointer kept at `key` points to the targets of the pointers that were stored there. */
static void need_pointees(struct etch_walk *w, uint32_t from, const char *key)
{
    const etch_numbers *writers = etch_memory_writers(w->m, key);

    for (size_t i = 0; writers && i < writers->n; i++) {
        LLVMValueRef v = w->m->insns.v[writers->v[i]].value;
        char pointee[ETCH_KEY_SIZE];

        if (LLVMIsAStoreInst(v) && etch_is_pointer(LLVMGetOperand(v, 0)) &&
            etch_memory_key(w->m, LLVMGetOperand(v, 0), NULL, pointee) && strlen(pointee) < 64)
            need_key(w, from, pointee);
    }
}

/* With --alias: stores of the same type through unknown pointers. */
static void need_aliases(struct etch_walk *w, uint32_t from, LLVMValueRef read)
{
    LLVMTypeRef type = LLVMTypeOf(read);

    for (size_t k = 0; k < w->m->keys.all.n; k++) {
        char kind = w->m->keys.all.v[k][0];
        const etch_numbers *writers = &w->m->writers.v[k];

        if (kind != 'd' && kind != 'p' && kind != 'c')
            continue;
        for (size_t i = 0; i < writers->n; i++) {
            LLVMValueRef v = w->m->insns.v[writers->v[i]].value;

            if (LLVMIsAStoreInst(v) && LLVMGetTypeKind(LLVMTypeOf(LLVMGetOperand(v, 0))) == LLVMGetTypeKind(type) &&
                (LLVMGetTypeKind(type) != LLVMIntegerTypeKind ||
                 LLVMGetIntTypeWidth(LLVMTypeOf(LLVMGetOperand(v, 0))) == LLVMGetIntTypeWidth(type)))
                etch_walk_need(w, from, writers->v[i], ETCH_FOR_VALUE, ETCH__STATEMENT_ROLE__ROLE_MEMORY);
        }
    }
}

void etch_walk_memory(struct etch_walk *w, uint32_t from, uint32_t at, LLVMValueRef pointer, LLVMTypeRef access)
{
    LLVMValueRef variable = etch_memory_local(pointer);
    char key[ETCH_KEY_SIZE];

    if (variable && etch_insn_function(w->m, etch_model_insn(w->m, variable)) == etch_insn_function(w->m, at)) {
        need_local(w, from, at, variable, pointer, access);
        if (etch_memory_escapes(variable) && etch_memory_key(w->m, pointer, access, key))
            need_writers(w, from, key, variable);
    } else if (etch_memory_key(w->m, pointer, access, key)) {
        need_key(w, from, key);
    }
    if (etch_memory_field_key(w->m, pointer, access, key))
        need_key(w, from, key);
    if (!access && etch_memory_text_key(w->m, pointer, key))
        need_key(w, from, key);
    if (etch_memory_owner_key(w->m, pointer, key))
        need_key(w, from, key);
    if (w->options->alias && LLVMIsALoadInst(w->m->insns.v[at].value) && (!variable || etch_memory_escapes(variable)))
        need_aliases(w, from, w->m->insns.v[at].value);
}
