/* SPDX-License-Identifier: MIT */
/* Loops by a search in depth, and their nesting by a walk back from where each branches to its head. LLVM-C has
 * neither. */
#include "slicer/instrument/loops.h"

#include <stdlib.h>

struct visit {
    uint32_t block;
    unsigned next;
};

enum { UNSEEN, OPEN, DONE };

static bool search(struct loops *loops, const struct live *l, uint8_t *state, struct visit *stack)
{
    size_t depth = 1;

    state[0] = OPEN;
    while (depth) {
        struct visit *v = &stack[depth - 1];
        LLVMValueRef end = LLVMGetBasicBlockTerminator(l->blocks.v[v->block]);
        uint32_t to;

        if (v->next == LLVMGetNumSuccessors(end)) {
            state[v->block] = DONE;
            depth--;
            continue;
        }
        to = etch_pointers_get(&l->block, LLVMGetSuccessor(end, v->next++));
        if (state[to] == UNSEEN) {
            state[to] = OPEN;
            stack[depth++] = (struct visit){to, 0};
        } else if (state[to] == OPEN && !LLVMIsAIndirectBrInst(end)) {
            if (!etch_array_push(&loops->backs, v->block) || !etch_array_push(&loops->backs, to))
                return false;
        }
    }
    return true;
}

static bool find_backs(struct loops *loops, const struct live *l)
{
    uint8_t *state = calloc(l->blocks.n + 1, 1);
    struct visit *stack = calloc(l->blocks.n + 1, sizeof(*stack));
    bool whole = state && stack && search(loops, l, state, stack);

    free(state);
    free(stack);
    return whole;
}

static void add_head(struct loops *loops, uint32_t head)
{
    for (size_t i = 0; i < loops->n; i++)
        if (loops->v[i].head == head)
            return;
    loops->v[loops->n++] = (struct loop){.head = head};
}

/* Blocks from which control can come to a branch to the head without passing the head. */
static void mark_body(const struct loops *loops, const struct live *l, uint32_t head, uint8_t *in, uint32_t *stack)
{
    size_t n = 0;

    for (uint32_t b = 0; b < l->blocks.n; b++)
        in[b] = b == head;
    for (size_t i = 0; i < loops->backs.n; i += 2)
        if (loops->backs.v[i + 1] == head && !in[loops->backs.v[i]]) {
            in[loops->backs.v[i]] = 1;
            stack[n++] = loops->backs.v[i];
        }
    while (n) {
        LLVMValueRef block = LLVMBasicBlockAsValue(l->blocks.v[stack[--n]]);

        for (LLVMUseRef u = LLVMGetFirstUse(block); u; u = LLVMGetNextUse(u)) {
            LLVMValueRef user = LLVMGetUser(u);
            uint32_t from =
                LLVMIsATerminatorInst(user) ? etch_pointers_get(&l->block, LLVMGetInstructionParent(user)) : ETCH_NONE;

            if (from != ETCH_NONE && !in[from]) {
                in[from] = 1;
                stack[n++] = from;
            }
        }
    }
}

static int compare(const void *a, const void *b)
{
    const struct loop *x = a, *y = b;

    if (x->depth != y->depth)
        return x->depth < y->depth ? -1 : 1;
    return x->head < y->head ? -1 : x->head > y->head;
}

static bool nest(struct loops *loops, const struct live *l)
{
    uint8_t *in = calloc(l->blocks.n + 1, 1);
    uint32_t *stack = calloc(l->blocks.n + 1, sizeof(*stack));
    bool whole = in && stack;

    for (size_t i = 0; i < loops->n && whole; i++) {
        mark_body(loops, l, loops->v[i].head, in, stack);
        for (size_t k = 0; k < loops->n; k++)
            loops->v[k].depth += k != i && in[loops->v[k].head];
    }
    if (whole && loops->n)
        qsort(loops->v, loops->n, sizeof(*loops->v), compare);
    free(in);
    free(stack);
    return whole;
}

bool etch_loops_open(struct loops *loops, const struct live *l)
{
    *loops = (struct loops){0};
    if (!find_backs(loops, l))
        return false;
    loops->v = calloc(loops->backs.n / 2 + 1, sizeof(*loops->v));
    for (size_t i = 0; loops->v && i < loops->backs.n; i += 2)
        add_head(loops, loops->backs.v[i + 1]);
    return loops->v && nest(loops, l);
}

void etch_loops_release(struct loops *loops)
{
    etch_array_free(&loops->backs);
    free(loops->v);
}
