/* SPDX-License-Identifier: MIT */
/* A sub-command of etch: a name, a line for the list, a long help, and a function. The function's arguments begin with
 * the command's name. Each command has a file; main.c has the list. */
#ifndef ETCH_CLI_COMMAND_H
#define ETCH_CLI_COMMAND_H

#include "base/error.h"

#include <stdbool.h>

/* Exit statuses. `etch record` exits with its target's status, or with ETCH_EXIT_RECORD if etch itself failed. */
enum { ETCH_EXIT_DONE = 0, ETCH_EXIT_FAILED = 1, ETCH_EXIT_USAGE = 2, ETCH_EXIT_RECORD = 125 };

/* The warning if `auto` finds no source of control flow. */
#define ETCH_NO_CONTROL_FLOW                                                                                           \
    "no control flow is recorded (try: etch cc --record, which compiles a recorder in; etch doctor, which lists the "  \
    "other sources)"

struct etch_command {
    const char *name;
    const char *summary; /* one line */
    const char *help;    /* all of --help, examples included; NULL if the command is in another program */
    int (*run)(const struct etch_command *self, int argc, char **argv);
    /* Of a command that reads: its work before the sandbox, such as running a program. Returns 0, or an exit status
     * after a message. NULL: none. */
    int (*before)(const struct etch_command *self, int argc, char **argv);
    bool keeps_signals;         /* runs programs, which must inherit the signal settings of etch */
    bool reads;                 /* only reads files that may come from others: cli/reading.h */
    const char *const *outputs; /* of a command that reads: the long options that name a file to write; NULL ends */
};

extern const struct etch_command etch_command_bench;
extern const struct etch_command etch_command_cc;
extern const struct etch_command etch_command_cxx;
extern const struct etch_command etch_command_decode;
extern const struct etch_command etch_command_calibrate;
extern const struct etch_command etch_command_core;
extern const struct etch_command etch_command_diagnose;
extern const struct etch_command etch_command_doctor;
extern const struct etch_command etch_command_explore;
extern const struct etch_command etch_command_confirm;
extern const struct etch_command etch_command_verify_fix;
extern const struct etch_command etch_command_info;
extern const struct etch_command etch_command_record;
extern const struct etch_command etch_command_redact;
extern const struct etch_command etch_command_replay;
extern const struct etch_command etch_command_report;
extern const struct etch_command etch_command_sketch;
extern const struct etch_command etch_command_slice;

/* Prints the help on standard output; returns ETCH_EXIT_DONE. */
int etch_command_help(const struct etch_command *self);

/* "etch NAME: MESSAGE (try: etch NAME --help)" on standard error; returns ETCH_EXIT_USAGE. */
int etch_command_usage(const struct etch_command *self, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* For getopt's '?' and ':': prints which option was wrong. */
int etch_command_bad_option(const struct etch_command *self, int c, char **argv);

/* "etch NAME: WHAT (try: ADVICE)" on standard error; returns ETCH_EXIT_FAILED. */
int etch_command_failed(const struct etch_command *self, const struct etch_error *err);

/* Call this last, with the exit status of the command. Returns a failure if the output could not be written. */
int etch_command_close_output(const struct etch_command *self, int status);

#endif
