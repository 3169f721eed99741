/* SPDX-License-Identifier: MIT */
/* Private to the reader of perf.data: its feature sections. */
#ifndef ETCH_DECODER_RECORDING_PERF_FEATURES_H
#define ETCH_DECODER_RECORDING_PERF_FEATURES_H

#include "decoder/recording/perf_data.h"

bool etch_perf_feature_wanted(uint64_t feature);

/* Returns false where the section is damaged. */
bool etch_perf_feature_take(struct etch_perf_file *file, uint64_t feature, const uint8_t *bytes, size_t size);

bool etch_perf_build_id_take(struct etch_perf_file *file, uint16_t misc, const uint8_t *body, size_t n);

#endif
