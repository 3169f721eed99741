/* SPDX-License-Identifier: MIT */
/* Dominators, postdominators and control dependence, which LLVM-C does not offer: the iterative algorithm of Cooper,
 * Harvey and Kennedy on numbers, and control dependence by walking the postdominator tree (Ferrante, Ottenstein,
 * Warren). */
#include "slicer/model/model.h"

#include <string.h>

/* One graph, read forwards or backwards; node n is the virtual exit in the backward one. */
struct graph {
    uint32_t n, root;
    const etch_numbers *out, *in;
};

static bool postorder(const struct graph *g, uint32_t *order, uint32_t *count)
{
    struct frame {
        uint32_t node, next;
    } *stack = malloc(((size_t)g->n + 1) * sizeof(*stack));
    bool *seen = calloc(g->n + 1, sizeof(*seen));
    size_t depth = 0;

    *count = 0;
    if (!stack || !seen) {
        free(stack);
        free(seen);
        return false;
    }
    stack[depth++] = (struct frame){g->root, 0};
    seen[g->root] = true;
    while (depth) {
        struct frame *top = &stack[depth - 1];

        if (top->next < g->out[top->node].n) {
            uint32_t to = g->out[top->node].v[top->next++];

            if (!seen[to]) {
                seen[to] = true;
                stack[depth++] = (struct frame){to, 0};
            }
        } else {
            order[(*count)++] = top->node;
            depth--;
        }
    }
    free(stack);
    free(seen);
    return true;
}

static uint32_t meet(const uint32_t *idom, const uint32_t *number, uint32_t a, uint32_t b)
{
    while (a != b) {
        while (number[a] < number[b])
            a = idom[a];
        while (number[b] < number[a])
            b = idom[b];
    }
    return a;
}

/* idom[root] = root; idom of an unreachable block = ETCH_NONE. */
static bool dominators(const struct graph *g, uint32_t *idom)
{
    uint32_t *order = malloc(((size_t)g->n + 1) * sizeof(*order)), *number = calloc(g->n + 1, sizeof(*number));
    uint32_t count;
    bool changed = true, ok = order && number && postorder(g, order, &count);

    for (uint32_t i = 0; i <= g->n; i++)
        idom[i] = ETCH_NONE;
    if (ok) {
        for (uint32_t i = 0; i < count; i++)
            number[order[i]] = i;
        idom[g->root] = g->root;
    }
    while (ok && changed) {
        changed = false;
        for (uint32_t i = count; i-- > 0;) {
            uint32_t node = order[i], best = ETCH_NONE;

            if (node == g->root)
                continue;
            for (size_t k = 0; k < g->in[node].n; k++) {
                uint32_t from = g->in[node].v[k];

                if (idom[from] != ETCH_NONE)
                    best = best == ETCH_NONE ? from : meet(idom, number, from, best);
            }
            changed = changed || idom[node] != best;
            idom[node] = best;
        }
    }
    free(order);
    free(number);
    return ok;
}

static bool push_once(etch_numbers *list, uint32_t number)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->v[i] == number)
            return true;
    return etch_array_push(list, number);
}

/* Blocks from which the end cannot be reached (endless loops) get an edge to it, so that each has a postdominator. */
static bool connect_exit(struct etch_cfg *cfg)
{
    uint32_t n = cfg->n;
    bool *reaches = calloc(n + 1, sizeof(*reaches));
    etch_numbers work = {0};
    bool ok = reaches != NULL;

    for (uint32_t i = 0; ok && i < n; i++)
        if (cfg->succs[i].n == 0)
            ok = etch_array_push(&cfg->succs[i], n) && etch_array_push(&cfg->preds[n], i);
    if (ok) {
        reaches[n] = true;
        ok = etch_array_push(&work, n);
    }
    for (uint32_t candidate = n;;) {
        while (ok && work.n) {
            uint32_t at = work.v[--work.n];

            for (size_t k = 0; k < cfg->preds[at].n && ok; k++) {
                uint32_t from = cfg->preds[at].v[k];

                if (!reaches[from]) {
                    reaches[from] = true;
                    ok = etch_array_push(&work, from);
                }
            }
        }
        while (ok && candidate > 0 && reaches[candidate - 1])
            candidate--;
        if (!ok || candidate == 0)
            break;
        candidate--;
        reaches[candidate] = true;
        ok = etch_array_push(&cfg->succs[candidate], n) && etch_array_push(&cfg->preds[n], candidate) &&
             etch_array_push(&work, candidate);
    }
    etch_array_free(&work);
    free(reaches);
    return ok;
}

/* For each branch a -> b: the blocks on the postdominator tree from b up to, not including, a's own postdominator. */
static bool find_controlled(struct etch_cfg *cfg)
{
    for (uint32_t a = 0; a < cfg->n; a++) {
        if (cfg->succs[a].n < 2)
            continue;
        for (size_t k = 0; k < cfg->succs[a].n; k++) {
            uint32_t at = cfg->succs[a].v[k];

            while (at != cfg->n && at != cfg->postdominator[a] && at != ETCH_NONE) {
                if (!push_once(&cfg->controlled[at], a))
                    return false;
                at = cfg->postdominator[at];
            }
        }
    }
    return true;
}

static void free_lists(etch_numbers *lists, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        etch_array_free(&lists[i]);
    free(lists);
}

struct etch_cfg *etch_cfg_make(uint32_t n, etch_numbers *succs)
{
    struct etch_cfg *cfg = calloc(1, sizeof(*cfg));
    bool ok = cfg != NULL;

    if (!ok) {
        free_lists(succs, n);
        return NULL;
    }
    cfg->n = n;
    cfg->succs = succs;
    cfg->preds = calloc(n + 1, sizeof(*cfg->preds));
    cfg->controlled = calloc(n + 1, sizeof(*cfg->controlled));
    cfg->unwound = calloc(n + 1, sizeof(*cfg->unwound));
    cfg->postdominator = calloc(n + 1, sizeof(*cfg->postdominator));
    cfg->dominator = calloc(n + 1, sizeof(*cfg->dominator));
    ok = cfg->preds && cfg->controlled && cfg->unwound && cfg->postdominator && cfg->dominator;
    for (uint32_t i = 0; ok && i < n; i++)
        for (size_t k = 0; ok && k < succs[i].n; k++)
            ok = etch_array_push(&cfg->preds[succs[i].v[k]], i);
    ok = ok && dominators(&(struct graph){n, 0, cfg->succs, cfg->preds}, cfg->dominator);
    for (uint32_t i = 0; ok && i < n; i++)
        if (cfg->dominator[i] == ETCH_NONE)
            cfg->dominator[i] = i;
    ok = ok && connect_exit(cfg) && dominators(&(struct graph){n, n, cfg->preds, cfg->succs}, cfg->postdominator) &&
         find_controlled(cfg);
    if (!ok) {
        etch_cfg_free(cfg);
        return NULL;
    }
    return cfg;
}

static bool add_ways(const struct etch_model *m, const struct etch_function *f, uint32_t block, etch_numbers *succs)
{
    const struct etch_ir_block *b = &m->blocks.v[f->first_block + block];
    LLVMValueRef last = m->insns.v[b->first + b->n - 1].value;
    /* Every call may throw. A slice does not count that as a branch: only the normal successor counts. */
    unsigned n = LLVMIsAInvokeInst(last) ? 1 : LLVMGetNumSuccessors(last);

    for (unsigned i = 0; i < n; i++)
        if (!push_once(&succs[block], etch_pointers_get(&m->block_of, LLVMGetSuccessor(last, i)) - f->first_block))
            return false;
    return true;
}

static bool add_unwound(const struct etch_model *m, struct etch_cfg *cfg, uint32_t block)
{
    const struct etch_ir_block *b = &m->blocks.v[cfg->first + block];
    LLVMValueRef last = m->insns.v[b->first + b->n - 1].value;
    uint32_t landing;

    if (!LLVMIsAInvokeInst(last))
        return true;
    landing = etch_pointers_get(&m->block_of, LLVMGetUnwindDest(last));
    return landing == ETCH_NONE || push_once(&cfg->unwound[landing - cfg->first], block);
}

const struct etch_cfg *etch_cfg_of(struct etch_model *m, uint32_t function)
{
    struct etch_function *f = &m->functions.v[function];
    etch_numbers *succs;
    bool ok = true;

    if (f->cfg)
        return f->cfg;
    succs = calloc(f->n_blocks + 1, sizeof(*succs));
    if (!succs)
        return NULL;
    for (uint32_t i = 0; ok && i < f->n_blocks; i++)
        ok = add_ways(m, f, i, succs);
    if (ok) {
        f->cfg = etch_cfg_make(f->n_blocks, succs);
    } else {
        free_lists(succs, f->n_blocks);
    }
    if (f->cfg)
        f->cfg->first = f->first_block;
    for (uint32_t i = 0; f->cfg && i < f->n_blocks; i++) {
        if (!add_unwound(m, f->cfg, i)) {
            etch_cfg_free(f->cfg);
            f->cfg = NULL;
        }
    }
    return f->cfg;
}

bool etch_cfg_dominates(const struct etch_cfg *cfg, uint32_t a, uint32_t b)
{
    while (b != a && cfg->dominator[b] != b)
        b = cfg->dominator[b];
    return a == b;
}

void etch_cfg_free(struct etch_cfg *cfg)
{
    if (!cfg)
        return;
    for (uint32_t i = 0; i <= cfg->n; i++) {
        if (cfg->preds)
            etch_array_free(&cfg->preds[i]);
        if (cfg->succs)
            etch_array_free(&cfg->succs[i]);
        if (cfg->controlled)
            etch_array_free(&cfg->controlled[i]);
        if (cfg->unwound)
            etch_array_free(&cfg->unwound[i]);
    }
    free(cfg->preds);
    free(cfg->succs);
    free(cfg->controlled);
    free(cfg->unwound);
    free(cfg->postdominator);
    free(cfg->dominator);
    free(cfg);
}
