/* SPDX-License-Identifier: MIT */
/* The records that every recording has: the program, its failure, its end. */
#ifndef ETCH_COLLECTOR_SESSION_RECORDS_H
#define ETCH_COLLECTOR_SESSION_RECORDS_H

#include "collector/session/recorder.h"

#include <sys/resource.h>
#include <sys/types.h>

/* The path and the build-id of a running process's file. */
struct etch_program_file {
    char path[4096];
    uint8_t build_id[64];
};

/* Fills in the file of the process; `file` holds the texts. */
void etch_program_set_file(Etch__Program *program, pid_t pid, struct etch_program_file *file);

/* `argv` ends with NULL. */
void etch_program_set_argv(Etch__Program *program, char *const *argv);

/* Writes the record, with the version of etch and the start of the recording filled in. */
void etch_recorder_write_program(struct etch_recorder *recorder, Etch__Program *program);

/* Writes the failure, and sums it up. */
void etch_recorder_write_failure(struct etch_recorder *recorder, Etch__Failure *failure, bool address_known);

struct etch_ending {
    bool gone;       /* else the program goes on */
    int wait_status; /* of a program that is gone, in waitpid's format */
    uint64_t unix_ns, tsc;
    uint64_t cpu_ns; /* of the program; 0: not known */
};

/* Writes the outcome, and sums it up. */
void etch_recorder_write_outcome(struct etch_recorder *recorder, const struct etch_ending *ending);

/* CPU time of etch itself, and of a usage that is known. */
uint64_t etch_cpu_ns(void);
uint64_t etch_rusage_ns(const struct rusage *use);

/* The time of day. */
uint64_t etch_unix_ns(void);

#endif
