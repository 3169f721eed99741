/* SPDX-License-Identifier: MIT */
/* Events that the plugin writes beside control flow: accesses, images, faults, watches that were set. */
#include "collector/vpt/vpt.h"

#include <stdio.h>
#include <string.h>

static void take_access(struct vpt *v, const struct etch_vpt_slot *s, const struct etch_vpt_access *from)
{
    Etch__Access *a;

    if (v->known && etch_vpt_known_access(v->known, s->tid, from->event.tsc))
        return;
    a = etch_batch_add(&v->batch);
    a->tsc = from->event.tsc;
    a->cpu = from->cpu;
    a->tid = s->tid;
    a->ip = from->ip;
    a->address = from->address;
    a->size = from->size;
    a->write = from->flags & VPT_ACCESS_WRITE;
    a->read = (from->flags & VPT_ACCESS_READ) != 0;
    /* Numbers begin at 1; 0 is an access that stands for itself, of which others to the same place are not told. */
    a->watch = from->watch < v->options->n_watches && v->watches[from->watch].here ? 0 : from->watch + 1;
    a->since = from->since;
    a->caller = from->caller;
    if (from->flags & VPT_ACCESS_VALUE) {
        a->known_case = ETCH__ACCESS__KNOWN_VALUE;
        a->value = from->value;
    }
    if (v->batch.n == ETCH_BATCH_MAX)
        etch_batch_flush(&v->batch, &v->sink);
}

static void take_image(struct vpt *v, const struct etch_vpt_slot *s, const struct etch_vpt_image *from, uint32_t size)
{
    Etch__Image image = ETCH__IMAGE__INIT;
    struct etch_error ignored;
    struct etch_elf elf;
    char path[VPT_MAX_PATH + 1] = "";

    if (size < sizeof(*from) || from->path_size > VPT_MAX_PATH ||
        (uint64_t)from->path_size + from->code_size > size - sizeof(*from))
        return;
    memcpy(path, from + 1, from->path_size);
    if (strcmp(path, v->subject) == 0 && !etch_array_push(&v->subjects, s->pid))
        v->no_memory++;
    image.pid = s->pid;
    image.start = from->start;
    image.size = from->size;
    image.file_offset = from->file_offset;
    image.path = path;
    image.prot = 1 | 4;
    image.mapped_tsc = from->mapped_tsc;
    image.unmapped_tsc = from->unmapped_tsc;
    image.code.data = (uint8_t *)(uintptr_t)(from + 1) + from->path_size;
    image.code.len = from->code_size;
    if (path[0] && etch_elf_read(&elf, path, &ignored) == 0) {
        image.build_id.data = elf.build_id;
        image.build_id.len = elf.build_id_size;
    }
    v->sink.write(v->sink.context, ETCH__RECORD__BODY_IMAGE, &image);
}

/* A location that the instruction of a site was seen to use. */
static void take_found(const struct vpt *v, const struct etch_vpt_note *note)
{
    Etch__Watch watch = ETCH__WATCH__INIT;
    uint32_t site = note->flags >> 8;

    if (site >= v->options->n_watches || note->value > UINT32_MAX)
        return;
    watch.id = (uint32_t)note->number + 1;
    watch.name = (char *)(uintptr_t)v->watches[site].text;
    watch.address = note->address;
    watch.size = (uint32_t)note->value;
    watch.reads = watch.writes = true;
    watch.armed_tsc = note->event.tsc;
    watch.emulated = true;
    watch.site = v->watches[site].address;
    if (note->number == UINT32_MAX) {
        watch.id = 0;
        watch.skipped = true;
        watch.skip_reason = (char *)(uintptr_t)"too many locations of sites";
    }
    v->sink.write(v->sink.context, ETCH__RECORD__BODY_WATCH, &watch);
}

static void take_armed(struct vpt *v, const struct etch_vpt_note *note)
{
    Etch__Watch watch = ETCH__WATCH__INIT;
    struct etch_place *w;

    if (note->flags & 2) {
        take_found(v, note);
        return;
    }
    if (note->number >= v->options->n_watches || v->armed[note->number])
        return;
    v->armed[note->number] = true;
    w = &v->watches[note->number];
    watch.id = (uint32_t)note->number + 1;
    watch.name = w->text;
    watch.address = note->address;
    watch.size = w->size;
    watch.reads = w->reads;
    watch.writes = w->writes;
    watch.armed_tsc = note->event.tsc;
    watch.emulated = true;
    if (note->flags & 1) {
        watch.initially_case = ETCH__WATCH__INITIALLY_INITIAL_VALUE;
        watch.initial_value = note->value;
    }
    v->sink.write(v->sink.context, ETCH__RECORD__BODY_WATCH, &watch);
}

static void take_exec(const struct vpt *v, const struct etch_vpt_slot *s, const struct etch_vpt_note *note,
                      uint32_t size)
{
    Etch__Loss loss = ETCH__LOSS__INIT;
    char detail[VPT_MAX_PATH + 64];
    int length = note->text_size <= size - sizeof(*note) ? (int)note->text_size : 0;

    if (note->number) /* its own process records it */
        return;
    snprintf(detail, sizeof(detail), "%.*s runs outside of QEMU, not recorded", length, (const char *)(note + 1));
    loss.tid = s->tid;
    loss.tsc = note->event.tsc;
    loss.events = 1;
    loss.detail = detail;
    v->sink.lost(v->sink.context, &loss);
}

static void take_gap(const struct vpt *v, const struct etch_vpt_slot *s, const struct etch_vpt_note *note)
{
    Etch__Loss loss = ETCH__LOSS__INIT;

    loss.cause = ETCH__LOSS_CAUSE__LOSS_OVERFLOW;
    loss.stream = (uint32_t)(s - v->slots.v);
    loss.tid = s->tid;
    loss.tsc = note->event.tsc;
    loss.events = 1;
    loss.detail = (char *)(uintptr_t)"control flow that the plugin could not follow";
    v->sink.lost(v->sink.context, &loss);
}

static void take_note(struct vpt *v, const struct etch_vpt_slot *s, const struct etch_vpt_note *note, uint32_t size)
{
    struct etch_vpt_child child = {(uint32_t)note->number, s->tid};

    if (size < sizeof(*note))
        return;
    switch (note->event.type) {
    case VPT_EVENT_CHILD:
        if (!etch_array_push(&v->children, child))
            v->no_memory++;
        break;
    case VPT_EVENT_FAULT:
    case VPT_EVENT_CAUGHT:
        etch_vpt_fault_take(v, s, note);
        break;
    case VPT_EVENT_EXEC:
        take_exec(v, s, note, size);
        break;
    case VPT_EVENT_ARMED:
        take_armed(v, note);
        break;
    case VPT_EVENT_GAP:
        take_gap(v, s, note);
        break;
    default:
        break;
    }
}

static void copy_ring(uint8_t *to, const uint8_t *ring, uint64_t ring_size, uint64_t at, uint64_t size)
{
    uint64_t place = at & (ring_size - 1);
    uint64_t first = size < ring_size - place ? size : ring_size - place;

    memcpy(to, ring + place, first);
    memcpy(to + first, ring, size - first);
}

static void take_event(struct vpt *v, const struct etch_vpt_slot *s, uint32_t size)
{
    const struct etch_vpt_event *event = (const struct etch_vpt_event *)v->event;

    switch (event->type) {
    case VPT_EVENT_IMAGE:
        take_image(v, s, (const struct etch_vpt_image *)event, size);
        break;
    case VPT_EVENT_ACCESS:
        if (size >= sizeof(struct etch_vpt_access))
            take_access(v, s, (const struct etch_vpt_access *)event);
        break;
    default:
        take_note(v, s, (const struct etch_vpt_note *)event, size);
        break;
    }
}

/* The target can write what it likes into its own memory: sizes are checked before they are believed. */
void etch_vpt_events_take(struct vpt *v, struct etch_vpt_slot *s)
{
    uint64_t tail = s->event_taken;
    /* Acquire: pairs with the plugin's release; whole events up to there. */
    uint64_t head = atomic_load_explicit(&s->shared->event_head, memory_order_acquire);

    if (tail <= head && head - tail > VPT_EVENT_RING) {
        s->damaged = true;
        return;
    }
    while (tail < head) {
        struct etch_vpt_event event;

        copy_ring((uint8_t *)&event, s->events, VPT_EVENT_RING, tail, sizeof(event));
        if (event.size < sizeof(event) || event.size > sizeof(v->event) || event.size > head - tail) {
            s->damaged = true;
            break;
        }
        copy_ring(v->event, s->events, VPT_EVENT_RING, tail, event.size);
        take_event(v, s, event.size);
        tail += event.size;
    }
    s->event_taken = tail;
    etch_batch_flush(&v->batch, &v->sink); /* first: if etch is killed here, the ring still has them */
    /* Release: pairs with the plugin's acquire; it may overwrite what we have read. */
    atomic_store_explicit(&s->shared->event_tail, tail, memory_order_release);
}
