/* SPDX-License-Identifier: MIT */
/* The backward slice over the instructions of the bitcode. The walk goes by levels: dependences within a statement cost
 * nothing, those to another statement one step, so that a statement's distance is the fewest steps from the failure. */
#include "slicer/model/classes.h"
#include "slicer/slice/slicing.h"

#include <stdio.h>
#include <string.h>

/* Why an instruction is visited: for its value, only because it ran, or for all that it was given.
 *
 * ANY_CALLER: it is not known who called its function, so every caller counts. Without it the walk came down from a
 * call, for what that call returned; then only calls that are in the slice count, or each use of a common function
 * would bring in all the program. */
enum { FOR_VALUE = 1, FOR_RUNNING = 2, FOR_ARGUMENTS = 4, ANY_CALLER = 8 };

struct item {
    uint32_t insn;
    uint32_t because; /* statement; ETCH_NONE for the criterion */
    uint8_t mode;
    uint8_t role;
};

struct walk {
    struct etch_slice *slice;
    struct etch_model *m;
    const struct etch_slice_options *options;
    ETCH_ARRAY(struct item) now;
    ETCH_ARRAY(struct item) next;
    uint32_t level;
    uint8_t *seen;       /* modes, of each instruction */
    uint8_t *seen_block; /* its control dependences are in: 1 for calls of the slice, 2 for any caller */
    bool any_caller;     /* of what is visited now */
    bool *seen_function; /* its callers are in */
    struct etch_pointers seen_argument;
    struct etch_strings seen_keys;
    struct etch_strings places; /* "file:line:function" -> statement */
    struct etch_pointers defs_of;
    ETCH_ARRAY(etch_defs) defs;
    uint32_t *stamp; /* of blocks, for searches */
    uint32_t stamps;
    bool short_of_memory;
};

/* ---- Statements ---- */

/* The statement of an instruction: made where `make`, else ETCH_NONE for a new one. ETCH_NONE also for what has no
 * place in the program's own source. */
static uint32_t statement_of(struct walk *w, uint32_t insn, bool make)
{
    const struct etch_insn *i = &w->m->insns.v[insn];
    uint32_t function = etch_insn_function(w->m, insn), number;
    struct etch_statement fresh = {
        .file = i->file, .line = i->line, .column = i->column, .function = function, .distance = w->level};
    char place[600];

    if (!i->own)
        return ETCH_NONE;
    snprintf(place, sizeof(place), "%u:%u:%.500s", i->file, i->line, w->m->functions.v[function].name);
    number = etch_strings_find(&w->places, place);
    if (number != ETCH_NONE || !make)
        return number;
    number = etch_strings_add(&w->places, place);
    if (number == ETCH_NONE || !etch_array_push(&w->slice->statements, fresh)) {
        w->short_of_memory = true;
        return ETCH_NONE;
    }
    return number;
}

static bool same_statement(const struct walk *w, uint32_t insn, uint32_t statement)
{
    const struct etch_insn *i = &w->m->insns.v[insn];
    const struct etch_statement *s = statement == ETCH_NONE ? NULL : &w->slice->statements.v[statement];

    return s && i->file == s->file && i->line == s->line &&
           strcmp(w->m->functions.v[etch_insn_function(w->m, insn)].name, w->m->functions.v[s->function].name) == 0;
}

static void need(struct walk *w, uint32_t from, uint32_t insn, uint8_t mode, Etch__StatementRole role)
{
    const struct etch_insn *i = &w->m->insns.v[insn];
    struct item item = {insn, from, (uint8_t)(mode | (w->any_caller ? ANY_CALLER : 0)), (uint8_t)role};
    bool near = !i->own || same_statement(w, insn, from);

    if ((w->seen[insn] & item.mode) == item.mode && near)
        return;
    if (!(near ? etch_array_push(&w->now, item) : etch_array_push(&w->next, item)))
        w->short_of_memory = true;
}

/* ---- Values ---- */

/* What may have written what an access of this type at instruction `at` sees through `pointer`; NULL: all that is
 * there. */
static void need_memory(struct walk *w, uint32_t from, uint32_t at, LLVMValueRef pointer, LLVMTypeRef access);
static void need_key(struct walk *w, uint32_t from, const char *key);
static void need_variable(struct walk *w, uint32_t from, const char *key);
static void need_pointees(struct walk *w, uint32_t from, const char *key);

static void need_argument(struct walk *w, uint32_t from, LLVMValueRef argument);

static void need_value(struct walk *w, uint32_t from, LLVMValueRef value, Etch__StatementRole role)
{
    uint32_t insn;

    if (LLVMIsAArgument(value)) {
        need_argument(w, from, value);
        return;
    }
    insn = etch_model_insn(w->m, value);
    if (insn != ETCH_NONE && !LLVMIsAAllocaInst(value))
        need(w, from, insn, FOR_VALUE, role);
}

static bool is_pointer(LLVMValueRef value)
{
    return LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMPointerTypeKind;
}

/* What parameter `index` gets from a call that starts a thread. */
static void need_thread_argument(struct walk *w, uint32_t from, uint32_t call, uint32_t index)
{
    LLVMValueRef v = w->m->insns.v[call].value;
    const char *name = etch_called_name(v);
    bool cxx = strncmp(name, "_ZNSt6thread", 12) == 0;
    unsigned operand = strcmp(name, "pthread_create") == 0 ? 3 : strcmp(name, "thrd_create") == 0 ? 2 : index + 2;

    if (cxx && !LLVMIsAFunction(LLVMGetOperand(v, 1)))
        operand = index + 1; /* a lambda: `this` is the object itself */
    if ((!cxx && index != 0) || operand >= LLVMGetNumArgOperands(v))
        return;
    need(w, from, call, FOR_RUNNING, ETCH__STATEMENT_ROLE__ROLE_THREAD);
    need_value(w, from, LLVMGetOperand(v, operand), ETCH__STATEMENT_ROLE__ROLE_THREAD);
    if (cxx) /* arguments come by reference */
        need_memory(w, from, call, LLVMGetOperand(v, operand), NULL);
}

static void need_callback_arguments(struct walk *w, uint32_t from, uint32_t call)
{
    LLVMValueRef v = w->m->insns.v[call].value;

    need(w, from, call, FOR_RUNNING, ETCH__STATEMENT_ROLE__ROLE_ARGUMENT);
    for (unsigned i = 0; i < LLVMGetNumArgOperands(v); i++) {
        LLVMValueRef operand = LLVMGetOperand(v, i);

        if (!is_pointer(operand) || LLVMIsAFunction(operand))
            continue;
        need_value(w, from, operand, ETCH__STATEMENT_ROLE__ROLE_ARGUMENT);
        need_memory(w, from, call, operand, NULL);
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

/* What one call passes. Its own context counts, not that of the function it calls. */
static void need_passed(struct walk *w, uint32_t from, uint32_t call, uint32_t index)
{
    LLVMValueRef v = w->m->insns.v[call].value;
    bool before = w->any_caller;

    if (index >= LLVMGetNumArgOperands(v))
        return;
    w->any_caller = before || (w->seen[call] & ANY_CALLER);
    need(w, from, call, FOR_RUNNING, ETCH__STATEMENT_ROLE__ROLE_ARGUMENT);
    need_value(w, from, LLVMGetOperand(v, index), ETCH__STATEMENT_ROLE__ROLE_ARGUMENT);
    w->any_caller = before;
}

static void need_argument(struct walk *w, uint32_t from, LLVMValueRef argument)
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
            need_callback_arguments(w, from, call);
        else if (f->callers.v[i].edge == ETCH_EDGE_MADE)
            need(w, from, call, FOR_RUNNING, ETCH__STATEMENT_ROLE__ROLE_THREAD);
        else if (f->callers.v[i].edge == ETCH_EDGE_CALL && (w->any_caller || (w->seen[call] & FOR_VALUE)))
            need_passed(w, from, call, index);
    }
}

/* A call that comes into the slice after its function's parameters did. */
static void need_reached_arguments(struct walk *w, uint32_t from, uint32_t call, uint32_t function)
{
    LLVMValueRef f = w->m->functions.v[function].value;

    for (unsigned i = 0; i < LLVMCountParams(f); i++)
        if (etch_pointers_get(&w->seen_argument, LLVMGetParam(f, i)) != ETCH_NONE)
            need_passed(w, from, call, i);
}

/* ---- Memory ---- */

static void need_writers(struct walk *w, uint32_t from, const char *key, LLVMValueRef but_local)
{
    const etch_numbers *writers = etch_memory_writers(w->m, key);
    bool before = w->any_caller;

    for (size_t i = 0; writers && i < writers->n; i++) {
        LLVMValueRef v = w->m->insns.v[writers->v[i]].value;

        if (but_local && LLVMIsAStoreInst(v) && etch_memory_local(LLVMGetOperand(v, 1)) == but_local)
            continue;
        w->any_caller = before || from == ETCH_NONE ||
                        etch_insn_function(w->m, writers->v[i]) != w->slice->statements.v[from].function;
        need(w, from, writers->v[i], FOR_VALUE | FOR_ARGUMENTS, ETCH__STATEMENT_ROLE__ROLE_MEMORY);
    }
    w->any_caller = before;
}

/* What a parameter points to is what the callers' arguments point to. */
static void need_pointees_of_callers(struct walk *w, uint32_t from, const char *key)
{
    uint32_t function, index;

    if (sscanf(key, "p:%u.%u", &function, &index) != 2 || function >= w->m->functions.n)
        return;
    for (size_t i = 0; i < w->m->functions.v[function].callers.n; i++) {
        const struct etch_caller *c = &w->m->functions.v[function].callers.v[i];
        LLVMValueRef v = w->m->insns.v[c->insn].value;

        if (c->edge == ETCH_EDGE_CALL && index < LLVMGetNumArgOperands(v))
            need_memory(w, from, c->insn, LLVMGetOperand(v, index), NULL);
        else if (c->edge == ETCH_EDGE_THREAD && index == 0 && strcmp(etch_called_name(v), "pthread_create") == 0)
            need_memory(w, from, c->insn, LLVMGetOperand(v, 3), NULL);
        else if (c->edge == ETCH_EDGE_THREAD && index == 0 && strcmp(etch_called_name(v), "thrd_create") == 0)
            need_memory(w, from, c->insn, LLVMGetOperand(v, 2), NULL);
        else if (c->edge == ETCH_EDGE_CALLBACK)
            need_callback_arguments(w, from, c->insn);
    }
}

/* The wholes that a location is part of: g:x.1[] -> g:x.1, g:x; f:T.2[] -> f:T.2, t:T. */
static void need_wholes(struct walk *w, uint32_t from, const char *key)
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

static void need_key(struct walk *w, uint32_t from, const char *key)
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

static const etch_defs *defs_of(struct walk *w, LLVMValueRef variable)
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

/* Is one location part of the other, by their keys? */
static bool overlaps(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return (!*a && (!*b || *b == '.' || *b == '[')) || (!*b && (*a == '.' || *a == '['));
}

/* A call that got the variable's address: what it may have done there. */
static void need_call_effect(struct walk *w, uint32_t from, const struct etch_def *def, LLVMValueRef pointer,
                             LLVMTypeRef access)
{
    const struct etch_insn *insn = &w->m->insns.v[def->insn];
    char key[ETCH_KEY_SIZE];

    for (unsigned i = 0; i < LLVMGetNumArgOperands(insn->value); i++) {
        if (LLVMGetOperand(insn->value, i) != def->pointer)
            continue;
        if (insn->callee == ETCH_NONE && !etch_call_only_reads(etch_called_name(insn->value), i)) {
            need(w, from, def->insn, FOR_VALUE | FOR_ARGUMENTS, ETCH__STATEMENT_ROLE__ROLE_MEMORY);
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

/* Takes the definitions in [first, before) that may be seen by a read behind them. True where one leaves nothing to see
 * before it. */
static bool take_defs(struct walk *w, uint32_t from, const struct read *read, uint32_t first, uint32_t before)
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
        need(w, from, def->insn, FOR_VALUE | FOR_ARGUMENTS, ETCH__STATEMENT_ROLE__ROLE_DATA);
        if (strcmp(written, read->key) == 0 && !strstr(read->key, "[]"))
            return true;
    }
    return false;
}

static void need_local(struct walk *w, uint32_t from, uint32_t at, LLVMValueRef variable, LLVMValueRef pointer,
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

/* A local variable seen through a pointer from elsewhere: whatever may ever change it. */
static void need_variable(struct walk *w, uint32_t from, const char *key)
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

/* What a pointer kept at `key` points to is what the pointers that were stored there point to. */
static void need_pointees(struct walk *w, uint32_t from, const char *key)
{
    const etch_numbers *writers = etch_memory_writers(w->m, key);

    for (size_t i = 0; writers && i < writers->n; i++) {
        LLVMValueRef v = w->m->insns.v[writers->v[i]].value;
        char pointee[ETCH_KEY_SIZE];

        if (LLVMIsAStoreInst(v) && is_pointer(LLVMGetOperand(v, 0)) &&
            etch_memory_key(w->m, LLVMGetOperand(v, 0), NULL, pointee) && strlen(pointee) < 64)
            need_key(w, from, pointee);
    }
}

/* With --alias: stores of the same type through pointers of which nothing is known. */
static void need_aliases(struct walk *w, uint32_t from, LLVMValueRef read)
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
                need(w, from, writers->v[i], FOR_VALUE, ETCH__STATEMENT_ROLE__ROLE_MEMORY);
        }
    }
}

static void need_memory(struct walk *w, uint32_t from, uint32_t at, LLVMValueRef pointer, LLVMTypeRef access)
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
    if (etch_memory_owner_key(w->m, pointer, key))
        need_key(w, from, key);
    if (w->options->alias && LLVMIsALoadInst(w->m->insns.v[at].value) && (!variable || etch_memory_escapes(variable)))
        need_aliases(w, from, w->m->insns.v[at].value);
}

/* ---- Calls ---- */

static void need_returns(struct walk *w, uint32_t from, uint32_t function, Etch__StatementRole role)
{
    const struct etch_function *f = &w->m->functions.v[function];
    bool before = w->any_caller;

    w->any_caller = role == ETCH__STATEMENT_ROLE__ROLE_THREAD;
    for (uint32_t i = f->first_block; i < f->first_block + f->n_blocks; i++) {
        uint32_t last = w->m->blocks.v[i].first + w->m->blocks.v[i].n - 1;

        if (LLVMGetInstructionOpcode(w->m->insns.v[last].value) == LLVMRet &&
            LLVMGetNumOperands(w->m->insns.v[last].value))
            need(w, from, last, FOR_VALUE, role);
    }
    w->any_caller = before;
}

/* The threads that a join may wait for: those whose handle is kept where the join reads it, else all. */
static void need_joined(struct walk *w, uint32_t from, LLVMValueRef join)
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
                need(w, from, f->callers.v[k].insn, FOR_RUNNING, ETCH__STATEMENT_ROLE__ROLE_THREAD);
            }
        }
    }
}

static bool reads_nothing(const char *name)
{
    return strcmp(name, "free") == 0 || strncmp(name, "_ZdlPv", 6) == 0 || strncmp(name, "_ZdaPv", 6) == 0 ||
           strncmp(name, "llvm.memset", 11) == 0 || strncmp(name, "llvm.lifetime", 13) == 0;
}

static void need_outside_call(struct walk *w, uint32_t from, uint32_t insn)
{
    LLVMValueRef v = w->m->insns.v[insn].value;
    const char *name = etch_called_name(v);

    for (unsigned i = 0; i < LLVMGetNumArgOperands(v); i++) {
        LLVMValueRef operand = LLVMGetOperand(v, i);

        need_value(w, from, operand, ETCH__STATEMENT_ROLE__ROLE_DATA);
        if (is_pointer(operand) && !LLVMIsAFunction(operand) && !LLVMIsAConstantPointerNull(operand) &&
            !reads_nothing(name))
            need_memory(w, from, insn, operand, NULL);
    }
    if (strcmp(name, "pthread_join") == 0 || strcmp(name, "thrd_join") == 0)
        need_joined(w, from, v);
}

static void need_call(struct walk *w, uint32_t from, uint32_t insn, uint8_t mode)
{
    const struct etch_insn *i = &w->m->insns.v[insn];
    const struct etch_target *targets;
    size_t n;

    if (i->callee == ETCH_NONE && etch_called(i->value)) {
        need_outside_call(w, from, insn);
        return;
    }
    if (mode & FOR_ARGUMENTS)
        for (unsigned k = 0; k < LLVMGetNumArgOperands(i->value); k++)
            need_value(w, from, LLVMGetOperand(i->value, k), ETCH__STATEMENT_ROLE__ROLE_DATA);
    if (i->callee != ETCH_NONE) {
        need_returns(w, from, i->callee, ETCH__STATEMENT_ROLE__ROLE_RETURN);
        need_reached_arguments(w, from, insn, i->callee);
        return;
    }
    need_value(w, from, LLVMGetCalledValue(i->value), ETCH__STATEMENT_ROLE__ROLE_DATA);
    targets = etch_model_targets(w->m, insn, &n);
    for (size_t k = 0; k < n; k++) {
        need_returns(w, from, targets[k].function, ETCH__STATEMENT_ROLE__ROLE_RETURN);
        need_reached_arguments(w, from, insn, targets[k].function);
    }
}

/* ---- Control ---- */

static void need_callers(struct walk *w, uint32_t from, uint32_t function)
{
    const struct etch_function *f = &w->m->functions.v[function];
    bool called = false;

    if (w->seen_function[function])
        return;
    w->seen_function[function] = true;
    for (size_t i = 0; i < f->callers.n; i++)
        called = called || f->callers.v[i].edge != ETCH_EDGE_TAKEN;
    for (size_t i = 0; i < f->callers.n; i++) {
        if (f->callers.v[i].edge == ETCH_EDGE_TAKEN && called)
            continue;
        need(w, from, f->callers.v[i].insn, FOR_RUNNING,
             f->callers.v[i].edge == ETCH_EDGE_THREAD ? ETCH__STATEMENT_ROLE__ROLE_THREAD
                                                      : ETCH__STATEMENT_ROLE__ROLE_CONTROL);
    }
}

/* A landing pad runs when one of the calls that lead there throws: because of the throw, and because of the call. */
static void need_thrown(struct walk *w, uint32_t from, const struct etch_cfg *cfg, uint32_t landing)
{
    const struct etch_ir_block *b = &w->m->blocks.v[landing + cfg->first];
    LLVMValueRef pad = NULL;

    for (uint32_t i = b->first; i < b->first + b->n && !pad; i++)
        pad = LLVMIsALandingPadInst(w->m->insns.v[i].value);
    for (size_t i = 0; pad && i < cfg->unwound[landing].n; i++) {
        const struct etch_ir_block *by = &w->m->blocks.v[cfg->unwound[landing].v[i] + cfg->first];
        uint32_t call = by->first + by->n - 1;
        etch_numbers throws = {0};

        w->short_of_memory |= !etch_throws_find(w->m, call, pad, &throws);
        for (size_t k = 0; k < throws.n; k++)
            need(w, from, throws.v[k], FOR_RUNNING, ETCH__STATEMENT_ROLE__ROLE_CONTROL);
        if (throws.n)
            need(w, from, call, FOR_RUNNING, ETCH__STATEMENT_ROLE__ROLE_CONTROL);
        etch_array_free(&throws);
    }
}

/* The landing pads by which alone a block is reached: it is one, or lies behind one. */
static void need_landings(struct walk *w, uint32_t from, const struct etch_cfg *cfg, uint32_t block)
{
    etch_numbers work = {0};

    if (block == 0 || cfg->dominator[block] != block)
        return; /* it is reached without */
    w->stamps++;
    w->stamp[block + cfg->first] = w->stamps;
    w->short_of_memory |= !etch_array_push(&work, block);
    while (work.n) {
        uint32_t at = work.v[--work.n];

        need_thrown(w, from, cfg, at);
        for (size_t i = 0; i < cfg->preds[at].n; i++) {
            uint32_t pred = cfg->preds[at].v[i];

            if (w->stamp[pred + cfg->first] == w->stamps)
                continue;
            w->stamp[pred + cfg->first] = w->stamps;
            w->short_of_memory |= !etch_array_push(&work, pred);
        }
    }
    etch_array_free(&work);
}

static void need_control(struct walk *w, uint32_t from, uint32_t insn)
{
    uint32_t block = w->m->insns.v[insn].block, function = w->m->blocks.v[block].function;
    const struct etch_cfg *cfg;

    if (w->seen_block[block] >= 1 + w->any_caller)
        return;
    w->seen_block[block] = (uint8_t)(1 + w->any_caller);
    cfg = etch_cfg_of(w->m, function);
    if (!cfg) {
        w->short_of_memory = true;
        return;
    }
    for (size_t i = 0; i < cfg->controlled[block - cfg->first].n; i++) {
        const struct etch_ir_block *by = &w->m->blocks.v[cfg->controlled[block - cfg->first].v[i] + cfg->first];

        need(w, from, by->first + by->n - 1, FOR_VALUE, ETCH__STATEMENT_ROLE__ROLE_CONTROL);
    }
    need_landings(w, from, cfg, block - cfg->first);
    if (w->any_caller)
        need_callers(w, from, function);
}

/* ---- The walk ---- */

static void need_phi(struct walk *w, uint32_t from, LLVMValueRef phi)
{
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        LLVMValueRef last = LLVMGetBasicBlockTerminator(LLVMGetIncomingBlock(phi, i));

        need_value(w, from, LLVMGetIncomingValue(phi, i), ETCH__STATEMENT_ROLE__ROLE_DATA);
        need_value(w, from, last, ETCH__STATEMENT_ROLE__ROLE_CONTROL);
    }
}

static void expand(struct walk *w, uint32_t from, uint32_t insn, uint8_t mode)
{
    LLVMValueRef v = w->m->insns.v[insn].value;

    switch (LLVMGetInstructionOpcode(v)) {
    case LLVMLoad:
        need_value(w, from, LLVMGetOperand(v, 0), ETCH__STATEMENT_ROLE__ROLE_DATA);
        need_memory(w, from, insn, LLVMGetOperand(v, 0), LLVMTypeOf(v));
        return;
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg:
        for (int i = 0; i < LLVMGetNumOperands(v); i++)
            need_value(w, from, LLVMGetOperand(v, (unsigned)i), ETCH__STATEMENT_ROLE__ROLE_DATA);
        need_memory(w, from, insn, LLVMGetOperand(v, 0), LLVMTypeOf(LLVMGetOperand(v, 1)));
        return;
    case LLVMCall:
    case LLVMInvoke:
        need_call(w, from, insn, mode);
        return;
    case LLVMPHI:
        need_phi(w, from, v);
        return;
    case LLVMAlloca:
        return;
    default:
        for (int i = 0; i < LLVMGetNumOperands(v); i++)
            if (!LLVMValueIsBasicBlock(LLVMGetOperand(v, (unsigned)i)))
                need_value(w, from, LLVMGetOperand(v, (unsigned)i), ETCH__STATEMENT_ROLE__ROLE_DATA);
    }
}

static void add_because(struct walk *w, struct etch_statement *s, uint32_t because)
{
    for (size_t i = 0; i < s->because.n; i++)
        if (s->because.v[i] == because)
            return;
    w->short_of_memory |= !etch_array_push(&s->because, because);
}

static void mark(struct walk *w, struct etch_statement *s, uint32_t insn)
{
    const struct etch_insn *i = &w->m->insns.v[insn];
    LLVMOpcode op = LLVMGetInstructionOpcode(i->value);

    w->short_of_memory |= !etch_array_push(&s->insns, insn);
    if (i->column && (i->column < s->column || !s->column))
        s->column = i->column;
    s->branch = s->branch || (op == LLVMBr && LLVMIsConditional(i->value)) || op == LLVMSwitch;
    s->call = s->call || (etch_is_call(i->value) && strncmp(etch_called_name(i->value), "llvm.", 5) != 0);
}

static void visit(struct walk *w, const struct item *item)
{
    uint32_t statement = statement_of(w, item->insn, true), from = statement == ETCH_NONE ? item->because : statement;
    uint8_t fresh = item->mode & (uint8_t)~w->seen[item->insn];

    if (statement != ETCH_NONE) {
        struct etch_statement *s = &w->slice->statements.v[statement];

        if (item->because != ETCH_NONE && item->because != statement) {
            if (w->slice->statements.v[item->because].distance < s->distance)
                add_because(w, s, item->because);
            s->roles |= 1u << item->role;
        } else if (item->because == ETCH_NONE) {
            s->roles |= 1u << item->role;
        }
        if (!w->seen[item->insn])
            mark(w, s, item->insn);
    }
    if (!fresh)
        return;
    w->seen[item->insn] |= item->mode;
    w->any_caller = item->mode & ANY_CALLER;
    need_control(w, from, item->insn);
    if (item->mode & (FOR_VALUE | FOR_ARGUMENTS))
        expand(w, from, item->insn, item->mode);
}

static bool run_walk(struct walk *w, const struct etch_criterion *criterion)
{
    w->seen = calloc(w->m->insns.n + 1, 1);
    w->seen_block = calloc(w->m->blocks.n + 1, 1);
    w->seen_function = calloc(w->m->functions.n + 1, sizeof(bool));
    w->stamp = calloc(w->m->blocks.n + 1, sizeof(uint32_t));
    if (!w->seen || !w->seen_block || !w->seen_function || !w->stamp)
        return false;
    for (size_t i = 0; i < criterion->insns.n; i++) {
        struct item item = {criterion->insns.v[i], ETCH_NONE, FOR_VALUE | FOR_ARGUMENTS | ANY_CALLER,
                            ETCH__STATEMENT_ROLE__ROLE_FAILURE};

        if (!etch_array_push(&w->now, item))
            return false;
    }
    while (w->now.n && !w->short_of_memory) {
        while (w->now.n && !w->short_of_memory) {
            struct item item = w->now.v[--w->now.n];

            visit(w, &item);
        }
        w->level++;
        for (size_t i = w->next.n; i-- > 0;)
            if (!etch_array_push(&w->now, w->next.v[i]))
                return false;
        w->next.n = 0;
    }
    return !w->short_of_memory;
}

static void release_walk(struct walk *w)
{
    etch_array_free(&w->now);
    etch_array_free(&w->next);
    free(w->seen);
    free(w->seen_block);
    free(w->seen_function);
    free(w->stamp);
    etch_pointers_release(&w->seen_argument);
    etch_pointers_release(&w->defs_of);
    etch_strings_release(&w->seen_keys);
    etch_strings_release(&w->places);
    for (size_t i = 0; i < w->defs.n; i++)
        etch_array_free(&w->defs.v[i]);
    etch_array_free(&w->defs);
}

/* ---- Order ---- */

static int nearer(const void *a, const void *b, void *context)
{
    const struct etch_slice *slice = context;
    const struct etch_statement *x = &slice->statements.v[*(const uint32_t *)a];
    const struct etch_statement *y = &slice->statements.v[*(const uint32_t *)b];
    uint32_t home = slice->statements.v[slice->failure].function;
    bool x_home = x->function == home, y_home = y->function == home;

    if (x->distance != y->distance)
        return x->distance < y->distance ? -1 : 1;
    if (x_home != y_home)
        return x_home ? -1 : 1;
    if (x->function != y->function)
        return x->function < y->function ? -1 : 1;
    return x->line > y->line ? -1 : x->line < y->line;
}

static bool sort_statements(struct etch_slice *slice)
{
    slice->order = malloc((slice->statements.n + 1) * sizeof(*slice->order));
    if (!slice->order || !slice->statements.n)
        return slice->order != NULL;
    for (size_t i = 0; i < slice->statements.n; i++)
        slice->order[i] = (uint32_t)i;
    qsort_r(slice->order, slice->statements.n, sizeof(*slice->order), nearer, slice);
    slice->rank = malloc((slice->statements.n + 1) * sizeof(*slice->rank));
    for (size_t i = 0; slice->rank && i < slice->statements.n; i++)
        slice->rank[slice->order[i]] = (uint32_t)i;
    return slice->rank != NULL;
}

int etch_slice_make(struct etch_slice **slice, struct etch_model *model, const struct etch_criterion *criterion,
                    const struct etch_slice_options *options, struct etch_error *err)
{
    struct etch_slice *s = calloc(1, sizeof(*s));
    struct walk w = {.slice = s, .m = model, .options = options};
    bool ok;

    if (!s)
        return etch_error_set(err, "out of memory");
    s->model = model;
    s->ends_without_value = criterion->ends_without_value;
    ok = run_walk(&w, criterion) && sort_statements(s);
    release_walk(&w);
    if (!ok) {
        etch_slice_free(s);
        return etch_error_set(err, "out of memory");
    }
    *slice = s;
    return 0;
}

void etch_slice_free(struct etch_slice *slice)
{
    if (!slice)
        return;
    for (size_t i = 0; i < slice->statements.n; i++) {
        etch_array_free(&slice->statements.v[i].insns);
        etch_array_free(&slice->statements.v[i].because);
    }
    etch_array_free(&slice->statements);
    free(slice->order);
    free(slice->rank);
    free(slice);
}
