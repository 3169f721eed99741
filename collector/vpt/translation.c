/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* vpt, translation: what is known of a block once and for all, and which callbacks it needs. */
#include "collector/vpt/translation.h"

#include "collector/vpt/flow.h"
#include "collector/vpt/images.h"
#include "collector/vpt/signals.h"
#include "collector/vpt/watch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static uint64_t after;
static bool copies_code;
static bool begun; /* first translation: the addresses are known */
static pthread_mutex_t blocks_lock = PTHREAD_MUTEX_INITIALIZER;
static struct etch_vpt_block *blocks;

void etch_vpt_translation_begin(uint64_t exec_tsc, bool copies)
{
    after = exec_tsc;
    copies_code = copies;
}

void etch_vpt_translation_fork_lock(void)
{
    pthread_mutex_lock(&blocks_lock);
}

void etch_vpt_translation_fork_unlock(void)
{
    pthread_mutex_unlock(&blocks_lock);
}

#define INSTRUCTION_MAX 15u

/* An instruction's bytes. */
struct bytes {
    uint8_t v[INSTRUCTION_MAX];
    size_t n;
};

static struct bytes bytes_of(const struct qemu_plugin_insn *insn)
{
    struct bytes b = {.n = qemu_plugin_insn_size(insn)};
    const void *at;

    if (b.n > INSTRUCTION_MAX)
        b.n = INSTRUCTION_MAX;
    at = qemu_plugin_insn_data(insn, b.v, b.n);
    if (!copies_code)
        memcpy(b.v, at, b.n);
    return b;
}

/* A block that cannot be followed, for lack of memory. */
static void report_gap(uint64_t start)
{
    struct etch_vpt_self *t = etch_vpt_flow_begin();

    if (t && !etch_vpt_process.closing)
        etch_vpt_event_note(t, VPT_EVENT_GAP, __rdtsc(), 0, start, 0, 0, NULL);
}

/* Per-instruction callbacks, if something asked for them. */
static void instrument(struct qemu_plugin_tb *tb, struct etch_vpt_block *b, size_t n)
{
    struct etch_vpt_instruction *list = calloc(n, sizeof(*list));

    if (!list) {
        report_gap(b->start);
        return;
    }
    b->list = list;
    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        struct bytes code = bytes_of(insn);
        struct etch_vpt_traits traits = etch_vpt_instruction_traits(code.v, code.n);

        list[i] = (struct etch_vpt_instruction){
            .ip = qemu_plugin_insn_vaddr(insn), .atomic = traits.atomic, .repeats = traits.repeats};
        if (etch_vpt_watch_any())
            etch_vpt_watch_site(&list[i], etch_vpt_process.guest_base);
        if (etch_vpt_control->flags & VPT_TRUTH)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, etch_vpt_flow_on_instruction, QEMU_PLUGIN_CB_NO_REGS,
                                                   &list[i]);
        if (etch_vpt_watch_any())
            qemu_plugin_register_vcpu_mem_cb(insn, etch_vpt_flow_on_memory, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW,
                                             &list[i]);
    }
}

static struct etch_vpt_block *make_block(const struct qemu_plugin_tb *tb, size_t n)
{
    struct etch_vpt_block *b = calloc(1, sizeof(*b));
    const struct qemu_plugin_insn *first = qemu_plugin_tb_get_insn(tb, 0), *last = qemu_plugin_tb_get_insn(tb, n - 1);
    struct bytes begins = bytes_of(first), ends = bytes_of(last);

    if (!b)
        return NULL;
    b->start = qemu_plugin_insn_vaddr(first);
    b->last = qemu_plugin_insn_vaddr(last);
    b->end = b->last + qemu_plugin_insn_size(last);
    b->instructions = (uint32_t)n;
    b->single = n == 1;
    b->first_traps = etch_vpt_instruction_traits(begins.v, begins.n).divides;
    etch_vpt_block_classify(b, ends.v, ends.n);
    return b;
}

static void remember(struct etch_vpt_block *b)
{
    pthread_mutex_lock(&blocks_lock);
    b->handler = etch_vpt_signals_is_handler(b->start);
    b->next = blocks;
    blocks = b;
    pthread_mutex_unlock(&blocks_lock);
}

void etch_vpt_translation_handler(uint64_t handler)
{
    pthread_mutex_lock(&blocks_lock);
    for (struct etch_vpt_block *b = blocks; b; b = b->next)
        if (b->start == handler)
            b->handler = true;
    pthread_mutex_unlock(&blocks_lock);
}

/* The whole block's bytes: one after another in the host's memory, but for blocks that cross into another page. */
static void report_code(struct qemu_plugin_tb *tb, const struct etch_vpt_block *b)
{
    const struct qemu_plugin_insn *first = qemu_plugin_tb_get_insn(tb, 0);

    if (!begun) {
        begun = true;
        etch_vpt_process.guest_base = (uint64_t)(uintptr_t)qemu_plugin_insn_haddr(first) - b->start;
        etch_vpt_images_begin(etch_vpt_process.guest_base, after);
        etch_vpt_signals_begin(etch_vpt_process.guest_base);
    }
    if (etch_vpt_flow_begin() && !etch_vpt_process.closing)
        etch_vpt_images_translated(etch_vpt_flow_self, b->start,
                                   (const uint8_t *)(uintptr_t)(etch_vpt_process.guest_base + b->start),
                                   b->end - b->start);
}

/* How many instructions the block really has. One that crosses into the next page is translated on its own, but
 * QEMU 7.2 leaves it in the list of the block before, with the bytes that it had read: the beginning of an instruction
 * is none. */
static size_t count(const struct qemu_plugin_tb *tb)
{
    size_t n = qemu_plugin_tb_n_insns(tb);
    const struct qemu_plugin_insn *last = n > 1 ? qemu_plugin_tb_get_insn(tb, n - 1) : NULL;

    struct bytes code = {.n = 0};

    if (last)
        code = bytes_of(last);
    if (last && !etch_vpt_instruction_is_whole(code.v, code.n))
        n--;
    return n;
}

void etch_vpt_translation_on(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    size_t n = count(tb);
    struct etch_vpt_block *b = n ? make_block(tb, n) : NULL;

    (void)id;
    if (!b) {
        if (n)
            report_gap(qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0)));
        return;
    }
    report_code(tb, b);
    remember(b);
    qemu_plugin_register_vcpu_tb_exec_cb(
        tb, etch_vpt_watch_any() ? etch_vpt_flow_on_watched_block : etch_vpt_flow_on_block, QEMU_PLUGIN_CB_NO_REGS, b);
    if (etch_vpt_control->flags & VPT_TRUTH || etch_vpt_watch_any())
        instrument(tb, b, n);
}
