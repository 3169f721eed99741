/* SPDX-License-Identifier: MIT */
/* The contents of a file of records; see contents.h. */
#include "proto/contents.h"

#include "proto/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The last message of a kind replaces the earlier ones. */
static bool replace(ProtobufCMessage **slot, const ProtobufCMessage *message)
{
    ProtobufCMessage *fresh = etch_message_copy(message);

    if (!fresh)
        return false;
    if (*slot)
        protobuf_c_message_free_unpacked(*slot, NULL);
    *slot = fresh;
    return true;
}

static bool list(struct etch_contents_list *into, const ProtobufCMessage *message)
{
    ProtobufCMessage *fresh;

    if (into->total++ >= ETCH_CONTENTS_LISTED)
        return true;
    fresh = etch_message_copy(message);
    if (!fresh)
        return false;
    if (etch_array_push(&into->listed, fresh))
        return true;
    protobuf_c_message_free_unpacked(fresh, NULL);
    return false;
}

static bool count_flow(struct etch_contents *c, const Etch__Flow *flow)
{
    struct etch_contents_stream *stream = NULL;

    c->flow_bytes += flow->data.len;
    for (size_t i = 0; i < c->flows.n && !stream; i++)
        if (c->flows.v[i].id == flow->stream)
            stream = &c->flows.v[i];
    if (!stream) {
        struct etch_contents_stream fresh = {.id = flow->stream, .next_offset = flow->offset};

        if (c->flows.n >= ETCH_CONTENTS_LISTED)
            return true;
        if (!etch_array_push(&c->flows, fresh))
            return false;
        stream = &c->flows.v[c->flows.n - 1];
    }
    stream->holes += stream->next_offset != flow->offset;
    stream->bytes += flow->data.len;
    stream->chunks++;
    stream->next_offset = flow->offset + flow->data.len;
    return true;
}

static void count_accesses(struct etch_contents *c, const Etch__Accesses *accesses)
{
    c->accesses += accesses->n_accesses;
    for (size_t i = 0; i < accesses->n_accesses; i++) {
        const Etch__Access *access = accesses->accesses[i];

        c->writes += access->write ? 1 : 0;
        c->reads += access->read || (!access->write && !access->direction_unknown) ? 1 : 0;
        c->values_unknown += access->known_case == ETCH__ACCESS__KNOWN__NOT_SET;
    }
}

/* Are records of this kind copied? */
static bool is_kept(Etch__Record__BodyCase kind)
{
    switch (kind) {
    case ETCH__RECORD__BODY_HOST:
    case ETCH__RECORD__BODY_PROGRAM:
    case ETCH__RECORD__BODY_FAILURE:
    case ETCH__RECORD__BODY_OUTCOME:
    case ETCH__RECORD__BODY_IMAGE:
    case ETCH__RECORD__BODY_THREAD:
    case ETCH__RECORD__BODY_CLOCK:
    case ETCH__RECORD__BODY_STREAM:
    case ETCH__RECORD__BODY_WATCH:
    case ETCH__RECORD__BODY_LOSS:
        return true;
    default:
        return false;
    }
}

static bool take(struct etch_contents *c, const Etch__Record *record)
{
    switch (record->body_case) {
    case ETCH__RECORD__BODY_HOST:
        return replace((ProtobufCMessage **)&c->host, &record->host->base);
    case ETCH__RECORD__BODY_PROGRAM:
        return replace((ProtobufCMessage **)&c->program, &record->program->base);
    case ETCH__RECORD__BODY_FAILURE:
        return replace((ProtobufCMessage **)&c->failure, &record->failure->base);
    case ETCH__RECORD__BODY_OUTCOME:
        return replace((ProtobufCMessage **)&c->outcome, &record->outcome->base);
    case ETCH__RECORD__BODY_REDACTION:
        return list(&c->redactions, &record->redaction->base);
    case ETCH__RECORD__BODY_IMAGE:
        return list(&c->images, &record->image->base);
    case ETCH__RECORD__BODY_THREAD:
        return list(&c->threads, &record->thread->base);
    case ETCH__RECORD__BODY_CLOCK:
        return list(&c->clocks, &record->clock->base);
    case ETCH__RECORD__BODY_STREAM:
        return list(&c->streams, &record->stream->base);
    case ETCH__RECORD__BODY_WATCH:
        return list(&c->watches, &record->watch->base);
    case ETCH__RECORD__BODY_LOSS:
        return record->loss->cause != ETCH__LOSS_CAUSE__LOSS_BUDGET || list(&c->darks, &record->loss->base);
    case ETCH__RECORD__BODY_FLOW:
        return count_flow(c, record->flow);
    case ETCH__RECORD__BODY_ACCESSES:
        count_accesses(c, record->accesses);
        return true;
    case ETCH__RECORD__BODY_SYNCS:
        c->syncs += record->syncs->n_syncs;
        return true;
    case ETCH__RECORD__BODY_SWITCHES:
        c->switches += record->switches->n_switches;
        return true;
    default:
        return true;
    }
}

static bool count(struct etch_contents *c, const struct etch_bundle_item *item)
{
    struct etch_contents_kind *kind =
        item->kind < ETCH_CONTENTS_KINDS && etch_record_kind_name(item->kind) ? &c->kinds[item->kind] : &c->unknown;

    c->records++;
    kind->records++;
    kind->bytes += item->size;
    kind->raw_bytes += item->raw_size;
    if (item->record)
        etch_ledger_take(&c->ledger, item->record);
    if (c->ledger.starved)
        return false;
    if (!item->record ||
        (is_kept(item->record->body_case) && !etch_budget_take(&c->budget, item->memory, item->offset + item->size)))
        return true;
    return take(c, item->record);
}

static bool note_damage(struct etch_contents *c, const struct etch_bundle_item *item)
{
    struct etch_contents_damage damage = {item->index, item->offset, item->size, item->kind, {0}};

    c->damaged++;
    if (c->damages.n >= ETCH_CONTENTS_LISTED)
        return true;
    memcpy(damage.why, item->damage, sizeof(damage.why));
    return etch_array_push(&c->damages, damage);
}

static int sum_up(struct etch_contents *c)
{
    etch_ledger_add(&c->ledger, ETCH__LOSS_CAUSE__LOSS_DAMAGED, c->damaged);
    etch_ledger_add(&c->ledger, ETCH__LOSS_CAUSE__LOSS_CUT, c->ending == ETCH_BUNDLE_CUT);
    c->lost = etch_ledger_sum(&c->ledger, c->losses) + c->budget.refused;
    c->losses[ETCH__LOSS_CAUSE__LOSS_LIMIT] += c->budget.refused;
    return 0;
}

int etch_contents_read(struct etch_contents *c, struct etch_bundle_reader *reader, struct etch_error *err)
{
    struct etch_bundle_item item;

    memset(c, 0, sizeof(*c));
    etch_bundle_version(reader, &c->major, &c->minor);
    for (;;) {
        bool fine = true;

        c->ending = etch_bundle_next(reader, &item, err);
        c->bytes = item.offset + item.size;
        switch (c->ending) {
        case ETCH_BUNDLE_RECORD:
            fine = count(c, &item);
            break;
        case ETCH_BUNDLE_DAMAGED:
            fine = note_damage(c, &item);
            break;
        case ETCH_BUNDLE_CUT:
            c->cut_at = item.offset;
            c->cut_tail = item.size;
            return sum_up(c);
        case ETCH_BUNDLE_END:
            return sum_up(c);
        case ETCH_BUNDLE_FAILED:
            return -1;
        }
        if (!fine)
            return etch_error_set_errno(err, ENOMEM, "cannot list the contents");
    }
}

static void release_list(struct etch_contents_list *l)
{
    for (size_t i = 0; i < l->listed.n; i++)
        protobuf_c_message_free_unpacked(l->listed.v[i], NULL);
    etch_array_free(&l->listed);
}

void etch_contents_release(struct etch_contents *c)
{
    ProtobufCMessage *const single[] = {(ProtobufCMessage *)c->host, (ProtobufCMessage *)c->program,
                                        (ProtobufCMessage *)c->failure, (ProtobufCMessage *)c->outcome};

    for (size_t i = 0; i < sizeof(single) / sizeof(single[0]); i++)
        if (single[i])
            protobuf_c_message_free_unpacked(single[i], NULL);
    release_list(&c->images);
    release_list(&c->threads);
    release_list(&c->clocks);
    release_list(&c->streams);
    release_list(&c->watches);
    release_list(&c->redactions);
    etch_array_free(&c->flows);
    etch_array_free(&c->damages);
    etch_ledger_release(&c->ledger);
}
