/* SPDX-License-Identifier: MIT */
/* Log lines with levels, for what is worth knowing while looking for a fault in etch itself. Results and errors do not
 * go here: results are returned, errors are struct etch_error. Silent below the level that the command sets. */
#ifndef ETCH_BASE_LOG_H
#define ETCH_BASE_LOG_H

enum etch_log_level { ETCH_LOG_ERROR, ETCH_LOG_WARN, ETCH_LOG_INFO, ETCH_LOG_DEBUG };

/* Everything up to `level` is written to standard error; the default is ETCH_LOG_WARN. */
void etch_log_set_level(enum etch_log_level level);

/* Takes "error", "warn", "info" or "debug". Returns 0, or -1 and changes nothing. */
int etch_log_set_level_by_name(const char *name);

void etch_log(enum etch_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
