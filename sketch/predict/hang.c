/* SPDX-License-Identifier: MIT */
/* The waits of hanging threads; see hang.h. */
#include "sketch/predict/hang.h"
#include "sketch/runs/order.h"

#include <string.h>

/* The lock that a thread was about to wait for at its end: the event. NULL: none. */
static const struct etch_run_sync *blocked(const struct etch_run *run, uint32_t thread)
{
    const struct etch_run_sync *last = NULL;

    for (size_t i = 0; i < run->syncs.n; i++)
        if (run->syncs.v[i].thread == thread)
            last = &run->syncs.v[i];
    return last && last->op == ETCH__SYNC_OP__SYNC_MUTEX_BLOCKED ? last : NULL;
}

/* The event by which a thread took a lock that it still holds at its end; NULL: the thread does not hold the lock. */
static const struct etch_run_sync *held(const struct etch_run *run, uint32_t thread, uint64_t object)
{
    const struct etch_run_sync *taken = NULL;

    for (size_t i = 0; i < run->syncs.n; i++) {
        const struct etch_run_sync *s = &run->syncs.v[i];

        bool waits = s->op == ETCH__SYNC_OP__SYNC_COND_WAIT_BEGIN || s->op == ETCH__SYNC_OP__SYNC_COND_WAIT_END;

        if (s->thread != thread || (waits ? s->other : s->object) != object)
            continue;
        if (s->op == ETCH__SYNC_OP__SYNC_COND_WAIT_END || (s->op == ETCH__SYNC_OP__SYNC_MUTEX_LOCK && s->result == 0))
            taken = s;
        else if (s->op == ETCH__SYNC_OP__SYNC_COND_WAIT_BEGIN || s->op == ETCH__SYNC_OP__SYNC_MUTEX_UNLOCK)
            taken = NULL;
    }
    return taken;
}

static const struct etch_run_sync *holder(const struct etch_run *run, uint64_t object)
{
    for (uint32_t t = 0; t < run->threads.n; t++) {
        const struct etch_run_sync *taken = held(run, t, object);

        if (taken)
            return taken;
    }
    return NULL;
}

/* Follows the waits from thread to thread until they come back to the first. A ring is reported once: by the thread
 * whose wait has the lowest place. */
static void find_ring(const struct etch_run *run, uint32_t first, etch_hang_visitor *visit, void *context)
{
    struct etch_hang ring = {.kind = ETCH_HANG_RING};
    const struct etch_run_sync *wait = blocked(run, first);
    const struct etch_run_sync *own = wait;
    const struct etch_run_sync *taken = NULL;
    uint32_t waits[ETCH_HANG_PLACES], takes[ETCH_HANG_PLACES], n = 0, most = ETCH_HANG_PLACES / 2;

    while (wait && n <= run->threads.n) {
        taken = holder(run, wait->object);
        if (!taken || taken->place == ETCH_NOWHERE || wait->place == ETCH_NOWHERE || wait->place < own->place ||
            (n && wait->place == own->place && wait->thread < own->thread))
            return;
        if (n < most) {
            waits[n] = wait->place;
            takes[n] = taken->place; /* by the next one */
        }
        n++;
        if (taken->thread == first)
            break;
        wait = blocked(run, taken->thread);
    }
    if (!wait || !taken || taken->thread != first)
        return; /* the waits do not come back to the first thread */
    if (n > most) {
        ring.kind = ETCH_HANG_LONG;
        visit(context, &ring);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        ring.places[ring.n++] = takes[(i + n - 1) % n];
        ring.places[ring.n++] = waits[i];
    }
    visit(context, &ring);
}

static bool is_wake(const struct etch_run_sync *s)
{
    return s->op == ETCH__SYNC_OP__SYNC_COND_SIGNAL || s->op == ETCH__SYNC_OP__SYNC_COND_BROADCAST;
}

static void find_wait(const struct etch_run *run, uint32_t thread, etch_hang_visitor *visit, void *context)
{
    struct etch_hang hang = {.kind = ETCH_HANG_NEVER, .n = 1};
    const struct etch_run_sync *wait = NULL, *latest = NULL;

    for (size_t i = 0; i < run->syncs.n; i++)
        if (run->syncs.v[i].thread == thread)
            wait = &run->syncs.v[i];
    if (!wait || wait->op != ETCH__SYNC_OP__SYNC_COND_WAIT_BEGIN || wait->place == ETCH_NOWHERE)
        return;
    for (size_t i = 0; i < run->syncs.n; i++) {
        const struct etch_run_sync *s = &run->syncs.v[i];

        if (!is_wake(s) || s->object != wait->object)
            continue;
        /* A wake-up that may be after the wait proves nothing. */
        if (!run->order || etch_run_order_compare(run->order, s->event, wait->event) >= 0 || s->place == ETCH_NOWHERE)
            return;
        if (!latest || etch_run_order_compare(run->order, latest->event, s->event) <= 0)
            latest = s;
    }
    hang.places[0] = wait->place;
    hang.wait = (uint32_t)(wait - run->syncs.v);
    if (latest) {
        hang.kind = ETCH_HANG_TOO_LATE;
        hang.n = 2;
        hang.places[0] = latest->place;
        hang.places[1] = wait->place;
        hang.signal = (uint32_t)(latest - run->syncs.v);
    }
    visit(context, &hang);
}

void etch_hang_find(const struct etch_run *run, etch_hang_visitor *visit, void *context)
{
    if (!run->failing || !run->failure || run->failure->kind != ETCH__FAILURE_KIND__FAILURE_HANG || !run->synced)
        return;
    for (uint32_t t = 0; t < run->threads.n; t++) {
        find_ring(run, t, visit, context);
        find_wait(run, t, visit, context);
    }
}
