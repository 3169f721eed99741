/* SPDX-License-Identifier: MIT */
/* A calibration as the record that a bundle has of it, once before and once after the run. */
#ifndef ETCH_COLLECTOR_CLOCK_RECORD_H
#define ETCH_COLLECTOR_CLOCK_RECORD_H

#include "calibrate/calibration.h"
#include "proto/etch.pb-c.h"

/* Makes the record; free it with etch__clock__free_unpacked(record, NULL). NULL when memory is short. */
Etch__Clock *etch_clock_record(const struct etch_calibration *calibration, Etch__ClockPhase phase);

#endif
