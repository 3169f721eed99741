/* SPDX-License-Identifier: MIT */
/* What fills a recording: one loader per kind of file. Each sets `read`, `close` and `loader`; on failure it leaves
 * what it has filled to etch_recording_free(), and returns -1 with `err` set. */
#ifndef ETCH_DECODER_RECORDING_LOADERS_H
#define ETCH_DECODER_RECORDING_LOADERS_H

#include "decoder/recording.h"

int etch_recording_load_bundle(struct etch_recording *recording, const char *path, struct etch_error *err);
int etch_recording_load_perf(struct etch_recording *recording, const char *path, struct etch_error *err);
int etch_recording_load_lldb(struct etch_recording *recording, const char *path, struct etch_error *err);

/* Puts images and switches into the order that recording.h promises. */
void etch_recording_sort(struct etch_recording *recording);

#endif
