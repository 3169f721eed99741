/* SPDX-License-Identifier: MIT */
/* See strategy.h. pct: Burckhardt et al. 2010. pos: Yuan et al. 2018. surw: Zhao et al. 2025. */
#include "collector/lab/strategy.h"

#include <stddef.h>

/* ---- Random numbers: splitmix64 ---- */

static uint64_t draw(struct etch_lab_strategy *s)
{
    uint64_t z = s->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Below `n`, without the bias of a remainder. */
static uint64_t draw_below(struct etch_lab_strategy *s, uint64_t n)
{
    return (uint64_t)((unsigned __int128)draw(s) * n >> 64);
}

/* ---- Names ---- */

static const char *const names[] = {"queue", "random", "pct", "pos", "surw", "stay"};
enum { KINDS = sizeof(names) / sizeof(names[0]) };

const char *etch_lab_strategy_name(uint32_t kind)
{
    return kind < KINDS ? names[kind] : "unknown";
}

/* The text after `name`, or NULL if `text` does not begin with `name`. */
static const char *behind(const char *text, const char *name)
{
    while (*name && *text == *name)
        text++, name++;
    return *name ? NULL : text;
}

static const char *read_number(const char *text, uint64_t *number)
{
    uint64_t n = 0;

    if (!text || *text < '0' || *text > '9')
        return NULL;
    for (; *text >= '0' && *text <= '9'; text++) {
        if (n > (UINT64_MAX - 9) / 10)
            return NULL;
        n = n * 10 + (uint64_t)(*text - '0');
    }
    *number = n;
    return text;
}

bool etch_lab_spec_parse(struct etch_lab_spec *spec, const char *text)
{
    uint64_t depth = 3;

    *spec = (struct etch_lab_spec){.kind = KINDS};
    for (uint32_t i = 0; i < KINDS; i++) {
        const char *rest = behind(text, names[i]);

        if (!rest || (*rest && *rest != ':'))
            continue;
        spec->kind = i;
        text = rest;
    }
    if (spec->kind == KINDS)
        return false;
    if (*text == ':') {
        text = read_number(text + 1, &spec->seed);
        if (text && *text == ',' && spec->kind == ETCH_LAB_PCT)
            text = read_number(text + 1, &depth);
    }
    spec->depth = (uint32_t)depth;
    return text && !*text && depth >= 1 && depth <= ETCH_LAB_DEPTH;
}

/* ---- Set up ---- */

void etch_lab_strategy_init(struct etch_lab_strategy *s, const struct etch_lab_spec *spec)
{
    uint64_t length = spec->length ? spec->length : 1000;

    *s = (struct etch_lab_strategy){.spec = *spec, .state = spec->seed, .lowest = ETCH_LAB_DEPTH};
    for (uint32_t i = 0; i < ETCH_LAB_THREADS; i++)
        s->ahead[i] = 1;
    for (uint32_t i = 0; i + 1 < spec->depth && i < ETCH_LAB_DEPTH; i++)
        s->change[i] = draw_below(s, length);
}

void etch_lab_strategy_expect(struct etch_lab_strategy *s, uint32_t thread, uint64_t interesting)
{
    if (thread < ETCH_LAB_THREADS)
        s->ahead[thread] = interesting;
}

/* ---- Queue ---- */

static uint32_t any(struct etch_lab_strategy *s, const struct etch_lab_view *v);

/* The first enabled thread after the thread that ran last. Every 61st choice is random: threads that yield to each
 * other in lockstep would otherwise do so forever. */
static uint32_t next_in_turn(struct etch_lab_strategy *s, const struct etch_lab_view *v)
{
    if (v->point % 61 == 60)
        return any(s, v);
    for (uint32_t i = 0; i < v->n; i++)
        if (v->enabled[i].thread > v->last)
            return i;
    return 0;
}

/* The thread that ran last, if it can and does not give way; else the next in turn. */
static uint32_t stay(const struct etch_lab_view *v)
{
    uint32_t next = 0;

    for (uint32_t i = v->n; i-- > 0;) {
        if (v->enabled[i].thread == v->last && !v->yields)
            return i;
        if (v->enabled[i].thread > v->last)
            next = i;
    }
    return next;
}

/* ---- Random ---- */

static uint32_t any(struct etch_lab_strategy *s, const struct etch_lab_view *v)
{
    uint32_t i = (uint32_t)draw_below(s, v->n);

    if (v->yields && v->n > 1 && v->enabled[i].thread == v->last)
        i = (i + 1 + (uint32_t)draw_below(s, v->n - 1)) % v->n;
    return i;
}

/* ---- Priorities ---- */

static uint32_t highest(const struct etch_lab_strategy *s, const struct etch_lab_view *v)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < v->n; i++)
        if (s->priority[v->enabled[i].thread] > s->priority[v->enabled[best].thread])
            best = i;
    return best;
}

/* A new thread gets a random priority above the priorities of the change points. */
static void give_priorities(struct etch_lab_strategy *s, const struct etch_lab_view *v)
{
    for (uint32_t i = 0; i < v->n; i++) {
        uint32_t t = v->enabled[i].thread;

        if (!s->known[t])
            s->priority[t] = draw(s) | UINT64_C(1) << 63;
        s->known[t] = true;
    }
}

static bool is_change(const struct etch_lab_strategy *s, uint64_t point)
{
    for (uint32_t i = 0; i + 1 < s->spec.depth && i < ETCH_LAB_DEPTH; i++)
        if (s->change[i] == point)
            return true;
    return false;
}

/* A thread that yields falls too: a spinning thread of the highest priority would starve the thread that it waits
 * for. */
static uint32_t by_pct(struct etch_lab_strategy *s, const struct etch_lab_view *v)
{
    uint32_t best;

    give_priorities(s, v);
    best = highest(s, v);
    if (is_change(s, v->point) || (v->yields && v->enabled[best].thread == v->last)) {
        s->priority[v->enabled[best].thread] = (UINT64_C(1) << 62) - s->lowest++;
        best = highest(s, v);
    }
    return best;
}

static bool conflict(const struct etch_lab_op *a, const struct etch_lab_op *b)
{
    return a->object && a->object == b->object && (a->write || b->write);
}

static bool same_op(const struct etch_lab_op *a, const struct etch_lab_op *b)
{
    return a->object == b->object && a->write == b->write;
}

static uint32_t by_pos(struct etch_lab_strategy *s, const struct etch_lab_view *v)
{
    uint32_t best;

    for (uint32_t i = 0; i < v->n; i++) {
        uint32_t t = v->enabled[i].thread;

        if (!s->known[t] || !same_op(&s->drawn[t], &v->enabled[i].op) || (v->yields && t == v->last)) {
            s->priority[t] = v->yields && t == v->last && v->n > 1 ? 0 : draw(s);
            s->drawn[t] = v->enabled[i].op;
            s->known[t] = true;
        }
    }
    best = highest(s, v);
    for (uint32_t i = 0; i < v->n; i++)
        if (i == best || conflict(&v->enabled[i].op, &v->enabled[best].op))
            s->known[v->enabled[i].thread] = false;
    return best;
}

/* ---- Selectively uniform ---- */

/* Choices that an interesting operation waits for the intended thread. Threads that spin until a held thread goes on
 * would run for ever. */
#define PATIENCE 2000u

/* From 1 to `most`: 1, 2 or 3, 4 to 7, and so on are equally likely. */
static uint64_t draw_stride(struct etch_lab_strategy *s, uint64_t most)
{
    uint64_t steps = 1, from;

    while (most >> steps)
        steps++;
    from = UINT64_C(1) << draw_below(s, steps);
    return from + draw_below(s, from < most + 1 - from ? from : most + 1 - from);
}

/* Draws a thread, weighted by the number of interesting operations ahead of the thread. */
static void intend(struct etch_lab_strategy *s, const struct etch_lab_view *v)
{
    uint64_t sum = 0, at;

    for (uint32_t i = 0; i < v->n; i++)
        sum += s->ahead[v->enabled[i].thread];
    s->has_intended = sum > 0;
    s->waited = 0;
    if (!sum)
        return;
    at = draw_below(s, sum);
    for (uint32_t i = 0; i < v->n; i++) {
        uint64_t share = s->ahead[v->enabled[i].thread];

        if (at < share) {
            s->intended = v->enabled[i].thread;
            s->stride = s->spec.strides ? draw_stride(s, share) : 1;
            return;
        }
        at -= share;
    }
}

static bool is_enabled(const struct etch_lab_view *v, uint32_t thread)
{
    for (uint32_t i = 0; i < v->n; i++)
        if (v->enabled[i].thread == thread)
            return true;
    return false;
}

/* One of the allowed threads: any of them, or the one with the highest priority. Otherwise a thread that has much to do
 * before its next interesting operation would rarely come to it before another one that has little to do. */
static uint32_t one_of(struct etch_lab_strategy *s, const struct etch_lab_view *v, uint32_t n)
{
    uint32_t best = s->allowed[0];

    if (!s->spec.sticks)
        return s->allowed[draw_below(s, n)];
    give_priorities(s, v);
    for (uint32_t i = 1; i < n; i++)
        if (s->priority[v->enabled[s->allowed[i]].thread] > s->priority[v->enabled[best].thread])
            best = s->allowed[i];
    return best;
}

/* An interesting operation is executed. */
static void follow_interesting(struct etch_lab_strategy *s, const struct etch_lab_view *v, uint32_t thread)
{
    s->ahead[thread] -= s->ahead[thread] > 1;
    s->has_intended = s->has_intended && thread == s->intended && --s->stride > 0;
    s->waited = 0;
    for (uint32_t i = 0; i < v->n; i++) /* new priorities */
        s->known[v->enabled[i].thread] = false;
}

/* Only the intended thread executes an interesting operation; everything else runs in any order. */
static uint32_t by_surw(struct etch_lab_strategy *s, const struct etch_lab_view *v)
{
    uint32_t n = 0, chosen, *allowed = s->allowed;

    if (!s->has_intended || !is_enabled(v, s->intended))
        intend(s, v);
    for (uint32_t i = 0; i < v->n && n < ETCH_LAB_THREADS; i++) {
        bool held = v->enabled[i].op.interesting && s->has_intended && v->enabled[i].thread != s->intended;
        bool gives_way = v->yields && v->n > 1 && v->enabled[i].thread == v->last;

        if (gives_way)
            s->known[v->last] = false;
        if (!held && !gives_way)
            allowed[n++] = i;
    }
    if (n < v->n)
        s->waited++;
    if (n == 0 ||
        s->waited > PATIENCE) { /* the intended thread waits for the others, or nothing interesting is expected */
        chosen = any(s, v);
    } else {
        chosen = one_of(s, v, n);
    }
    if (v->enabled[chosen].op.interesting)
        follow_interesting(s, v, v->enabled[chosen].thread);
    return chosen;
}

uint32_t etch_lab_strategy_choose(struct etch_lab_strategy *s, const struct etch_lab_view *v)
{
    if (v->n < 2)
        return 0;
    switch (s->spec.kind) {
    case ETCH_LAB_RANDOM:
        return any(s, v);
    case ETCH_LAB_PCT:
        return by_pct(s, v);
    case ETCH_LAB_POS:
        return by_pos(s, v);
    case ETCH_LAB_SURW:
        return by_surw(s, v);
    case ETCH_LAB_STAY:
        return stay(v);
    default:
        return next_in_turn(s, v);
    }
}
