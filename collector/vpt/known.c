/* SPDX-License-Identifier: MIT */
/* What the bundle of a killed etch has already; see vpt_recover.h. */
#include "collector/vpt/vpt.h"

#include <stdio.h>

uint64_t etch_vpt_known_end(const struct etch_vpt_known *known, uint32_t stream, uint64_t tail)
{
    for (size_t i = 0; i < known->streams.n; i++)
        if (known->streams.v[i].id == stream && known->streams.v[i].end > tail)
            return known->streams.v[i].end;
    return tail;
}

bool etch_vpt_known_stream(const struct etch_vpt_known *known, uint32_t stream)
{
    for (size_t i = 0; i < known->streams.n; i++)
        if (known->streams.v[i].id == stream)
            return true;
    return false;
}

bool etch_vpt_known_access(const struct etch_vpt_known *known, uint32_t tid, uint64_t tsc)
{
    for (size_t i = 0; i < known->accesses.n; i++)
        if (known->accesses.v[i].tid == tid)
            return tsc <= known->accesses.v[i].tsc;
    return false;
}

static bool know_stream(struct etch_vpt_known *k, uint32_t id, uint64_t end)
{
    size_t i = 0;

    while (i < k->streams.n && k->streams.v[i].id != id)
        i++;
    if (i == k->streams.n) {
        if (!etch_array_reserve(&k->streams, i + 1))
            return false;
        k->streams.n++;
        k->streams.v[i].id = id;
        k->streams.v[i].end = 0;
    }
    if (end > k->streams.v[i].end)
        k->streams.v[i].end = end;
    return true;
}

static bool know_access(struct etch_vpt_known *k, uint32_t tid, uint64_t tsc)
{
    size_t i = 0;

    while (i < k->accesses.n && k->accesses.v[i].tid != tid)
        i++;
    if (i == k->accesses.n) {
        if (!etch_array_reserve(&k->accesses, i + 1))
            return false;
        k->accesses.n++;
        k->accesses.v[i].tid = tid;
        k->accesses.v[i].tsc = 0;
    }
    if (tsc > k->accesses.v[i].tsc)
        k->accesses.v[i].tsc = tsc;
    return true;
}

bool etch_vpt_known_add(struct etch_vpt_known *k, const Etch__Record *record)
{
    switch ((int)record->body_case) {
    case ETCH__RECORD__BODY_PROGRAM:
        snprintf(k->program, sizeof(k->program), "%.4095s", record->program->exe);
        return true;
    case ETCH__RECORD__BODY_STREAM:
        return know_stream(k, record->stream->id, 0);
    case ETCH__RECORD__BODY_FLOW:
        return know_stream(k, record->flow->stream, record->flow->offset + record->flow->data.len);
    case ETCH__RECORD__BODY_ACCESSES:
        for (size_t i = 0; i < record->accesses->n_accesses; i++)
            if (!know_access(k, record->accesses->accesses[i]->tid, record->accesses->accesses[i]->tsc))
                return false;
        return true;
    default:
        return true;
    }
}

void etch_vpt_known_free(struct etch_vpt_known *k)
{
    etch_array_free(&k->streams);
    etch_array_free(&k->accesses);
}
