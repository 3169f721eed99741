/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* Emulated watchpoints; see watch.h. */
#include "collector/vpt/watch.h"
#include "collector/vpt/images.h"

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

struct armed {
    uint64_t start, end;
    uint32_t number, flags;
};

static struct armed armed[VPT_MAX_WATCHES];
static unsigned n_armed;
static uint64_t lowest = UINT64_MAX, highest, base;

/* The value may be gone (another thread unmapped it): ask the kernel rather than die. */
static bool read_value(uint64_t address, uint32_t size, uint64_t *value)
{
    struct iovec to = {value, size}, from = {(void *)(uintptr_t)(base + address), size};

    *value = 0;
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)size;
}

static void arm(struct vpt_self *t, uint32_t number, uint64_t address)
{
    const struct vpt_watch *watch = &vpt_control->watches[number];
    struct armed *a = &armed[n_armed++];
    uint64_t value = 0;
    bool known = watch->size <= 8 && read_value(address, watch->size, &value);

    *a = (struct armed){address, address + watch->size, number, watch->flags};
    lowest = a->start < lowest ? a->start : lowest;
    highest = a->end > highest ? a->end : highest;
    vpt_event_note(t, VPT_EVENT_ARMED, __rdtsc(), number, address, value, known, NULL);
}

void vpt_watch_arm(struct vpt_self *t, uint64_t guest_base)
{
    uint64_t program = vpt_images_base_of(vpt_control->program);

    base = guest_base;
    for (uint32_t i = 0; i < vpt_control->n_watches && i < VPT_MAX_WATCHES; i++) {
        const struct vpt_watch *watch = &vpt_control->watches[i];

        if (!(watch->flags & VPT_WATCH_IN_PROGRAM))
            arm(t, i, watch->address);
        else if (program)
            arm(t, i, watch->address - vpt_control->program_vaddr + program);
    }
}

static void report(struct vpt_self *t, const struct armed *a, const struct vpt_instruction *by, uint64_t address,
                   uint32_t size, uint32_t flags)
{
    unsigned cpu;
    uint64_t tsc = __rdtscp(&cpu), value = 0;
    struct vpt_access *event = vpt_event_reserve(t, sizeof(*event), VPT_EVENT_ACCESS, tsc);
    uint64_t from = a->end - a->start <= 8 ? a->start : address;
    uint32_t bytes = a->end - a->start <= 8 ? (uint32_t)(a->end - a->start) : size;

    if (!event)
        return;
    if (bytes <= 8) {
        /* It was read or written this instant, so it is mapped. */
        memcpy(&value, (const void *)(uintptr_t)(base + from), bytes);
        flags |= VPT_ACCESS_VALUE;
    }
    event->ip = by->ip;
    event->address = address;
    event->value = value;
    event->size = size;
    event->flags = flags;
    event->watch = a->number;
    event->cpu = cpu & 0xfff;
    vpt_event_publish(t);
}

void vpt_watch_access(struct vpt_self *t, const struct vpt_instruction *by, uint64_t address, uint32_t size, bool store)
{
    uint32_t flags = store ? VPT_ACCESS_WRITE : VPT_ACCESS_READ;

    if (address >= highest || address + size <= lowest)
        return;
    if (by->atomic) { /* one access of both sorts; while there is one thread only QEMU makes two of it */
        if (!store)
            return;
        flags |= VPT_ACCESS_READ;
    }
    for (unsigned i = 0; i < n_armed; i++)
        if (address < armed[i].end && armed[i].start < address + size &&
            flags & armed[i].flags & (VPT_WATCH_READS | VPT_WATCH_WRITES))
            report(t, &armed[i], by, address, size, flags);
}
