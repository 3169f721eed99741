/* SPDX-License-Identifier: MIT */
/* Control dependences: the branches, the callers and the throws that decide whether an instruction runs. */
#include "slicer/model/classes.h"
#include "slicer/slice/walk.h"

static void need_callers(struct etch_walk *w, uint32_t from, uint32_t function)
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
        etch_walk_need(w, from, f->callers.v[i].insn, ETCH_FOR_RUNNING,
                       f->callers.v[i].edge == ETCH_EDGE_THREAD ? ETCH__STATEMENT_ROLE__ROLE_THREAD
                                                                : ETCH__STATEMENT_ROLE__ROLE_CONTROL);
    }
}

/* A landing pad runs when one of the calls that lead there throws: because of the throw, and because of the call. */
static void need_thrown(struct etch_walk *w, uint32_t from, const struct etch_cfg *cfg, uint32_t landing)
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
            etch_walk_need(w, from, throws.v[k], ETCH_FOR_RUNNING, ETCH__STATEMENT_ROLE__ROLE_CONTROL);
        if (throws.n)
            etch_walk_need(w, from, call, ETCH_FOR_RUNNING, ETCH__STATEMENT_ROLE__ROLE_CONTROL);
        etch_array_free(&throws);
    }
}

/* The landing pads of a block that is reached only by landing pads: the block is a landing pad, or follows one. */
static void need_landings(struct etch_walk *w, uint32_t from, const struct etch_cfg *cfg, uint32_t block)
{
    etch_numbers work = {0};

    if (block == 0 || cfg->dominator[block] != block)
        return; /* the block is also reached without a landing pad */
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

void etch_walk_control(struct etch_walk *w, uint32_t from, uint32_t insn)
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

        etch_walk_need(w, from, by->first + by->n - 1, ETCH_FOR_VALUE, ETCH__STATEMENT_ROLE__ROLE_CONTROL);
    }
    need_landings(w, from, cfg, block - cfg->first);
    if (w->any_caller)
        need_callers(w, from, function);
}
