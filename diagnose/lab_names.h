/* SPDX-License-Identifier: MIT */
/* Names for the moments of runs of a lab build: thread, line, and which visit of the line. A schedule by names survives
 * another build of the program. Names are resolved by the line table of the lab build. */
#ifndef ETCH_DIAGNOSE_LAB_NAMES_H
#define ETCH_DIAGNOSE_LAB_NAMES_H

#include "collector/lab_explore.h"
#include "collector/lab_script.h"

struct etch_lab_names;

/* Reads the line table of the lab build `twin` of `program`. Returns NULL with `err` set if it cannot. Both paths must
 * stay. */
struct etch_lab_names *etch_lab_names_new(const char *twin, const char *program, struct etch_error *err);
void etch_lab_names_free(struct etch_lab_names *names);

/* Orders to enforce in runs of one lab build: to be set in a request. */
struct etch_lab_enforced {
    struct etch_lab_rule *rules;
    uint32_t n;
    struct etch_lab_lines *lines;
};

/* Finds the code of each line that the script names. Returns 0, or -1 with `err` set: a line has no code, or its text
 * is not in the source any more. To be released in either case. */
int etch_lab_names_resolve(struct etch_lab_names *names, const struct etch_lab_script *script,
                           struct etch_lab_enforced *orders, struct etch_error *err);
/* Finds the code of one moment, which a debugger halts at, and adds its lines to those of the orders, which may be
 * none. `any_thread` leaves the thread open. */
int etch_lab_names_halt(struct etch_lab_names *names, const struct etch_lab_named *named, bool any_thread,
                        struct etch_lab_enforced *orders, struct etch_lab_debugger *debugger, struct etch_error *err);

void etch_lab_enforced_release(struct etch_lab_enforced *orders);

/* Enforces the orders of a script in one run. Where the orders leave a choice, the running thread goes on. `schedule`
 * has the input; its segments and instructions are not used, so that it may be of another build. `like` names the
 * program. Returns 0, or -1 with `err` set. */
int etch_lab_enforce(struct etch_lab_result *result, const struct etch_lab_enforced *orders,
                     const struct etch_lab_schedule *schedule, const struct etch_lab_request *like,
                     struct etch_error *err);

/* Names the switches of a schedule: each stretch of a thread begins after the stretch before it has ended. Returns 0,
 * or -1 with `err` set: the schedule has too many switches, or the script does not give the same failure again. To be
 * released in either case. */
int etch_lab_names_of(struct etch_lab_names *names, const struct etch_lab_schedule *schedule,
                      const struct etch_lab_request *like, struct etch_lab_script *script, struct etch_error *err);

/* The name of a thread by its creators. False if it has none. */
bool etch_lab_name_thread(const struct etch_lab_thread *threads, uint32_t n, uint32_t thread,
                          struct etch_lab_name *name);

/* Names the line of an event: its own, or that of its innermost caller in the program's own source. The program was at
 * `base`. False if it has none. */
bool etch_lab_names_line(struct etch_lab_names *names, uint64_t base, const struct etch_lab_event *event,
                         struct etch_lab_named *named);

#endif
