/* SPDX-License-Identifier: MIT */
/* See steps.h. The schedule hands out decode units. Workers decode them, and render them where text is wanted. This
 * thread takes the results in the schedule's order. Nothing depends on how many workers there are. */
#include "decoder/steps.h"
#include "base/log.h"
#include "decoder/flow/pool.h"
#include "decoder/flow/schedule.h"
#include "decoder/flow/soft_flow.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct decode {
    struct etch_recording *recording;
    struct etch_steps_options options;
    struct etch_code *code;
    struct etch_schedule *schedule;
    etch_step_visitor *visit; /* or */
    etch_step_renderer *render;
    void *context;
    const void *render_context;
    etch_text_writer *write;
    void *write_context;
    struct etch_steps_count count;
    struct etch_error *err;
};

/* A unit on its way, with all that is made of it. */
struct work {
    struct etch_decode_unit unit;
    struct etch_step_buffer buffer;
    struct etch_text text;
    struct etch_steps_count count;
};

static void work_release(struct work *w)
{
    etch_decode_unit_release(&w->unit);
    etch_step_buffer_release(&w->buffer);
    free(w->text.v);
}

struct rendering {
    const struct decode *d;
    struct etch_text *text;
};

static int render_step(void *context, const struct etch_step *step)
{
    struct rendering *r = context;

    r->d->render(r->d->render_context, r->text, step);
    return 0;
}

static struct etch_step_reader reading_of(const struct decode *d, const struct etch_decode_unit *s)
{
    return (struct etch_step_reader){
        .step = {.pid = s->pid, .tid = s->tid, .cpu = s->cpu, .stream = s->stream->about->id},
        .from = d->options.from,
        .to = d->options.to,
    };
}

static void add_count(struct etch_steps_count *to, const struct etch_steps_count *c)
{
    to->blocks += c->blocks;
    to->instructions += c->instructions;
    to->branches += c->branches;
    to->losses += c->losses;
    to->bytes += c->bytes;
    for (unsigned i = 0; i < ETCH_LOSS_CAUSES; i++)
        to->lost[i] += c->lost[i];
}

static void decode_unit(struct work *w, struct etch_blocks *blocks)
{
    etch_step_buffer_clear(&w->buffer);
    if (w->unit.lead.kind == ETCH_STEP_LOSS)
        etch_step_buffer_event(&w->buffer, &w->unit.lead);
    if (w->unit.soft) {
        const struct etch_decode_unit *s = &w->unit;
        const struct etch_soft_input input = {.bytes = s->bytes.v,
                                              .size = s->bytes.n,
                                              .pid = s->pid,
                                              .map = s->soft,
                                              .frames = s->frames,
                                              .n_frames = s->n_frames,
                                              .failed = s->failed,
                                              .death = s->input.death};

        etch_soft_decode(&input, blocks, &w->buffer);
    } else if (w->unit.input.own)
        etch_pt_decode(&w->unit.input, blocks, &w->buffer);
}

static void render_buffer(const struct decode *d, struct work *w, uint64_t skip)
{
    struct etch_step_reader reading = reading_of(d, &w->unit);
    struct rendering rendering = {d, &w->text};

    w->text.n = 0;
    reading.visit = render_step;
    reading.context = &rendering;
    reading.skip = skip;
    etch_step_buffer_read(&w->buffer, &reading);
    w->count = reading.count;
}

static int out_of_memory(const struct decode *d)
{
    return etch_error_set_errno(d->err, ENOMEM, "cannot decode %s", d->recording->path);
}

static int visit_buffer(struct decode *d, struct work *w, uint64_t skip)
{
    struct etch_step_reader reading = reading_of(d, &w->unit);
    int status;

    reading.visit = d->visit;
    reading.context = d->context;
    reading.skip = skip;
    status = etch_step_buffer_read(&w->buffer, &reading);
    add_count(&d->count, &reading.count);
    return status;
}

/* ---- The calls of the pool, for all steps ---- */

static void *new_blocks(void *context)
{
    return etch_blocks_new(((struct decode *)context)->code);
}

static void free_blocks(void *blocks)
{
    etch_blocks_free(blocks);
}

static int fill(void *context, void *item)
{
    struct decode *d = context;

    return etch_schedule_next(d->schedule, &((struct work *)item)->unit, d->err);
}

static void do_work(void *context, void *blocks, void *item)
{
    struct decode *d = context;

    decode_unit(item, blocks);
    if (d->render)
        render_buffer(d, item, 0);
}

static int deliver(void *context, void *item)
{
    struct decode *d = context;
    struct work *w = item;

    if (w->buffer.failed || w->text.failed)
        return out_of_memory(d);
    if (!d->render)
        return visit_buffer(d, w, 0);
    add_count(&d->count, &w->count);
    return w->text.n ? d->write(d->write_context, w->text.v, w->text.n) : 0;
}

static void release(void *item)
{
    work_release(item);
}

static int decode_whole(struct decode *d)
{
    const struct etch_pool_job job = {
        .context = d,
        .item_size = sizeof(struct work),
        .new_worker = new_blocks,
        .free_worker = free_blocks,
        .fill = fill,
        .work = do_work,
        .deliver = deliver,
        .release = release,
    };
    int status = etch_pool_run(&job, d->options.jobs);

    return status == ETCH_POOL_NO_MEMORY ? out_of_memory(d) : status;
}

/* ---- The last instructions of each thread ---- */

struct tail {
    struct etch_blocks *blocks;
    ETCH_ARRAY(struct work) works;
    size_t n; /* of them in use */
    uint64_t instructions;
};

/* Decodes all units of the schedule, and keeps the step buffers. */
static int fill_tail(struct decode *d, struct tail *tail)
{
    tail->n = 0;
    tail->instructions = 0;
    for (;;) {
        struct work *w;
        int found;

        if (tail->n == tail->works.n && !etch_array_push(&tail->works, (struct work){0}))
            return out_of_memory(d);
        w = &tail->works.v[tail->n];
        found = etch_schedule_next(d->schedule, &w->unit, d->err);
        if (found <= 0)
            return found;
        decode_unit(w, tail->blocks);
        etch_array_free(&w->unit.bytes); /* a tail may be long: only its step buffers are kept */
        if (w->buffer.failed)
            return out_of_memory(d);
        tail->instructions += etch_step_buffer_instructions(&w->buffer);
        tail->n++;
    }
}

static int deliver_tail(struct decode *d, struct tail *tail)
{
    uint64_t skip = tail->instructions > d->options.last ? tail->instructions - d->options.last : 0;
    int status = 0;

    for (size_t i = 0; i < tail->n && status == 0; i++) {
        struct work *w = &tail->works.v[i];
        uint64_t n = etch_step_buffer_instructions(&w->buffer);

        if (skip >= n && skip > 0) {
            skip -= n;
            continue;
        }
        if (d->render) {
            render_buffer(d, w, skip);
            add_count(&d->count, &w->count);
            status = w->text.failed ? out_of_memory(d) : d->write(d->write_context, w->text.v, w->text.n);
        } else {
            status = visit_buffer(d, w, skip);
        }
        skip = 0;
    }
    return status;
}

/* Looks at ever longer ends of each thread's way, until enough ran in them. */
static int decode_tails(struct decode *d)
{
    struct tail tail = {.blocks = etch_blocks_new(d->code)};
    int status = tail.blocks ? 0 : out_of_memory(d);

    for (size_t row = 0; row < etch_schedule_rows(d->schedule) && status == 0; row++) {
        uint64_t window = 64;
        bool all;

        do {
            all = etch_schedule_tail(d->schedule, row, window);
            status = fill_tail(d, &tail);
            window *= 4;
        } while (status == 0 && !all && tail.instructions < d->options.last);
        if (status == 0)
            status = deliver_tail(d, &tail);
    }
    for (size_t i = 0; i < tail.works.n; i++)
        work_release(&tail.works.v[i]);
    etch_array_free(&tail.works);
    etch_blocks_free(tail.blocks);
    return status;
}

static int check_source(const struct etch_recording *recording, struct etch_error *err)
{
    for (size_t i = 0; i < recording->streams.n; i++)
        if (recording->streams.v[i].about->source != ETCH__SOURCE__SOURCE_NONE)
            return 0;
    etch_error_set(err, "%s holds no control flow", recording->path);
    return etch_error_advise(err, "record with --source soft or --source vpt");
}

static void log_count(const struct decode *d)
{
    const struct etch_steps_count *c = &d->count;
    char losses[512];

    if (etch_log_is_on(ETCH_LOG_FLOW, ETCH_LOG_DEBUG))
        etch_log(ETCH_LOG_FLOW, ETCH_LOG_DEBUG,
                 "%s: %zu streams, %" PRIu64 " blocks, %" PRIu64 " instructions, %" PRIu64 " branches, lost: %s",
                 d->recording->path, d->recording->streams.n, c->blocks, c->instructions, c->branches,
                 etch_losses_text(c->lost, losses, sizeof(losses)));
}

static int decode_all(struct decode *d, struct etch_steps_count *count, struct etch_error *err)
{
    int status;

    d->err = err;
    if (count)
        memset(count, 0, sizeof(*count));
    if (check_source(d->recording, err) < 0 || etch_code_open(&d->code, d->recording, d->options.sysroot, err) < 0)
        return -1;
    status = etch_schedule_new(&d->schedule, d->recording, d->code, &d->options, err);
    if (status == 0)
        status = d->options.last ? decode_tails(d) : decode_whole(d);
    log_count(d);
    if (count)
        *count = d->count;
    etch_schedule_free(d->schedule);
    etch_code_free(d->code);
    return status;
}

int etch_steps(struct etch_recording *recording, const struct etch_steps_options *options, etch_step_visitor *visit,
               void *context, struct etch_steps_count *count, struct etch_error *err)
{
    struct decode d = {.recording = recording, .options = *options, .visit = visit, .context = context};

    return decode_all(&d, count, err);
}

int etch_steps_render(struct etch_recording *recording, const struct etch_steps_options *options,
                      etch_step_renderer *render, const void *context, etch_text_writer *write, void *write_context,
                      struct etch_steps_count *count, struct etch_error *err)
{
    struct decode d = {.recording = recording,
                       .options = *options,
                       .render = render,
                       .render_context = context,
                       .write = write,
                       .write_context = write_context};

    return decode_all(&d, count, err);
}

uint64_t etch_step_next_ip(const struct etch_step *step, uint64_t ip)
{
    uint64_t at = step->first;

    for (uint32_t i = 0; i < step->count; i++) {
        if (at == ip)
            return i + 1 < step->count ? at + step->sizes[i] : 0;
        at += step->sizes[i];
    }
    return 0;
}
