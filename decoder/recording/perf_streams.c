/* SPDX-License-Identifier: MIT */
/* The AUX data of a perf.data as streams of pieces. */
#include "decoder/recording/perf_loader.h"
#include "decoder/recording/perf_overlap.h"
#include "decoder/recording/recording_fill.h"

#include <inttypes.h>
#include <linux/perf_event.h>

static const struct etch_perf_attr *pt_attr(const struct etch_perf_loader *l)
{
    for (size_t i = 0; i < l->file.attrs.n; i++)
        if (l->file.attrs.v[i].type == l->info.words[PERF_PT_PMU_TYPE])
            return &l->file.attrs.v[i];
    return NULL;
}

static bool read_config(const struct etch_perf_loader *l, Etch__PtConfig *pt)
{
    const struct etch_perf_attr *attr = pt_attr(l);
    const uint64_t *w = l->info.words;
    char vendor[16] = "";
    unsigned family = 0, model = 0, stepping = 0;

    if (l->file.cpuid && sscanf(l->file.cpuid, "%15[^,],%u,%u,%u", vendor, &family, &model, &stepping) == 4) {
        pt->family = family;
        pt->model = model;
        pt->stepping = stepping;
        if (!etch_message_set_string(&pt->vendor, vendor))
            return false;
    }
    pt->nom_freq = (uint32_t)w[PERF_PT_MAX_NONTURBO_RATIO];
    pt->cpuid_15_ebx = (uint32_t)w[PERF_PT_TSC_CTC_N];
    pt->cpuid_15_eax = (uint32_t)w[PERF_PT_TSC_CTC_D];
    pt->filters = l->filters;
    if (attr && w[PERF_PT_MTC_FREQ_BITS])
        pt->mtc_freq =
            (uint32_t)((attr->config & w[PERF_PT_MTC_FREQ_BITS]) >> __builtin_ctzll(w[PERF_PT_MTC_FREQ_BITS]));
    pt->no_ret_compression = attr && attr->config & w[PERF_PT_NORETCOMP_BIT];
    return true;
}

struct etch_stream *etch_perf_streams_find(struct etch_recording *recording, bool by_cpu, uint32_t number)
{
    for (size_t i = 0; i < recording->streams.n; i++) {
        const Etch__Stream *s = recording->streams.v[i].about;

        if (by_cpu ? s->of_case == ETCH__STREAM__OF_CPU && s->cpu == number
                   : s->of_case == ETCH__STREAM__OF_TID && s->tid == number)
            return &recording->streams.v[i];
    }
    return NULL;
}

static struct etch_stream *stream_of(struct etch_perf_loader *l, const struct etch_perf_auxtrace *a)
{
    bool by_cpu = a->cpu != UINT32_MAX;
    struct etch_stream *stream = etch_perf_streams_find(l->recording, by_cpu, by_cpu ? a->cpu : a->tid);
    Etch__Stream *about;

    if (stream)
        return stream;
    stream = etch_recording_add_stream(l->recording, &about);
    if (!stream)
        return NULL;
    about->of_case = by_cpu ? ETCH__STREAM__OF_CPU : ETCH__STREAM__OF_TID;
    if (by_cpu)
        about->cpu = a->cpu;
    else
        about->tid = a->tid;
    about->snapshot = l->info.words[PERF_PT_SNAPSHOT_MODE] != 0;
    about->pt = malloc(sizeof(*about->pt));
    if (!about->pt)
        return NULL;
    etch__pt_config__init(about->pt);
    return read_config(l, about->pt) ? stream : NULL;
}

/* Where the next bytes of a snapshot belong: behind the last ones where the copies overlap, behind a hole of unknown
 * size (shown as one byte) where they do not. perf's own offsets count within the ring and say nothing here. */
static int place_snapshot(struct etch_perf_loader *l, struct etch_stream *stream, struct etch_piece *piece)
{
    struct etch_perf_copy now = {piece->where, piece->size}, *last = NULL;
    int64_t overlap;

    while (l->copies.n <= stream->about->id)
        if (!etch_array_push(&l->copies, (struct etch_perf_copy){0}))
            return etch_perf_loader_no_memory(l);
    last = &l->copies.v[stream->about->id];
    overlap = last->size ? etch_perf_overlap(&l->source, last->where, last->size, now.where, now.size) : 0;
    if (overlap < 0)
        return etch_error_set_errno(l->err, (int)-overlap, "cannot read %s", l->name);
    *last = now;
    piece->where += (uint64_t)overlap;
    piece->size -= (uint64_t)overlap;
    piece->offset = 0;
    if (stream->pieces.n) {
        const struct etch_piece *before = &stream->pieces.v[stream->pieces.n - 1];

        piece->offset = before->offset + before->size + (overlap ? 0 : 1);
    }
    return 0;
}

enum { PERF_ALIGNMENT = 8 };

/* perf fills up each piece with zeros to a multiple of eight bytes, and does not count them in the offset of the next:
 * such a tail gives way. Other bytes that are there already are not taken twice. */
static void place_full(struct etch_stream *stream, struct etch_piece *piece)
{
    struct etch_piece *before = stream->pieces.n ? &stream->pieces.v[stream->pieces.n - 1] : NULL;
    uint64_t again;

    if (!before || piece->offset >= before->offset + before->size)
        return;
    again = before->offset + before->size - piece->offset;
    if (again < PERF_ALIGNMENT && again < before->size) {
        before->size -= again;
        return;
    }
    if (again > piece->size)
        again = piece->size;
    piece->offset += again;
    piece->where += again;
    piece->size -= again;
}

static int add_piece(struct etch_perf_loader *l, const struct etch_perf_auxtrace *a)
{
    struct etch_stream *stream = stream_of(l, a);
    struct etch_piece piece = {.offset = a->offset, .size = a->size, .where = a->where};

    if (!stream)
        return etch_perf_loader_no_memory(l);
    if (piece.where > l->source.size)
        return 0;
    if (piece.size > l->source.size - piece.where) {
        piece.size = l->source.size - piece.where; /* the file is cut here */
        l->file.cut = true;
    }
    if (piece.offset > UINT64_MAX - piece.size)
        return l->recording->damaged++, 0;
    if (stream->about->snapshot) {
        if (place_snapshot(l, stream, &piece) < 0)
            return -1;
    } else {
        place_full(stream, &piece);
    }
    if (piece.size == 0)
        return 0;
    return etch_array_push(&stream->pieces, piece) ? 0 : etch_perf_loader_no_memory(l);
}

static int compare_auxtraces(const void *a, const void *b)
{
    const struct etch_perf_auxtrace *x = a, *y = b;

    return (x->where > y->where) - (x->where < y->where);
}

int etch_perf_streams_build(struct etch_perf_loader *l)
{
    if (l->auxtraces.n)
        qsort(l->auxtraces.v, l->auxtraces.n, sizeof(*l->auxtraces.v), compare_auxtraces);
    for (size_t i = 0; i < l->auxtraces.n; i++)
        if (add_piece(l, &l->auxtraces.v[i]) < 0)
            return -1;
    return 0;
}
