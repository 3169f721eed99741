/* SPDX-License-Identifier: MIT */
/* The backward slice over the instructions of the bitcode. The walk goes by levels: dependences within a statement cost
 * nothing, those to another statement one step, so that a statement's distance is the fewest steps from the failure. */
#include "base/log.h"
#include "slicer/slice/walk.h"

#include <stdio.h>
#include <string.h>

/* ---- Statements ---- */

/* The statement of an instruction. A new statement is made if `make`, else it is ETCH_NONE. Also ETCH_NONE for an
 * instruction without a place in the program's own source. */
static uint32_t statement_of(struct etch_walk *w, uint32_t insn, bool make)
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

static bool same_statement(const struct etch_walk *w, uint32_t insn, uint32_t statement)
{
    const struct etch_insn *i = &w->m->insns.v[insn];
    const struct etch_statement *s = statement == ETCH_NONE ? NULL : &w->slice->statements.v[statement];

    return s && i->file == s->file && i->line == s->line &&
           strcmp(w->m->functions.v[etch_insn_function(w->m, insn)].name, w->m->functions.v[s->function].name) == 0;
}

void etch_walk_need(struct etch_walk *w, uint32_t from, uint32_t insn, uint8_t mode, Etch__StatementRole role)
{
    const struct etch_insn *i = &w->m->insns.v[insn];
    struct etch_walk_item item = {insn, from, (uint8_t)(mode | (w->any_caller ? ETCH_ANY_CALLER : 0)), (uint8_t)role};
    bool near = !i->own || same_statement(w, insn, from);

    if ((w->seen[insn] & item.mode) == item.mode && near)
        return;
    if (!(near ? etch_array_push(&w->now, item) : etch_array_push(&w->next, item)))
        w->short_of_memory = true;
}

/* ---- The walk ---- */

static void need_phi(struct etch_walk *w, uint32_t from, LLVMValueRef phi)
{
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        LLVMValueRef last = LLVMGetBasicBlockTerminator(LLVMGetIncomingBlock(phi, i));

        etch_walk_value(w, from, LLVMGetIncomingValue(phi, i), ETCH__STATEMENT_ROLE__ROLE_DATA);
        etch_walk_value(w, from, last, ETCH__STATEMENT_ROLE__ROLE_CONTROL);
    }
}

static void expand(struct etch_walk *w, uint32_t from, uint32_t insn, uint8_t mode)
{
    LLVMValueRef v = w->m->insns.v[insn].value;

    switch (LLVMGetInstructionOpcode(v)) {
    case LLVMLoad:
        etch_walk_value(w, from, LLVMGetOperand(v, 0), ETCH__STATEMENT_ROLE__ROLE_DATA);
        etch_walk_memory(w, from, insn, LLVMGetOperand(v, 0), LLVMTypeOf(v));
        return;
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg:
        for (int i = 0; i < LLVMGetNumOperands(v); i++)
            etch_walk_value(w, from, LLVMGetOperand(v, (unsigned)i), ETCH__STATEMENT_ROLE__ROLE_DATA);
        etch_walk_memory(w, from, insn, LLVMGetOperand(v, 0), LLVMTypeOf(LLVMGetOperand(v, 1)));
        return;
    case LLVMCall:
    case LLVMInvoke:
        etch_walk_call(w, from, insn, mode);
        return;
    case LLVMPHI:
        need_phi(w, from, v);
        return;
    case LLVMAlloca:
        return;
    default:
        for (int i = 0; i < LLVMGetNumOperands(v); i++)
            if (!LLVMValueIsBasicBlock(LLVMGetOperand(v, (unsigned)i)))
                etch_walk_value(w, from, LLVMGetOperand(v, (unsigned)i), ETCH__STATEMENT_ROLE__ROLE_DATA);
    }
}

static void add_because(struct etch_walk *w, struct etch_statement *s, uint32_t because)
{
    for (size_t i = 0; i < s->because.n; i++)
        if (s->because.v[i] == because)
            return;
    w->short_of_memory |= !etch_array_push(&s->because, because);
}

static void mark(struct etch_walk *w, struct etch_statement *s, uint32_t insn)
{
    const struct etch_insn *i = &w->m->insns.v[insn];
    LLVMOpcode op = LLVMGetInstructionOpcode(i->value);

    w->short_of_memory |= !etch_array_push(&s->insns, insn);
    if (i->column && (i->column < s->column || !s->column))
        s->column = i->column;
    s->branch = s->branch || (op == LLVMBr && LLVMIsConditional(i->value)) || op == LLVMSwitch;
    s->call = s->call || (etch_is_call(i->value) && strncmp(etch_called_name(i->value), "llvm.", 5) != 0);
}

static void visit(struct etch_walk *w, const struct etch_walk_item *item)
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
    w->any_caller = item->mode & ETCH_ANY_CALLER;
    etch_walk_control(w, from, item->insn);
    if (item->mode & (ETCH_FOR_VALUE | ETCH_FOR_ARGUMENTS))
        expand(w, from, item->insn, item->mode);
}

static bool run_walk(struct etch_walk *w, const struct etch_criterion *criterion)
{
    w->seen = calloc(w->m->insns.n + 1, 1);
    w->seen_block = calloc(w->m->blocks.n + 1, 1);
    w->seen_function = calloc(w->m->functions.n + 1, sizeof(bool));
    w->stamp = calloc(w->m->blocks.n + 1, sizeof(uint32_t));
    if (!w->seen || !w->seen_block || !w->seen_function || !w->stamp)
        return false;
    for (size_t i = 0; i < criterion->insns.n; i++) {
        struct etch_walk_item item = {criterion->insns.v[i], ETCH_NONE,
                                      ETCH_FOR_VALUE | ETCH_FOR_ARGUMENTS | ETCH_ANY_CALLER,
                                      ETCH__STATEMENT_ROLE__ROLE_FAILURE};

        if (!etch_array_push(&w->now, item))
            return false;
    }
    while (w->now.n && !w->short_of_memory) {
        while (w->now.n && !w->short_of_memory) {
            struct etch_walk_item item = w->now.v[--w->now.n];

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

static void release_walk(struct etch_walk *w)
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
    struct etch_walk w = {.slice = s, .m = model, .options = options};
    bool ok;

    if (!s)
        return etch_error_no_memory(err);
    s->model = model;
    s->ends_without_value = criterion->ends_without_value;
    ok = run_walk(&w, criterion) && sort_statements(s);
    release_walk(&w);
    if (!ok) {
        etch_slice_free(s);
        return etch_error_no_memory(err);
    }
    etch_log(ETCH_LOG_SLICE, ETCH_LOG_DEBUG, "%zu statements", s->statements.n);
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
