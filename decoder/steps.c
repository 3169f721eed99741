/* SPDX-License-Identifier: MIT */
/* See steps.h. The plan hands out stretches; workers decode them, and render them where text is wanted; this thread
 * takes the results in the plan's order. Nothing depends on how many workers there are. */
#include "decoder/steps.h"
#include "decoder/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct decode {
    struct etch_recording *recording;
    struct etch_steps_options options;
    struct etch_code *code;
    struct etch_plan *plan;
    etch_step_visitor *visit; /* or */
    etch_step_renderer *render;
    void *context;
    const void *render_context;
    etch_text_writer *write;
    void *write_context;
    struct etch_steps_count count;
};

/* A stretch on its way, with all that is made of it. */
struct work {
    struct etch_stretch stretch;
    struct etch_tape tape;
    struct etch_text text;
    struct etch_steps_count count;
};

static void work_release(struct work *w)
{
    etch_stretch_release(&w->stretch);
    etch_tape_release(&w->tape);
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

static struct etch_tape_reading reading_of(const struct decode *d, const struct etch_stretch *s)
{
    return (struct etch_tape_reading){
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
}

/* The worker's part: decodes, and renders if text is wanted. */
static void do_work(const struct decode *d, struct etch_blocks *blocks, struct work *w)
{
    struct etch_tape_reading reading = reading_of(d, &w->stretch);
    struct rendering rendering = {d, &w->text};

    etch_tape_clear(&w->tape);
    if (w->stretch.lead.kind == ETCH_STEP_LOSS)
        etch_tape_event(&w->tape, &w->stretch.lead);
    if (w->stretch.input.own)
        etch_pt_decode(&w->stretch.input, blocks, &w->tape);
    if (!d->render)
        return;
    w->text.n = 0;
    reading.visit = render_step;
    reading.context = &rendering;
    etch_tape_read(&w->tape, &reading);
    w->count = reading.count;
}

static int out_of_memory(const struct decode *d, struct etch_error *err)
{
    return etch_error_set_errno(err, ENOMEM, "cannot decode %s", d->recording->path);
}

/* This thread's part, in order. */
static int deliver(struct decode *d, struct work *w, struct etch_error *err)
{
    struct etch_tape_reading reading = reading_of(d, &w->stretch);
    int status;

    if (w->tape.failed || w->text.failed)
        return out_of_memory(d, err);
    if (d->render) {
        add_count(&d->count, &w->count);
        return w->text.n ? d->write(d->write_context, w->text.v, w->text.n) : 0;
    }
    reading.visit = d->visit;
    reading.context = d->context;
    status = etch_tape_read(&w->tape, &reading);
    add_count(&d->count, &reading.count);
    return status;
}

static int run_alone(struct decode *d, struct etch_error *err)
{
    struct etch_blocks *blocks = etch_blocks_new(d->code);
    struct work w = {0};
    int status = blocks ? 0 : out_of_memory(d, err);

    while (status == 0) {
        int found = etch_plan_next(d->plan, &w.stretch, err);

        if (found <= 0) {
            status = found;
            break;
        }
        do_work(d, blocks, &w);
        status = deliver(d, &w, err);
    }
    work_release(&w);
    etch_blocks_free(blocks);
    return status;
}

static int check_source(const struct etch_recording *recording, struct etch_error *err)
{
    for (size_t i = 0; i < recording->streams.n; i++)
        if (recording->streams.v[i].about->source == ETCH__SOURCE__SOURCE_PT ||
            recording->streams.v[i].about->source == ETCH__SOURCE__SOURCE_VPT)
            return 0;
    etch_error_set(err, "%s holds no Intel PT bytes", recording->path);
    return etch_error_advise(err, "record with --source pt or --source vpt");
}

static int decode_all(struct decode *d, struct etch_steps_count *count, struct etch_error *err)
{
    int status;

    if (count)
        memset(count, 0, sizeof(*count));
    if (check_source(d->recording, err) < 0 || etch_code_open(&d->code, d->recording, d->options.sysroot, err) < 0)
        return -1;
    status = etch_plan_new(&d->plan, d->recording, &d->options, err);
    if (status == 0)
        status = run_alone(d, err);
    if (count)
        *count = d->count;
    etch_plan_free(d->plan);
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
