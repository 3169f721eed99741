/* SPDX-License-Identifier: MIT */
/* The backward slice: from the failing statement to the statements that can have caused the failure, nearest first.
 * Also the plan for watching the nearest statements. */
#ifndef ETCH_SLICER_SLICE_H
#define ETCH_SLICER_SLICE_H

#include "base/error.h"
#include "proto/etch.pb-c.h"
#include "slicer/program.h"

#include <stdbool.h>

/* The start of a slice: instructions of the program, grouped by their place. */
struct etch_criterion;

/* "FILE:LINE" or "FILE:LINE:COLUMN"; FILE may leave out leading folders. Returns 0, or -1 with `err` set: no such file,
 * no code on the line (the nearest lines with code are named). */
int etch_criterion_at(struct etch_criterion **criterion, struct etch_model *model, const char *place,
                      struct etch_error *err);

/* The start by a recorded failure. A crash: the statement of the failing instruction; if a library failed, the
 * statement of the nearest caller within the program. A hang: the statement where each thread waits. An exit status:
 * the statement that made it, or every statement that can have made it if the failure does not say which. `images` are
 * the run's mappings, `program` says which binary ran. Returns 0, or -1 with `err` set: another build, no frame within
 * the program. */
int etch_criterion_failure(struct etch_criterion **criterion, struct etch_model *model, const Etch__Failure *failure,
                           const Etch__Program *program, Etch__Image *const *images, size_t n_images,
                           struct etch_error *err);

void etch_criterion_free(struct etch_criterion *criterion);

/* The program and its libraries, as a slice without statements, to be freed with etch__slice__free_unpacked(). NULL
 * when memory is short. */
Etch__Slice *etch_model_message(struct etch_model *model);

/* Takes the place of the distance for a statement that gives an exit status. */
enum {
    ETCH_EXIT_ORIGIN, /* the statement made the value */
    ETCH_EXIT_NEAR,   /* the statement made the value, and the machine code has only its line */
    ETCH_EXIT_PASSED, /* the value passed through the statement */
};

/* The statements from which the program may have its exit status: a return, an exit(), the assignment of a constant
 * that is returned later. Status 0: the statements that write output, if there are any. The result is a slice, to be freed with etch__slice__free_unpacked(). Its distances are the
 * values above, and its calls are the calls that end the program. NULL when memory is short. */
Etch__Slice *etch_exits_message(struct etch_model *model, int status);

/* A call through a pointer that a run made: the call instruction and its target, as addresses of the run. */
struct etch_indirect_call {
    uint64_t site, target;
};

/* Leaves to each call through a pointer that the run made only the targets it had there, instead of all that fit by
 * type. Calls that the run did not make stay as they are. Returns how many calls were narrowed, or -1 with `err` set.
 */
int etch_model_narrow(struct etch_model *model, const Etch__Program *program, Etch__Image *const *images,
                      size_t n_images, const struct etch_indirect_call *calls, size_t n_calls, struct etch_error *err);

struct etch_slice_options {
    bool alias; /* also stores through pointers of which only the type fits */
};

struct etch_slice;

int etch_slice_make(struct etch_slice **slice, struct etch_model *model, const struct etch_criterion *criterion,
                    const struct etch_slice_options *options, struct etch_error *err);

void etch_slice_free(struct etch_slice *slice);

/* As a message, to be freed with etch__slice__free_unpacked(). NULL when memory is short. */
Etch__Slice *etch_slice_message(struct etch_slice *slice);

/* An object that an instruction used in a run. Both are addresses in the file, as if the object were a variable. */
struct etch_slice_seen {
    uint64_t instruction, object;
};

/* The plan for the first `sigma` statements with `slots` watchpoints in a run, to be freed with
 * etch__plan__free_unpacked(). If the `seen` instructions of a location always used the same variable of the program,
 * this variable needs no site: it is watched from the start. NULL when memory is short. */
Etch__Plan *etch_slice_plan(struct etch_slice *slice, uint32_t sigma, uint32_t slots,
                            const struct etch_slice_seen *seen, size_t n_seen);

#endif
