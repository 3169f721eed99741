/* SPDX-License-Identifier: MIT */
/* Cuts the recording's streams into decode units that can be decoded one by one, in any order and at the same time, and
 * hands them out thread by thread, in the order in which each thread ran. The cuts depend on the bytes only.
 */
#ifndef ETCH_DECODER_FLOW_SCHEDULE_H
#define ETCH_DECODER_FLOW_SCHEDULE_H

#include "decoder/flow/decode_unit.h"

struct etch_schedule;

int etch_schedule_new(struct etch_schedule **schedule, struct etch_recording *recording, const struct etch_code *code,
                      const struct etch_steps_options *options, struct etch_error *err);
void etch_schedule_free(struct etch_schedule *schedule);

/* The number of rows. A row is one thread's decode units, in the order in which etch_schedule_next() goes. */
size_t etch_schedule_rows(const struct etch_schedule *schedule);

/* Restricts the schedule to the end of one row: about `window` KiB of it. Returns whether that is all of the row. */
bool etch_schedule_tail(struct etch_schedule *schedule, size_t row, uint64_t window);

/* Fills the next unit, and reuses its memory. Returns 1, 0 when there are no more, -1 with `err` set. */
int etch_schedule_next(struct etch_schedule *schedule, struct etch_decode_unit *unit, struct etch_error *err);

#endif
