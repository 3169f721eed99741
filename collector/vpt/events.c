/* SPDX-License-Identifier: MIT */
/* Events that the plugin writes beside control flow: accesses, images, faults, watches that were set. */
#include "collector/vpt/vpt.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static int flush_accesses(struct etch_recorder *r, struct etch_error *err)
{
    struct vpt *v = r->state;
    Etch__Accesses accesses = ETCH__ACCESSES__INIT;

    accesses.n_accesses = v->n_accesses;
    accesses.accesses = v->access_list;
    v->n_accesses = 0;
    return etch_recorder_write_accesses(r, &accesses, err);
}

static int take_access(struct etch_recorder *r, const struct vpt_slot *s, const struct vpt_access *from,
                       struct etch_error *err)
{
    struct vpt *v = r->state;
    Etch__Access *a = &v->accesses[v->n_accesses];

    if (v->known && etch_vpt_known_access(v->known, s->tid, from->event.tsc))
        return 0;
    v->n_accesses++;
    etch__access__init(a);
    a->tsc = from->event.tsc;
    a->cpu = from->cpu;
    a->tid = s->tid;
    a->ip = from->ip;
    a->address = from->address;
    a->size = from->size;
    a->write = from->flags & VPT_ACCESS_WRITE;
    a->read = (from->flags & VPT_ACCESS_READ) != 0;
    /* Numbers begin at 1; 0 is an access that stands for itself, of which others to the same place are not told. */
    a->watch = from->watch < r->options->n_watches && v->watches[from->watch].here ? 0 : from->watch + 1;
    a->since = from->since;
    a->caller = from->caller;
    if (from->flags & VPT_ACCESS_VALUE) {
        a->known_case = ETCH__ACCESS__KNOWN_VALUE;
        a->value = from->value;
    }
    return v->n_accesses == VPT_ACCESSES_AT_ONCE ? flush_accesses(r, err) : 0;
}

static int take_image(struct etch_recorder *r, const struct vpt_slot *s, const struct vpt_image *from, uint32_t size,
                      struct etch_error *err)
{
    struct vpt *v = r->state;
    Etch__Image image = ETCH__IMAGE__INIT;
    struct etch_error ignored;
    struct etch_elf elf;
    char path[VPT_MAX_PATH + 1] = "";

    if (size < sizeof(*from) || from->path_size > VPT_MAX_PATH ||
        (uint64_t)from->path_size + from->code_size > size - sizeof(*from))
        return 0;
    memcpy(path, from + 1, from->path_size);
    if (strcmp(path, v->subject) == 0 && !etch_array_push(&v->subjects, s->pid))
        return vpt_out_of_memory(err);
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
    return etch_recorder_write_image(r, &image, err);
}

/* A location that the instruction of a site was seen to use. */
static int take_found(struct etch_recorder *r, const struct vpt_note *note, struct etch_error *err)
{
    const struct vpt *v = r->state;
    Etch__Watch watch = ETCH__WATCH__INIT;
    uint32_t site = note->flags >> 8;

    if (site >= r->options->n_watches || note->value > UINT32_MAX)
        return 0;
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
    return etch_recorder_write_watch(r, &watch, err);
}

static int take_armed(struct etch_recorder *r, const struct vpt_note *note, struct etch_error *err)
{
    struct vpt *v = r->state;
    Etch__Watch watch = ETCH__WATCH__INIT;
    struct etch_place *w;

    if (note->flags & 2)
        return take_found(r, note, err);
    if (note->number >= r->options->n_watches || v->armed[note->number])
        return 0;
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
    return etch_recorder_write_watch(r, &watch, err);
}

static int take_exec(struct etch_recorder *r, const struct vpt_slot *s, const struct vpt_note *note, uint32_t size,
                     struct etch_error *err)
{
    Etch__Loss loss = ETCH__LOSS__INIT;
    char detail[VPT_MAX_PATH + 64];
    int length = note->text_size <= size - sizeof(*note) ? (int)note->text_size : 0;

    if (note->number) /* its own process records it */
        return 0;
    snprintf(detail, sizeof(detail), "%.*s runs outside of QEMU, not recorded", length, (const char *)(note + 1));
    loss.tid = s->tid;
    loss.tsc = note->event.tsc;
    loss.events = 1;
    loss.detail = detail;
    return etch_recorder_write_loss(r, &loss, err);
}

static int take_gap(struct etch_recorder *r, const struct vpt_slot *s, const struct vpt_note *note,
                    struct etch_error *err)
{
    struct vpt *v = r->state;
    Etch__Loss loss = ETCH__LOSS__INIT;

    loss.cause = ETCH__LOSS_CAUSE__LOSS_OVERFLOW;
    loss.stream = (uint32_t)(s - v->slots.v);
    loss.tid = s->tid;
    loss.tsc = note->event.tsc;
    loss.events = 1;
    loss.detail = (char *)(uintptr_t)"control flow that the plugin could not follow";
    return etch_recorder_write_loss(r, &loss, err);
}

static bool is_subject(const struct vpt *v, uint32_t pid)
{
    for (size_t i = 0; i < v->subjects.n; i++)
        if (v->subjects.v[i] == pid)
            return true;
    return false;
}

static bool is_crash(uint32_t number)
{
    return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL || number == SIGABRT ||
           number == SIGTRAP || number == SIGSYS;
}

/* Takes a fault that ends a process or may end it. If a handler gets a fault and then ends the process in its own way,
 * the fault counts. A fault of the program's own process has priority over faults of children. */
static void take_fault(struct etch_recorder *r, const struct vpt_slot *s, const struct vpt_note *note)
{
    struct etch_source_failure *f = &r->failure;
    bool caught = note->event.type == VPT_EVENT_CAUGHT, own = s->tid == f->tid && s->pid == f->pid;

    if (f->seen && f->caught && own) {
        if (caught && note->flags & 2)
            memset(f, 0, sizeof(*f));
        else if (!caught)
            f->deadly = true;
        return;
    }
    if ((caught && note->flags & 2) || (f->seen && f->pid == (uint32_t)r->pid && s->pid != f->pid))
        return;
    if (s->pid != (uint32_t)r->pid && !(is_crash((uint32_t)note->value) && is_subject(r->state, s->pid)))
        return; /* children may be ended by whoever started them, and may be other programs */
    *f = (struct etch_source_failure){.seen = true,
                                      .address_known = note->flags & 1,
                                      .caught = caught,
                                      .deadly = !caught,
                                      .pid = s->pid,
                                      .tid = s->tid,
                                      .signal = (uint32_t)note->value,
                                      .code = (int)(note->value >> 32),
                                      .ip = note->number,
                                      .address = note->address,
                                      .tsc = note->event.tsc};
}

static int take_note(struct etch_recorder *r, const struct vpt_slot *s, const struct vpt_note *note, uint32_t size,
                     struct etch_error *err)
{
    struct vpt *v = r->state;
    struct vpt_child child = {(uint32_t)note->number, s->tid};

    if (size < sizeof(*note))
        return 0;
    switch (note->event.type) {
    case VPT_EVENT_CHILD:
        return etch_array_push(&v->children, child) ? 0 : vpt_out_of_memory(err);
    case VPT_EVENT_FAULT:
    case VPT_EVENT_CAUGHT:
        take_fault(r, s, note);
        return 0;
    case VPT_EVENT_EXEC:
        return take_exec(r, s, note, size, err);
    case VPT_EVENT_ARMED:
        return take_armed(r, note, err);
    case VPT_EVENT_GAP:
        return take_gap(r, s, note, err);
    default:
        return 0;
    }
}

static void copy_ring(uint8_t *to, const uint8_t *ring, uint64_t ring_size, uint64_t at, uint64_t size)
{
    uint64_t place = at & (ring_size - 1);
    uint64_t first = size < ring_size - place ? size : ring_size - place;

    memcpy(to, ring + place, first);
    memcpy(to + first, ring, size - first);
}

static int take_event(struct etch_recorder *r, const struct vpt_slot *s, uint32_t size, struct etch_error *err)
{
    const struct vpt *v = r->state;
    const struct vpt_event *event = (const struct vpt_event *)v->event;

    switch (event->type) {
    case VPT_EVENT_IMAGE:
        return take_image(r, s, (const struct vpt_image *)event, size, err);
    case VPT_EVENT_ACCESS:
        return size < sizeof(struct vpt_access) ? 0 : take_access(r, s, (const struct vpt_access *)event, err);
    default:
        return take_note(r, s, (const struct vpt_note *)event, size, err);
    }
}

/* The target can write what it likes into its own memory: sizes are checked before they are believed. */
int vpt_events_take(struct etch_recorder *r, struct vpt_slot *s, struct etch_error *err)
{
    struct vpt *v = r->state;
    uint64_t tail = s->event_taken;
    /* Acquire: pairs with the plugin's release; whole events up to there. */
    uint64_t head = atomic_load_explicit(&s->shared->event_head, memory_order_acquire);

    if (tail <= head && head - tail > VPT_EVENT_RING) {
        s->damaged = true;
        return 0;
    }
    while (tail < head) {
        struct vpt_event event;

        copy_ring((uint8_t *)&event, s->events, VPT_EVENT_RING, tail, sizeof(event));
        if (event.size < sizeof(event) || event.size > sizeof(v->event) || event.size > head - tail) {
            s->damaged = true;
            break;
        }
        copy_ring(v->event, s->events, VPT_EVENT_RING, tail, event.size);
        if (take_event(r, s, event.size, err) < 0)
            return -1;
        tail += event.size;
    }
    s->event_taken = tail;
    if (flush_accesses(r, err) < 0) /* first: if etch is killed here, the ring still has them */
        return -1;
    /* Release: pairs with the plugin's acquire; it may overwrite what we have read. */
    atomic_store_explicit(&s->shared->event_tail, tail, memory_order_release);
    return 0;
}
