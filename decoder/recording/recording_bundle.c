/* SPDX-License-Identifier: MIT */
/* Loads a bundle of etch's: everything but the control-flow bytes into memory, of those only where they stand. They are
 * unpacked record by record when they are read, the last few of them kept. */
#include "decoder/recording/cuts.h"
#include "decoder/recording/loaders.h"
#include "decoder/recording/recording_fill.h"
#include "proto/bundle.h"
#include "proto/message.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEPT 16u /* unpacked records, a megabyte each */

struct kept_flow {
    uint64_t where;
    uint8_t *data;
    size_t size;
    uint64_t used; /* when last */
    unsigned readers;
};

struct bundle_loader {
    int fd;
    pthread_mutex_t lock; /* of what follows */
    struct kept_flow kept[KEPT];
    uint64_t clock;
};

/* The last of a kind counts: a recorder that learns more writes the record again. */
static bool replace(void *slot, const void *message)
{
    void *copy = etch_message_copy(message), *old;

    memcpy(&old, slot, sizeof(old));
    if (!copy)
        return false;
    if (old)
        protobuf_c_message_free_unpacked(old, NULL);
    memcpy(slot, &copy, sizeof(copy));
    return true;
}

#define push_copy(array, message)                                                                                      \
    (etch_array_reserve((array), (array)->n + 1) && ((array)->v[(array)->n] = etch_message_copy(message)) &&           \
     ((array)->n++, true))

/* A copy of `size` bytes, NULL for none; false where memory is short. */
static bool copy_bytes(void *copy, const void *bytes, size_t size)
{
    void *made = size ? malloc(size) : NULL;

    if (made)
        memcpy(made, bytes, size);
    memcpy(copy, &made, sizeof(made));
    return made || !size;
}

static bool take_accesses(struct etch_recording *r, const Etch__Accesses *accesses)
{
    for (size_t i = 0; i < accesses->n_accesses; i++) {
        const Etch__Access *from = accesses->accesses[i];
        Etch__Access access = *from;

        access.base.unknown_fields = NULL;
        access.base.n_unknown_fields = 0;
        access.stack.data = NULL;
        access.callers = NULL;
        if (!copy_bytes(&access.registers, from->registers, from->n_registers * sizeof(*from->registers)) ||
            !copy_bytes(&access.stack.data, from->stack.data, from->stack.len) ||
            !copy_bytes(&access.callers, from->callers, from->n_callers * sizeof(*from->callers)) ||
            !etch_array_push(&r->accesses, access)) {
            free(access.registers);
            free(access.stack.data);
            free(access.callers);
            return false;
        }
    }
    return true;
}

static struct etch_stream *find_stream(struct etch_recording *r, uint32_t id)
{
    for (size_t i = 0; i < r->streams.n; i++)
        if (r->streams.v[i].about->id == id)
            return &r->streams.v[i];
    return NULL;
}

static bool take_stream(struct etch_recording *r, const Etch__Stream *about)
{
    struct etch_stream stream = {.recording = r};

    if (find_stream(r, about->id))
        return true;
    stream.about = etch_message_copy(about);
    return stream.about && etch_array_push(&r->streams, stream);
}

static bool take_flow(struct etch_recording *r, const struct etch_bundle_item *item)
{
    const Etch__Flow *flow = item->record->flow;
    struct etch_stream *stream = find_stream(r, flow->stream);
    struct etch_piece piece = {flow->offset, flow->data.len, item->offset};

    if (!stream || piece.offset < etch_stream_end(stream) || piece.offset + piece.size < piece.offset) {
        r->damaged++;
        return true;
    }
    return piece.size == 0 || etch_array_push(&stream->pieces, piece);
}

static bool take_switches(struct etch_recording *r, const Etch__Switches *switches)
{
    for (size_t i = 0; i < switches->n_switches; i++)
        if (!etch_array_push(&r->switches, *switches->switches[i]))
            return false;
    return true;
}

static bool take_syncs(struct etch_recording *r, const Etch__Syncs *syncs)
{
    for (size_t i = 0; i < syncs->n_syncs; i++) {
        const Etch__Sync *from = syncs->syncs[i];
        Etch__Sync sync = *from;

        sync.base.unknown_fields = NULL;
        sync.base.n_unknown_fields = 0;
        if (!copy_bytes(&sync.callers, from->callers, from->n_callers * sizeof(*from->callers)) ||
            !etch_array_push(&r->syncs, sync)) {
            free(sync.callers);
            return false;
        }
    }
    return true;
}

static bool take(struct etch_recording *r, const struct etch_bundle_item *item)
{
    const Etch__Record *record = item->record;

    if (!record)
        return true;
    if (record->body_case != ETCH__RECORD__BODY_FLOW && /* of which the place is kept, not the bytes */
        !etch_budget_take(&r->budget, item->memory, item->offset + item->size))
        return true;
    switch (record->body_case) {
    case ETCH__RECORD__BODY_HOST:
        return replace(&r->host, record->host);
    case ETCH__RECORD__BODY_PROGRAM:
        r->source = record->program->source;
        return replace(&r->program, record->program);
    case ETCH__RECORD__BODY_FAILURE:
        return replace(&r->failure, record->failure);
    case ETCH__RECORD__BODY_OUTCOME:
        return replace(&r->outcome, record->outcome);
    case ETCH__RECORD__BODY_IMAGE:
        return push_copy(&r->images, record->image);
    case ETCH__RECORD__BODY_THREAD:
        return push_copy(&r->threads, record->thread);
    case ETCH__RECORD__BODY_CLOCK:
        return push_copy(&r->clocks, record->clock);
    case ETCH__RECORD__BODY_WATCH:
        return push_copy(&r->watches, record->watch);
    case ETCH__RECORD__BODY_LOSS:
        return push_copy(&r->losses, record->loss);
    case ETCH__RECORD__BODY_STREAM:
        return take_stream(r, record->stream);
    case ETCH__RECORD__BODY_FLOW:
        return take_flow(r, item);
    case ETCH__RECORD__BODY_SWITCHES:
        return take_switches(r, record->switches);
    case ETCH__RECORD__BODY_ACCESSES:
        return take_accesses(r, record->accesses);
    case ETCH__RECORD__BODY_SYNCS:
        return take_syncs(r, record->syncs);
    default:
        return true;
    }
}

static int order(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_images(const void *a, const void *b)
{
    const Etch__Image *x = *(Etch__Image *const *)a, *y = *(Etch__Image *const *)b;
    int c = order(x->pid, y->pid);

    c = c ? c : order(x->start, y->start);
    c = c ? c : order(x->mapped_tsc, y->mapped_tsc);
    return c ? c : order(x->size, y->size);
}

static int compare_switches(const void *a, const void *b)
{
    const Etch__Switch *x = a, *y = b;
    int c = order(x->cpu, y->cpu);

    c = c ? c : order(x->tsc, y->tsc);
    return c ? c : (x->in != 0) - (y->in != 0); /* out before in, at the same tick */
}

/* A mapping that went away while the program ran was recorded twice, when it came and when it went: the one that knows
 * both stays. */
static void drop_superseded_images(struct etch_recording *r)
{
    size_t kept = 0;

    for (size_t i = 0; i < r->images.n; i++) {
        Etch__Image *image = r->images.v[i], *last = kept ? r->images.v[kept - 1] : NULL;

        if (!last || compare_images(&last, &image) != 0) {
            r->images.v[kept++] = image;
            continue;
        }
        if (!last->unmapped_tsc)
            r->images.v[kept - 1] = image;
        etch__image__free_unpacked(last->unmapped_tsc ? image : last, NULL);
    }
    r->images.n = kept;
}

void etch_recording_sort(struct etch_recording *r)
{
    if (r->images.n) {
        qsort(r->images.v, r->images.n, sizeof(r->images.v[0]), compare_images);
        drop_superseded_images(r);
    }
    if (r->switches.n)
        qsort(r->switches.v, r->switches.n, sizeof(r->switches.v[0]), compare_switches);
}

/* What did not fit is a loss like any other. */
static bool note_limit(struct etch_recording *r)
{
    Etch__Loss *loss = r->budget.refused ? etch_recording_add_loss(r) : NULL;

    if (!r->budget.refused)
        return true;
    if (!loss || !etch_message_set_string(&loss->detail, "records beyond the reader's memory (--max-memory)"))
        return false;
    loss->cause = ETCH__LOSS_CAUSE__LOSS_LIMIT;
    loss->events = r->budget.refused;
    return true;
}

static int read_records(struct etch_recording *r, struct etch_bundle_reader *reader, struct etch_error *err)
{
    for (;;) {
        struct etch_bundle_item item;

        switch (etch_bundle_next(reader, &item, err)) {
        case ETCH_BUNDLE_RECORD:
            if (item.record)
                etch_ledger_take(&r->ledger, item.record);
            if (r->ledger.starved || !take(r, &item))
                return etch_error_set_errno(err, ENOMEM, "cannot read %s", r->path);
            break;
        case ETCH_BUNDLE_DAMAGED:
            r->damaged++;
            break;
        case ETCH_BUNDLE_CUT:
            r->cut = true;
            return 0;
        case ETCH_BUNDLE_END:
            return 0;
        case ETCH_BUNDLE_FAILED:
            return -1;
        }
    }
}

static struct kept_flow *find_kept(struct bundle_loader *l, uint64_t where)
{
    for (size_t i = 0; i < KEPT; i++)
        if (l->kept[i].data && l->kept[i].where == where)
            return &l->kept[i];
    return NULL;
}

/* The slot longest unused and not being read, emptied; NULL where all are being read. */
static struct kept_flow *free_slot(struct bundle_loader *l)
{
    struct kept_flow *oldest = NULL;

    for (size_t i = 0; i < KEPT; i++)
        if (!l->kept[i].readers && (!oldest || l->kept[i].used < oldest->used))
            oldest = &l->kept[i];
    if (oldest) {
        free(oldest->data);
        oldest->data = NULL;
    }
    return oldest;
}

static ssize_t copy_out(const uint8_t *data, size_t have, uint64_t skip, void *buffer, size_t size)
{
    size_t n = skip < have ? have - (size_t)skip : 0;

    n = n < size ? n : size;
    if (n)
        memcpy(buffer, data + skip, n);
    return (ssize_t)n;
}

static ssize_t read_kept(struct bundle_loader *l, struct kept_flow *kept, uint64_t skip, void *buffer, size_t size)
{
    ssize_t n;

    kept->used = ++l->clock;
    kept->readers++;
    pthread_mutex_unlock(&l->lock);
    n = copy_out(kept->data, kept->size, skip, buffer, size);
    pthread_mutex_lock(&l->lock);
    kept->readers--;
    return n;
}

static ssize_t read_piece(const struct etch_stream *stream, const struct etch_piece *piece, uint64_t skip, void *buffer,
                          size_t size)
{
    struct bundle_loader *l = stream->recording->loader;
    struct kept_flow *kept;
    uint8_t *data;
    size_t have;
    ssize_t n;

    pthread_mutex_lock(&l->lock);
    kept = find_kept(l, piece->where);
    if (kept) {
        n = read_kept(l, kept, skip, buffer, size);
        pthread_mutex_unlock(&l->lock);
        return n;
    }
    pthread_mutex_unlock(&l->lock);
    n = etch_bundle_read_flow(l->fd, piece->where, &data, &have);
    if (n < 0)
        return n;
    n = copy_out(data, have, skip, buffer, size);
    pthread_mutex_lock(&l->lock);
    kept = find_kept(l, piece->where) ? NULL : free_slot(l); /* another thread may have been as quick */
    if (kept)
        *kept = (struct kept_flow){piece->where, data, have, ++l->clock, 0};
    else
        free(data);
    pthread_mutex_unlock(&l->lock);
    return n;
}

static void close_bundle(struct etch_recording *r)
{
    struct bundle_loader *l = r->loader;

    for (size_t i = 0; i < KEPT; i++)
        free(l->kept[i].data);
    if (l->fd >= 0)
        close(l->fd);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

int etch_recording_load_bundle(struct etch_recording *r, const char *path, struct etch_error *err)
{
    struct bundle_loader *l = calloc(1, sizeof(*l));
    struct etch_bundle_reader *reader;
    int status;

    if (!l)
        return etch_error_set_errno(err, ENOMEM, "cannot open %s", path);
    pthread_mutex_init(&l->lock, NULL);
    r->loader = l;
    r->close = close_bundle;
    r->read = read_piece;
    l->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (l->fd < 0)
        return etch_error_set_errno(err, errno, "cannot open %s", path);
    if (etch_bundle_open(&reader, path, err) < 0)
        return -1;
    status = read_records(r, reader, err);
    etch_bundle_reader_free(reader);
    etch_recording_sort(r);
    if (status == 0 && (!note_limit(r) || !etch_cuts_end(r)))
        status = etch_error_set_errno(err, ENOMEM, "cannot open %s", path);
    return status;
}
