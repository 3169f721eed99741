/* SPDX-License-Identifier: MIT */
/* See ledger.h. */
#include "proto/ledger.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STREAMS_MAX 4096u
#define THREADS_MAX 65536u

/* ---- Names ---- */

const char *etch_loss_name(Etch__LossCause cause)
{
    static const char *const names[] = {
        "gap",
        "AUX truncated",
        "AUX partial",
        "AUX collision",
        "overflow",
        "sideband lost",
        "ring wrapped",
        "rate limited",
        "unmapped code",
        "undecodable",
        "recorder killed",
        "no space",
        "no ring",
        "ring reused",
        "ring gone",
        "file cut",
        "damaged",
        "limit reached",
        "out of memory",
        "recorder starved",
        "ring of two processes",
        "over the budget",
    };

    return (unsigned)cause < sizeof(names) / sizeof(names[0]) ? names[cause] : "unknown";
}

const char *etch_loss_key(Etch__LossCause cause, char key[64])
{
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(&etch__loss_cause__descriptor, (int)cause);
    const char *tail = value ? strchr(value->name, '_') + 1 : "unspecified";
    size_t n = 0;

    for (; *tail && n < 63; tail++)
        key[n++] = (char)tolower((unsigned char)*tail);
    key[n] = '\0';
    return key;
}

const char *etch_losses_text(const uint64_t counts[ETCH_LOSS_CAUSES], char *text, size_t size)
{
    size_t n = 0;

    snprintf(text, size, "nothing");
    for (unsigned i = 0; i < ETCH_LOSS_CAUSES && n < size; i++)
        if (counts[i])
            n += (size_t)snprintf(text + n, size - n, "%s%s (%" PRIu64 ")", n ? ", " : "",
                                  etch_loss_name((Etch__LossCause)i), counts[i]);
    return text;
}

/* ---- Records ---- */

static struct etch_ledger_stream *find(struct etch_ledger *l, uint32_t id)
{
    if (l->last < l->streams.n && l->streams.v[l->last].id == id)
        return &l->streams.v[l->last];
    for (size_t i = 0; i < l->streams.n; i++) {
        if (l->streams.v[i].id == id) {
            l->last = i;
            return &l->streams.v[i];
        }
    }
    return NULL;
}

static struct etch_ledger_stream *find_or_add(struct etch_ledger *l, uint32_t id)
{
    struct etch_ledger_stream *stream = find(l, id), fresh = {.id = id};

    if (stream)
        return stream;
    if (l->streams.n >= STREAMS_MAX) {
        l->limited = true;
        return NULL;
    }
    if (!etch_array_push(&l->streams, fresh)) {
        l->starved = true;
        return NULL;
    }
    l->last = l->streams.n - 1;
    return &l->streams.v[l->last];
}

static void take_stream(struct etch_ledger *l, const Etch__Stream *about)
{
    struct etch_ledger_stream *stream = find_or_add(l, about->id);

    if (!stream)
        return;
    stream->snapshot = about->snapshot;
    stream->pid = about->pid;
    stream->tid = about->of_case == ETCH__STREAM__OF_TID ? about->tid : 0;
}

static void take_flow(struct etch_ledger *l, const Etch__Flow *flow)
{
    struct etch_ledger_stream *stream = find_or_add(l, flow->stream);

    if (!stream || !flow->data.len)
        return;
    if (!stream->begun) {
        stream->begun = true;
        stream->first = stream->next = flow->offset;
    }
    stream->holes += flow->offset != stream->next;
    stream->next = flow->offset + flow->data.len;
}

static void take_loss(struct etch_ledger *l, const Etch__Loss *loss)
{
    struct etch_ledger_stream *stream = loss->watch ? NULL : find(l, loss->stream);

    etch_ledger_add(l, loss->cause, 1);
    if (loss->cause == ETCH__LOSS_CAUSE__LOSS_NO_RING || loss->cause == ETCH__LOSS_CAUSE__LOSS_NO_SPACE)
        l->ringless += loss->events;
    if (!stream)
        return;
    stream->told++;
    stream->wrap_told |= loss->cause == ETCH__LOSS_CAUSE__LOSS_RING_WRAPPED;
}

static void take_thread(struct etch_ledger *l, const Etch__Thread *thread)
{
    uint64_t key = (uint64_t)thread->pid << 32 | thread->tid;

    if (l->threads.n && l->threads.v[l->threads.n - 1] == key)
        return;
    if (l->threads.n >= THREADS_MAX)
        l->limited = true;
    else if (!etch_array_push(&l->threads, key))
        l->starved = true;
}

void etch_ledger_take(struct etch_ledger *l, const Etch__Record *record)
{
    l->begun = true;
    switch (record->body_case) {
    case ETCH__RECORD__BODY_PROGRAM:
        l->source = record->program->source;
        break;
    case ETCH__RECORD__BODY_STREAM:
        take_stream(l, record->stream);
        break;
    case ETCH__RECORD__BODY_FLOW:
        take_flow(l, record->flow);
        break;
    case ETCH__RECORD__BODY_LOSS:
        take_loss(l, record->loss);
        break;
    case ETCH__RECORD__BODY_THREAD:
        take_thread(l, record->thread);
        break;
    default:
        break;
    }
}

void etch_ledger_add(struct etch_ledger *l, Etch__LossCause cause, uint64_t n)
{
    l->counts[(unsigned)cause < ETCH_LOSS_CAUSES ? (unsigned)cause : 0] += n;
}

/* ---- What the file shows by itself ---- */

static bool has_flow(const struct etch_ledger *l, uint64_t thread)
{
    for (size_t i = 0; i < l->streams.n; i++) {
        const struct etch_ledger_stream *s = &l->streams.v[i];

        if (s->tid == (uint32_t)thread && (s->pid == thread >> 32 || !s->pid || !(thread >> 32)))
            return true;
    }
    return false;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Threads that were seen, of a program whose recorder has a stream for each. */
static uint64_t count_flowless(struct etch_ledger *l)
{
    uint64_t n = 0;

    if (l->source != ETCH__SOURCE__SOURCE_SOFT && l->source != ETCH__SOURCE__SOURCE_VPT)
        return 0;
    if (l->threads.n)
        qsort(l->threads.v, l->threads.n, sizeof(*l->threads.v), by_value);
    for (size_t i = 0; i < l->threads.n; i++)
        if ((i == 0 || l->threads.v[i] != l->threads.v[i - 1]) && !has_flow(l, l->threads.v[i]))
            n++;
    return n > l->ringless ? n - l->ringless : 0;
}

uint64_t etch_ledger_sum(struct etch_ledger *l, uint64_t counts[ETCH_LOSS_CAUSES])
{
    uint64_t total = 0;

    memcpy(counts, l->counts, sizeof(l->counts));
    for (size_t i = 0; i < l->streams.n; i++) {
        const struct etch_ledger_stream *s = &l->streams.v[i];

        counts[ETCH__LOSS_CAUSE__LOSS_RING_WRAPPED] += s->snapshot && s->first > 0 && !s->wrap_told;
        if (s->holes > s->told)
            counts[ETCH__LOSS_CAUSE__LOSS_UNSPECIFIED] += s->holes - s->told;
    }
    if (!l->limited && !l->starved)
        counts[ETCH__LOSS_CAUSE__LOSS_NO_RING] += count_flowless(l);
    counts[ETCH__LOSS_CAUSE__LOSS_LIMIT] += l->limited;
    counts[ETCH__LOSS_CAUSE__LOSS_NO_MEMORY] += l->starved;
    for (unsigned i = 0; i < ETCH_LOSS_CAUSES; i++)
        total += counts[i];
    return total;
}

void etch_ledger_release(struct etch_ledger *l)
{
    etch_array_free(&l->streams);
    etch_array_free(&l->threads);
}
