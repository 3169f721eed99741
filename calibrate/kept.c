/* SPDX-License-Identifier: MIT */
/* A measurement as bytes, and the choice between the kept one and a new one; see kept.h. */
#include "calibrate/kept.h"

#include "base/crc32c.h"
#include "base/log.h"
#include "calibrate/stamp.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "etchclk\1"
#define CPUS_MAX 4096u
#define PAIRS_MAX 4096u
#define SKEW_MAX (INT64_MAX / 8) /* beyond it a number is damaged; sums of some of these do not overflow */
#define AGE_MAX_NS (UINT64_C(86400) * 1000000000)
#define SUSPEND_NS 1000000 /* two clocks are read one after the other */
#define RATE_MAX 100.0     /* cycles in a ns */

struct file_head {
    char magic[8];
    uint32_t crc; /* of all that follows this field */
    uint32_t reference, n_cpus, n_pairs;
    int64_t suspended_ns;
    uint64_t budget_ns, duration_ns;
    uint64_t trap_lo, trap_hi, trap_median, trap_samples, trap_outside;
    uint64_t drain_lo, drain_hi;
    char trap_missing[160];
    char key[ETCH_KEPT_KEY_SIZE];
};

struct file_cpu {
    uint32_t cpu, best;
    int64_t lo, hi;
    uint64_t rounds;
    uint64_t flag_rounds, dropped, duration_ns, values;
    double mean_lo, mean_hi, mean, deviation, confidence;
    struct {
        int64_t lo, hi;
        uint64_t rounds;
    } variants[ETCH_RACE_VARIANTS];
};

#define CRC_FROM (offsetof(struct file_head, crc) + sizeof(uint32_t))

static size_t size_of(size_t n_cpus, size_t n_pairs)
{
    return sizeof(struct file_head) + n_cpus * sizeof(struct file_cpu) + n_pairs * sizeof(struct etch_clock_pair);
}

/* ---- Writing ---- */

static struct file_cpu pack_cpu(const struct etch_calibration_cpu *cpu)
{
    struct file_cpu f = {.cpu = cpu->cpu,
                         .best = cpu->best,
                         .lo = cpu->bounds.lo,
                         .hi = cpu->bounds.hi,
                         .rounds = cpu->bounds.rounds,
                         .flag_rounds = cpu->flag_rounds,
                         .dropped = cpu->dropped,
                         .duration_ns = cpu->duration_ns,
                         .values = cpu->interval.values,
                         .mean_lo = cpu->interval.lo,
                         .mean_hi = cpu->interval.hi,
                         .mean = cpu->interval.mean,
                         .deviation = cpu->interval.deviation,
                         .confidence = cpu->interval.confidence};

    for (int v = 0; v < ETCH_RACE_VARIANTS; v++) {
        f.variants[v].lo = cpu->variants[v].lo;
        f.variants[v].hi = cpu->variants[v].hi;
        f.variants[v].rounds = cpu->variants[v].rounds;
    }
    return f;
}

uint8_t *etch_kept_pack(const struct etch_calibration *c, const struct etch_kept_key *key, size_t *size)
{
    struct file_head head = {.magic = MAGIC,
                             .reference = c->reference,
                             .n_cpus = (uint32_t)c->n_cpus,
                             .n_pairs = (uint32_t)c->n_pairs,
                             .suspended_ns = key->suspended_ns,
                             .budget_ns = c->budget_ns,
                             .duration_ns = c->duration_ns,
                             .trap_lo = c->trap.lo,
                             .trap_hi = c->trap.hi,
                             .trap_median = c->trap.median,
                             .trap_samples = c->trap.samples,
                             .trap_outside = c->trap.outside,
                             .drain_lo = c->drain_lo,
                             .drain_hi = c->drain_hi};
    uint8_t *bytes, *at;

    snprintf(head.trap_missing, sizeof(head.trap_missing), "%s", c->trap_missing);
    snprintf(head.key, sizeof(head.key), "%s", key->text);
    *size = size_of(c->n_cpus, c->n_pairs);
    bytes = malloc(*size);
    if (!bytes)
        return NULL;
    at = bytes + sizeof(head);
    for (size_t i = 0; i < c->n_cpus; i++, at += sizeof(struct file_cpu)) {
        struct file_cpu f = pack_cpu(&c->cpus[i]);

        memcpy(at, &f, sizeof(f));
    }
    if (c->n_pairs)
        memcpy(at, c->pairs, c->n_pairs * sizeof(*c->pairs));
    memcpy(bytes, &head, sizeof(head));
    head.crc = etch_crc32c(0, bytes + CRC_FROM, *size - CRC_FROM);
    memcpy(bytes, &head, sizeof(head));
    return bytes;
}

/* ---- Reading ---- */

static int damaged(struct etch_error *err, const char *what)
{
    return etch_error_set(err, "the kept measurement is damaged: %s", what);
}

static bool is_terminated(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

static bool is_sane(int64_t lo, int64_t hi)
{
    return lo < hi && lo >= -SKEW_MAX && hi <= SKEW_MAX;
}

static bool is_sane_mean(const struct file_cpu *f)
{
    return isfinite(f->mean_lo) && isfinite(f->mean_hi) && isfinite(f->mean) && isfinite(f->deviation) &&
           f->mean_lo <= f->mean_hi && f->deviation >= 0 && f->confidence > 0 && f->confidence < 1 &&
           fabs(f->mean_lo) < (double)SKEW_MAX && fabs(f->mean_hi) < (double)SKEW_MAX;
}

static int parse_cpu(struct etch_calibration_cpu *cpu, const struct file_cpu *f, struct etch_error *err)
{
    if (f->cpu >= CPUS_MAX || f->best >= ETCH_RACE_VARIANTS || !is_sane(f->lo, f->hi) ||
        (f->values && !is_sane_mean(f)))
        return damaged(err, "a CPU");
    cpu->cpu = f->cpu;
    cpu->best = (enum etch_race_variant)f->best;
    cpu->bounds = (struct etch_skew_bounds){f->lo, f->hi, f->rounds};
    for (int v = 0; v < ETCH_RACE_VARIANTS; v++)
        cpu->variants[v] = (struct etch_skew_bounds){f->variants[v].lo, f->variants[v].hi, f->variants[v].rounds};
    cpu->flag_rounds = f->flag_rounds;
    cpu->dropped = f->dropped;
    cpu->duration_ns = f->duration_ns;
    if (f->values)
        cpu->interval = (struct etch_skew_interval){f->mean_lo,   f->mean_hi,    f->mean,
                                                    f->deviation, f->confidence, (size_t)f->values};
    cpu->interval_outside = cpu->interval.values > 1 &&
                            (cpu->interval.lo > (double)cpu->bounds.hi || cpu->interval.hi < (double)cpu->bounds.lo);
    return 0;
}

static int parse_cpus(struct etch_calibration *c, const struct file_head *head, const uint8_t *bytes,
                      struct etch_error *err)
{
    c->reference = head->reference;
    c->cpus = calloc((size_t)head->n_cpus + 1, sizeof(*c->cpus));
    if (!c->cpus)
        return etch_error_no_memory(err);
    for (uint32_t i = 0; i < head->n_cpus; i++) {
        struct file_cpu f;

        memcpy(&f, bytes + i * sizeof(f), sizeof(f));
        if (parse_cpu(&c->cpus[i], &f, err) < 0)
            return -1;
        c->n_cpus++;
        if (f.cpu <= (i ? c->cpus[i - 1].cpu : head->reference))
            return damaged(err, "the order of its CPUs");
    }
    return 0;
}

static int parse_pairs(struct etch_calibration *c, const struct file_head *head, const uint8_t *bytes, uint64_t now_ns,
                       struct etch_error *err)
{
    struct etch_clock_pair *pairs = calloc((size_t)head->n_pairs + 1, sizeof(*pairs));

    if (!pairs)
        return etch_error_no_memory(err);
    memcpy(pairs, bytes, head->n_pairs * sizeof(*pairs));
    c->pairs = pairs;
    c->n_pairs = c->n_pairs_before = head->n_pairs;
    for (size_t i = 0; i < c->n_pairs; i++)
        if (pairs[i].after < pairs[i].before || pairs[i].after > INT64_MAX || pairs[i].ns > now_ns ||
            (i && (pairs[i].ns < pairs[i - 1].ns || pairs[i].before < pairs[i - 1].before)))
            return damaged(err, "its pairs of clock readings");
    if (etch_clock_fit(pairs, c->n_pairs, &c->fit, err) < 0)
        return -1;
    c->age_ns = now_ns - pairs[c->n_pairs - 1].ns;
    if (c->age_ns == 0 || !(c->fit.tsc_per_ns < RATE_MAX))
        return damaged(err, "its time");
    return c->age_ns > AGE_MAX_NS ? etch_error_set(err, "the kept measurement is more than a day old") : 0;
}

static int parse_head(struct file_head *head, const struct etch_kept_key *key, const uint8_t *bytes, size_t size,
                      struct etch_error *err)
{
    if (size < sizeof(*head) || size > ETCH_KEPT_SIZE_MAX)
        return damaged(err, "its size");
    memcpy(head, bytes, sizeof(*head));
    if (memcmp(head->magic, MAGIC, sizeof(head->magic)) != 0)
        return etch_error_set(err, "the kept measurement is of another version of etch");
    if (head->n_cpus >= CPUS_MAX || head->n_pairs > PAIRS_MAX || head->reference >= CPUS_MAX ||
        size != size_of(head->n_cpus, head->n_pairs) || !is_terminated(head->key, sizeof(head->key)) ||
        !is_terminated(head->trap_missing, sizeof(head->trap_missing)))
        return damaged(err, "its head");
    if (head->crc != etch_crc32c(0, bytes + CRC_FROM, size - CRC_FROM))
        return damaged(err, "its checksum");
    if (strcmp(head->key, key->text) != 0)
        return etch_error_set(err, "the machine, its kernel, its CPUs or its clock source are not those of the kept "
                                   "measurement");
    if (head->suspended_ns > key->suspended_ns + SUSPEND_NS || key->suspended_ns - SUSPEND_NS > head->suspended_ns)
        return etch_error_set(err, "the machine was suspended since the kept measurement");
    return 0;
}

int etch_kept_parse(struct etch_calibration *c, const struct etch_kept_key *key, const void *data, size_t size,
                    struct etch_error *err)
{
    const uint8_t *bytes = data;
    struct file_head head = {0};

    memset(c, 0, sizeof(*c));
    if (parse_head(&head, key, bytes, size, err) < 0)
        return -1;
    bytes += sizeof(head);
    if (parse_cpus(c, &head, bytes, err) < 0 ||
        parse_pairs(c, &head, bytes + head.n_cpus * sizeof(struct file_cpu), key->raw_ns, err) < 0) {
        etch_calibration_free(c);
        return -1;
    }
    c->budget_ns = head.budget_ns;
    c->duration_ns = head.duration_ns;
    c->trap = (struct etch_trap_latency){.lo = head.trap_lo,
                                         .hi = head.trap_hi,
                                         .median = head.trap_median,
                                         .samples = (size_t)head.trap_samples,
                                         .outside = (size_t)head.trap_outside};
    c->drain_lo = head.drain_lo;
    c->drain_hi = head.drain_hi;
    snprintf(c->trap_missing, sizeof(c->trap_missing), "%s", head.trap_missing);
    return 0;
}

/* ---- Choosing ---- */

/* Simulated machines and clocks are not kept. */
static bool is_this_machine(const struct etch_calibration_options *o)
{
    return !o->races && !o->errors && !o->root && !getenv("ETCH_CLOCK_ROOT");
}

static void set_now(struct etch_calibration *c, const struct etch_clock_health *health)
{
    uint32_t cpu;

    c->kept = true;
    c->health = *health;
    c->tsc = etch_stamp(&cpu);
    etch_clock_offered_read(&c->offered);
}

static int take_kept(struct etch_calibration *c, const struct etch_calibration_options *o,
                     const struct etch_kept_key *key, const struct etch_clock_health *health, struct etch_error *err)
{
    size_t size = 0;
    uint8_t *bytes = etch_kept_load(&size);
    int status = bytes ? etch_kept_parse(c, key, bytes, size, err) : etch_error_set(err, "no measurement is kept");

    free(bytes);
    if (status < 0)
        return -1;
    set_now(c, health);
    if ((o->budget_ns ? o->budget_ns : ETCH_CALIBRATION_NS) > c->budget_ns)
        status = etch_error_set(err, "the kept measurement was given less time");
    else
        status = etch_calibration_check(c, o, err);
    if (status < 0)
        etch_calibration_free(c);
    return status;
}

static bool is_worth_keeping(const struct etch_calibration *c)
{
    for (size_t i = 0; i < c->n_cpus; i++)
        if (!etch_skew_bounds_known(&c->cpus[i].bounds))
            return false;
    return !c->refused && c->fit.pairs && c->n_pairs <= PAIRS_MAX;
}

/* Measures with traps, whoever asks: the next one may want them. */
static int measure(struct etch_calibration *c, const struct etch_calibration_options *o, struct etch_kept_key *key,
                   struct etch_error *err)
{
    struct etch_calibration_options all = *o;
    uint8_t *bytes;
    size_t size;

    all.skip_trap = false;
    if (etch_calibrate(c, &all, err) < 0)
        return -1;
    bytes = is_worth_keeping(c) ? etch_kept_pack(c, key, &size) : NULL;
    c->kept = bytes && etch_kept_save(bytes, size);
    free(bytes);
    return 0;
}

/* The same clocks at a later time of this process. */
static int check_again(struct etch_calibration *c, const struct etch_calibration *like,
                       const struct etch_calibration_options *o, struct etch_error *err)
{
    struct etch_clock_health health;
    size_t own = like->n_pairs - like->n_pairs_before;
    struct etch_error moved;

    *c = (struct etch_calibration){.reference = like->reference, .trap = like->trap, .fit = like->fit};
    c->duration_ns = like->duration_ns;
    c->age_ns = like->age_ns;
    c->cpus = calloc(like->n_cpus + 1, sizeof(*c->cpus));
    c->pairs = calloc(own + 1, sizeof(*c->pairs));
    if (!c->cpus || !c->pairs) {
        etch_calibration_free(c);
        return etch_error_no_memory(err);
    }
    for (; c->n_cpus < like->n_cpus; c->n_cpus++) {
        c->cpus[c->n_cpus] = like->cpus[c->n_cpus];
        c->cpus[c->n_cpus].estimates = NULL;
        c->cpus[c->n_cpus].n_estimates = 0;
        c->cpus[c->n_cpus].interval = (struct etch_skew_interval){0}; /* not measured again */
    }
    memcpy(c->pairs, like->pairs + like->n_pairs_before, own * sizeof(*c->pairs));
    c->n_pairs = own;
    etch_clock_health_read(&health, "");
    set_now(c, &health);
    c->refused = !etch_clock_orders(&health);
    if (c->refused)
        snprintf(c->why, sizeof(c->why), "the time stamp counter is no longer constant and nonstop");
    if (etch_calibration_check(c, o, &moved) == 0)
        return 0;
    etch_kept_remove();
    c->refused = true;
    snprintf(c->why, sizeof(c->why), "%.150s", moved.what);
    return 0;
}

int etch_calibrate_kept(struct etch_calibration *c, const struct etch_calibration_options *o, struct etch_error *err)
{
    struct etch_clock_health health;
    struct etch_kept_key key;
    struct etch_error why;

    if (o->like && o->like->kept && is_this_machine(o))
        return check_again(c, o->like, o, err);
    etch_clock_health_read(&health, "");
    if (o->like || !is_this_machine(o) || !etch_kept_key_read(&key, &health))
        return etch_calibrate(c, o, err);
    if (take_kept(c, o, &key, &health, &why) == 0) {
        etch_log(ETCH_LOG_CALIBRATE, ETCH_LOG_DEBUG, "clocks as measured %.0f s ago, %zu of %zu CPUs checked",
                 (double)c->age_ns / 1e9, c->n_checked, c->n_cpus);
        return 0;
    }
    etch_log(ETCH_LOG_CALIBRATE, ETCH_LOG_DEBUG, "clocks are measured: %s", why.what);
    return measure(c, o, &key, err);
}

int etch_calibrate_fresh(struct etch_calibration *c, const struct etch_calibration_options *o, struct etch_error *err)
{
    struct etch_clock_health health;
    struct etch_kept_key key;

    etch_clock_health_read(&health, "");
    if (o->like || !is_this_machine(o) || !etch_kept_key_read(&key, &health))
        return etch_calibrate(c, o, err);
    return measure(c, o, &key, err);
}
