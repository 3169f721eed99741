/* SPDX-License-Identifier: MIT */
/* What an Intel PT PMU can do and how it wants to be told, as the kernel's files in sysfs say; and what etch asks it
 * for. The files are parsed, not trusted: what is not as documented is as if it were not there. */
#ifndef ETCH_COLLECTOR_PT_CAPS_H
#define ETCH_COLLECTOR_PT_CAPS_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bits of perf_event_attr.config that a setting occupies. */
struct etch_pt_field {
    uint64_t mask; /* 0: the PMU has no such setting */
    unsigned shift;
};

struct etch_pt_caps {
    bool present;
    uint32_t type; /* of perf_event_attr */
    struct etch_pt_field tsc, mtc, mtc_period, psb_period, cyc, cyc_thresh, noretcomp, pt, branch;
    uint32_t mtc_periods, psb_periods, cyc_thresholds; /* a bit for each value allowed; 0: one value only */
    unsigned filters;                                  /* address ranges at a time */
    unsigned art_numerator, art_denominator;           /* TSC / core crystal clock, CPUID 15H; 0: not known */
    unsigned max_nonturbo_ratio;
};

/* Reads the files below `root` ("" for this machine). */
void etch_pt_caps_read(struct etch_pt_caps *caps, const char *root);

/* What is asked of the PMU. */
struct etch_pt_setting {
    bool mtc, cyc, noretcomp;
    unsigned mtc_period, psb_period, cyc_thresh;
    uint64_t config; /* of perf_event_attr */
};

/* The settings for this PMU: time stamps and MTC (the order between CPUs needs it) wherever it has them, cycle counts
 * and full return addresses only on request. `words` is a comma-separated list of KEY or KEY=VALUE that overrides:
 * mtc, cyc, noretcomp (0 or 1), mtc_period, psb_period, cyc_thresh; NULL: none. A ring of `ring` bytes gets
 * synchronisation points close enough that little of it is lost at its old end. Returns 0, or -1 with `err` set. */
int etch_pt_setting_choose(struct etch_pt_setting *setting, const struct etch_pt_caps *caps, const char *words,
                           size_t ring, struct etch_error *err);

/* "config:3", "config:14-17": false where it is neither, or beyond the 64 bits of the first config word. */
bool etch_pt_field_parse(struct etch_pt_field *field, const char *text);

#endif
