/* SPDX-License-Identifier: MIT */
/* Two snapshots of one ring, taken one after the other, often hold the same bytes twice: how many bytes at the
 * beginning of the second are the end of the first. */
#ifndef ETCH_DECODER_RECORDING_PERF_OVERLAP_H
#define ETCH_DECODER_RECORDING_PERF_OVERLAP_H

#include "decoder/recording/perf_data.h"

/* Returns the length of the overlap, 0 where there is none, -errno where the bytes cannot be read. The copies are
 * compared from the second's first PSB: in front of it a snapshot's bytes have no beginning. */
int64_t etch_perf_overlap(const struct etch_perf_source *source, uint64_t first, uint64_t first_size, uint64_t second,
                          uint64_t second_size);

#endif
