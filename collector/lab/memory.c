/* SPDX-License-Identifier: MIT */
/* See memory.h. For each location there is a list of its stores, in the order in which they were executed. A load reads
 * one of them. Coherence, happens-before and sequentially consistent operations say which ones it may read (C11,
 * 5.1.2.4 and 7.17.3). Every event of a thread has an epoch: its number in the thread. A clock has an epoch for each
 * thread: the event happens before if its epoch is not beyond the clock's.
 *
 * With tso, the stores of a thread become visible to others in their order, and late: `flushed` is the last visible
 * one. With both models the order of stores to one location is that of their execution, and a load never reads a store
 * that was not executed yet. So write-write reordering within a location and load buffering are out of reach. */
#include "collector/lab/memory.h"
#include "collector/lab/runtime.h"

#include <string.h>
#include <sys/mman.h>

#define THREADS 64u     /* of a weak run; the loads of later threads read the newest value */
#define STORES 128u     /* the newest stores of a location, which are kept */
#define LOCATIONS 4096u /* a power of two; loads of others read the newest value */
#define PROBES 64u
#define STALE 16u /* old values in a row that a thread gets of a location: it may wait for the new one */

struct clock {
    uint32_t of[THREADS];
};

struct store {
    uint64_t value;
    uint32_t thread, epoch;
    uint32_t sc;         /* its place among the sequentially consistent operations; 0: it is none of them */
    struct clock before; /* an acquire that reads the store learns this clock */
};

/* The newest store of a location that a thread has read, and when. */
struct seen {
    uint64_t store;
    uint32_t epoch, stale;
};

struct location {
    uint64_t at; /* 0: free */
    uint32_t size;
    uint64_t n; /* stores so far; the store `i` is at i % STORES */
    struct seen seen[THREADS];
    struct store stores[STORES];
};

static struct location *locations;
static struct clock clocks[THREADS], released[THREADS], acquired[THREADS]; /* the last two: by fences */
static struct clock met;                                                   /* at calls that synchronise */
static struct clock fenced;                 /* of each thread: its last sequentially consistent fence */
static struct clock fences_seen[THREADS];   /* `fenced`, as it was at the thread's own last fence */
static uint32_t fence_sc[THREADS], last_sc; /* their places among the sequentially consistent operations */
static uint32_t flushed[THREADS];           /* tso */
static uint64_t random_state;
static struct {
    uint64_t at, size, newest, old; /* a value that memory lends to the thread */
    uint64_t written, written_size, before;
} pending[THREADS];

/* ---- Clocks ---- */

static void join(struct clock *to, const struct clock *from)
{
    for (uint32_t i = 0; i < THREADS; i++)
        if (from->of[i] > to->of[i])
            to->of[i] = from->of[i];
}

static uint32_t next_epoch(void)
{
    return ++clocks[lab_me].of[lab_me];
}

static bool has_happened(const struct store *s)
{
    return s->epoch <= clocks[lab_me].of[s->thread];
}

bool lab_memory_is_weak(void)
{
    return lab && lab->memory != ETCH_LAB_SC && lab_me < THREADS && lab_controlled();
}

static bool is_tso(void)
{
    return lab->memory == ETCH_LAB_TSO;
}

static uint32_t draw(uint32_t n)
{
    if (!random_state)
        random_state = (lab->spec.seed + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state >> 33) % n);
}

/* ---- Locations ---- */

static bool have_locations(void)
{
    if (!locations) {
        void *at = mmap((void *)INT64_C(0x180000000000), LOCATIONS * sizeof(*locations), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        locations = at == MAP_FAILED ? NULL : at;
    }
    return locations;
}

static struct store *store_at(struct location *l, uint64_t i)
{
    return &l->stores[i % STORES];
}

static uint64_t first_of(const struct location *l)
{
    return l->n > STORES ? l->n - STORES : 0;
}

/* The value before all stores that are known. It has no thread, and happened before everything. */
static void begin(struct location *l, uint64_t value)
{
    memset(l->seen, 0, sizeof(l->seen));
    l->n = 1;
    l->stores[0] = (struct store){.value = value};
}

static uint32_t slot_of(uint64_t at)
{
    return (uint32_t)(at * UINT64_C(0x9e3779b97f4a7c15) >> 52);
}

/* The location, or NULL: there is none, or no room for it. Accesses of several sizes have locations of their own. A
 * store to one of them changes the memory of the others, which find_with() notices. */
static struct location *find(uint64_t at, size_t size, bool make)
{
    uint32_t slot = slot_of(at);

    if (!have_locations() || size > 8)
        return NULL;
    for (uint32_t i = 0; i < PROBES; i++, slot = (slot + 1) & (LOCATIONS - 1)) {
        struct location *l = &locations[slot];

        if (!l->at && !make)
            return NULL;
        if (!l->at) {
            l->at = at;
            l->size = (uint32_t)size;
        }
        if (l->at == at && l->size == size)
            return l;
    }
    return NULL;
}

/* If memory was changed behind the lab's back, the history of the location is gone. */
static struct location *find_with(uint64_t at, size_t size, uint64_t newest, bool make)
{
    struct location *l = find(at, size, make);

    if (l && (!l->n || store_at(l, l->n - 1)->value != newest))
        begin(l, newest);
    return l;
}

/* ---- Which store a load may read ---- */

/* The oldest store of the location that the thread may still read by coherence: nothing older than a store that
 * happened before, or than a store that was read by something that happened before. */
static uint64_t by_coherence(struct location *l)
{
    uint64_t oldest = first_of(l);

    for (uint64_t i = l->n; i-- > oldest;)
        if (has_happened(store_at(l, i)))
            oldest = i;
    for (uint32_t t = 0; t < THREADS; t++)
        if (l->seen[t].epoch && l->seen[t].epoch <= clocks[lab_me].of[t] && l->seen[t].store > oldest)
            oldest = l->seen[t].store;
    return oldest;
}

/* The same by the order of the sequentially consistent operations. */
static bool is_bound_by_sc(const struct store *s, bool sc)
{
    if (!s->epoch)
        return false;
    if (sc && (s->sc || s->epoch <= fenced.of[s->thread]))
        return true;
    return (s->sc && s->sc < fence_sc[lab_me]) || s->epoch <= fences_seen[lab_me].of[s->thread];
}

static uint64_t oldest_of(struct location *l, bool sc)
{
    uint64_t oldest = by_coherence(l);

    for (uint64_t i = l->n; i-- > oldest;)
        if (is_bound_by_sc(store_at(l, i), sc))
            oldest = i;
    return oldest;
}

/* The newest store that the thread sees: its own, or one that has left the buffer of its thread. */
static uint64_t visible_of(struct location *l)
{
    uint64_t i = l->n - 1;

    while (i > first_of(l) && store_at(l, i)->thread != lab_me &&
           store_at(l, i)->epoch > flushed[store_at(l, i)->thread])
        i--;
    return i;
}

/* Half of the loads read the newest store; the others read any. */
static uint64_t choose(struct location *l, bool sc)
{
    uint64_t oldest = is_tso() ? visible_of(l) : oldest_of(l, sc), newest = l->n - 1, i;
    struct seen *seen = &l->seen[lab_me];

    if (oldest == newest || seen->stale >= STALE || draw(2) == 0) {
        seen->stale = 0;
        return newest;
    }
    i = oldest + draw((uint32_t)(newest - oldest + 1));
    seen->stale = i == newest ? 0 : seen->stale + 1;
    return i;
}

static void flush(const struct store *s)
{
    if (flushed[s->thread] < s->epoch)
        flushed[s->thread] = s->epoch;
}

static struct store *read_one(struct location *l, bool sc)
{
    uint64_t i = choose(l, sc);
    struct store *s = store_at(l, i);

    l->seen[lab_me].store = i;
    l->seen[lab_me].epoch = next_epoch();
    if (s->thread != lab_me)
        flush(s);
    return s;
}

/* ---- Operations ---- */

static bool acquires(int order)
{
    return order == __ATOMIC_ACQUIRE || order == __ATOMIC_CONSUME || order == __ATOMIC_ACQ_REL ||
           order == __ATOMIC_SEQ_CST;
}

static bool releases(int order)
{
    return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

static void learn(const struct store *s, int order)
{
    join(acquires(order) ? &clocks[lab_me] : &acquired[lab_me], &s->before);
}

uint64_t lab_memory_load(uint64_t at, size_t size, uint64_t newest, int order)
{
    struct location *l = find_with(at, size, newest, false);
    const struct store *s;

    if (!l) {
        if (acquires(order))
            join(&clocks[lab_me], &met); /* a store that the lab did not see, in a library for example */
        return newest;
    }
    s = read_one(l, order == __ATOMIC_SEQ_CST);
    last_sc += order == __ATOMIC_SEQ_CST;
    learn(s, order);
    return s->value;
}

/* Stores to one location become visible in their order. */
static struct store *push(struct location *l, uint64_t value, const struct clock *before)
{
    const struct store *last = store_at(l, l->n - 1);
    struct store made = {.value = value, .thread = lab_me, .epoch = next_epoch()};

    if (last->thread != lab_me)
        flush(last);
    if (before)
        made.before = *before;
    l->seen[lab_me].store = l->n;
    l->seen[lab_me].epoch = made.epoch;
    l->seen[lab_me].stale = 0;
    *store_at(l, l->n) = made;
    return store_at(l, l->n++);
}

static void publish(struct store *s, int order)
{
    if (releases(order))
        join(&s->before, &clocks[lab_me]);
    else
        join(&s->before, &released[lab_me]);
    if (order == __ATOMIC_SEQ_CST) {
        s->sc = ++last_sc;
        flushed[lab_me] = s->epoch;
    }
}

void lab_memory_store(uint64_t at, size_t size, uint64_t before, uint64_t value, int order)
{
    struct location *l = find_with(at, size, before, true);
    const struct store *last = l ? store_at(l, l->n - 1) : NULL;
    struct clock sequence;

    if (!l)
        return;
    memset(&sequence, 0, sizeof(sequence));
    if (last->thread == lab_me)
        sequence = last->before; /* the release sequence goes on */
    publish(push(l, value, &sequence), order);
}

void lab_memory_update(uint64_t at, size_t size, uint64_t before, uint64_t value, bool write, int order)
{
    struct location *l = find_with(at, size, before, true);
    struct clock sequence;
    struct store *s;

    if (!l)
        return;
    learn(store_at(l, l->n - 1), order);
    l->seen[lab_me].store = l->n - 1;
    l->seen[lab_me].epoch = next_epoch();
    flush(store_at(l, l->n - 1));
    if (!write)
        return;
    sequence = store_at(l, l->n - 1)->before;
    s = push(l, value, &sequence);
    publish(s, order);
    flushed[lab_me] = s->epoch; /* the machine's instruction empties the buffer */
}

void lab_memory_fence(int order)
{
    uint32_t me = lab_me;

    if (acquires(order))
        join(&clocks[me], &acquired[me]);
    if (order == __ATOMIC_SEQ_CST) {
        fence_sc[me] = ++last_sc;
        fenced.of[me] = flushed[me] = next_epoch();
        fences_seen[me] = fenced;
    }
    if (releases(order))
        released[me] = clocks[me];
    next_epoch();
}

static bool quiet; /* the next point is of an access, and synchronises nothing */

void lab_memory_point(struct etch_lab_op op, uint64_t site)
{
    quiet = true;
    lab_point(op, site);
    quiet = false;
}

bool lab_memory_is_quiet(void)
{
    bool is = quiet;

    quiet = false;
    return is;
}

void lab_memory_meet(void)
{
    if (!lab_memory_is_weak())
        return;
    lab_memory_settle();
    join(&met, &clocks[lab_me]);
    clocks[lab_me] = met;
    flushed[lab_me] = next_epoch();
}

void lab_memory_forget(uint64_t at, size_t size)
{
    for (uint32_t i = 0; locations && i < LOCATIONS; i++)
        if (locations[i].at && locations[i].at < at + size && at < locations[i].at + locations[i].size)
            locations[i].n = 0;
}

/* ---- Plain accesses ---- */

static uint64_t value_at(uint64_t at, size_t size)
{
    uint64_t value = 0;

    memcpy(&value, (const void *)(uintptr_t)at, size);
    return value;
}

static void lend(struct location *l, uint64_t at, size_t size, uint64_t newest)
{
    uint64_t old = read_one(l, false)->value;

    if (old == newest)
        return;
    pending[lab_me].at = at;
    pending[lab_me].size = size;
    pending[lab_me].newest = newest;
    pending[lab_me].old = old;
    memcpy((void *)(uintptr_t)at, &old, size);
}

void lab_memory_plain(const void *pointer, size_t size, bool write)
{
    uint64_t at = LAB_OBJECT(pointer), newest;
    struct location *l;

    if (!lab_memory_is_weak() || !size)
        return;
    if (size > 8 || (size & (size - 1)) || at % size) {
        lab_memory_forget(at, size);
        return;
    }
    if (!write) {
        if (find(at, size, false) && lab_peek(at, size, &newest) && (l = find_with(at, size, newest, false)))
            lend(l, at, size, newest);
        return;
    }
    pending[lab_me].written = at;
    pending[lab_me].written_size = size;
    pending[lab_me].before = 0;
    if (lab_peek(at, size, &pending[lab_me].before))
        return;
    pending[lab_me].written = 0; /* the access will fault */
}

void lab_memory_settle(void)
{
    struct location *l;
    uint64_t value;

    if (!lab_memory_is_weak())
        return;
    if (pending[lab_me].at) {
        if (value_at(pending[lab_me].at, pending[lab_me].size) == pending[lab_me].old)
            memcpy((void *)(uintptr_t)pending[lab_me].at, &pending[lab_me].newest, pending[lab_me].size);
        pending[lab_me].at = 0;
    }
    if (!pending[lab_me].written)
        return;
    l = find_with(pending[lab_me].written, pending[lab_me].written_size, pending[lab_me].before, true);
    value = value_at(pending[lab_me].written, pending[lab_me].written_size);
    pending[lab_me].written = 0;
    if (l)
        push(l, value, NULL);
}
