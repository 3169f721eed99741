/* SPDX-License-Identifier: MIT */
/* Orders of moments by their names: a schedule that outlives the build. One order a line:
 *
 *     main.1 queue.c:18 take (read) #3 after main queue.c:39 (write)
 *     T2 begin before T1 queue.c:40
 *
 * A thread is main, main.2 (the second thread that main made), main.2.1, or T2 (the second thread of the run). A moment
 * is the begin or the end of a thread, or its #N-th access or call at a line, from 1. A function's name narrows
 * nothing: it is there for people. A line's text in `backquotes` finds the line again where lines were added before it.
 */
#ifndef ETCH_COLLECTOR_LAB_SCRIPT_H
#define ETCH_COLLECTOR_LAB_SCRIPT_H

#include "base/array.h"
#include "base/error.h"
#include "collector/lab/layout.h"

#include <stddef.h>

struct etch_lab_named {
    struct etch_lab_name thread;
    uint32_t number; /* of the thread, from 1, in place of `thread`; 0: none */
    uint32_t what;   /* enum etch_lab_what: a place, the begin or the end */
    char file[256], function[128], text[160];
    uint32_t line, visit;
    uint32_t kind; /* enum etch_lab_kind */
};

/* `then` comes after `first`. */
struct etch_lab_constraint {
    struct etch_lab_named first, then;
};

struct etch_lab_script {
    ETCH_ARRAY(struct etch_lab_constraint) orders; /* at most ETCH_LAB_MOST_RULES */
};

/* Reads a script. Empty lines and lines that begin with '#' are skipped. Returns 0, or -1 with `err` set, which names
 * the line. To be released in either case. */
int etch_lab_script_parse(struct etch_lab_script *script, const char *text, size_t size, struct etch_error *err);

/* Reads a single moment, which is an access or a call at a line. The thread may be left out. Returns 0, or -1 with
 * `err` set. */
int etch_lab_named_parse(struct etch_lab_named *named, const char *text, bool *any_thread, struct etch_error *err);

void etch_lab_script_release(struct etch_lab_script *script);

/* The text of a moment, and of an order, as the parser takes them. The texts of lines are left out if `brief`. */
void etch_lab_named_print(const struct etch_lab_named *named, bool brief, char *text, size_t size);
void etch_lab_constraint_print(const struct etch_lab_constraint *constraint, bool brief, char *text, size_t size);

#endif
