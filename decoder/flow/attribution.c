/* SPDX-License-Identifier: MIT */
/* See attribution.h. */
#include "decoder/flow/attribution.h"
#include "decoder/flow/pt_clock.h"

#include <stdlib.h>

/* ---- Slots ---- */

static bool add_slot(struct etch_slots *slots, const struct etch_cpu_slot *slot)
{
    return slot->tid == 0 || slot->end < slot->begin || etch_array_push(&slots->v, *slot);
}

/* Images are sorted by process. */
static bool has_code(const struct etch_recording *r, uint32_t pid)
{
    size_t lo = 0, hi = r->images.n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (r->images.v[mid]->pid < pid)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < r->images.n && r->images.v[lo]->pid == pid;
}

/* Drops the slots of processes without code, such as kernel threads: they ran no traced code. If side-band records were
 * lost, they may have named code: then all slots stay. */
static void drop_slots_without_code(struct etch_slots *slots, const struct etch_recording *r)
{
    size_t kept = 0;

    for (size_t i = 0; i < r->losses.n; i++)
        if (r->losses.v[i]->cause == ETCH__LOSS_CAUSE__LOSS_SIDEBAND)
            return;
    for (size_t i = 0; i < slots->v.n; i++)
        if (has_code(r, slots->v.v[i].pid) || r->images.n == 0)
            slots->v.v[kept++] = slots->v.v[i];
    slots->v.n = kept;
}

/* The switches of one CPU, in order. */
static bool slots_of_cpu(struct etch_slots *slots, const Etch__Switch *s, size_t n)
{
    struct etch_cpu_slot open = {.cpu = s->cpu};
    bool running = false;
    uint64_t since = 0; /* the last switch */

    for (size_t i = 0; i < n; i++, s++) {
        if (running && (s->in || s->pid != open.pid || s->tid != open.tid)) {
            open.end = s->tsc; /* its leaving was not recorded, its successor's coming was */
            if (!add_slot(slots, &open))
                return false;
            running = false;
            since = s->tsc;
        }
        if (!running)
            open = (struct etch_cpu_slot){s->cpu, s->pid, s->tid, s->in ? s->tsc : since, UINT64_MAX, false};
        running = s->in;
        if (!s->in) {
            open.end = s->tsc;
            if (!add_slot(slots, &open))
                return false;
        }
        since = s->tsc;
    }
    return !running || add_slot(slots, &open);
}

/* Between the last switch that came through and the word that records were lost, others may have run. */
static bool unknown_slot(struct etch_slots *slots, const struct etch_recording *r, const Etch__Loss *loss)
{
    struct etch_cpu_slot slot = {loss->cpu, 0, 0, 0, loss->tsc, true};

    if (loss->cause != ETCH__LOSS_CAUSE__LOSS_SIDEBAND || !loss->tsc || loss->watch)
        return true;
    for (size_t i = 0; i < r->switches.n; i++)
        if (r->switches.v[i].cpu == loss->cpu && r->switches.v[i].tsc < loss->tsc && r->switches.v[i].tsc > slot.begin)
            slot.begin = r->switches.v[i].tsc;
    return etch_array_push(&slots->v, slot);
}

static bool has_switches(const struct etch_recording *r, uint32_t cpu)
{
    for (size_t i = 0; i < r->switches.n; i++)
        if (r->switches.v[i].cpu == cpu)
            return true;
    return false;
}

/* Without switches: whom can it be but the only one? */
static bool slot_by_elimination(struct etch_slots *slots, const struct etch_recording *r, uint32_t cpu)
{
    struct etch_cpu_slot slot = {cpu, 0, 0, 0, UINT64_MAX, false};

    if (r->threads.n > 0)
        slot.pid = r->threads.v[0]->pid;
    else if (r->images.n > 0)
        slot.pid = r->images.v[0]->pid;
    for (size_t i = 0; i < r->threads.n; i++)
        if (r->threads.v[i]->pid != slot.pid)
            return true;
    for (size_t i = 0; i < r->images.n; i++)
        if (r->images.v[i]->pid != slot.pid)
            return true;
    slot.tid = r->threads.n == 1 ? r->threads.v[0]->tid : 0;
    return etch_array_push(&slots->v, slot);
}

static int compare_slots(const void *a, const void *b)
{
    const struct etch_cpu_slot *x = a, *y = b;

    if (x->cpu != y->cpu)
        return x->cpu < y->cpu ? -1 : 1;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

bool etch_slots_build(struct etch_slots *slots, const struct etch_recording *r)
{
    for (size_t i = 0; i < r->switches.n;) {
        size_t n = 1;

        while (i + n < r->switches.n && r->switches.v[i + n].cpu == r->switches.v[i].cpu)
            n++;
        if (!slots_of_cpu(slots, &r->switches.v[i], n))
            return false;
        i += n;
    }
    drop_slots_without_code(slots, r);
    for (size_t i = 0; i < r->streams.n; i++) {
        const Etch__Stream *about = r->streams.v[i].about;

        if (about->of_case == ETCH__STREAM__OF_CPU && !has_switches(r, about->cpu) &&
            !slot_by_elimination(slots, r, about->cpu))
            return false;
    }
    for (size_t i = 0; i < r->losses.n; i++)
        if (!unknown_slot(slots, r, r->losses.v[i]))
            return false;
    if (slots->v.n)
        qsort(slots->v.v, slots->v.n, sizeof(slots->v.v[0]), compare_slots);
    return true;
}

const struct etch_cpu_slot *etch_slots_of(const struct etch_slots *slots, uint32_t cpu, size_t *n)
{
    const struct etch_cpu_slot *first = NULL;

    *n = 0;
    for (size_t i = 0; i < slots->v.n; i++)
        if (slots->v.v[i].cpu == cpu) {
            first = first ? first : &slots->v.v[i];
            ++*n;
        }
    return first;
}

/* ---- Tenures ---- */

static int compare_tenures(const void *a, const void *b)
{
    const struct etch_tenure *x = a, *y = b;

    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

bool etch_tenures_build(struct etch_tenures *tenures, const struct etch_slots *slots)
{
    size_t n = 0;

    for (size_t i = 0; i < slots->v.n; i++) {
        const struct etch_cpu_slot *s = &slots->v.v[i];
        struct etch_tenure tenure = {s->cpu, s->pid, s->tid, s->begin, s->end};

        if (!s->unknown && !etch_array_push(&tenures->v, tenure))
            return false;
    }
    if (tenures->v.n == 0)
        return true;
    qsort(tenures->v.v, tenures->v.n, sizeof(tenures->v.v[0]), compare_tenures);
    for (size_t i = 1; i < tenures->v.n; i++) {
        struct etch_tenure *last = &tenures->v.v[n], *next = &tenures->v.v[i];

        if (last->pid == next->pid && last->tid == next->tid && last->cpu == next->cpu)
            last->end = next->end;
        else
            tenures->v.v[++n] = *next;
    }
    tenures->v.n = n + 1;
    return true;
}

/* ---- Regions ---- */

/* The known bounds of a region's time. A timing packet within the region beats all else: the thread ran at that
 * time. */
struct when {
    uint64_t lo; /* it began no earlier */
    bool timed;
    struct etch_interval within;
};

struct scan {
    const struct etch_pt_input *in;
    struct etch_pt_reader reader;
    struct etch_pt_clock clock;
    uint64_t lo; /* now is not earlier */
    bool in_psb, psb_has_ip, psb_timed;
    bool overflown; /* packets were lost, and no packet has told yet where execution goes on */
    size_t psb_at;
    struct etch_interval psb_time;

    const struct etch_cpu_slot *slots;
    size_t n_slots;
    const struct etch_tenure *tenure;

    bool open; /* user code runs */
    size_t begin;
    struct when when;
    size_t untimed; /* the first region whose end has no bound yet */
    struct etch_pt_region *regions;
    struct when *whens; /* one for each */
    size_t n, capacity, whens_capacity;
    bool failed;
};

static void open_region(struct scan *s, size_t at)
{
    if (s->open)
        return;
    s->open = true;
    s->begin = at;
    s->when = (struct when){.lo = s->lo};
}

static void close_region(struct scan *s, size_t at)
{
    if (!s->open)
        return;
    s->open = false;
    if (s->n + 1 > s->capacity && !etch_array_grow((void **)&s->regions, &s->capacity, sizeof(*s->regions), s->n + 1))
        s->failed = true;
    if (s->n + 1 > s->whens_capacity &&
        !etch_array_grow((void **)&s->whens, &s->whens_capacity, sizeof(*s->whens), s->n + 1))
        s->failed = true;
    if (s->failed)
        return;
    s->whens[s->n] = s->when;
    s->regions[s->n++] = (struct etch_pt_region){s->begin, at, false};
}

/* Whose the time [lo, hi] on this CPU is. If two tenures of the thread share it, it belongs to the earlier one. */
enum whose { NOT_OURS, OURS, DOUBTFUL };

static enum whose whose(const struct scan *s, uint64_t lo, uint64_t hi)
{
    const struct etch_tenure *t = s->tenure;
    bool ours = false, others = false;

    for (size_t i = 0; i < s->n_slots; i++) {
        const struct etch_cpu_slot *slot = &s->slots[i];

        if (slot->begin > hi || slot->end < lo)
            continue;
        if (slot->unknown || slot->pid != t->pid || slot->tid != t->tid)
            others = true;
        else if (slot->begin < t->begin)
            return NOT_OURS;
        else if (slot->begin <= t->end)
            ours = true;
    }
    return !ours ? NOT_OURS : others ? DOUBTFUL : OURS;
}

/* A region belongs to one slot. The times within the region tell more than the times around it. */
static enum whose whose_region(const struct scan *s, const struct when *when, uint64_t hi)
{
    uint64_t lo = when->lo;

    if (when->timed && when->within.lo > lo)
        lo = when->within.lo;
    if (when->timed && when->within.hi < hi)
        hi = when->within.hi;
    return whose(s, lo, hi);
}

/* Settles the closed regions that had no upper bound of time yet: `hi` is their bound. Regions of other threads are
 * dropped. */
static void settle(struct scan *s, uint64_t hi)
{
    size_t kept = s->untimed;

    for (size_t i = s->untimed; i < s->n; i++) {
        enum whose w = whose_region(s, &s->whens[i], hi);

        if (w == NOT_OURS)
            continue;
        s->regions[kept] = s->regions[i];
        s->regions[kept].doubtful = w == DOUBTFUL;
        s->whens[kept++] = s->whens[i];
    }
    s->n = s->untimed = kept;
}

static bool is_kernel(uint64_t ip)
{
    return ip >> 63;
}

static void note_within(struct scan *s, struct etch_interval at)
{
    if (s->when.timed && s->when.within.hi - s->when.within.lo <= at.hi - at.lo)
        return; /* the narrowest tells most */
    s->when.timed = true;
    s->when.within = at;
}

/* An overflow may hide that the thread left, and that another came. */
static void scan_overflow(struct scan *s, const struct etch_pt_packet *p, size_t at, size_t next)
{
    if (p->kind == ETCH_PT_OVF)
        close_region(s, next);
    else if (s->overflown && p->kind == ETCH_PT_FUP && !s->in_psb && p->has_ip && !is_kernel(p->value))
        open_region(s, at);
    if (p->kind == ETCH_PT_OVF)
        s->overflown = true;
    else if (p->kind == ETCH_PT_FUP || p->kind == ETCH_PT_TIP_PGE || p->kind == ETCH_PT_TIP)
        s->overflown = false;
}

static void scan_flow(struct scan *s, const struct etch_pt_packet *p, size_t at, size_t next)
{
    scan_overflow(s, p, at, next);
    switch (p->kind) {
    case ETCH_PT_TIP_PGE:
    case ETCH_PT_TIP:
        if (p->has_ip && is_kernel(p->value))
            close_region(s, next);
        else if (p->has_ip)
            open_region(s, at);
        break;
    case ETCH_PT_TIP_PGD:
        close_region(s, next);
        break;
    case ETCH_PT_PSB:
        s->in_psb = true;
        s->psb_has_ip = s->psb_timed = false;
        s->psb_at = at;
        break;
    case ETCH_PT_FUP:
        if (s->in_psb && p->has_ip && !is_kernel(p->value))
            s->psb_has_ip = true;
        break;
    case ETCH_PT_PSBEND:
        if (s->in_psb && s->psb_has_ip)
            open_region(s, s->psb_at);
        if (s->in_psb && s->open && s->psb_timed)
            note_within(s, s->psb_time);
        s->in_psb = false;
        break;
    default:
        break;
    }
}

static void scan_time(struct scan *s, const struct etch_pt_packet *p)
{
    struct etch_interval at;

    if (etch_pt_clock_feed(&s->clock, p, &at) != ETCH_PT_CLOCK_ANCHOR)
        return;
    s->lo = at.lo;
    if (s->in_psb) {
        s->psb_timed = true;
        s->psb_time = at;
    } else if (s->open) {
        note_within(s, at);
    }
    if (at.hi != UINT64_MAX)
        settle(s, at.hi);
}

static void scan_all(struct scan *s)
{
    const struct etch_pt_input *in = s->in;
    size_t at = 0;

    while (at < in->size && !s->failed) {
        struct etch_pt_packet packet;
        int n = etch_pt_packet_read(&s->reader, in->bytes + at, in->bytes + in->size, &packet);

        if (n <= 0) {
            const uint8_t *psb = etch_pt_psb_find(in->bytes + at + 1, in->bytes + in->size);

            at = psb ? (size_t)(psb - in->bytes) : in->size;
            continue;
        }
        if (at >= in->own && s->open)
            close_region(s, in->own);
        if (at < in->own)
            scan_flow(s, &packet, at, at + (size_t)n);
        scan_time(s, &packet);
        at += (size_t)n;
    }
    close_region(s, in->own);
    settle(s, UINT64_MAX);
}

bool etch_regions_find(const struct etch_pt_input *input, const struct etch_cpu_slot *slots, size_t n_slots,
                       const struct etch_tenure *tenure, struct etch_pt_region **regions, size_t *n, size_t *capacity)
{
    struct scan s = {
        .in = input, .slots = slots, .n_slots = n_slots, .tenure = tenure, .regions = *regions, .capacity = *capacity};

    etch_pt_clock_init(&s.clock, input->config);
    scan_all(&s);
    free(s.whens);
    *regions = s.regions;
    *n = s.n;
    *capacity = s.capacity;
    return !s.failed;
}

/* The first TSC before anything that ran; UINT64_MAX where there is none. */
static uint64_t first_tsc(const uint8_t *p, const uint8_t *end)
{
    struct etch_pt_reader reader = {0};

    while (p < end) {
        struct etch_pt_packet packet;
        int n = etch_pt_packet_read(&reader, p, end, &packet);

        if (n <= 0 || packet.kind == ETCH_PT_TNT || packet.kind == ETCH_PT_TIP || packet.kind == ETCH_PT_TIP_PGE)
            break;
        if (packet.kind == ETCH_PT_TSC)
            return packet.value;
        p += n;
    }
    return UINT64_MAX;
}

struct etch_interval etch_pt_input_time(const struct etch_pt_input *in)
{
    uint64_t lo = first_tsc(in->bytes, in->bytes + in->own);

    return (struct etch_interval){lo == UINT64_MAX ? 0 : lo, first_tsc(in->bytes + in->own, in->bytes + in->size)};
}
