/* SPDX-License-Identifier: MIT */
/* What etch sketch and etch diagnose share: from a program and bundles to a sketch, and its ways out. */
#ifndef ETCH_CLI_SKETCHING_H
#define ETCH_CLI_SKETCHING_H

#include "base/array.h"
#include "collector/elf.h"
#include "sketch/compose.h"
#include "sketch/run.h"
#include "slicer/slice.h"

typedef ETCH_ARRAY(char *) sketching_texts;

struct sketching_bundle {
    char *path;
    const char *verdict; /* static; NULL: as recorded */
    uint64_t key;        /* when it ran: the order in which they are read does not count */
    bool failing;
    bool threaded;        /* more than one thread ran */
    bool tracked;         /* something was watched */
    bool unplaced;        /* it failed nowhere in the program, as far as is known: nothing can be sliced from it */
    char *bucket;         /* of a failing one, once known */
    struct etch_run *run; /* with the slice, once there is one */
};

/* The statements that can give an exit status. */
struct sketching_exits {
    uint32_t status;
    Etch__Slice *statements;
};

struct sketching {
    const char *program;
    struct etch_elf elf; /* of the program, read with the first bundle */
    ProtobufCBinaryData build_id;
    const char *bug;              /* which failure, by a part of its name; NULL: the commonest */
    size_t foreign;               /* bundles in which the program did not run */
    size_t unended;               /* bundles that end before their run did: whether it failed is not known */
    bool lenient;                 /* where there is none of that name: the commonest */
    struct etch_model *model;     /* opened when first needed */
    ETCH_ARRAY(char *) libraries; /* that a run has loaded by itself, and that have bitcode */
    Etch__Slice *layout;          /* of the model */
    ETCH_ARRAY(struct sketching_exits) exits;
    struct etch_slice *slicing;
    Etch__Slice *slice;
    char *sliced; /* the failure that the slice is of */
    struct etch_names names;
    ETCH_ARRAY(struct sketching_bundle) bundles;
    sketching_texts notes;
    sketching_texts lasting; /* those that every sketch has */
    struct source_text *source;
};

/* Where the sketch goes, as the options say. */
struct sketching_output {
    const char *html, *json, *sarif;
    bool all;
};

/* One of -H, -j, -s, -a, as the commands' long options --html, --json, --sarif and --all give them. Returns false for
 * any other. */
bool sketching_take_option(struct sketching_output *output, int option, const char *value);

void sketching_release(struct sketching *s);

/* Something that the reader of each sketch from now on must know, said once. */
void sketching_note(struct sketching *s, const char *text);

/* Reads the program, so that one that cannot be sliced is refused before it runs. Returns 0, or -1 with `err` set. */
int sketching_open(struct sketching *s, struct etch_error *err);

/* Takes a bundle in; one in which the program did not run, and one that does not say whether the run failed, are only
 * counted. Returns 0, or -1 with `err` set where it cannot be used at all. */
int sketching_add(struct sketching *s, const char *path, const char *verdict, bool tracked, struct etch_error *err);

/* Forgets the bundle that was added last. */
void sketching_drop_last(struct sketching *s);

/* Slices from the commonest failure, unless that is done, and makes the runs of all bundles. */
int sketching_prepare(struct sketching *s, struct etch_error *err);

/* Writes a plan for etch record. */
int sketching_write_plan(const char *path, const Etch__Plan *plan, struct etch_error *err);

/* Whether a failing run had more threads than one. */
bool sketching_is_threaded(const struct sketching *s);

/* Whether the failure that the slice is of is a hang. */
bool sketching_hangs(const struct sketching *s);

Etch__Sketch *sketching_compose(struct sketching *s, uint32_t round, uint32_t sigma, bool all, struct etch_error *err);

/* Prints the sketch and writes the files asked for. */
int sketching_write(struct sketching *s, const Etch__Sketch *sketch, const struct sketching_output *output,
                    struct etch_error *err);

#endif
