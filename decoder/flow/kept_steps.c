/* SPDX-License-Identifier: MIT */
/* Steps that are decoded once; see kept_steps.h. */
#include "decoder/kept_steps.h"

#include <string.h>

struct keeping {
    struct etch_kept_steps *kept;
    etch_step_visitor *visit;
    void *context;
};

static uint64_t hash_block(const struct etch_step *s)
{
    uint64_t hash = (s->first ^ (uint64_t)(uintptr_t)s->image) * 0x9e3779b97f4a7c15u;

    return (hash ^ s->end ^ (uint64_t)s->count << 32 ^ (uint64_t)s->branch << 48) * 0x9e3779b97f4a7c15u;
}

static bool is_same_block(const struct etch_kept_steps *k, uint32_t form, const struct etch_step *s)
{
    const struct etch_step *known = &k->forms.v[form];

    return known->kind == s->kind && known->first == s->first && known->last == s->last && known->end == s->end &&
           known->count == s->count && known->branch == s->branch && known->image == s->image &&
           memcmp(k->sizes.v + k->sizes_of.v[form], s->sizes, s->count) == 0;
}

static uint32_t find_block(const struct etch_kept_steps *k, const struct etch_step *s)
{
    size_t probe = 0;
    uint32_t form;

    while ((form = etch_index_next(&k->by_block, hash_block(s), &probe)) != ETCH_INDEX_NONE)
        if (is_same_block(k, form, s))
            break;
    return form;
}

static bool keep_sizes(struct etch_kept_steps *k, const struct etch_step *s)
{
    size_t at = k->sizes.n;

    if (!etch_array_push(&k->sizes_of, at))
        return false;
    if (s->kind != ETCH_STEP_BLOCK || !s->count)
        return true;
    if (!etch_array_reserve(&k->sizes, at + s->count))
        return false;
    memcpy(k->sizes.v + at, s->sizes, s->count);
    k->sizes.n += s->count;
    return true;
}

/* The number of a block or event. ETCH_INDEX_NONE: memory is short. */
static uint32_t keep_form(struct etch_kept_steps *k, const struct etch_step *s)
{
    uint32_t form = s->kind == ETCH_STEP_BLOCK ? find_block(k, s) : ETCH_INDEX_NONE;

    if (form != ETCH_INDEX_NONE)
        return form;
    form = (uint32_t)k->forms.n;
    if (!etch_array_push(&k->forms, *s) || !keep_sizes(k, s) ||
        (s->kind == ETCH_STEP_BLOCK && !etch_index_add(&k->by_block, hash_block(s), form)))
        return ETCH_INDEX_NONE;
    return form;
}

static bool is_same_around(const struct etch_kept_around *a, const struct etch_kept_around *b)
{
    return a->pid == b->pid && a->tid == b->tid && a->cpu == b->cpu && a->stream == b->stream &&
           a->time.lo == b->time.lo && a->time.hi == b->time.hi;
}

static uint32_t keep_around(struct etch_kept_steps *k, const struct etch_step *s)
{
    const struct etch_kept_around now = {s->pid, s->tid, s->cpu, s->stream, s->time};

    if (k->around.n && is_same_around(&k->around.v[k->around.n - 1], &now))
        return (uint32_t)k->around.n - 1;
    return etch_array_push(&k->around, now) ? (uint32_t)k->around.n - 1 : ETCH_INDEX_NONE;
}

static bool keep_step(struct etch_kept_steps *k, const struct etch_step *s)
{
    struct etch_kept_step step = {keep_form(k, s), keep_around(k, s), s->to};

    return step.form != ETCH_INDEX_NONE && step.around != ETCH_INDEX_NONE && etch_array_push(&k->steps, step) &&
           ((k->steps.n & 1023) || etch_kept_steps_size(k) <= k->room);
}

size_t etch_kept_steps_size(const struct etch_kept_steps *k)
{
    return k->forms.n * (sizeof(*k->forms.v) + sizeof(*k->sizes_of.v)) + k->sizes.n +
           k->around.n * sizeof(*k->around.v) + k->steps.n * sizeof(*k->steps.v);
}

void etch_kept_steps_release(struct etch_kept_steps *k)
{
    etch_array_free(&k->forms);
    etch_array_free(&k->sizes_of);
    etch_array_free(&k->sizes);
    etch_array_free(&k->around);
    etch_array_free(&k->steps);
    etch_index_release(&k->by_block);
    *k = (struct etch_kept_steps){.room = k->room, .times = k->times, .over = k->over};
}

/* Without room for more steps, the decode goes on and keeps none. */
static int on_step(void *context, const struct etch_step *step)
{
    struct keeping *keeping = context;

    if (!keeping->kept->over && !keep_step(keeping->kept, step)) {
        keeping->kept->over = true;
        etch_kept_steps_release(keeping->kept);
    }
    return keeping->visit(keeping->context, step);
}

static int read_out(const struct etch_kept_steps *k, etch_step_visitor *visit, void *context)
{
    int status = 0;

    for (size_t i = 0; i < k->steps.n && status == 0; i++) {
        const struct etch_kept_step *kept = &k->steps.v[i];
        const struct etch_kept_around *around = &k->around.v[kept->around];
        struct etch_step step = k->forms.v[kept->form];

        step.pid = around->pid;
        step.tid = around->tid;
        step.cpu = around->cpu;
        step.stream = around->stream;
        step.time = around->time;
        step.to = kept->to;
        step.sizes = step.kind == ETCH_STEP_BLOCK ? k->sizes.v + k->sizes_of.v[kept->form] : NULL;
        status = visit(context, &step);
    }
    return status;
}

int etch_steps_kept(struct etch_kept_steps *k, struct etch_recording *recording, unsigned jobs,
                    etch_step_visitor *visit, void *context, struct etch_error *err)
{
    const struct etch_steps_options options = {.jobs = jobs};
    struct keeping keeping = {k, visit, context};
    int status;

    if (k->whole)
        return read_out(k, visit, context);
    k->times++;
    status = etch_steps(recording, &options, on_step, &keeping, NULL, err);
    k->whole = status == 0 && !k->over;
    if (!k->whole)
        etch_kept_steps_release(k);
    return status;
}
