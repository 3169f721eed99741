/* SPDX-License-Identifier: MIT */
/* Measured clocks, kept in a file for the next recording. Measuring takes tenths of a second; checking takes a few
 * milliseconds. A kept measurement is used only on the boot, kernel, CPUs and clock source that it was made on, for a
 * day at most, not after a suspend, and only if nothing measured now contradicts it.
 *
 * The file belongs to the caller alone, and is not trusted: every number in it is checked. */
#ifndef ETCH_CALIBRATE_KEPT_H
#define ETCH_CALIBRATE_KEPT_H

#include "calibrate/calibration.h"

#define ETCH_KEPT_KEY_SIZE 1024u
#define ETCH_KEPT_SIZE_MAX (2u << 20)

/* The machine as it is now. A measurement that was made under another key is not used. */
struct etch_kept_key {
    char text[ETCH_KEPT_KEY_SIZE]; /* lines of NAME=VALUE */
    int64_t suspended_ns;          /* since the boot */
    uint64_t raw_ns;               /* CLOCK_MONOTONIC_RAW */
};

/* As etch_calibrate(), by the kept measurement where it is good for this machine and was given as much time as is asked
 * for now. Otherwise measures, and keeps the result. `c->kept` says if the result is in the file.
 *
 * With `like`, checks that the clocks of `like` still hold; that one must have been kept. A clock that moved since is a
 * result: `refused`. */
int etch_calibrate_kept(struct etch_calibration *c, const struct etch_calibration_options *options,
                        struct etch_error *err);

/* Measures, whatever is kept, and keeps the result in its place. */
int etch_calibrate_fresh(struct etch_calibration *c, const struct etch_calibration_options *options,
                         struct etch_error *err);

/* ---- Parts, for tests ---- */

/* The bytes of the file; free() them. NULL where memory is short. */
uint8_t *etch_kept_pack(const struct etch_calibration *c, const struct etch_kept_key *key, size_t *size);

/* Reads the bytes of a file. Returns 0, or -1 with `err` set to the reason why they are of no use. */
int etch_kept_parse(struct etch_calibration *c, const struct etch_kept_key *key, const void *bytes, size_t size,
                    struct etch_error *err);

/* Checks the bounds and the line of `c` against new readings, of a few milliseconds together, and adds these pairs to
 * `c`. Bounds of a CPU that had no time for a race meanwhile are left as they are. Returns 0, or -1 with `err` set to
 * what contradicts. */
int etch_calibration_check(struct etch_calibration *c, const struct etch_calibration_options *options,
                           struct etch_error *err);

/* Reads the key of this machine. Returns false where no measurement may be kept: the kernel itself does not trust the
 * TSC, or its state cannot be read. */
bool etch_kept_key_read(struct etch_kept_key *key, const struct etch_clock_health *health);

/* The file's bytes; free() them. NULL: there is no file, or not one that only the caller can write. */
uint8_t *etch_kept_load(size_t *size);

/* Returns false where there is no folder for it, or no room. */
bool etch_kept_save(const void *bytes, size_t size);

void etch_kept_remove(void);

#endif
