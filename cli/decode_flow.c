/* SPDX-License-Identifier: MIT */
/* etch decode --as insn and --as branch: every instruction, every taken branch. */
#include "cli/decode.h"
#include "cli/decode_view.h"

#include <inttypes.h>
#include <string.h>

static void put_time(struct etch_text *out, const struct etch_interval *time)
{
    if (time->lo == 0 && time->hi == UINT64_MAX) {
        etch_text_char(out, '?');
        return;
    }
    if (time->lo == 0)
        etch_text_char(out, '?');
    else
        etch_text_decimal(out, time->lo);
    etch_text_string(out, "..");
    if (time->hi == UINT64_MAX)
        etch_text_char(out, '?');
    else
        etch_text_decimal(out, time->hi);
}

/* Prints the fields, separated by spaces, and the end of the line. */
static void put_fields(const struct etch_decode *d, struct etch_text *out, const struct etch_step *step, uint64_t ip,
                       uint64_t addr)
{
    for (size_t i = 0; i < d->n_fields; i++) {
        if (i)
            etch_text_char(out, ' ');
        switch (d->fields[i]) {
        case ETCH_FIELD_PID:
            etch_text_decimal(out, step->pid);
            break;
        case ETCH_FIELD_TID:
            etch_text_decimal(out, step->tid);
            break;
        case ETCH_FIELD_CPU:
            if (step->cpu == UINT32_MAX)
                etch_text_char(out, '?');
            else
                etch_text_decimal(out, step->cpu);
            break;
        case ETCH_FIELD_TIME:
            put_time(out, &step->time);
            break;
        case ETCH_FIELD_IP:
            etch_text_hex(out, ip);
            break;
        default:
            etch_text_hex(out, addr);
            break;
        }
    }
    etch_text_char(out, '\n');
}

static bool only_fields(const struct etch_decode *d, size_t n, enum etch_decode_field first)
{
    return d->n_fields == n && d->fields[0] == first && (n < 2 || d->fields[1] == ETCH_FIELD_ADDR);
}

/* The fast path for addresses alone: programs ask for them most often, and for the most lines. */
static void put_addresses(struct etch_text *out, const struct etch_step *step)
{
    uint64_t ip = step->first;
    char *p;

    if (!etch_text_reserve(out, (size_t)step->count * 17 + ETCH_TEXT_HEX_ROOM))
        return;
    p = out->v + out->n;
    for (uint32_t i = 0; i < step->count; ip += step->sizes[i++]) {
        p = etch_text_put_hex(p, ip);
        *p++ = '\n';
    }
    out->n = (size_t)(p - out->v);
}

static void put_pair(struct etch_text *out, uint64_t from, uint64_t to)
{
    char *p;

    if (!etch_text_reserve(out, (size_t)2 * ETCH_TEXT_HEX_ROOM))
        return;
    p = etch_text_put_hex(out->v + out->n, from);
    *p++ = ' ';
    p = etch_text_put_hex(p, to);
    *p++ = '\n';
    out->n = (size_t)(p - out->v);
}

/* The head of a line for people: thread and time. */
static void put_head(struct etch_text *out, const struct etch_step *step)
{
    etch_text_decimal(out, step->tid);
    etch_text_char(out, ' ');
    put_time(out, &step->time);
    etch_text_char(out, ' ');
}

static void put_loss(struct etch_text *out, const struct etch_step *step)
{
    put_head(out, step);
    etch_text_string(out, "-- ");
    etch_text_string(out, etch_loss_name(step->cause));
    if (step->ip) {
        etch_text_string(out, " at ");
        etch_text_hex(out, step->ip);
    }
    if (step->detail) {
        etch_text_string(out, ": ");
        etch_text_string(out, step->detail);
    }
    etch_text_string(out, " (stream ");
    etch_text_decimal(out, step->stream);
    etch_text_string(out, ", byte ");
    etch_text_decimal(out, step->offset);
    etch_text_string(out, ")\n");
}

static void put_nowhere(struct etch_text *out, const struct etch_step *step)
{
    char text[ETCH_VIEW_NOWHERE_ROOM];

    put_head(out, step);
    etch_text_string(out, etch_view_nowhere(step, text, sizeof(text)));
    etch_text_char(out, '\n');
}

static void render_insn(const void *context, struct etch_text *out, const struct etch_step *step)
{
    const struct etch_decode *d = context;
    uint64_t ip = step->first;
    struct etch_text head = {0};
    size_t at;

    if (step->kind == ETCH_STEP_LOSS && d->n_fields == 0)
        put_loss(out, step);
    if (step->kind == ETCH_STEP_INTERRUPT && step->nowhere && d->n_fields == 0)
        put_nowhere(out, step);
    if (step->kind != ETCH_STEP_BLOCK)
        return;
    if (only_fields(d, 1, ETCH_FIELD_IP)) {
        put_addresses(out, step);
        return;
    }
    if (d->n_fields) {
        for (uint32_t i = 0; i < step->count; ip += step->sizes[i++])
            put_fields(d, out, step, ip, 0);
        return;
    }
    at = out->n;
    put_head(out, step);
    head.n = out->n - at; /* the head is the same for the whole block: written once, then copied */
    for (uint32_t i = 0; i < step->count && !out->failed; ip += step->sizes[i++]) {
        if (i && etch_text_reserve(out, head.n)) {
            memcpy(out->v + out->n, out->v + at, head.n);
            out->n += head.n;
        }
        etch_text_hex(out, ip);
        etch_text_char(out, '\n');
    }
}

static void put_branch(const struct etch_decode *d, struct etch_text *out, const struct etch_step *step, uint64_t from,
                       uint64_t to)
{
    if (only_fields(d, 2, ETCH_FIELD_IP)) {
        put_pair(out, from, to);
        return;
    }
    if (d->n_fields) {
        put_fields(d, out, step, from, to);
        return;
    }
    put_head(out, step);
    etch_text_hex(out, from);
    etch_text_string(out, " -> ");
    etch_text_hex(out, to);
    etch_text_char(out, '\n');
}

static void render_branch(const void *context, struct etch_text *out, const struct etch_step *step)
{
    const struct etch_decode *d = context;

    switch (step->kind) {
    case ETCH_STEP_BLOCK:
        /* A branch that was not taken is not listed. A branch to an unknown target is listed with target 0. */
        if (step->branch == ETCH_BRANCH_NONE || (step->branch == ETCH_BRANCH_CONDITIONAL && step->to == step->end))
            return;
        put_branch(d, out, step, step->last, step->to);
        break;
    case ETCH_STEP_BEGIN:
        put_branch(d, out, step, 0, step->ip);
        break;
    case ETCH_STEP_INTERRUPT:
        put_branch(d, out, step, step->ip, step->to);
        break;
    case ETCH_STEP_LOSS:
        if (d->n_fields == 0)
            put_loss(out, step);
        break;
    case ETCH_STEP_END:
        break;
    }
}

#define COMMON                                                                                                         \
    (1u << ETCH_FIELD_PID | 1u << ETCH_FIELD_TID | 1u << ETCH_FIELD_CPU | 1u << ETCH_FIELD_TIME | 1u << ETCH_FIELD_IP)

const struct etch_decode_form etch_decode_insn = {
    .name = "insn",
    .summary = "every instruction: thread, time, address",
    .fields = COMMON,
    .render = render_insn,
};

const struct etch_decode_form etch_decode_branch = {
    .name = "branch",
    .summary = "every taken branch: from, to; 0 is where tracing began or ended",
    .fields = COMMON | 1u << ETCH_FIELD_ADDR,
    .render = render_branch,
};
