/* SPDX-License-Identifier: MIT */
/* The PT PMU's own description; see pt_caps.h. */
#include "collector/pt_caps.h"

#include "collector/machine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICE "/sys/bus/event_source/devices/intel_pt"
#define PSB_BASE 2048u   /* bytes between synchronisation points at psb_period 0; each step doubles */
#define PSB_PERIOD 3u    /* 16 KiB: about half a percent of the volume */
#define MTC_PERIOD 3u    /* every 8 crystal clocks: some hundred nanoseconds */
#define RING_PERIODS 64u /* a ring holds at least so many synchronisation points, where the PMU can */

static bool read_line(const char *root, const char *name, char *line, size_t size)
{
    char path[4096];

    snprintf(path, sizeof(path), DEVICE "/%s", name);
    return etch_machine_read_line(root, path, line, size);
}

/* A number that fills the line; `otherwise` where it is not one, or beyond 32 bits. */
static uint32_t read_number(const char *root, const char *name, int base, uint32_t otherwise)
{
    char line[64], *end;
    unsigned long long value;

    if (!read_line(root, name, line, sizeof(line)) || line[0] == '-')
        return otherwise;
    errno = 0;
    value = strtoull(line, &end, base);
    return end == line || *end || errno || value > UINT32_MAX ? otherwise : (uint32_t)value;
}

bool etch_pt_field_parse(struct etch_pt_field *field, const char *text)
{
    unsigned lo, hi;
    int used = 0;

    *field = (struct etch_pt_field){0};
    if (sscanf(text, "config:%2u-%2u%n", &lo, &hi, &used) != 2 || text[used]) {
        if (sscanf(text, "config:%2u%n", &lo, &used) != 1 || text[used])
            return false;
        hi = lo;
    }
    if (hi > 63 || lo > hi)
        return false;
    field->shift = lo;
    field->mask = (hi - lo == 63 ? ~(uint64_t)0 : ((uint64_t)1 << (hi - lo + 1)) - 1) << lo;
    return true;
}

static void read_field(struct etch_pt_field *field, const char *root, const char *name)
{
    char path[64], line[64];

    snprintf(path, sizeof(path), "format/%s", name);
    if (read_line(root, path, line, sizeof(line)))
        etch_pt_field_parse(field, line);
}

/* Settings that the CPU lacks have a place in the format all the same: the caps decide. */
static void read_settings(struct etch_pt_caps *caps, const char *root)
{
    bool mtc = read_number(root, "caps/mtc", 10, 0), psb_cyc = read_number(root, "caps/psb_cyc", 10, 0);

    read_field(&caps->tsc, root, "tsc");
    read_field(&caps->noretcomp, root, "noretcomp");
    read_field(&caps->pt, root, "pt");
    read_field(&caps->branch, root, "branch");
    if (mtc) {
        read_field(&caps->mtc, root, "mtc");
        read_field(&caps->mtc_period, root, "mtc_period");
        caps->mtc_periods = read_number(root, "caps/mtc_periods", 16, 0);
    }
    if (psb_cyc) {
        read_field(&caps->cyc, root, "cyc");
        read_field(&caps->cyc_thresh, root, "cyc_thresh");
        read_field(&caps->psb_period, root, "psb_period");
        caps->cyc_thresholds = read_number(root, "caps/cycle_thresholds", 16, 0);
        caps->psb_periods = read_number(root, "caps/psb_periods", 16, 0);
    }
}

static unsigned read_filters(const char *root)
{
    uint32_t n = read_number(root, "nr_addr_filters", 10, UINT32_MAX);

    if (n == UINT32_MAX)
        n = read_number(root, "caps/ip_filtering", 10, 0) ? read_number(root, "caps/num_address_ranges", 16, 0) : 0;
    return n > 16 ? 0 : n;
}

void etch_pt_caps_read(struct etch_pt_caps *caps, const char *root)
{
    char line[64];
    int used = 0;

    memset(caps, 0, sizeof(*caps));
    caps->type = read_number(root, "type", 10, UINT32_MAX);
    caps->present = caps->type != UINT32_MAX;
    if (!caps->present)
        return;
    read_settings(caps, root);
    caps->filters = read_filters(root);
    caps->max_nonturbo_ratio = read_number(root, "max_nonturbo_ratio", 10, 0);
    if (!read_line(root, "tsc_art_ratio", line, sizeof(line)) ||
        sscanf(line, "%9u:%9u%n", &caps->art_numerator, &caps->art_denominator, &used) != 2 || line[used] ||
        !caps->art_denominator)
        caps->art_numerator = caps->art_denominator = 0;
}

/* ---- Choosing ---- */

/* The allowed value nearest to the wish, the lower of two. */
static unsigned nearest(uint32_t allowed, unsigned wish)
{
    unsigned best = 0, distance = 64;

    for (unsigned i = 0; i < 32; i++) {
        unsigned d = i < wish ? wish - i : i - wish;

        if (allowed >> i & 1 && d < distance) {
            best = i;
            distance = d;
        }
    }
    return best;
}

static unsigned psb_for(size_t ring)
{
    unsigned period = PSB_PERIOD;

    while (period && (size_t)PSB_BASE << period > ring / RING_PERIODS)
        period--;
    return period;
}

struct key {
    const char *name;
    const struct etch_pt_field *field;
    uint32_t allowed; /* of a value; UINT32_MAX: any */
    bool *flag;
    unsigned *value;
};

static int refuse(const struct key *key, const char *word, struct etch_error *err)
{
    if (!key)
        etch_error_set(err, "there is no Intel PT setting '%s'", word);
    else if (!key->field->mask)
        return etch_error_set(err, "this CPU's Intel PT has no '%s'", key->name);
    else
        etch_error_set(err, "this CPU's Intel PT does not take '%s'", word);
    if (key && key->value)
        return etch_error_advise(err, "cat " DEVICE "/caps/* shows which values it has, a bit for each");
    return etch_error_advise(err, "mtc, cyc, noretcomp (with =0 or =1), mtc_period, psb_period, cyc_thresh (=N)");
}

static int take_word(const struct key *keys, size_t n, const char *word, struct etch_error *err)
{
    size_t length = strcspn(word, "=");
    const struct key *key = NULL;
    unsigned value = 1;
    int used = 0;

    for (size_t i = 0; i < n; i++)
        if (strlen(keys[i].name) == length && strncmp(keys[i].name, word, length) == 0)
            key = &keys[i];
    if (!key || !key->field->mask)
        return refuse(key, word, err);
    if (word[length] && (sscanf(word + length, "=%3u%n", &value, &used) != 1 || word[length + (size_t)used]))
        return refuse(key, word, err);
    if (key->flag && value > 1)
        return refuse(key, word, err);
    if (key->flag) {
        *key->flag = value;
        return 0;
    }
    if (!word[length] || value > 31 || !(key->allowed >> value & 1) || value > key->field->mask >> key->field->shift)
        return refuse(key, word, err);
    *key->value = value;
    return 0;
}

static void put(uint64_t *config, const struct etch_pt_field *field, uint64_t value)
{
    *config |= value << field->shift & field->mask;
}

static uint64_t config_of(const struct etch_pt_setting *s, const struct etch_pt_caps *caps)
{
    uint64_t config = 0;

    put(&config, &caps->tsc, 1);
    if (caps->pt.mask && caps->branch.mask) { /* both bits are one switch: a kernel that has them needs both */
        put(&config, &caps->pt, 1);
        put(&config, &caps->branch, 1);
    }
    put(&config, &caps->mtc, s->mtc);
    put(&config, &caps->mtc_period, s->mtc ? s->mtc_period : 0);
    put(&config, &caps->psb_period, s->psb_period);
    put(&config, &caps->cyc, s->cyc);
    put(&config, &caps->cyc_thresh, s->cyc ? s->cyc_thresh : 0);
    put(&config, &caps->noretcomp, s->noretcomp);
    return config;
}

int etch_pt_setting_choose(struct etch_pt_setting *s, const struct etch_pt_caps *caps, const char *words, size_t ring,
                           struct etch_error *err)
{
    const struct key keys[] = {
        {"mtc", &caps->mtc, 0, &s->mtc, NULL},
        {"cyc", &caps->cyc, 0, &s->cyc, NULL},
        {"noretcomp", &caps->noretcomp, 0, &s->noretcomp, NULL},
        {"mtc_period", &caps->mtc_period, caps->mtc_periods, NULL, &s->mtc_period},
        {"psb_period", &caps->psb_period, caps->psb_periods, NULL, &s->psb_period},
        {"cyc_thresh", &caps->cyc_thresh, caps->cyc_thresholds, NULL, &s->cyc_thresh},
    };
    char word[64];

    *s = (struct etch_pt_setting){.mtc = caps->mtc.mask != 0,
                                  .mtc_period = nearest(caps->mtc_periods, MTC_PERIOD),
                                  .psb_period = nearest(caps->psb_periods, psb_for(ring))};
    while (words && *words) {
        size_t n = strcspn(words, ",");

        snprintf(word, sizeof(word), "%.*s", (int)(n < sizeof(word) ? n : sizeof(word) - 1), words);
        if (take_word(keys, sizeof(keys) / sizeof(keys[0]), word, err) < 0)
            return -1;
        words += n + (words[n] == ',');
    }
    s->config = config_of(s, caps);
    return 0;
}
