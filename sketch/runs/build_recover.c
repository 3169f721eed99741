/* SPDX-License-Identifier: MIT */
/* Values that the last statements of the failing thread read and wrote, recovered from its registers and from the
 * memory at its end; see docs/values.md. */
#include "sketch/runs/build_model.h"

#include "base/log.h"

#include <stdlib.h>

/* ---- The trail ---- */

bool etch_trail_wants(const struct build *b, const struct walk *w)
{
    const Etch__Failure *f = b->recording->failure;
    const Etch__ThreadState *state;

    if (!f || f->tid != w->tid || f->kind != ETCH__FAILURE_KIND__FAILURE_SIGNAL || !b->failing || !b->options->slice)
        return false;
    state = etch_build_state_of(f, f->tid);
    return state && state->n_registers >= ETCH_BACKWARD_REGISTERS;
}

void etch_trail_take(struct build *b, const struct walk *w, uint64_t ip, uint32_t index, uint32_t place)
{
    uint32_t visit = place < w->n_visit ? w->visit[place] : 0;
    struct trail_entry entry = {
        .run = {.ip = ip},
        .seq = w->block << IN_BLOCK_BITS | (index & ((1u << IN_BLOCK_BITS) - 1)),
        .nth = visit ? b->run->visits.v[visit - 1].count : 0,
        .place = place,
        .depth = w->depth,
        .call = w->depth < DEPTH_MAX ? w->frames[w->depth].call : 0,
    };

    b->failed |= !etch_trail_push(&b->trail, &entry);
}

/* The software recorder writes at the end of a segment: before calls and returns, and on back edges. */
static bool ends_segment(const struct etch_step *step)
{
    return step->branch == ETCH_BRANCH_CALL || step->branch == ETCH_BRANCH_CALL_INDIRECT ||
           step->branch == ETCH_BRANCH_RETURN || (step->to && step->to <= step->last);
}

void etch_trail_take_step(struct build *b, const struct walk *w, const struct etch_step *step)
{
    if (!etch_trail_wants(b, w))
        return;
    switch (step->kind) {
    case ETCH_STEP_BLOCK:
        if (b->trail.doubtful && !w->nesting && !w->n_handlers && ends_segment(step))
            etch_trail_clear(&b->trail);
        break;
    case ETCH_STEP_BEGIN:
        etch_trail_gap(&b->trail, ETCH_LAST_GAP_CALL, 0);
        break;
    case ETCH_STEP_END:
        etch_trail_gap(&b->trail, ETCH_LAST_GAP_CALL, step->ip);
        break;
    case ETCH_STEP_INTERRUPT:
        if (step->ip != b->recording->failure->ip)
            etch_trail_gap(&b->trail, ETCH_LAST_GAP_LOSS, 0);
        break;
    case ETCH_STEP_LOSS:
        etch_trail_gap(&b->trail, ETCH_LAST_GAP_LOSS, 0);
        break;
    }
}

void etch_trail_doubt(struct build *b)
{
    b->trail.doubtful = true;
}

/* ---- Values ---- */

struct recovery {
    struct build *b;
    size_t hidden;
};

static int take_value(void *context, const struct etch_backward_access *access)
{
    struct recovery *r = context;
    struct build *b = r->b;
    const struct trail_entry *e = etch_trail_at(&b->trail, access->instruction);
    const Etch__Operand *operand;
    struct etch_run_access a = {.thread = b->run->failing_thread,
                                .place = e->place,
                                .watch = ETCH_NOWHERE,
                                .object = ETCH_NOWHERE,
                                .nth = e->nth,
                                .seq = e->seq,
                                .value = access->value,
                                .address = access->address_known ? access->address : 0,
                                .size = access->size,
                                .depth = e->depth,
                                .call = e->call,
                                .event = ETCH_NOWHERE,
                                .read = !access->write,
                                .write = access->write,
                                .known = true,
                                .how = (uint8_t)access->how};

    if (e->place == ETCH_NOWHERE)
        return 0;
    operand = etch_build_operand_at(b, etch_build_file_address(b, e->run.ip), access->write);
    if (!operand || operand->write != access->write)
        return 0;
    if (b->options->is_hidden && b->options->is_hidden(b->options->hidden_context, operand->name, a.value)) {
        r->hidden++;
        return 0;
    }
    a.operand = a.variable = etch_names_variable(b->names, operand->name);
    return a.operand != ETCH_NOWHERE && etch_array_push(&b->run->recovered, a) ? 0 : 1;
}

static int recover(struct build *b, struct etch_last_thread *thread, struct etch_error *err)
{
    struct etch_last_instruction *list = malloc((b->trail.n + 1) * sizeof(*list));
    struct recovery r = {.b = b};
    struct etch_last_count count;
    struct etch_error why;
    int status;

    if (!list)
        return etch_error_no_memory(err);
    for (size_t i = 0; i < b->trail.n; i++)
        list[i] = etch_trail_at(&b->trail, i)->run;
    thread->instructions = list;
    thread->n = b->trail.n;
    thread->gap = b->trail.gap;
    thread->called = b->trail.called;
    status = etch_last_values(b->recording, thread, take_value, &r, &count, &why);
    free(list);
    if (status > 0)
        return etch_error_no_memory(err);
    if (status < 0)
        etch_log(ETCH_LOG_RUNS, ETCH_LOG_DEBUG, "%s: no values are recovered: %s", b->run->name, why.what);
    else
        etch_log(ETCH_LOG_RUNS, ETCH_LOG_DEBUG, "%s: %zu values recovered, %zu hidden", b->run->name,
                 b->run->recovered.n, r.hidden);
    b->run->recovered_from_core = thread->core != NULL;
    return 0;
}

int etch_build_recover(struct build *b, struct etch_error *err)
{
    const Etch__Failure *f = b->recording->failure;
    struct etch_last_thread thread = {.core = b->options->core};

    if (!b->trail.n || b->trail.doubtful || !f || !b->run->failing || b->run->failing_thread == ETCH_NOWHERE ||
        b->run->threads.v[b->run->failing_thread].tid != f->tid)
        return 0;
    thread.state = etch_build_state_of(f, f->tid);
    return recover(b, &thread, err);
}
