/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* Emulated watchpoints; see watch.h. */
#include "collector/vpt/watch.h"
#include "collector/vpt/images.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

struct armed {
    uint64_t start, end;
    uint32_t number, flags;
};

#define SITE_MAX 64u /* locations found at one site: an array's elements must not use up the room for all others */
#define FILTER_BITS 16

static struct armed armed[VPT_MAX_ARMED];
static _Atomic unsigned n_armed; /* released after the entry; readers acquire it and may then read the entry */
/* A bit for each eight bytes that something watched may lie in: nearly all accesses go no further. Set before n_armed
 * is released; an access that races with the arming may be missed either way. */
static _Atomic uint64_t filter[(1u << FILTER_BITS) / 64];
static uint32_t found_at[VPT_MAX_WATCHES]; /* locations, by site */
static _Atomic uint64_t lowest = UINT64_MAX, highest;
static uint64_t base;
static pthread_mutex_t arming = PTHREAD_MUTEX_INITIALIZER;
static uint64_t program_start, program_end;
static bool looked_for_program;
static uint32_t next_found; /* number of the next watch found at a site */

/* The value may be gone (another thread unmapped it): ask the kernel rather than die. */
static bool read_value(uint64_t address, uint32_t size, uint64_t *value)
{
    struct iovec to = {value, size}, from = {(void *)(uintptr_t)(base + address), size};

    *value = 0;
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)size;
}

static uint32_t filter_bit(uint64_t granule)
{
    return (uint32_t)(granule * 0x9e3779b97f4a7c15u >> (64 - FILTER_BITS));
}

static void filter_add(uint64_t address, uint64_t size)
{
    for (uint64_t granule = address >> 3; granule <= (address + size - 1) >> 3; granule++) {
        uint32_t bit = filter_bit(granule);

        atomic_fetch_or_explicit(&filter[bit / 64], (uint64_t)1 << bit % 64, memory_order_relaxed);
    }
}

static bool may_be_watched(uint64_t address, uint64_t size)
{
    for (uint64_t granule = address >> 3; granule <= (address + size - 1) >> 3; granule++) {
        uint32_t bit = filter_bit(granule);

        if (atomic_load_explicit(&filter[bit / 64], memory_order_relaxed) >> bit % 64 & 1)
            return true;
    }
    return false;
}

static void append(uint64_t address, uint32_t size, uint32_t number, uint32_t flags)
{
    unsigned n = atomic_load_explicit(&n_armed, memory_order_relaxed);

    armed[n] = (struct armed){address, address + size, number, flags};
    filter_add(address, size);
    if (address < lowest)
        lowest = address;
    if (address + size > highest)
        highest = address + size;
    atomic_store_explicit(&n_armed, n + 1, memory_order_release);
}

static void arm(struct etch_vpt_self *t, uint32_t number, uint64_t address)
{
    const struct etch_vpt_watch *watch = &etch_vpt_control->watches[number];
    uint64_t value = 0;
    bool known = watch->size <= 8 && read_value(address, watch->size, &value);

    append(address, watch->size, number, watch->flags);
    etch_vpt_event_note(t, VPT_EVENT_ARMED, __rdtsc(), number, address, value, known, NULL);
}

void etch_vpt_watch_arm(struct etch_vpt_self *t, uint64_t guest_base)
{
    uint64_t program = etch_vpt_images_base_of(etch_vpt_control->program);

    base = guest_base;
    next_found = etch_vpt_control->n_watches;
    for (uint32_t i = 0; i < etch_vpt_control->n_watches && i < VPT_MAX_WATCHES; i++) {
        const struct etch_vpt_watch *watch = &etch_vpt_control->watches[i];

        if (watch->flags & VPT_WATCH_SITE)
            continue;
        if (!(watch->flags & VPT_WATCH_IN_PROGRAM))
            arm(t, i, watch->address);
        else if (program)
            arm(t, i, watch->address - etch_vpt_control->program_vaddr + program);
    }
}

void etch_vpt_watch_site(struct etch_vpt_instruction *i, uint64_t guest_base)
{
    base = guest_base;
    if (!looked_for_program) { /* once: it is there before its first instruction, or this process runs another one */
        looked_for_program = true;
        program_start = etch_vpt_images_base_of(etch_vpt_control->program);
        program_end = program_start ? program_start + etch_vpt_control->program_size : 0;
    }
    i->outside = i->ip < program_start || i->ip >= program_end;
    if (i->outside)
        return;
    for (uint16_t k = 0; k < etch_vpt_control->n_watches && k < VPT_MAX_WATCHES; k++)
        if (etch_vpt_control->watches[k].flags & VPT_WATCH_SITE &&
            etch_vpt_control->watches[k].address - etch_vpt_control->program_vaddr + program_start == i->ip)
            i->site = (uint16_t)(k + 1);
}

void etch_vpt_watch_follow(struct etch_vpt_self *t, const struct etch_vpt_block *from, uint64_t next)
{
    if (from->ending == VPT_CALLS || from->ending == VPT_CALLS_INDIRECT) {
        if (t->depth < VPT_CALLS_KEPT)
            t->calls[t->depth] = from->end;
        t->depth++;
    } else if (from->ending == VPT_RETURN) {
        /* A longjmp or an exception leaves several at once. */
        for (uint32_t d = t->depth; d-- > 0;) {
            if (d < VPT_CALLS_KEPT && t->calls[d] == next) {
                t->depth = d;
                return;
            }
        }
        t->depth -= t->depth > VPT_CALLS_KEPT;
    }
}

/* 0 if calls too deep to keep may be nearer. */
static uint64_t find_caller(const struct etch_vpt_self *t)
{
    if (t->depth > VPT_CALLS_KEPT)
        return 0;
    for (uint32_t d = t->depth; d-- > 0;)
        if (t->calls[d] >= program_start && t->calls[d] < program_end)
            return t->calls[d];
    return 0;
}

static bool is_armed(uint64_t address, uint32_t size)
{
    unsigned n = atomic_load_explicit(&n_armed, memory_order_acquire);

    if (!may_be_watched(address, size))
        return false;
    for (unsigned i = 0; i < n; i++)
        if (armed[i].start == address && armed[i].end == address + size)
            return true;
    return false;
}

/* A location that an instruction was seen to use: from now on everybody's accesses to it count. False if the table is
 * full; that is reported once. */
static bool arm_found(struct etch_vpt_self *t, uint32_t site, uint64_t address, uint32_t size)
{
    uint32_t number = UINT32_MAX;
    bool known, room;

    if (is_armed(address, size))
        return true;
    pthread_mutex_lock(&arming);
    known = is_armed(address, size);
    room = n_armed < VPT_MAX_ARMED && found_at[site] < SITE_MAX;
    if (!known && room) {
        number = next_found++;
        append(address, size, number, VPT_WATCH_READS | VPT_WATCH_WRITES);
    }
    if (!known)
        found_at[site]++;
    known |= found_at[site] > SITE_MAX + 1; /* reported already */
    pthread_mutex_unlock(&arming);
    if (!known)
        etch_vpt_event_note(t, VPT_EVENT_ARMED, __rdtsc(), number, address, size, 2u | site << 8, NULL);
    return room;
}

static void report(struct etch_vpt_self *t, const struct armed *a, const struct etch_vpt_instruction *by,
                   uint64_t address, uint32_t size, uint32_t flags)
{
    unsigned cpu;
    uint64_t tsc, value = 0;
    struct etch_vpt_access *event;
    uint64_t from = a->end - a->start <= 8 ? a->start : address;
    uint32_t bytes = a->end - a->start <= 8 ? (uint32_t)(a->end - a->start) : size;

    _mm_mfence(); /* a store has left the store buffer when it is stamped */
    tsc = __rdtscp(&cpu);
    event = etch_vpt_event_reserve(t, sizeof(*event), VPT_EVENT_ACCESS, tsc);
    if (!event)
        return;
    if (bytes <= 8) {
        /* The guest accessed these bytes just now, so they are mapped. */
        memcpy(&value, (const void *)(uintptr_t)(base + from), bytes);
        flags |= VPT_ACCESS_VALUE;
    }
    event->ip = by->ip;
    event->address = address;
    event->value = value;
    event->since = cpu == t->block_cpu ? t->block_tsc : 0;
    event->caller = by->outside ? find_caller(t) : 0;
    event->size = size;
    event->flags = flags;
    event->watch = a->number;
    event->cpu = cpu & 0xfff;
    etch_vpt_event_publish(t);
}

/* The site's own access. True where it was reported here and nowhere else. */
static bool at_site(struct etch_vpt_self *t, const struct etch_vpt_instruction *by, uint64_t address, uint32_t size,
                    uint32_t flags)
{
    uint32_t number = by->site - 1u;
    const struct etch_vpt_watch *watch = &etch_vpt_control->watches[number];
    struct armed here = {address, address + size, number, watch->flags};

    if (!(watch->flags & VPT_WATCH_HERE) && arm_found(t, number, address, size))
        return false;
    report(t, &here, by, address, size, flags);
    return true;
}

void etch_vpt_watch_access(struct etch_vpt_self *t, const struct etch_vpt_instruction *by, uint64_t address,
                           uint32_t size, bool store)
{
    uint32_t flags = store ? VPT_ACCESS_WRITE : VPT_ACCESS_READ;
    unsigned n;

    if (by->atomic) { /* one access of both sorts; while there is one thread only QEMU makes two of it */
        if (!store)
            return;
        flags |= VPT_ACCESS_READ;
    }
    if (by->site && at_site(t, by, address, size, flags))
        return;
    if (address >= highest || address + size <= lowest || !may_be_watched(address, size))
        return;
    n = atomic_load_explicit(&n_armed, memory_order_acquire);
    for (unsigned i = 0; i < n; i++)
        if (address < armed[i].end && armed[i].start < address + size &&
            flags & armed[i].flags & (VPT_WATCH_READS | VPT_WATCH_WRITES))
            report(t, &armed[i], by, address, size, flags);
}
