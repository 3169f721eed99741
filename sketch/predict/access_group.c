/* SPDX-License-Identifier: MIT */
/* Access groups and their patterns; see access_group.h. */
#include "sketch/predict/access_group.h"

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

/* True if an access belongs to the newest group. */
static bool goes_on(const struct etch_access_group *newest, const struct etch_run_access *a)
{
    return newest->object == a->object && newest->thread == a->thread && newest->place == a->place &&
           newest->nth == a->nth && newest->call == a->call && newest->handler == a->handler;
}

static bool is_one_flow(const struct etch_access_group *a, const struct etch_access_group *b)
{
    return a->thread == b->thread && a->handler == b->handler;
}

static bool add_group(struct etch_access_groups *groups, const struct etch_run *run, uint32_t i)
{
    const struct etch_run_access *a = &run->accesses.v[i];
    struct etch_access_group group = {.thread = a->thread,
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
    struct etch_access_group *newest = groups->all.n ? &groups->all.v[groups->all.n - 1] : NULL;

    if (!newest || !goes_on(newest, a))
        return etch_array_push(&groups->all, group);
    newest->last = i;
    newest->read_at = a->read ? i : newest->read_at;
    newest->write_at = a->write ? i : newest->write_at;
    newest->read |= a->read;
    newest->write |= a->write;
    return true;
}

int etch_access_groups_make(struct etch_access_groups *groups, const struct etch_run *run, bool early)
{
    size_t n = early && run->first_symptom < run->accesses.n ? run->first_symptom : run->accesses.n;
    ETCH_ARRAY(uint32_t) order = {0};
    bool good = true;

    groups->all.n = 0;
    groups->fatal = 0;
    groups->comparison_points = early ? &run->early_comparison_points : &run->comparison_points;
    for (size_t i = 0; run->failing && !early && i < run->accesses.n; i++) {
        const struct etch_run_access *a = &run->accesses.v[i];

        if (a->place == run->failing_place && a->thread == run->failing_thread && a->nth > groups->fatal)
            groups->fatal = a->nth;
    }
    for (size_t i = 0; good && i < n; i++)
        if (run->accesses.v[i].object != ETCH_NOWHERE && run->accesses.v[i].place != ETCH_NOWHERE)
            good = etch_array_push(&order, (uint32_t)i);
    if (good && order.n)
        qsort_r(order.v, order.n, sizeof(*order.v), by_object, (void *)(uintptr_t)run);
    for (size_t i = 0; good && i < order.n; i++)
        good = add_group(groups, run, order.v[i]);
    etch_array_free(&order);
    return good ? 0 : -1;
}

/* The access of a group that counts in a pattern: its last write, or its last read. */
static uint32_t access_of(const struct etch_access_group *t, char letter)
{
    return letter == 'W' ? t->write_at : t->read_at;
}

static bool is_proven(const struct etch_run *run, uint32_t a, uint32_t b)
{
    return etch_run_compare(run, &run->accesses.v[a], &run->accesses.v[b]) < 0;
}

/* The next group of the same object and statement; SIZE_MAX: none. */
static size_t group_again(const struct etch_access_groups *groups, size_t i)
{
    for (size_t k = i + 1; k < groups->all.n && groups->all.v[k].object == groups->all.v[i].object; k++)
        if (groups->all.v[k].place == groups->all.v[i].place)
            return k;
    return SIZE_MAX;
}

/* True if a group is the last group of its statement and object at a time that counts. In a failing run that time is
 * the end. In a passing run it is any comparison point, or any time if there is no comparison point. */
static bool is_last(const struct etch_access_groups *groups, const struct etch_run *run, size_t i)
{
    const struct etch_access_group *t = &groups->all.v[i];
    size_t again = group_again(groups, i);

    /* The failing statement may have accessed several objects. Only the object of the fatal execution counts. */
    if (groups->fatal && t->place == run->failing_place && t->thread == run->failing_thread)
        return t->nth == groups->fatal;
    for (size_t k = 0; k < groups->comparison_points->n; k++)
        if (groups->comparison_points->v[k] >= t->first &&
            (again == SIZE_MAX || groups->comparison_points->v[k] < groups->all.v[again].first))
            return true;
    return !groups->comparison_points->n && (again == SIZE_MAX || !run->failing);
}

/* The last group of the same thread and object before group `i`; SIZE_MAX: none. */
static size_t group_before(const struct etch_access_groups *groups, size_t i)
{
    for (size_t k = i; k-- > 0 && groups->all.v[k].object == groups->all.v[i].object;)
        if (is_one_flow(&groups->all.v[k], &groups->all.v[i]))
            return k;
    return SIZE_MAX;
}

/* Two threads read, then both write, by the same two statements. Either order of the writes loses an update, so the
 * order need not be proven. */
static bool is_either_way(const struct etch_access_groups *groups, const struct etch_run *run, const char *name,
                          const size_t at[3])
{
    const struct etch_access_group *first = &groups->all.v[at[0]], *second = &groups->all.v[at[1]],
                                   *last = &groups->all.v[at[2]];
    size_t other = strcmp(name, "RWW") == 0 ? group_before(groups, at[1]) : SIZE_MAX;

    return other != SIZE_MAX && second->place == last->place && groups->all.v[other].place == first->place &&
           groups->all.v[other].read && is_proven(run, first->read_at, second->write_at) &&
           is_proven(run, groups->all.v[other].read_at, last->write_at);
}

static void report(const struct etch_access_groups *groups, const struct etch_run *run, const char *name,
                   const size_t *at, uint32_t n, etch_pattern_visitor *visit, void *context)
{
    struct etch_pattern p = {
        .n = n, .proven = true, .alone = n == 2 && is_one_flow(&groups->all.v[at[0]], &groups->all.v[at[1]])};

    strncpy(p.name, name, sizeof(p.name) - 1);
    for (uint32_t i = 0; i < n; i++) {
        p.group[i] = (uint32_t)at[i];
        p.at[i] = access_of(&groups->all.v[at[i]], name[i]);
        if (i)
            p.proven &= is_proven(run, p.at[i - 1], p.at[i]);
    }
    p.proven |= n == 3 && is_either_way(groups, run, name, at);
    p.last = is_last(groups, run, strcmp(name, "RW") == 0 ? at[0] : at[n - 1]);
    visit(context, &p);
}

/* Reports the pairs that end with group `i`: with the write before it, and with the reads since that write. */
static void report_pairs(const struct etch_access_groups *groups, const struct etch_run *run, size_t i,
                         etch_pattern_visitor *visit, void *context)
{
    const struct etch_access_group *t = &groups->all.v[i];

    for (size_t k = i; k-- > 0 && groups->all.v[k].object == t->object;) {
        const struct etch_access_group *before = &groups->all.v[k];
        size_t at[2] = {k, i};

        if (!is_one_flow(before, t)) {
            if (before->write && t->read)
                report(groups, run, "WR", at, 2, visit, context);
            if (before->write && t->write)
                report(groups, run, "WW", at, 2, visit, context);
            if (before->read && t->write)
                report(groups, run, "RW", at, 2, visit, context);
        } else if (before->write && t->read && before->place != t->place) {
            report(groups, run, "WR", at, 2, visit, context);
        }
        if (before->write)
            return;
    }
}

/* The name of a pattern in which the middle group cannot be moved out from between the others; NULL if it can. A group
 * that reads and writes counts as a write, except the first of the three. */
static const char *atomicity_name(const struct etch_access_group *a, const struct etch_access_group *b,
                                  const struct etch_access_group *c)
{
    if (b->write && c->write)
        return a->read ? "RWW" : NULL;
    if (b->write && c->read)
        return a->write ? "WWR" : "RWR";
    if (b->read && a->write && c->write)
        return "WRW";
    return NULL;
}

static void report_triples(const struct etch_access_groups *groups, const struct etch_run *run, size_t i,
                           etch_pattern_visitor *visit, void *context)
{
    const struct etch_access_group *c = &groups->all.v[i];
    size_t a = i;

    while (a-- > 0 && groups->all.v[a].object == c->object && !is_one_flow(&groups->all.v[a], c))
        ;
    if (a == SIZE_MAX || groups->all.v[a].object != c->object || a + 1 >= i)
        return;
    for (size_t k = a + 1; k < i; k++) {
        const char *name = atomicity_name(&groups->all.v[a], &groups->all.v[k], c);
        size_t at[3] = {a, k, i};

        if (name)
            report(groups, run, name, at, 3, visit, context);
    }
}

void etch_access_groups_patterns(const struct etch_access_groups *groups, const struct etch_run *run,
                                 etch_pattern_visitor *visit, void *context)
{
    for (size_t i = 0; i < groups->all.n; i++) {
        report_pairs(groups, run, i, visit, context);
        report_triples(groups, run, i, visit, context);
    }
}

/* ---- Two variables ---- */

#define READS_TOGETHER 8u /* consecutive reads of a thread that are searched for a pair */
#define WRITES_NEAR 256u  /* groups before and after a read that are searched for the other write of the call */

static bool is_one_call(const struct etch_access_group *a, const struct etch_access_group *b)
{
    return is_one_flow(a, b) && a->call && a->call == b->call;
}

/* The newest write before a read, if another thread made it and the order is proven; SIZE_MAX: none. */
static size_t write_seen(const struct etch_access_groups *groups, const struct etch_run *run, size_t read)
{
    const struct etch_access_group *r = &groups->all.v[read];

    for (size_t k = read; k-- > 0 && groups->all.v[k].object == r->object;)
        if (groups->all.v[k].write)
            return !is_one_flow(&groups->all.v[k], r) && is_proven(run, groups->all.v[k].write_at, r->read_at)
                       ? k
                       : SIZE_MAX;
    return SIZE_MAX;
}

/* The first group of the object of `near`, or the first within WRITES_NEAR before it. */
static size_t first_near(const struct etch_access_groups *groups, size_t near)
{
    size_t first = near;

    while (first > 0 && near - first < WRITES_NEAR && groups->all.v[first - 1].object == groups->all.v[near].object)
        first--;
    return first;
}

/* Reports a torn read: `fresh` saw a write of another call, and `stale` came before the other write of that call.
 * Returns 1 if that write may lie outside of the searched groups, else 0. */
static size_t report_torn(const struct etch_access_groups *groups, const struct etch_run *run, size_t fresh,
                          size_t stale, etch_torn_visitor *visit, void *context)
{
    const struct etch_access_group *v = groups->all.v;
    size_t seen = write_seen(groups, run, fresh), first = first_near(groups, stale), k;
    struct etch_torn torn = {.group = {(uint32_t)seen, (uint32_t)fresh, (uint32_t)stale}};
    const struct etch_access_group *write = seen == SIZE_MAX ? NULL : &v[seen];

    if (!write || !write->call)
        return 0;
    for (k = first; k < groups->all.n && k < stale + WRITES_NEAR && v[k].object == v[stale].object; k++) {
        if (!v[k].write || !is_one_call(&v[k], write))
            continue;
        torn.group[3] = (uint32_t)k;
        torn.proven = is_proven(run, v[stale].read_at, v[k].write_at);
        if (torn.proven || !is_proven(run, v[k].write_at, v[stale].read_at))
            visit(context, &torn);
        return 0;
    }
    return (first > 0 && v[first - 1].object == v[stale].object) ||
           (k < groups->all.n && v[k].object == v[stale].object);
}

static int by_thread_and_time(const void *x, const void *y, void *context)
{
    const struct etch_access_group *groups = context;
    const struct etch_access_group *a = &groups[*(const uint32_t *)x], *b = &groups[*(const uint32_t *)y];

    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

size_t etch_access_groups_torn(const struct etch_access_groups *groups, const struct etch_run *run,
                               etch_torn_visitor *visit, void *context)
{
    ETCH_ARRAY(uint32_t) reads = {0};
    size_t unsearched = 0;
    bool good = true;

    for (uint32_t i = 0; good && run->threads.n > 1 && i < groups->all.n; i++)
        if (groups->all.v[i].read && !groups->all.v[i].write && groups->all.v[i].call)
            good = etch_array_push(&reads, i);
    if (good && reads.n)
        qsort_r(reads.v, reads.n, sizeof(*reads.v), by_thread_and_time, groups->all.v);
    for (size_t i = 0; good && i < reads.n; i++)
        for (size_t k = i + 1; k < reads.n && k <= i + READS_TOGETHER; k++) {
            const struct etch_access_group *a = &groups->all.v[reads.v[i]], *b = &groups->all.v[reads.v[k]];

            if (a->object == b->object || !is_one_call(a, b))
                continue;
            unsearched += report_torn(groups, run, reads.v[i], reads.v[k], visit, context);
            unsearched += report_torn(groups, run, reads.v[k], reads.v[i], visit, context);
        }
    etch_array_free(&reads);
    return unsearched;
}
