/* SPDX-License-Identifier: MIT */
/* Pairs and a line; see perfclock.h. */
#include "calibrate/perfclock.h"

#include "calibrate/stamp.h"

#include <linux/perf_event.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TRIES 16

static struct etch_clock_pair take(int clock)
{
    struct etch_clock_pair best = {.after = UINT64_MAX};

    for (int i = 0; i < TRIES; i++) {
        struct etch_clock_pair pair;
        struct timespec t;
        uint32_t first, last;

        pair.before = etch_stamp(&first);
        clock_gettime(clock, &t);
        pair.after = etch_stamp(&last);
        pair.ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
        if (first == last && pair.after - pair.before < best.after - best.before)
            best = pair;
    }
    return best;
}

void etch_clock_pairs_take(struct etch_clock_pair *pairs, size_t n, int clock, uint64_t apart)
{
    struct timespec pause = {.tv_sec = (time_t)(apart / 1000000000u), .tv_nsec = (long)(apart % 1000000000u)};

    for (size_t i = 0; i < n; i++) {
        if (i > 0 && apart)
            nanosleep(&pause, NULL);
        pairs[i] = take(clock);
    }
}

uint64_t etch_clock_convert(const struct etch_clock_fit *fit, uint64_t ns)
{
    return fit->tsc_zero + (uint64_t)(int64_t)llround((double)(int64_t)(ns - fit->ns_zero) * fit->tsc_per_ns);
}

/* Cycles that the true TSC at this pair can be away from the line, at most; 0 distance to the bracket counts its far
 * end. */
static uint64_t reach(const struct etch_clock_fit *fit, const struct etch_clock_pair *pair)
{
    int64_t at = (int64_t)(etch_clock_convert(fit, pair->ns) - pair->before);
    int64_t width = (int64_t)(pair->after - pair->before);
    int64_t low = at < 0 ? -at : at;
    int64_t high = width - at < 0 ? at - width : width - at;

    return (uint64_t)(low > high ? low : high);
}

/* Cycles by which the line misses the bracket of a pair altogether. */
static uint64_t miss(const struct etch_clock_fit *fit, const struct etch_clock_pair *pair)
{
    int64_t at = (int64_t)(etch_clock_convert(fit, pair->ns) - pair->before);
    int64_t width = (int64_t)(pair->after - pair->before);

    return at < 0 ? (uint64_t)-at : at > width ? (uint64_t)(at - width) : 0;
}

static uint64_t tightest(const struct etch_clock_pair *pairs, size_t n)
{
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < n; i++)
        if (pairs[i].after >= pairs[i].before && pairs[i].after - pairs[i].before < least)
            least = pairs[i].after - pairs[i].before;
    return least;
}

/* Least squares over the middles of the pairs no wider than `limit`, relative to the first pair. Returns how many; the
 * slope is 0 where they do not differ in time. */
static size_t least_squares(const struct etch_clock_pair *pairs, size_t n, uint64_t limit, struct etch_clock_fit *fit)
{
    long double x = 0, y = 0, xx = 0, xy = 0;
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        long double px = (long double)(int64_t)(pairs[i].ns - pairs[0].ns);
        long double py = (long double)(int64_t)(pairs[i].before - pairs[0].before) +
                         (long double)(pairs[i].after - pairs[i].before) / 2;

        if (pairs[i].after - pairs[i].before > limit)
            continue;
        x += px;
        y += py;
        xx += px * px;
        xy += px * py;
        kept++;
    }
    if (kept >= 2) {
        long double spread = xx - x * x / (long double)kept;

        fit->tsc_per_ns = spread > 0 ? (double)((xy - x * y / (long double)kept) / spread) : 0;
        fit->ns_zero = pairs[0].ns + (uint64_t)(int64_t)llroundl(x / (long double)kept);
        fit->tsc_zero = pairs[0].before + (uint64_t)(int64_t)llroundl(y / (long double)kept);
    }
    return kept;
}

int etch_clock_fit(const struct etch_clock_pair *pairs, size_t n, struct etch_clock_fit *fit, struct etch_error *err)
{
    uint64_t limit = tightest(pairs, n);

    memset(fit, 0, sizeof(*fit));
    fit->pairs = n;
    /* A wide pair was disturbed: it bounds, but says little. */
    limit = limit > UINT64_MAX / 2 ? limit : limit + limit / 2 + 16;
    if (n >= 2)
        fit->kept = least_squares(pairs, n, limit, fit);
    if (fit->kept < 2 || !(fit->tsc_per_ns > 0))
        return etch_error_set(err, "%zu pairs of clock readings give no line", n);
    fit->span_ns = pairs[n - 1].ns - pairs[0].ns;
    for (size_t i = 0; i < n; i++) {
        uint64_t off = pairs[i].after - pairs[i].before <= limit ? reach(fit, &pairs[i]) : miss(fit, &pairs[i]);
        uint64_t missed = miss(fit, &pairs[i]);

        fit->error = off > fit->error ? off : fit->error;
        fit->uneven = missed > fit->uneven ? missed : fit->uneven;
    }
    fit->error += (uint64_t)ceil(fit->tsc_per_ns); /* the clock is read in whole ns */
    return 0;
}

int64_t etch_clock_drift(const struct etch_clock_fit *fit, const struct etch_clock_pair *later, size_t n)
{
    int64_t drift = 0;
    uint64_t width = UINT64_MAX;

    for (size_t i = 0; i < n; i++) {
        if (later[i].after - later[i].before >= width)
            continue;
        width = later[i].after - later[i].before;
        drift = (int64_t)(later[i].before + width / 2 - etch_clock_convert(fit, later[i].ns));
    }
    return drift;
}

#define SHIFT_MAX 63 /* a larger shift means that the page has another layout */

void etch_clock_offered_take(struct etch_clock_offered *offered, const volatile struct perf_event_mmap_page *page)
{
    uint32_t sequence;

    do { /* the kernel counts up before and after it changes the page */
        sequence = page->lock;
        __asm__ volatile("" ::: "memory");
        offered->offered = page->cap_user_time_zero && page->time_shift <= SHIFT_MAX && page->time_mult;
        offered->shift = page->time_shift;
        offered->mult = page->time_mult;
        offered->zero = page->time_zero;
        __asm__ volatile("" ::: "memory");
    } while (page->lock != sequence);
}

void etch_clock_offered_read(struct etch_clock_offered *offered)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof(attr),
                                   .config = PERF_COUNT_SW_DUMMY,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    void *head;

    memset(offered, 0, sizeof(*offered));
    if (fd < 0)
        return;
    head = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);
    if (head != MAP_FAILED) {
        etch_clock_offered_take(offered, head);
        munmap(head, page);
    }
    close(fd);
}

uint64_t etch_clock_offered_ns(const struct etch_clock_offered *offered, uint64_t tsc)
{
    uint64_t whole = tsc >> offered->shift;
    uint64_t rest = tsc & ((UINT64_C(1) << offered->shift) - 1);

    /* The rest times mult may need more than 64 bits where the shift is large. */
    return offered->zero + whole * offered->mult + (uint64_t)(((__uint128_t)rest * offered->mult) >> offered->shift);
}

int64_t etch_clock_offered_miss(const struct etch_clock_offered *offered, const struct etch_clock_pair *pairs, size_t n)
{
    int64_t worst = 0;

    for (size_t i = 0; i < n; i++) {
        int64_t first = (int64_t)(pairs[i].ns - etch_clock_offered_ns(offered, pairs[i].before));
        int64_t last = (int64_t)(pairs[i].ns - etch_clock_offered_ns(offered, pairs[i].after));
        int64_t off = first < 0 ? first : last > 0 ? last : 0; /* outside of the bracket */

        if (llabs(off) > llabs(worst))
            worst = off;
    }
    return worst;
}

uint64_t etch_clock_offered_tsc(const struct etch_clock_offered *offered, uint64_t ns)
{
    __uint128_t since = ns - offered->zero;

    return (uint64_t)((since << offered->shift) / offered->mult);
}
