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
static struct vpt_block *blocks;

void vpt_translation_begin(uint64_t exec_tsc, bool copies)
{
    after = exec_tsc;
    copies_code = copies;
}

void vpt_translation_fork_lock(void)
{
    pthread_mutex_lock(&blocks_lock);
}

void vpt_translation_fork_unlock(void)
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
    struct vpt_self *t = vpt_flow_begin();

    if (t && !vpt_process.closing)
        vpt_event_note(t, VPT_EVENT_GAP, __rdtsc(), 0, start, 0, 0, NULL);
}

/* Per-instruction callbacks, if something asked for them. */
static void instrument(struct qemu_plugin_tb *tb, struct vpt_block *b, size_t n)
{
    struct vpt_instruction *list = calloc(n, sizeof(*list));

    if (!list) {
        report_gap(b->start);
        return;
    }
    b->list = list;
    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        struct bytes code = bytes_of(insn);
        struct vpt_traits traits = vpt_instruction_traits(code.v, code.n);

        list[i] = (struct vpt_instruction){
            .ip = qemu_plugin_insn_vaddr(insn), .atomic = traits.atomic, .repeats = traits.repeats};
        if (vpt_watch_any())
            vpt_watch_site(&list[i], vpt_process.guest_base);
        if (vpt_control->flags & VPT_TRUTH)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, vpt_flow_on_instruction, QEMU_PLUGIN_CB_NO_REGS, &list[i]);
        if (vpt_watch_any())
            qemu_plugin_register_vcpu_mem_cb(insn, vpt_flow_on_memory, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW,
                                             &list[i]);
    }
}

static struct vpt_block *make_block(const struct qemu_plugin_tb *tb, size_t n)
{
    struct vpt_block *b = calloc(1, sizeof(*b));
    const struct qemu_plugin_insn *first = qemu_plugin_tb_get_insn(tb, 0), *last = qemu_plugin_tb_get_insn(tb, n - 1);
    struct bytes begins = bytes_of(first), ends = bytes_of(last);

    if (!b)
        return NULL;
    b->start = qemu_plugin_insn_vaddr(first);
    b->last = qemu_plugin_insn_vaddr(last);
    b->end = b->last + qemu_plugin_insn_size(last);
    b->instructions = (uint32_t)n;
    b->single = n == 1;
    b->first_traps = vpt_instruction_traits(begins.v, begins.n).divides;
    vpt_block_classify(b, ends.v, ends.n);
    return b;
}

static void remember(struct vpt_block *b)
{
    pthread_mutex_lock(&blocks_lock);
    b->handler = vpt_signals_is_handler(b->start);
    b->next = blocks;
    blocks = b;
    pthread_mutex_unlock(&blocks_lock);
}

void vpt_translation_handler(uint64_t handler)
{
    pthread_mutex_lock(&blocks_lock);
    for (struct vpt_block *b = blocks; b; b = b->next)
        if (b->start == handler)
            b->handler = true;
    pthread_mutex_unlock(&blocks_lock);
}

/* The whole block's bytes: one after another in the host's memory, but for blocks that cross into another page. */
static void report_code(struct qemu_plugin_tb *tb, const struct vpt_block *b)
{
    const struct qemu_plugin_insn *first = qemu_plugin_tb_get_insn(tb, 0);

    if (!begun) {
        begun = true;
        vpt_process.guest_base = (uint64_t)(uintptr_t)qemu_plugin_insn_haddr(first) - b->start;
        vpt_images_begin(vpt_process.guest_base, after);
        vpt_signals_begin(vpt_process.guest_base);
    }
    if (vpt_flow_begin() && !vpt_process.closing)
        vpt_images_translated(vpt_flow_self, b->start, (const uint8_t *)(uintptr_t)(vpt_process.guest_base + b->start),
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
    if (last && !vpt_instruction_is_whole(code.v, code.n))
        n--;
    return n;
}

void vpt_translation_on(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    size_t n = count(tb);
    struct vpt_block *b = n ? make_block(tb, n) : NULL;

    (void)id;
    if (!b) {
        if (n)
            report_gap(qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0)));
        return;
    }
    report_code(tb, b);
    remember(b);
    qemu_plugin_register_vcpu_tb_exec_cb(tb, vpt_watch_any() ? vpt_flow_on_watched_block : vpt_flow_on_block,
                                         QEMU_PLUGIN_CB_NO_REGS, b);
    if (vpt_control->flags & VPT_TRUTH || vpt_watch_any())
        instrument(tb, b, n);
}
