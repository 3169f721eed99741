/* SPDX-License-Identifier: MIT */
/* A small bundle with a record of every kind and fixed contents: what the format's tests, the golden output of etch
 * info and the fuzzer start from. It describes a run that never was. */
#ifndef ETCH_TESTS_SAMPLE_H
#define ETCH_TESTS_SAMPLE_H

#include "base/error.h"
#include "proto/bundle.h"

/* Records of the sample, the end record not counted. */
#define ETCH_SAMPLE_RECORDS 20u

/* Writes all of them, without finishing the file. */
int etch_sample_write(struct etch_bundle_writer *writer, struct etch_error *err);

/* Makes the whole file. */
int etch_sample_make(const char *path, struct etch_error *err);

#endif
