/* SPDX-License-Identifier: MIT */
/* The recording abilities of this machine, found by trying rather than by assuming. The result is a list of checks.
 * Each check has a finding and, if something is missing, advice. The result also names the source of control flow that
 * `auto` takes. */
#ifndef ETCH_COLLECTOR_MACHINE_H
#define ETCH_COLLECTOR_MACHINE_H

#include "calibrate/clock.h"

#include <stdbool.h>
#include <stddef.h>

enum etch_check_state {
    ETCH_CHECK_OK,
    ETCH_CHECK_LIMITED, /* works, with a stated restriction */
    ETCH_CHECK_MISSING,
};

struct etch_check {
    const char *id;    /* for programs */
    const char *title; /* for people */
    enum etch_check_state state;
    char found[200];
    char advice[300]; /* empty where there is nothing to do */
};

struct etch_machine {
    struct etch_check checks[24];
    size_t n_checks;

    char kernel[65];
    char hypervisor[16]; /* empty on bare metal */
    bool pt_present, pt_usable;
    int pt_filters;
    int watch_slots;
    bool watch_delivered;
    int paranoid; /* perf_event_paranoid; 99 where it cannot be read */
    bool qemu_plugins;
    bool vpt_plugin; /* etch's own, for QEMU */
    struct etch_clock_health clock;

    const char *source; /* the choice of `auto` for a program without the software recorder */
    char source_reason[200];
};

/* Fills `machine`. Files are read below `root` ("" for this machine; tests have a tree of their own). Never fails: a
 * fact that cannot be found out is a finding too. */
void etch_machine_probe(struct etch_machine *machine, const char *root);

/* NULL if no check has this id. */
const struct etch_check *etch_machine_check(const struct etch_machine *machine, const char *id);

/* Reads the first line of a small file below `root`, without its end. False if there is none. */
bool etch_machine_read_line(const char *root, const char *name, char *line, size_t size);

#endif
