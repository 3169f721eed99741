/* SPDX-License-Identifier: MIT */
/* The origin of an exit status, or of wrong output. The value that main returned or that exit() got is followed back
 * through return slots, variables, calls and parameters to the statements that made it. Constants tell these statements
 * apart: a statement counts only if its value can be that status. A run that ends with status 0 and yet fails has
 * written what is wrong: its origins are the statements that write. */
#include "slicer/slice/exits.h"

#include "base/log.h"
#include "slicer/slice/slicing.h"

#include <string.h>

#define DEPTH_MAX 32

struct search {
    struct etch_model *m;
    uint8_t status;
    struct etch_pointers seen;
    struct etch_exits *exits;
    bool short_of_memory;
};

/* Returns whether anything there can be the status. `at`: the last instruction of the program's own source on the way.
 */
static bool follow(struct search *s, LLVMValueRef value, uint32_t at, int depth);

static uint32_t own(const struct search *s, uint32_t insn, uint32_t before)
{
    return insn != ETCH_NONE && s->m->insns.v[insn].own ? insn : before;
}

static bool add(struct search *s, uint32_t insn, bool origin)
{
    if (insn == ETCH_NONE || !s->m->insns.v[insn].own)
        return false;
    for (size_t i = 0; i < s->exits->n; i++) {
        if (s->exits->v[i].insn == insn) {
            s->exits->v[i].origin |= origin;
            return true;
        }
    }
    s->short_of_memory |= !etch_array_push(s->exits, ((struct etch_exit){insn, origin}));
    return true;
}

/* ---- Values ---- */

static bool follow_store(struct search *s, uint32_t insn, uint32_t at, int depth)
{
    LLVMValueRef v = s->m->insns.v[insn].value;

    if (!LLVMIsAStoreInst(v))
        return add(s, own(s, insn, at), true); /* a call that got its address, an atomic operation */
    return follow(s, LLVMGetOperand(v, 0), own(s, insn, at), depth + 1);
}

/* The definitions of a local variable in [first, end), from the last. True if a definition hides all definitions before
 * it. */
static bool take_defs(struct search *s, const etch_defs *defs, uint32_t first, uint32_t end, uint32_t at, int depth,
                      bool *found)
{
    for (size_t i = defs->n; i-- > 0;) {
        const struct etch_def *def = &defs->v[i];

        if (def->insn < first || def->insn >= end)
            continue;
        *found |= follow_store(s, def->insn, at, depth);
        if (def->whole && LLVMIsAStoreInst(s->m->insns.v[def->insn].value))
            return true;
    }
    return false;
}

/* The definitions that reach a load of a local variable, along the control flow. */
static bool follow_local(struct search *s, LLVMValueRef variable, uint32_t load, uint32_t at, int depth)
{
    const struct etch_ir_block *home = &s->m->blocks.v[s->m->insns.v[load].block];
    const struct etch_cfg *cfg = etch_cfg_of(s->m, home->function);
    bool *seen = cfg ? calloc(cfg->n + 1, sizeof(*seen)) : NULL, found = false;
    etch_numbers work = {0};
    etch_defs defs = {0};

    if (!seen || !etch_memory_defs(s->m, variable, &defs)) {
        s->short_of_memory = true;
    } else if (!take_defs(s, &defs, home->first, load, at, depth, &found)) {
        s->short_of_memory |= !etch_array_push(&work, s->m->insns.v[load].block - cfg->first);
        while (work.n) {
            uint32_t block = work.v[--work.n];

            for (size_t i = 0; i < cfg->preds[block].n + cfg->unwound[block].n; i++) {
                uint32_t pred =
                    i < cfg->preds[block].n ? cfg->preds[block].v[i] : cfg->unwound[block].v[i - cfg->preds[block].n];
                const struct etch_ir_block *p = &s->m->blocks.v[pred + cfg->first];

                if (seen[pred])
                    continue;
                seen[pred] = true;
                if (!take_defs(s, &defs, p->first, p->first + p->n, at, depth, &found))
                    s->short_of_memory |= !etch_array_push(&work, pred);
            }
        }
    }
    etch_array_free(&work);
    etch_array_free(&defs);
    free(seen);
    return found;
}

/* The values that stores gave to a global variable, and its initial value. The statement itself is the origin if no
 * store fits and anything else may have changed the variable. */
static bool follow_global(struct search *s, LLVMValueRef global, const etch_numbers *writers, uint32_t at, int depth)
{
    LLVMValueRef first = LLVMIsAGlobalVariable(global) ? LLVMGetInitializer(global) : NULL;
    bool found = false,
         all = first != NULL && !etch_memory_escapes(global) && LLVMGetLinkage(global) != LLVMCommonLinkage;

    for (size_t i = 0; writers && i < writers->n; i++) {
        all &= LLVMIsAStoreInst(s->m->insns.v[writers->v[i]].value) != NULL;
        found |= follow_store(s, writers->v[i], at, depth);
    }
    if (first && LLVMIsAConstantInt(first) && (uint8_t)LLVMConstIntGetZExtValue(first) == s->status)
        all = found = false; /* the status may be the initial value */
    return (found || !all) && add(s, at, !found);
}

static bool follow_load(struct search *s, LLVMValueRef load, uint32_t at, int depth)
{
    LLVMValueRef pointer = LLVMGetOperand(load, 0), variable = etch_memory_local(pointer);
    uint32_t insn = etch_model_insn(s->m, load);
    char key[ETCH_KEY_SIZE];
    bool found;

    if (variable && insn != ETCH_NONE) {
        found = follow_local(s, variable, insn, at, depth);
        if (found)
            add(s, at, false);
        return found;
    }
    /* A pointer that may point anywhere is not followed: the statement that reads through it is the answer. */
    if (!etch_memory_key(s->m, pointer, LLVMTypeOf(load), key) || (key[0] != 'g' && key[0] != 'f'))
        return add(s, at, true);
    return follow_global(s, pointer, etch_memory_writers(s->m, key), at, depth);
}

static bool follow_returns(struct search *s, uint32_t function, uint32_t at, int depth)
{
    const struct etch_function *f = &s->m->functions.v[function];
    bool found = false;

    for (uint32_t i = f->first_block; i < f->first_block + f->n_blocks; i++) {
        uint32_t last = s->m->blocks.v[i].first + s->m->blocks.v[i].n - 1;
        LLVMValueRef v = s->m->insns.v[last].value;

        if (LLVMIsAReturnInst(v) && LLVMGetNumOperands(v))
            found |= follow(s, LLVMGetOperand(v, 0), own(s, last, at), depth + 1);
    }
    return found;
}

static bool follow_call(struct search *s, LLVMValueRef call, uint32_t at, int depth)
{
    uint32_t insn = etch_model_insn(s->m, call);
    const struct etch_target *targets;
    bool found = false, inside = false;
    size_t n;

    if (insn == ETCH_NONE)
        return false;
    if (s->m->insns.v[insn].callee != ETCH_NONE) {
        found = follow_returns(s, s->m->insns.v[insn].callee, at, depth);
        inside = true;
    } else if (!etch_called(call)) {
        targets = etch_model_targets(s->m, insn, &n);
        for (size_t i = 0; i < n; i++)
            found |= follow_returns(s, targets[i].function, at, depth);
        inside = n > 0;
    }
    return inside ? found && add(s, at, false) : add(s, at, true);
}

static bool follow_argument(struct search *s, LLVMValueRef argument, uint32_t at, int depth)
{
    LLVMValueRef value = LLVMGetParamParent(argument);
    uint32_t function = etch_pointers_get(&s->m->function_of, value);
    unsigned index = 0;
    bool found = false, called = false;

    while (LLVMGetParam(value, index) != argument)
        index++;
    for (size_t i = 0; function != ETCH_NONE && i < s->m->functions.v[function].callers.n; i++) {
        const struct etch_caller *c = &s->m->functions.v[function].callers.v[i];
        LLVMValueRef call = s->m->insns.v[c->insn].value;

        if (c->edge != ETCH_EDGE_CALL || index >= LLVMGetNumArgOperands(call))
            continue;
        called = true;
        found |= follow(s, LLVMGetOperand(call, index), own(s, c->insn, at), depth + 1);
    }
    if (!called)
        return add(s, at, true);
    return found && add(s, at, false);
}

static bool follow_phi(struct search *s, LLVMValueRef phi, uint32_t at, int depth)
{
    bool found = false;

    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        LLVMValueRef last = LLVMGetBasicBlockTerminator(LLVMGetIncomingBlock(phi, i));
        uint32_t insn = last ? etch_model_insn(s->m, last) : ETCH_NONE;

        found |= follow(s, LLVMGetIncomingValue(phi, i), own(s, insn, at), depth + 1);
    }
    return found;
}

static bool follow_select(struct search *s, LLVMValueRef v, uint32_t at, int depth)
{
    bool found = follow(s, LLVMGetOperand(v, 1), at, depth + 1);

    return follow(s, LLVMGetOperand(v, 2), at, depth + 1) || found;
}

static bool follow_insn(struct search *s, LLVMValueRef v, uint32_t at, int depth)
{
    switch (LLVMGetInstructionOpcode(v)) {
    case LLVMZExt:
    case LLVMSExt:
    case LLVMTrunc:
    case LLVMFreeze:
        return follow(s, LLVMGetOperand(v, 0), at, depth + 1);
    case LLVMLoad:
        return follow_load(s, v, at, depth);
    case LLVMCall:
    case LLVMInvoke:
        return follow_call(s, v, at, depth);
    case LLVMPHI:
        return follow_phi(s, v, at, depth);
    case LLVMSelect:
        return follow_select(s, v, at, depth);
    default:
        return add(s, at, true);
    }
}

static bool follow(struct search *s, LLVMValueRef value, uint32_t at, int depth)
{
    uint32_t insn = etch_model_insn(s->m, value), seen;

    if (LLVMIsAConstantInt(value))
        return (uint8_t)LLVMConstIntGetZExtValue(value) == s->status && add(s, at, true);
    if (LLVMIsUndef(value))
        return false;
    at = own(s, insn, at);
    seen = etch_pointers_get(&s->seen, value);
    if (seen != ETCH_NONE)
        return seen != 0;
    if (depth > DEPTH_MAX) {
        etch_log(ETCH_LOG_SLICE, ETCH_LOG_INFO, "the exit status is followed %d steps back: the search ends there",
                 DEPTH_MAX);
        return add(s, at, true);
    }
    /* A value that depends on itself adds nothing by that. */
    s->short_of_memory |= !etch_pointers_set(&s->seen, value, 0);
    seen = LLVMIsAArgument(value) ? follow_argument(s, value, at, depth)
           : insn != ETCH_NONE    ? follow_insn(s, value, at, depth)
                                  : add(s, at, true);
    s->short_of_memory |= !etch_pointers_set(&s->seen, value, seen);
    return seen;
}

/* ---- Where the program ends ---- */

/* True if a call of this outside function ends the program with its first argument as the status. */
static bool is_exit(const char *name)
{
    static const char *const all[] = {"exit", "_exit", "_Exit", "quick_exit",    "err", "errx",
                                      "verr", "verrx", "error", "error_at_line", NULL};

    for (const char *const *p = all; *p; p++)
        if (strcmp(name, *p) == 0)
            return true;
    return false;
}

static bool is_output(const char *name)
{
    static const char *const all[] = {
#define OUTPUT(symbol) symbol,
#include "slicer/model/output_calls.def"
#undef OUTPUT
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        size_t n = strlen(all[i]);

        if (all[i][n - 1] == '*' ? strncmp(name, all[i], n - 1) == 0 : strcmp(name, all[i]) == 0)
            return true;
    }
    return false;
}

static void find_outputs(struct search *s)
{
    for (uint32_t i = 0; i < s->m->insns.n; i++) {
        LLVMValueRef v = s->m->insns.v[i].value;

        if (etch_is_call(v) && s->m->insns.v[i].callee == ETCH_NONE && is_output(etch_called_name(v)))
            add(s, i, true);
    }
}

static int compare_exits(const void *a, const void *b)
{
    const struct etch_exit *x = a, *y = b;

    return x->insn < y->insn ? -1 : x->insn > y->insn;
}

bool etch_exits_find(struct etch_model *m, int status, struct etch_exits *exits)
{
    struct search s = {.m = m, .status = (uint8_t)status, .exits = exits};

    if (!status)
        find_outputs(&s);
    if (exits->n)
        return !s.short_of_memory;
    for (uint32_t i = 0; i < m->functions.n; i++)
        if (strcmp(m->functions.v[i].symbol, "main") == 0)
            follow_returns(&s, i, ETCH_NONE, 0);
    for (uint32_t i = 0; i < m->insns.n; i++) {
        LLVMValueRef v = m->insns.v[i].value;

        if (etch_is_call(v) && m->insns.v[i].callee == ETCH_NONE && LLVMGetNumArgOperands(v) &&
            is_exit(etch_called_name(v)))
            follow(&s, LLVMGetOperand(v, 0), own(&s, i, ETCH_NONE), 0);
    }
    etch_pointers_release(&s.seen);
    if (exits->n)
        qsort(exits->v, exits->n, sizeof(*exits->v), compare_exits);
    return !s.short_of_memory;
}

/* ---- As a message: all pieces from malloc, so that protobuf-c frees them ---- */
/* NOLINTBEGIN(clang-analyzer-unix.Malloc): the analyzer does not see that free_unpacked() frees */

/* True if the program ends on this line; false if a value is only made there. */
static bool ends_program(const struct etch_model *m, uint32_t insn)
{
    const struct etch_ir_block *b = &m->blocks.v[m->insns.v[insn].block];

    for (uint32_t i = b->first; i < b->first + b->n; i++)
        if (m->insns.v[i].line == m->insns.v[insn].line && etch_is_call(m->insns.v[i].value) &&
            is_exit(etch_called_name(m->insns.v[i].value)))
            return true;
    return false;
}

static bool add_statement(struct etch_slice *slice, const struct etch_exit *e)
{
    const struct etch_insn *insn = &slice->model->insns.v[e->insn];
    struct etch_statement s = {.file = insn->file,
                               .line = insn->line,
                               .column = insn->column,
                               .function = etch_insn_function(slice->model, e->insn),
                               .distance = e->origin ? ETCH_EXIT_ORIGIN : ETCH_EXIT_PASSED,
                               .call = ends_program(slice->model, e->insn)};

    if (etch_array_push(&s.insns, e->insn) && etch_array_push(&slice->statements, s))
        return true;
    etch_array_free(&s.insns);
    return false;
}

/* A `return` after its `if` on the same line is known by its column. If the machine code has no such column, the whole
 * line stands for the `return`, which says less. */
static bool narrow(struct etch_model *m, Etch__Statement *s)
{
    uint64_t starts[64], ends[64];
    size_t n = etch_code_ranges(m, s->place->file, s->place->line, s->place->column, starts, ends, 64);
    Etch__AddressRange **bigger;

    if (!n) {
        s->distance += s->distance == ETCH_EXIT_ORIGIN ? ETCH_EXIT_NEAR : 0;
        return true;
    }
    bigger = realloc(s->ranges, (s->n_ranges + n) * sizeof(*bigger));
    if (!bigger)
        return false;
    s->ranges = bigger;
    while (s->n_ranges)
        etch__address_range__free_unpacked(s->ranges[--s->n_ranges], NULL);
    for (size_t i = 0; i < n; i++) {
        Etch__AddressRange *range = malloc(sizeof(*range));

        if (!range)
            return false;
        etch__address_range__init(range);
        range->start = starts[i];
        range->end = ends[i];
        s->ranges[s->n_ranges++] = range;
    }
    return true;
}

Etch__Slice *etch_exits_message(struct etch_model *m, int status)
{
    struct etch_slice *slice = calloc(1, sizeof(*slice));
    struct etch_exits exits = {0};
    Etch__Slice *message = NULL;
    bool ok = slice && etch_exits_find(m, status, &exits);

    if (slice)
        slice->model = m;
    for (size_t i = 0; ok && i < exits.n; i++)
        ok = add_statement(slice, &exits.v[i]);
    if (ok && (slice->order = calloc(exits.n + 1, sizeof(*slice->order))) != NULL) {
        for (uint32_t i = 0; i < exits.n; i++)
            slice->order[i] = i;
        message = etch_slice_message(slice);
    }
    for (size_t i = 0; message && ok && i < message->n_statements; i++)
        ok = narrow(m, message->statements[i]);
    if (message && !ok) {
        etch__slice__free_unpacked(message, NULL);
        message = NULL;
    }
    etch_array_free(&exits);
    etch_slice_free(slice);
    return message;
}
/* NOLINTEND(clang-analyzer-unix.Malloc) */
