/* SPDX-License-Identifier: MIT */
/* The abilities of an Intel PT PMU and the encoding of its settings, read from the kernel's files in sysfs; and the
 * settings that etch chooses. The files are not trusted: an entry with another format than documented counts as
 * missing. */
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

/* The settings that etch chose for the PMU. */
struct etch_pt_setting {
    bool mtc, cyc, noretcomp;
    unsigned mtc_period, psb_period, cyc_thresh;
    uint64_t config; /* of perf_event_attr */
};

/* Chooses the settings for this PMU. Time stamps and MTC are on if the PMU has them: the order between CPUs needs MTC.
 * Cycle counts and full return addresses are on only on request. `words` overrides settings by a comma-separated list
 * of KEY or KEY=VALUE: mtc, cyc, noretcomp (0 or 1), mtc_period, psb_period, cyc_thresh; NULL: none. A ring of `ring`
 * bytes gets synchronisation points that are close together, so that few bytes are lost at the ring's old end. Returns
 * 0, or -1 with `err` set. */
int etch_pt_setting_choose(struct etch_pt_setting *setting, const struct etch_pt_caps *caps, const char *words,
                           size_t ring, struct etch_error *err);

/* "config:3", "config:14-17": false if the text has neither form, or names bits beyond the 64 bits of the first config
 * word. */
bool etch_pt_field_parse(struct etch_pt_field *field, const char *text);

#endif
