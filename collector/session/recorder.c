/* SPDX-License-Identifier: MIT */
/* A recorder's bundle. All records are bounded and counted; see source.h. */
#include "collector/source.h"

#include <stdio.h>

int etch_recorder_write_loss(struct etch_recorder *r, const Etch__Loss *loss, struct etch_error *err)
{
    Etch__Record record = ETCH__RECORD__INIT;

    record.body_case = ETCH__RECORD__BODY_LOSS;
    record.loss = (Etch__Loss *)(uintptr_t)loss;
    if (!r->summary->loss[0])
        snprintf(r->summary->loss, sizeof(r->summary->loss), "%s", loss->detail ? loss->detail : "");
    r->summary->lost_bytes += loss->bytes;
    return etch_bundle_write(r->bundle, &record, err);
}

int etch_recorder_write_flow(struct etch_recorder *r, uint32_t stream, uint64_t offset, const void *data, size_t size,
                             struct etch_error *err)
{
    if (etch_limit_reached(&r->limit, r->bundle, r->options->max_size, size, 0))
        return 0;
    r->summary->flow_bytes += size;
    return etch_bundle_write_flow(r->bundle, stream, offset, data, size, err);
}

int etch_recorder_write_accesses(struct etch_recorder *r, Etch__Accesses *accesses, struct etch_error *err)
{
    Etch__Record record = ETCH__RECORD__INIT;

    if (!accesses->n_accesses ||
        etch_limit_reached(&r->limit, r->bundle, r->options->max_size, 0, accesses->n_accesses))
        return 0;
    r->summary->accesses += accesses->n_accesses;
    record.body_case = ETCH__RECORD__BODY_ACCESSES;
    record.accesses = accesses;
    return etch_bundle_write(r->bundle, &record, err);
}

int etch_recorder_write_syncs(struct etch_recorder *r, Etch__Syncs *syncs, struct etch_error *err)
{
    Etch__Record record = ETCH__RECORD__INIT;

    if (!syncs->n_syncs || etch_limit_reached(&r->limit, r->bundle, r->options->max_size, 0, syncs->n_syncs))
        return 0;
    r->summary->syncs += syncs->n_syncs;
    record.body_case = ETCH__RECORD__BODY_SYNCS;
    record.syncs = syncs;
    return etch_bundle_write(r->bundle, &record, err);
}

int etch_recorder_write_thread(struct etch_recorder *r, Etch__Thread *thread, struct etch_error *err)
{
    Etch__Record record = ETCH__RECORD__INIT;

    record.body_case = ETCH__RECORD__BODY_THREAD;
    record.thread = thread;
    return etch_bundle_write(r->bundle, &record, err);
}

int etch_recorder_write_image(struct etch_recorder *r, Etch__Image *image, struct etch_error *err)
{
    Etch__Record record = ETCH__RECORD__INIT;

    record.body_case = ETCH__RECORD__BODY_IMAGE;
    record.image = image;
    return etch_bundle_write(r->bundle, &record, err);
}

int etch_recorder_write_stream(struct etch_recorder *r, Etch__Stream *stream, struct etch_error *err)
{
    Etch__Record record = ETCH__RECORD__INIT;

    record.body_case = ETCH__RECORD__BODY_STREAM;
    record.stream = stream;
    return etch_bundle_write(r->bundle, &record, err);
}

int etch_recorder_write_watch(struct etch_recorder *r, Etch__Watch *watch, struct etch_error *err)
{
    Etch__Record record = ETCH__RECORD__INIT;

    record.body_case = ETCH__RECORD__BODY_WATCH;
    record.watch = watch;
    return etch_bundle_write(r->bundle, &record, err);
}

void etch_record_sum_up(struct etch_record_summary *summary, struct etch_bundle_writer *bundle)
{
    const struct etch_error *failure = etch_bundle_failure(bundle);
    uint64_t counts[ETCH_LOSS_CAUSES];

    summary->bundle_bytes = etch_bundle_written(bundle);
    summary->losses = etch_ledger_sum(etch_bundle_ledger(bundle), counts);
    etch_losses_text(counts, summary->lost, sizeof(summary->lost));
    snprintf(summary->broken, sizeof(summary->broken), "%s", failure ? failure->what : "");
}
