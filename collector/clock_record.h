/* SPDX-License-Identifier: MIT */
/* The record of a calibration. A bundle has two of these records: one from before the run and one from after the
 * run. */
#ifndef ETCH_COLLECTOR_CLOCK_RECORD_H
#define ETCH_COLLECTOR_CLOCK_RECORD_H

#include "calibrate/calibration.h"
#include "proto/etch.pb-c.h"

/* Makes the record; free it with etch__clock__free_unpacked(record, NULL). NULL when memory is short. */
Etch__Clock *etch_clock_record(const struct etch_calibration *calibration, Etch__ClockPhase phase);

/* Measures the clocks for up to `budget_ns` and makes the record. `first` is NULL before the run. After the run `first`
 * is the measurement from before. `fresh`: an earlier measurement that was kept is of no use. Free `calibration` in any
 * case. NULL: the clocks cannot be measured. */
Etch__Clock *etch_clock_measure(struct etch_calibration *calibration, const struct etch_calibration *first,
                                uint64_t budget_ns, bool skip_trap, bool fresh);

#endif
