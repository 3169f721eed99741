/* SPDX-License-Identifier: MIT */
/* Live values by the usual backward equations over blocks. LLVM-C has none. */
#include "slicer/instrument/live.h"

#include <stdlib.h>

static bool note(struct live *l, LLVMValueRef value)
{
    return etch_pointers_set(&l->number, value, (uint32_t)l->all.n) && etch_array_push(&l->all, value);
}

static bool number_all(struct live *l, LLVMValueRef function)
{
    for (unsigned i = 0; i < LLVMCountParams(function); i++)
        if (!note(l, LLVMGetParam(function, i)))
            return false;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b)) {
        if (!etch_pointers_set(&l->block, b, (uint32_t)l->blocks.n) || !etch_array_push(&l->blocks, b))
            return false;
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
            if (!note(l, i))
                return false;
    }
    l->words = l->all.n / 64 + 1;
    return true;
}

static void set(const struct live *l, uint64_t *sets, uint32_t block, uint32_t value)
{
    sets[block * l->words + value / 64] |= (uint64_t)1 << value % 64;
}

static bool has(const struct live *l, const uint64_t *sets, uint32_t block, uint32_t value)
{
    return sets[block * l->words + value / 64] >> value % 64 & 1;
}

bool etch_live_in(const struct live *l, uint32_t block, uint32_t value)
{
    return has(l, l->in, block, value);
}

/* A PHI uses its values at the end of the blocks that they come from. */
static void use_incoming(const struct live *l, LLVMValueRef phi)
{
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        uint32_t value = etch_pointers_get(&l->number, LLVMGetIncomingValue(phi, i));

        if (value != ETCH_NONE)
            set(l, l->out, etch_pointers_get(&l->block, LLVMGetIncomingBlock(phi, i)), value);
    }
}

static void scan_block(const struct live *l, uint32_t block)
{
    for (LLVMValueRef i = LLVMGetFirstInstruction(l->blocks.v[block]); i; i = LLVMGetNextInstruction(i)) {
        int n = LLVMIsAPHINode(i) ? 0 : LLVMGetNumOperands(i);

        if (LLVMIsAPHINode(i))
            use_incoming(l, i);
        for (int k = 0; k < n; k++) {
            uint32_t value = etch_pointers_get(&l->number, LLVMGetOperand(i, (unsigned)k));

            if (value != ETCH_NONE && !has(l, l->def, block, value))
                set(l, l->use, block, value);
        }
        set(l, l->def, block, etch_pointers_get(&l->number, i));
    }
}

static bool update(const struct live *l, uint32_t block)
{
    LLVMValueRef end = LLVMGetBasicBlockTerminator(l->blocks.v[block]);
    uint64_t *out = l->out + block * l->words, *in = l->in + block * l->words;
    bool changed = false;

    for (unsigned i = 0; i < LLVMGetNumSuccessors(end); i++) {
        const uint64_t *next = l->in + etch_pointers_get(&l->block, LLVMGetSuccessor(end, i)) * l->words;

        for (size_t w = 0; w < l->words; w++)
            out[w] |= next[w];
    }
    for (size_t w = 0; w < l->words; w++) {
        uint64_t now = l->use[block * l->words + w] | (out[w] & ~l->def[block * l->words + w]);

        changed |= now != in[w];
        in[w] = now;
    }
    return changed;
}

bool etch_live_open(struct live *l, LLVMValueRef function)
{
    bool changed = true;
    size_t size;

    *l = (struct live){0};
    if (!number_all(l, function))
        return false;
    size = l->blocks.n * l->words;
    l->in = calloc(4 * size, sizeof(uint64_t));
    if (!l->in)
        return false;
    l->use = l->in + size;
    l->def = l->use + size;
    l->out = l->def + size;
    for (uint32_t b = 0; b < l->blocks.n; b++)
        scan_block(l, b);
    while (changed) {
        changed = false;
        for (uint32_t b = (uint32_t)l->blocks.n; b > 0; b--)
            changed |= update(l, b - 1);
    }
    return true;
}

void etch_live_release(struct live *l)
{
    etch_array_free(&l->all);
    etch_array_free(&l->blocks);
    etch_pointers_release(&l->number);
    etch_pointers_release(&l->block);
    free(l->in);
}
