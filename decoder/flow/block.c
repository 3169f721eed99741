/* SPDX-License-Identifier: MIT */
/* See block.h. Instructions are told apart by Zydis. */
#include "decoder/flow/block.h"

#include <Zydis/Zydis.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_MAX 256u /* instructions */
#define INSTRUCTION_MAX 15u
#define SLAB_SIZE ((size_t)256 << 10)

struct slab {
    struct slab *next;
    size_t used;
    uint8_t room[];
};

/* Open addressing; a block is known by where it begins and, if it is cut, where it ends. */
struct table {
    struct etch_block **v;
    size_t capacity, used;
};

struct etch_block_view {
    struct etch_blocks *blocks;
    const struct etch_code_space *space;
    enum etch_exec_mode mode;
    size_t lo, hi;
    struct table whole, cut;
};

struct etch_blocks {
    const struct etch_code *code;
    ZydisDecoder decoders[3];
    ETCH_ARRAY(struct etch_block_view *) views;
    struct slab *slabs;
};

struct etch_blocks *etch_blocks_new(const struct etch_code *code)
{
    struct etch_blocks *blocks = calloc(1, sizeof(*blocks));

    if (!blocks)
        return NULL;
    blocks->code = code;
    ZydisDecoderInit(&blocks->decoders[ETCH_EXEC_64], ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisDecoderInit(&blocks->decoders[ETCH_EXEC_32], ZYDIS_MACHINE_MODE_LONG_COMPAT_32, ZYDIS_STACK_WIDTH_32);
    ZydisDecoderInit(&blocks->decoders[ETCH_EXEC_16], ZYDIS_MACHINE_MODE_LONG_COMPAT_16, ZYDIS_STACK_WIDTH_16);
    return blocks;
}

void etch_blocks_free(struct etch_blocks *blocks)
{
    if (!blocks)
        return;
    for (size_t i = 0; i < blocks->views.n; i++) {
        free(blocks->views.v[i]->whole.v);
        free(blocks->views.v[i]->cut.v);
        free(blocks->views.v[i]);
    }
    etch_array_free(&blocks->views);
    while (blocks->slabs) {
        struct slab *next = blocks->slabs->next;

        free(blocks->slabs);
        blocks->slabs = next;
    }
    free(blocks);
}

static void *take(struct etch_blocks *blocks, size_t size)
{
    struct slab *slab = blocks->slabs;

    size = (size + 7) & ~(size_t)7;
    if (!slab || slab->used + size > SLAB_SIZE) {
        slab = malloc(sizeof(*slab) + SLAB_SIZE);
        if (!slab)
            return NULL;
        slab->next = blocks->slabs;
        slab->used = 0;
        blocks->slabs = slab;
    }
    slab->used += size;
    return slab->room + slab->used - size;
}

struct etch_block_view *etch_block_view_of(struct etch_blocks *blocks, uint32_t pid, enum etch_exec_mode mode,
                                           size_t lo, size_t hi)
{
    const struct etch_code_space *space = etch_code_space_of(blocks->code, pid);
    struct etch_block_view *view;

    for (size_t i = 0; i < blocks->views.n; i++) {
        view = blocks->views.v[i];
        if (view->space == space && view->mode == mode && view->lo == lo && view->hi == hi)
            return view;
    }
    view = calloc(1, sizeof(*view));
    if (!view)
        return NULL;
    *view = (struct etch_block_view){.blocks = blocks, .space = space, .mode = mode, .lo = lo, .hi = hi};
    if (!etch_array_push(&blocks->views, view)) {
        free(view);
        return NULL;
    }
    return view;
}

size_t etch_blocks_changes(const struct etch_blocks *blocks, uint32_t pid)
{
    return etch_code_space_changes(etch_code_space_of(blocks->code, pid));
}

size_t etch_blocks_age(const struct etch_blocks *blocks, uint32_t pid, uint64_t tsc)
{
    return etch_code_space_age(etch_code_space_of(blocks->code, pid), tsc);
}

static size_t hash(uint64_t first, uint64_t end)
{
    return (size_t)(((first ^ end << 40) * 0x9e3779b97f4a7c15u) >> 20);
}

/* `end` is 0 in the table of whole blocks. */
static size_t slot(const struct table *table, uint64_t first, uint64_t end)
{
    size_t at = hash(first, end) & (table->capacity - 1);

    while (table->v[at] && (table->v[at]->first != first || (end && table->v[at]->end != end)))
        at = (at + 1) & (table->capacity - 1);
    return at;
}

/* Room for one more. */
static bool reserve(struct table *table, bool cut)
{
    struct table grown = {.capacity = table->capacity ? table->capacity * 2 : 1024, .used = table->used};

    if (table->used * 2 < table->capacity)
        return true;
    grown.v = calloc(grown.capacity, sizeof(struct etch_block *));
    if (!grown.v)
        return false;
    for (size_t i = 0; i < table->capacity; i++)
        if (table->v[i])
            grown.v[slot(&grown, table->v[i]->first, cut ? table->v[i]->end : 0)] = table->v[i];
    free(table->v);
    *table = grown;
    return true;
}

static bool is_far(const ZydisDecodedInstruction *in)
{
    switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
    case ZYDIS_MNEMONIC_UIRET:
    case ZYDIS_MNEMONIC_RSM:
    case ZYDIS_MNEMONIC_VMLAUNCH:
    case ZYDIS_MNEMONIC_VMRESUME:
    case ZYDIS_MNEMONIC_VMCALL:
        return true;
    default:
        break;
    }
    switch (in->meta.category) {
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_SYSRET:
    case ZYDIS_CATEGORY_INTERRUPT:
        return true;
    default:
        return in->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
    }
}

static enum etch_branch_kind classify(const ZydisDecodedInstruction *in)
{
    if (is_far(in))
        return ETCH_BRANCH_FAR;
    switch (in->meta.category) {
    case ZYDIS_CATEGORY_COND_BR: /* XBEGIN and XEND are among them, and leave no TNT */
        if (in->mnemonic == ZYDIS_MNEMONIC_XBEGIN || in->mnemonic == ZYDIS_MNEMONIC_XEND)
            return ETCH_BRANCH_NONE;
        return ETCH_BRANCH_CONDITIONAL;
    case ZYDIS_CATEGORY_UNCOND_BR:
        if (in->mnemonic != ZYDIS_MNEMONIC_JMP)
            return ETCH_BRANCH_NONE;
        return in->raw.imm[0].is_relative ? ETCH_BRANCH_JUMP : ETCH_BRANCH_JUMP_INDIRECT;
    case ZYDIS_CATEGORY_CALL:
        return in->raw.imm[0].is_relative ? ETCH_BRANCH_CALL : ETCH_BRANCH_CALL_INDIRECT;
    case ZYDIS_CATEGORY_RET:
        return ETCH_BRANCH_RETURN;
    default:
        return ETCH_BRANCH_NONE;
    }
}

static uint64_t target_of(const ZydisDecodedInstruction *in, uint64_t next, enum etch_exec_mode mode)
{
    uint64_t target = next + (uint64_t)in->raw.imm[0].value.s;

    if (mode == ETCH_EXEC_64)
        return target;
    return in->operand_width == 16 ? target & 0xffff : target & 0xffffffff;
}

/* Up to fifteen bytes at `ip`, over the seam of two mappings where need be. */
static size_t fetch(const struct etch_block_view *view, const struct etch_code_section *section, uint64_t ip,
                    uint8_t bytes[INSTRUCTION_MAX])
{
    size_t got = 0;

    while (section && got < INSTRUCTION_MAX) {
        uint64_t skip = ip + got - section->start, rest = section->size - skip;
        size_t n = rest < INSTRUCTION_MAX - got ? (size_t)rest : INSTRUCTION_MAX - got;
        const char *why;

        memcpy(bytes + got, section->bytes + skip, n);
        got += n;
        section = got < INSTRUCTION_MAX ? etch_code_find(view->space, ip + got, view->lo, view->hi, &why) : NULL;
    }
    return got;
}

/* Disassembles from block->first on, up to a branch, the limit or the end of the section. False where not even one
 * instruction is there. */
static bool disassemble(const struct etch_block_view *view, const struct etch_code_section *section,
                        struct etch_block *block, uint8_t sizes[BLOCK_MAX])
{
    const ZydisDecoder *decoder = &view->blocks->decoders[view->mode];
    uint64_t ip = block->first;

    while (block->count < BLOCK_MAX && block->branch == ETCH_BRANCH_NONE && ip - section->start < section->size) {
        ZydisDecodedInstruction in;
        uint8_t bytes[INSTRUCTION_MAX];
        size_t n = fetch(view, section, ip, bytes);

        if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(decoder, NULL, bytes, n, &in)))
            break;
        sizes[block->count++] = in.length;
        block->last = ip;
        ip += in.length;
        block->branch = classify(&in);
        if (block->branch != ETCH_BRANCH_NONE)
            block->target = target_of(&in, ip, view->mode);
    }
    block->end = ip;
    return block->count > 0;
}

static struct etch_block *keep(struct etch_blocks *blocks, const struct etch_block *made, const uint8_t *sizes)
{
    struct etch_block *block = take(blocks, sizeof(*block) + made->count);

    if (!block)
        return NULL;
    *block = *made;
    memcpy(block + 1, sizes, made->count);
    block->sizes = (const uint8_t *)(block + 1);
    return block;
}

static struct etch_block *make(struct etch_block_view *view, uint64_t ip, const char **why)
{
    const struct etch_code_section *section = etch_code_find(view->space, ip, view->lo, view->hi, why);
    struct etch_block made = {.first = ip};
    uint8_t sizes[BLOCK_MAX];
    struct etch_block *block;

    if (!section)
        return NULL;
    made.image = section->image;
    if (!disassemble(view, section, &made, sizes)) {
        *why = "no instruction stands there";
        return NULL;
    }
    block = keep(view->blocks, &made, sizes);
    if (!block)
        *why = "out of memory";
    return block;
}

struct etch_block *etch_block_at(struct etch_block_view *view, uint64_t ip, const char **why)
{
    struct etch_block *block;
    size_t at;

    if (!reserve(&view->whole, false)) {
        *why = "out of memory";
        return NULL;
    }
    at = slot(&view->whole, ip, 0);
    if (view->whole.v[at])
        return view->whole.v[at];
    block = make(view, ip, why);
    if (block) {
        view->whole.v[at] = block;
        view->whole.used++;
    }
    return block;
}

static struct etch_block *make_cut(struct etch_block_view *view, const struct etch_block *b, uint64_t ip)
{
    struct etch_block made = *b;
    uint64_t at = b->first;

    for (uint32_t i = 0; i < b->count && at < ip; i++) {
        made.last = at;
        made.count = i + 1;
        at += b->sizes[i];
    }
    if (at != ip)
        return NULL;
    made.end = ip;
    made.target = 0;
    made.taken = made.fall = NULL;
    made.branch = ETCH_BRANCH_NONE;
    return keep(view->blocks, &made, b->sizes);
}

static struct etch_block *cut_at(struct etch_block_view *view, const struct etch_block *b, uint64_t ip)
{
    struct etch_block *block;
    size_t at;

    if (!reserve(&view->cut, true))
        return NULL;
    at = slot(&view->cut, b->first, ip);
    if (view->cut.v[at])
        return view->cut.v[at];
    block = make_cut(view, b, ip);
    if (block) {
        view->cut.v[at] = block;
        view->cut.used++;
    }
    return block;
}

struct etch_block *etch_block_before(struct etch_block_view *view, const struct etch_block *b, uint64_t ip)
{
    return ip <= b->first || ip >= b->end ? NULL : cut_at(view, b, ip);
}

struct etch_block *etch_block_begun(struct etch_block_view *view, const struct etch_block *b)
{
    return cut_at(view, b, b->first + b->sizes[0]);
}
