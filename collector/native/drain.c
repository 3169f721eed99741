/* SPDX-License-Identifier: MIT */
/* Takes watch hits and synchronisation events out of their rings into the bundle; see native.h. */
#include "collector/native/native.h"

#include "calibrate/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

static void look_for_code(void *context, uint64_t ip)
{
    struct native *n = context;

    for (size_t i = 0; i < n->images.n; i++)
        if (ip >= n->images.v[i].start && ip < n->images.v[i].end)
            return;
    if (ip && ip < (uint64_t)1 << 47)
        n->unknown_code = true;
}

/* A stack is masked by the code that the bundle knows. A word that may be an address of a library that was loaded since
 * is a reason to look, once a drain. */
static void look_for_libraries(struct native *n, const struct etch_hit *hit)
{
    uint64_t sp = hit->registers[7], word;

    for (size_t at = 0; !n->unknown_code && !n->looked && at + 8 <= hit->stack_size; at += 8) {
        memcpy(&word, hit->stack + at, 8);
        n->unknown_code = word >> 40 >= 0x7e && word >> 47 == 0 && (word < sp || word - sp > 8u << 20) &&
                          !etch_mappings_at(&n->mapped, word);
    }
}

static void flush_accesses(struct native *n)
{
    if (n->unknown_code && n->batch.n && !n->looked && !n->target.gone) {
        n->looked = true;
        etch_native_write_images(n);
    }
    etch_batch_flush(&n->batch, &n->recorder.sink);
}

static void on_hit(void *context, uint32_t id, const struct etch_hit *hit)
{
    struct native *n = context;
    struct native_watch *watch = &n->list[id];
    size_t i = n->batch.n;
    Etch__Access *access = etch_batch_add(&n->batch);

    access->tsc = etch_native_tsc(n, hit->perf_ns);
    access->perf_ns = hit->perf_ns;
    access->cpu = hit->cpu;
    access->tid = hit->tid;
    access->ip = hit->ip;
    access->address = watch->address;
    access->size = watch->size;
    access->watch = watch->id;
    access->ip_is_after = hit->ip < (uint64_t)1 << 47;
    access->write = !watch->place.reads; /* the debug register says only so much; the decoder finds the rest */
    access->direction_unknown = watch->place.reads;
    if (hit->registers_known) {
        memcpy(n->registers[i], hit->registers, sizeof(hit->registers));
        access->registers = n->registers[i];
        access->n_registers = ETCH_HIT_REGISTERS;
    }
    if (hit->registers_known && hit->stack_size && hit->stack_size <= ETCH_HIT_STACK) {
        memcpy(n->stacks[i], hit->stack, hit->stack_size);
        access->stack = (ProtobufCBinaryData){hit->stack_size, n->stacks[i]};
        look_for_libraries(n, hit);
    }
    look_for_code(n, hit->ip);
    watch->hits++;
    if (n->batch.n == NATIVE_BATCH)
        flush_accesses(n);
}

static void on_lost(void *context, uint32_t id, uint64_t hits)
{
    struct native *n = context;

    n->list[id].reported += hits;
    etch_native_write_loss(n, ETCH__LOSS_CAUSE__LOSS_SIDEBAND, n->list[id].id, 0, hits,
                           "watch hits came faster than they could be written");
}

static void on_cut(void *context, uint32_t id)
{
    struct native *n = context;

    n->list[id].cut = true;
    n->list[id].cut_tsc = __rdtsc();
    n->summary->cuts++;
}

static void on_resumed(void *context, uint32_t id, uint64_t ns)
{
    struct native *n = context;
    char detail[256];

    snprintf(detail, sizeof(detail), "%.100s went beyond its budget and was not watched for %.0f ms",
             n->list[id].place.text, (double)ns / 1e6);
    n->list[id].cut = false;
    n->summary->cut_ns += ns;
    etch_native_write_loss(n, ETCH__LOSS_CAUSE__LOSS_RATE_LIMITED, n->list[id].id, 0, 0, detail);
}

void etch_native_drain(struct native *n, bool last)
{
    const struct etch_watch_sink hits = {n, on_hit, on_lost, on_cut, on_resumed};

    n->looked = false;
    n->syncs.sink = &n->recorder.sink;
    n->syncs.code = look_for_code;
    n->syncs.context = n;
    etch_clock_pairs_take(&n->pair, 1, CLOCK_MONOTONIC_RAW, 0);
    if (n->watches)
        etch_watches_drain(n->watches, &hits);
    if (n->sync)
        n->busy = etch_sync_batch_take(&n->syncs, n->sync, last) > ETCH_SYNC_EVENTS / 8;
    flush_accesses(n);
    if (n->unknown_code && !n->target.gone)
        etch_native_write_images(n);
}
