/* SPDX-License-Identifier: MIT */
/* The software recorder's runtime keeps the recorder within a budget: a part of the processor time. It reads no clock
 * for that. Recording costs about the same time for each byte, and each chunk has the time of its begin. So a thread
 * that fills chunks too fast is over the budget. The function that fills a chunk is a sample of the functions that
 * write most. Such a function goes dark: its plain copy runs from its next call on, and all that it calls. */
#include "collector/soft/budget.h"

#include "collector/soft/chunk.h"

#define UNIT 64u     /* ticks of the TSC: the debt fits 32 bits */
#define BYTE_COST 3u /* ticks to record a byte */
#define CHUNK_COST (ETCH_SOFT_FULL * BYTE_COST / UNIT)
#define PATIENCE (24 * CHUNK_COST) /* the debt at which a function goes dark */
#define SEEN 3u                    /* a function that filled fewer chunks is not the one that costs */

/* Of the calling thread: what recording cost beyond the budget. */
static __thread uint32_t etch_soft_debt __attribute__((tls_model("initial-exec")));

void etch_soft_charge(uint64_t from, uint64_t to)
{
    uint64_t allowed, debt = etch_soft_debt;
    uint32_t permille = etch_soft_recorder.permille;

    if (permille == ETCH_SOFT_UNBOUNDED || !from || to < from)
        return;
    allowed = (to - from) / UNIT;
    allowed = allowed < 1u << 30 ? allowed * permille / 1000 : UINT32_MAX;
    debt += CHUNK_COST;
    debt = debt > allowed ? debt - allowed : 0;
    etch_soft_debt = debt < 2 * PATIENCE ? (uint32_t)debt : 2 * PATIENCE;
}

void etch_soft_go_dark(struct etch_soft_lit *lit, uint64_t tsc)
{
    struct etch_soft_pool *pool = etch_soft_recorder.pool;
    struct etch_soft_dark *dark;
    uint32_t n;

    if (!__atomic_exchange_n(&lit->lit, 0, __ATOMIC_RELAXED) || !pool)
        return;
    n = __atomic_fetch_add(&pool->budget.n, 1, __ATOMIC_RELAXED);
    if (n >= ETCH_SOFT_DARK_MAX)
        return;
    dark = &pool->budget.dark[n];
    dark->tsc = tsc;
    dark->pid = etch_soft_recorder.pid;
    *(volatile uint64_t *)&dark->where = (uintptr_t)lit;
}

/* The entry that the code at `where` names. */
static struct etch_soft_lit *lit_at(uintptr_t where)
{
    uint32_t code = 0, distance = 0;

    put(&code, (const void *)where, sizeof(code));
    if ((code & 0xffffff) != ETCH_SOFT_LIT_NOP)
        return NULL;
    put(&distance, (const void *)(where + 3), sizeof(distance));
    return (struct etch_soft_lit *)(where + 7 + (uintptr_t)(intptr_t)(int32_t)distance);
}

void etch_soft_weigh(uintptr_t where)
{
    uint32_t permille = etch_soft_recorder.permille;
    struct etch_soft_lit *lit;

    if (permille == ETCH_SOFT_UNBOUNDED || !(lit = lit_at(where)) || !lit->lit || lit->kept)
        return;
    if (permille && ++lit->seen < SEEN)
        return;
    if (permille && etch_soft_debt < PATIENCE)
        return;
    etch_soft_debt = 0;
    etch_soft_go_dark(lit, ((const struct etch_soft_chunk *)chunk_of(etch_soft_cur))->tsc);
}
