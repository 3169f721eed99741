/* SPDX-License-Identifier: MIT */
/* See cuts.h. */
#include "decoder/recording/cuts.h"

#include <stdlib.h>

/* Of one stream: where its cuts are, in order, each once. */
struct cuts {
    ETCH_ARRAY(uint64_t) at;
};

static uint64_t end_of(const struct etch_stream *stream)
{
    const struct etch_piece *last = stream->pieces.n ? &stream->pieces.v[stream->pieces.n - 1] : NULL;

    return last ? last->offset + last->size : 0;
}

static bool is_cut(const Etch__Loss *loss, const struct etch_stream *stream)
{
    return loss->cause == ETCH__LOSS_CAUSE__LOSS_AUX_TRUNCATED && loss->stream == stream->about->id;
}

static int compare_offsets(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static bool find_cuts(struct cuts *cuts, const struct etch_recording *r, const struct etch_stream *stream)
{
    size_t n = 0;

    cuts->at.n = 0;
    for (size_t i = 0; i < r->losses.n; i++)
        if (is_cut(r->losses.v[i], stream) && !etch_array_push(&cuts->at, r->losses.v[i]->offset))
            return false;
    if (cuts->at.n)
        qsort(cuts->at.v, cuts->at.n, sizeof(*cuts->at.v), compare_offsets);
    for (size_t i = 0; i < cuts->at.n; i++)
        if (n == 0 || cuts->at.v[n - 1] != cuts->at.v[i])
            cuts->at.v[n++] = cuts->at.v[i];
    cuts->at.n = n;
    return true;
}

/* Only where the bytes go on there is a hole to be opened. */
static void keep_closed(struct cuts *cuts, const struct etch_stream *stream)
{
    size_t n = 0, i = 0;

    for (size_t c = 0; c < cuts->at.n; c++) {
        uint64_t at = cuts->at.v[c];
        const struct etch_piece *piece;

        while (i < stream->pieces.n && stream->pieces.v[i].offset + stream->pieces.v[i].size <= at)
            i++;
        if (i == stream->pieces.n)
            break;
        piece = &stream->pieces.v[i];
        if (piece->offset < at || (piece->offset == at && i > 0 && piece[-1].offset + piece[-1].size == at))
            cuts->at.v[n++] = at;
    }
    cuts->at.n = n;
}

/* Cuts that lie before `at`. */
static size_t cuts_before(const struct cuts *cuts, uint64_t at)
{
    size_t lo = 0, hi = cuts->at.n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (cuts->at.v[mid] < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* What a piece has before the next cut; the rest stays in it. */
static struct etch_piece take_part(struct etch_piece *piece, const struct cuts *cuts)
{
    size_t passed = cuts_before(cuts, piece->offset + 1);
    struct etch_piece part = *piece;

    if (passed < cuts->at.n && cuts->at.v[passed] - piece->offset < piece->size)
        part.size = cuts->at.v[passed] - piece->offset;
    piece->offset += part.size;
    piece->where += part.size;
    piece->size -= part.size;
    part.offset += passed;
    return part;
}

static bool cut_pieces(struct etch_stream *stream, const struct cuts *cuts)
{
    struct etch_stream cut = {0};

    for (size_t i = 0; i < stream->pieces.n; i++)
        for (struct etch_piece rest = stream->pieces.v[i]; rest.size;)
            if (!etch_array_push(&cut.pieces, take_part(&rest, cuts))) {
                etch_array_free(&cut.pieces);
                return false;
            }
    etch_array_free(&stream->pieces);
    stream->pieces.v = cut.pieces.v;
    stream->pieces.n = cut.pieces.n;
    stream->pieces.capacity = cut.pieces.capacity;
    return true;
}

static bool cut_stream(struct etch_recording *r, struct etch_stream *stream, struct cuts *cuts)
{
    if (!find_cuts(cuts, r, stream))
        return false;
    keep_closed(cuts, stream);
    if (cuts->at.n == 0 || end_of(stream) > UINT64_MAX - cuts->at.n)
        return true;
    if (!cut_pieces(stream, cuts))
        return false;
    for (size_t i = 0; i < r->losses.n; i++)
        if (r->losses.v[i]->stream == stream->about->id)
            r->losses.v[i]->offset += cuts_before(cuts, r->losses.v[i]->offset);
    return true;
}

bool etch_cuts_open(struct etch_recording *r)
{
    struct cuts cuts = {0};
    bool done = true;

    for (size_t i = 0; i < r->streams.n && done; i++)
        if (!r->streams.v[i].about->snapshot)
            done = cut_stream(r, &r->streams.v[i], &cuts);
    etch_array_free(&cuts.at);
    return done;
}

static bool ends_cut(const struct etch_recording *r, const struct etch_stream *stream)
{
    for (size_t i = 0; i < r->losses.n; i++)
        if (is_cut(r->losses.v[i], stream) && r->losses.v[i]->offset == end_of(stream))
            return true;
    return false;
}

bool etch_cuts_end(struct etch_recording *r)
{
    for (size_t i = 0; i < r->streams.n; i++) {
        struct etch_stream *stream = &r->streams.v[i];
        struct etch_piece nothing = {.offset = end_of(stream) + 1};

        if (stream->pieces.n && nothing.offset && !stream->about->snapshot && ends_cut(r, stream) &&
            !etch_array_push(&stream->pieces, nothing))
            return false;
    }
    return true;
}
