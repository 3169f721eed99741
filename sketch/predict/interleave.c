/* SPDX-License-Identifier: MIT */
/* Turns and their patterns; see interleave.h. */
#include "sketch/predict/interleave.h"

#include <string.h>

static int by_object(const void *x, const void *y, void *context)
{
    const struct etch_run *run = context;
    uint32_t i = *(const uint32_t *)x, k = *(const uint32_t *)y;
    uint32_t a = run->accesses.v[i].object, b = run->accesses.v[k].object;

    if (a != b)
        return a < b ? -1 : 1;
    return i < k ? -1 : i > k;
}

/* Whether an access goes on with a turn, with none of another thread between. */
static bool goes_on(const struct etch_turn *newest, const struct etch_run_access *a)
{
    return newest->object == a->object && newest->thread == a->thread && newest->place == a->place &&
           newest->nth == a->nth && newest->call == a->call && newest->handler == a->handler;
}

static bool is_one_flow(const struct etch_turn *a, const struct etch_turn *b)
{
    return a->thread == b->thread && a->handler == b->handler;
}

static bool add_turn(struct etch_turns *turns, const struct etch_run *run, uint32_t i)
{
    const struct etch_run_access *a = &run->accesses.v[i];
    struct etch_turn turn = {.thread = a->thread,
                             .place = a->place,
                             .variable = a->variable,
                             .object = a->object,
                             .first = i,
                             .last = i,
                             .read_at = a->read ? i : ETCH_NOWHERE,
                             .write_at = a->write ? i : ETCH_NOWHERE,
                             .nth = a->nth,
                             .call = a->call,
                             .read = a->read,
                             .write = a->write,
                             .handler = a->handler};
    struct etch_turn *newest = turns->all.n ? &turns->all.v[turns->all.n - 1] : NULL;

    if (!newest || !goes_on(newest, a))
        return etch_array_push(&turns->all, turn);
    newest->last = i;
    newest->read_at = a->read ? i : newest->read_at;
    newest->write_at = a->write ? i : newest->write_at;
    newest->read |= a->read;
    newest->write |= a->write;
    return true;
}

int etch_turns_make(struct etch_turns *turns, const struct etch_run *run, bool early)
{
    size_t n = early && run->noticed < run->accesses.n ? run->noticed : run->accesses.n;
    ETCH_ARRAY(uint32_t) order = {0};
    bool good = true;

    turns->all.n = 0;
    turns->fatal = 0;
    turns->chances = early ? &run->early_chances : &run->chances;
    for (size_t i = 0; run->failing && !early && i < run->accesses.n; i++) {
        const struct etch_run_access *a = &run->accesses.v[i];

        if (a->place == run->failing_place && a->thread == run->failing_thread && a->nth > turns->fatal)
            turns->fatal = a->nth;
    }
    for (size_t i = 0; good && i < n; i++)
        if (run->accesses.v[i].object != ETCH_NOWHERE && run->accesses.v[i].place != ETCH_NOWHERE)
            good = etch_array_push(&order, (uint32_t)i);
    if (good && order.n)
        qsort_r(order.v, order.n, sizeof(*order.v), by_object, (void *)(uintptr_t)run);
    for (size_t i = 0; good && i < order.n; i++)
        good = add_turn(turns, run, order.v[i]);
    etch_array_free(&order);
    return good ? 0 : -1;
}

/* The access of a turn that counts in a pattern: its write, or its read. */
static uint32_t access_of(const struct etch_turn *t, char letter)
{
    return letter == 'W' ? t->write_at : t->read_at;
}

static bool is_proven(const struct etch_run *run, uint32_t a, uint32_t b)
{
    return etch_run_compare(run, &run->accesses.v[a], &run->accesses.v[b]) < 0;
}

/* The next turn of the same object by the same statement; SIZE_MAX: none. */
static size_t turn_again(const struct etch_turns *turns, size_t i)
{
    for (size_t k = i + 1; k < turns->all.n && turns->all.v[k].object == turns->all.v[i].object; k++)
        if (turns->all.v[k].place == turns->all.v[i].place)
            return k;
    return SIZE_MAX;
}

/* Whether it was the statement's last turn when it counted: at the end of a run that failed; of one that passed at any
 * time when it went through where others fail, or at any time at all where it is not known to have been there. */
static bool is_last(const struct etch_turns *turns, const struct etch_run *run, size_t i)
{
    const struct etch_turn *t = &turns->all.v[i];
    size_t again = turn_again(turns, i);

    /* Of several objects that went through the failing statement only the one counts that it failed with. */
    if (turns->fatal && t->place == run->failing_place && t->thread == run->failing_thread)
        return t->nth == turns->fatal;
    for (size_t k = 0; k < turns->chances->n; k++)
        if (turns->chances->v[k] >= t->first && (again == SIZE_MAX || turns->chances->v[k] < turns->all.v[again].first))
            return true;
    return !turns->chances->n && (again == SIZE_MAX || !run->failing);
}

/* The last turn of the same thread before one, of the same object; SIZE_MAX: none. */
static size_t turn_before(const struct etch_turns *turns, size_t i)
{
    for (size_t k = i; k-- > 0 && turns->all.v[k].object == turns->all.v[i].object;)
        if (is_one_flow(&turns->all.v[k], &turns->all.v[i]))
            return k;
    return SIZE_MAX;
}

/* Two threads read, and then both write, by the same two statements: whichever wrote last wrote over the other's, with
 * what it had read before. So their order need not be known. */
static bool is_either_way(const struct etch_turns *turns, const struct etch_run *run, const char *name,
                          const size_t at[3])
{
    const struct etch_turn *first = &turns->all.v[at[0]], *second = &turns->all.v[at[1]], *last = &turns->all.v[at[2]];
    size_t other = strcmp(name, "RWW") == 0 ? turn_before(turns, at[1]) : SIZE_MAX;

    return other != SIZE_MAX && second->place == last->place && turns->all.v[other].place == first->place &&
           turns->all.v[other].read && is_proven(run, first->read_at, second->write_at) &&
           is_proven(run, turns->all.v[other].read_at, last->write_at);
}

static void tell(const struct etch_turns *turns, const struct etch_run *run, const char *name, const size_t *at,
                 uint32_t n, etch_pattern_visitor *visit, void *context)
{
    struct etch_pattern p = {
        .n = n, .proven = true, .alone = n == 2 && is_one_flow(&turns->all.v[at[0]], &turns->all.v[at[1]])};

    strncpy(p.name, name, sizeof(p.name) - 1);
    for (uint32_t i = 0; i < n; i++) {
        p.turn[i] = (uint32_t)at[i];
        p.at[i] = access_of(&turns->all.v[at[i]], name[i]);
        if (i)
            p.proven &= is_proven(run, p.at[i - 1], p.at[i]);
    }
    p.proven |= n == 3 && is_either_way(turns, run, name, at);
    p.last = is_last(turns, run, strcmp(name, "RW") == 0 ? at[0] : at[n - 1]);
    visit(context, &p);
}

/* What stands behind each turn: the write before it, and the reads since that one. */
static void tell_pairs(const struct etch_turns *turns, const struct etch_run *run, size_t i,
                       etch_pattern_visitor *visit, void *context)
{
    const struct etch_turn *t = &turns->all.v[i];

    for (size_t k = i; k-- > 0 && turns->all.v[k].object == t->object;) {
        const struct etch_turn *before = &turns->all.v[k];
        size_t at[2] = {k, i};

        if (!is_one_flow(before, t)) {
            if (before->write && t->read)
                tell(turns, run, "WR", at, 2, visit, context);
            if (before->write && t->write)
                tell(turns, run, "WW", at, 2, visit, context);
            if (before->read && t->write)
                tell(turns, run, "RW", at, 2, visit, context);
        } else if (before->write && t->read && before->place != t->place) {
            tell(turns, run, "WR", at, 2, visit, context);
        }
        if (before->write)
            return;
    }
}

/* The pattern's name where the middle one cannot be moved out; NULL where it can. A turn that reads and writes counts
 * as a write, but for the first of three. */
static const char *atomicity_name(const struct etch_turn *a, const struct etch_turn *b, const struct etch_turn *c)
{
    if (b->write && c->write)
        return a->read ? "RWW" : NULL;
    if (b->write && c->read)
        return a->write ? "WWR" : "RWR";
    if (b->read && a->write && c->write)
        return "WRW";
    return NULL;
}

static void tell_triples(const struct etch_turns *turns, const struct etch_run *run, size_t i,
                         etch_pattern_visitor *visit, void *context)
{
    const struct etch_turn *c = &turns->all.v[i];
    size_t a = i;

    while (a-- > 0 && turns->all.v[a].object == c->object && !is_one_flow(&turns->all.v[a], c))
        ;
    if (a == SIZE_MAX || turns->all.v[a].object != c->object || a + 1 >= i)
        return;
    for (size_t k = a + 1; k < i; k++) {
        const char *name = atomicity_name(&turns->all.v[a], &turns->all.v[k], c);
        size_t at[3] = {a, k, i};

        if (name)
            tell(turns, run, name, at, 3, visit, context);
    }
}

void etch_turns_patterns(const struct etch_turns *turns, const struct etch_run *run, etch_pattern_visitor *visit,
                         void *context)
{
    for (size_t i = 0; i < turns->all.n; i++) {
        tell_pairs(turns, run, i, visit, context);
        tell_triples(turns, run, i, visit, context);
    }
}

/* ---- Two variables ---- */

#define READS_TOGETHER 8u /* turns of a thread, one behind the other, that are looked at for a pair */
#define WRITES_NEAR 256u  /* turns round a read within which the call's other write is looked for */

static bool is_one_call(const struct etch_turn *a, const struct etch_turn *b)
{
    return is_one_flow(a, b) && a->call && a->call == b->call;
}

/* The newest write before a read, where it is another thread's, and proven; SIZE_MAX: none. */
static size_t write_seen(const struct etch_turns *turns, const struct etch_run *run, size_t read)
{
    const struct etch_turn *r = &turns->all.v[read];

    for (size_t k = read; k-- > 0 && turns->all.v[k].object == r->object;)
        if (turns->all.v[k].write)
            return !is_one_flow(&turns->all.v[k], r) && is_proven(run, turns->all.v[k].write_at, r->read_at) ? k
                                                                                                             : SIZE_MAX;
    return SIZE_MAX;
}

/* Tells of the pair if `fresh` saw what another call wrote and `stale` did not yet see what that call writes. */
static void tell_torn(const struct etch_turns *turns, const struct etch_run *run, size_t fresh, size_t stale,
                      etch_torn_visitor *visit, void *context)
{
    size_t seen = write_seen(turns, run, fresh), first = stale;
    struct etch_torn torn = {.turn = {(uint32_t)seen, (uint32_t)fresh, (uint32_t)stale}};
    const struct etch_turn *write = seen == SIZE_MAX ? NULL : &turns->all.v[seen];

    if (!write || !write->call)
        return;
    while (first > 0 && stale - first < WRITES_NEAR && turns->all.v[first - 1].object == turns->all.v[stale].object)
        first--;
    for (size_t k = first;
         k < turns->all.n && k < stale + WRITES_NEAR && turns->all.v[k].object == turns->all.v[stale].object; k++) {
        const struct etch_turn *t = &turns->all.v[k];

        if (!t->write || !is_one_call(t, write))
            continue;
        torn.turn[3] = (uint32_t)k;
        torn.proven = is_proven(run, turns->all.v[stale].read_at, t->write_at);
        if (torn.proven || !is_proven(run, t->write_at, turns->all.v[stale].read_at))
            visit(context, &torn);
        return;
    }
}

static int by_thread_and_time(const void *x, const void *y, void *context)
{
    const struct etch_turn *turns = context;
    const struct etch_turn *a = &turns[*(const uint32_t *)x], *b = &turns[*(const uint32_t *)y];

    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

void etch_turns_torn(const struct etch_turns *turns, const struct etch_run *run, etch_torn_visitor *visit,
                     void *context)
{
    ETCH_ARRAY(uint32_t) reads = {0};
    bool good = true;

    for (uint32_t i = 0; good && run->threads.n > 1 && i < turns->all.n; i++)
        if (turns->all.v[i].read && !turns->all.v[i].write && turns->all.v[i].call)
            good = etch_array_push(&reads, i);
    if (good && reads.n)
        qsort_r(reads.v, reads.n, sizeof(*reads.v), by_thread_and_time, turns->all.v);
    for (size_t i = 0; good && i < reads.n; i++)
        for (size_t k = i + 1; k < reads.n && k <= i + READS_TOGETHER; k++) {
            const struct etch_turn *a = &turns->all.v[reads.v[i]], *b = &turns->all.v[reads.v[k]];

            if (a->object == b->object || !is_one_call(a, b))
                continue;
            tell_torn(turns, run, reads.v[i], reads.v[k], visit, context);
            tell_torn(turns, run, reads.v[k], reads.v[i], visit, context);
        }
    etch_array_free(&reads);
}
