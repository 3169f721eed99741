/* SPDX-License-Identifier: MIT */
/* Several inputs of one program: which fail, which pass, and the smallest difference between one that fails and one
 * that passes. The runs of all inputs are compared with each other, so that a program that always fails on one input
 * can be diagnosed. */
#ifndef ETCH_DIAGNOSE_INPUTS_H
#define ETCH_DIAGNOSE_INPUTS_H

#include "base/array.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ETCH_INPUTS_MAX 10000u
#define ETCH_INPUTS_BYTES (1u << 20) /* of a file, that are compared with others */

struct etch_input {
    char *path;
    unsigned runs, failed; /* counted; a run that is under way is among the runs that were begun */
    unsigned begun;
};

struct etch_inputs {
    struct etch_input *v;
    size_t n;
    bool in_argv; /* the path takes the place of {} in the arguments; else the file is standard input */
    size_t nearest_failing, nearest_passing; /* with the smallest difference; SIZE_MAX: not found yet */
};

/* The files of a shell pattern, in the order of their names. Returns 0, or -1 with `err` set: no file, or too many. To
 * be released in either case. */
int etch_inputs_open(struct etch_inputs *inputs, const char *pattern, char *const *argv, struct etch_error *err);
void etch_inputs_release(struct etch_inputs *inputs);

/* A number that differs if a path or the contents of a file differ. */
uint64_t etch_inputs_hash(const struct etch_inputs *inputs);

/* The input of the next run, which counts as begun. Each input runs once. Then inputs that fail and inputs that pass
 * take turns, those nearest to each other first. */
size_t etch_inputs_next(struct etch_inputs *inputs);

/* Takes the verdict on a run. */
void etch_inputs_take(struct etch_inputs *inputs, size_t input, bool failed);

/* The arguments of a run, to be freed with etch_inputs_free_argv(); NULL when memory is short. */
char **etch_inputs_argv(const struct etch_inputs *inputs, size_t input, char *const *argv);
void etch_inputs_free_argv(char **argv);

/* True if each input ran, and all failed or none did. */
bool etch_inputs_are_alike(const struct etch_inputs *inputs);

/* The `i`-th sentence about the inputs: which failed, which passed, the smallest difference. Returns false if there are
 * no more. */
bool etch_inputs_text(struct etch_inputs *inputs, unsigned i, char *text, size_t size);

/* ---- The difference of two texts ---- */

/* Where two texts differ: a common beginning, and a common end. */
struct etch_difference {
    size_t at;       /* bytes of the common beginning */
    size_t one, two; /* bytes that differ, of each */
    unsigned line;   /* of the first difference, from 1 */
};

struct etch_difference etch_difference_of(const char *one, size_t n_one, const char *two, size_t n_two);

#endif
