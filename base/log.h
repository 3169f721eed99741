/* SPDX-License-Identifier: MIT */
/* Log lines with a room and a level: what a room decided, and why, for whoever looks for a fault in etch itself.
 * Results and errors do not go here: results are returned, errors are struct etch_error. A line that is switched off
 * costs one comparison; its arguments are not evaluated. */
#ifndef ETCH_BASE_LOG_H
#define ETCH_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

enum etch_log_level { ETCH_LOG_ERROR, ETCH_LOG_WARN, ETCH_LOG_INFO, ETCH_LOG_DEBUG };

/* The rooms, each followed by its sub-rooms. log.c has their names. */
enum etch_log_room {
    ETCH_LOG_BASE,
    ETCH_LOG_PROTO,
    ETCH_LOG_BINARY,
    ETCH_LOG_CALIBRATE,
    ETCH_LOG_COLLECTOR,
    ETCH_LOG_SESSION,
    ETCH_LOG_NATIVE,
    ETCH_LOG_PT,
    ETCH_LOG_SOFT,
    ETCH_LOG_VPT,
    ETCH_LOG_SYNC,
    ETCH_LOG_LAB,
    ETCH_LOG_DECODER,
    ETCH_LOG_RECORDING,
    ETCH_LOG_FLOW,
    ETCH_LOG_ORDER,
    ETCH_LOG_VALUES,
    ETCH_LOG_SLICER,
    ETCH_LOG_MODEL,
    ETCH_LOG_SLICE,
    ETCH_LOG_PLAN,
    ETCH_LOG_INSTRUMENT,
    ETCH_LOG_SKETCH,
    ETCH_LOG_RUNS,
    ETCH_LOG_PREDICT,
    ETCH_LOG_EXPLAIN,
    ETCH_LOG_RENDER,
    ETCH_LOG_DIAGNOSE,
    ETCH_LOG_CLI,
    ETCH_LOG_N_ROOMS
};

/* Reads a list such as "info,order,decoder:debug". A level by itself is for all rooms. A room by itself gets debug. A
 * room's level is also that of its sub-rooms. If a room has two entries, the later entry counts. The default is warn
 * for all. Returns 0, or -1 with the first unknown entry in `unknown`, and then changes nothing. */
int etch_log_set(const char *list, char *unknown, size_t size);

bool etch_log_is_on(enum etch_log_room room, enum etch_log_level level);

/* Writes "etch: LEVEL: ROOM: TEXT" to standard error, if the room's level asks for it. */
#define etch_log(room, level, ...)                                                                                     \
    (etch_log_is_on((room), (level)) ? etch_log_write((room), (level), __VA_ARGS__) : (void)0)

/* Behind etch_log(). */
void etch_log_write(enum etch_log_room room, enum etch_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
