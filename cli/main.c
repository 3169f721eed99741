/* SPDX-License-Identifier: MIT */
/* etch: picks the sub-command. */
#include "base/bound.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "cli/command.h"
#include "cli/reading.h"
#include "generated/commit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct etch_command *const commands[] = {
    &etch_command_doctor,  &etch_command_cc,     &etch_command_cxx,     &etch_command_diagnose,
    &etch_command_record,  &etch_command_info,   &etch_command_decode,  &etch_command_report,
    &etch_command_bench,
    &etch_command_slice,
    &etch_command_explore, &etch_command_replay, &etch_command_confirm, &etch_command_verify_fix,
    &etch_command_sketch,  &etch_command_redact, &etch_command_core,    &etch_command_calibrate,
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void print_help(FILE *out)
{
    fputs("etch: how did it happen? A flight recorder and failure sketches for native programs.\n\n"
          "usage: etch COMMAND [ARGUMENT...]\n\n",
          out);
    for (size_t i = 0; i < N_COMMANDS; i++)
        fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    fputs(
        "\n"
        "  etch COMMAND --help   explains a command, with examples\n"
        "  etch --version        prints the version\n\n"
        "ETCH_LOG=LEVEL makes etch report on its own work. The levels are error, warn (the default), info and\n"
        "debug. ETCH_LOG=ROOM:LEVEL,... sets the level of single rooms of the source: ETCH_LOG=order,diagnose:info.\n",
        out);
}

static int unknown_command(const char *name)
{
    struct etch_nearest near;

    etch_nearest_begin(&near, name, strlen(name));
    for (size_t i = 0; i < N_COMMANDS; i++)
        etch_nearest_try(&near, commands[i]->name, strlen(commands[i]->name));
    fprintf(stderr, "etch: there is no command '%s'", etch_shown(name));
    if (near.best[0])
        fprintf(stderr, "; did you mean %s?", near.best);
    fputs(" (try: etch --help)\n", stderr);
    return ETCH_EXIT_USAGE;
}

static int print_version(void)
{
    printf("etch " ETCH_VERSION);
    if (ETCH_COMMIT[0])
        printf(" (commit %s)", ETCH_COMMIT);
    putchar('\n');
    return fflush(stdout) == 0 ? ETCH_EXIT_DONE : ETCH_EXIT_FAILED;
}

static const struct etch_command *find(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static int help_on(const char *name)
{
    const struct etch_command *command = find(name);

    return command ? etch_command_help(command) : unknown_command(name);
}

/* Gives stdout a static buffer: without memory for a buffer, the C library drops output. */
static void give_buffer(void)
{
    static char buffer[1 << 16];

    setvbuf(stdout, buffer, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, sizeof(buffer));
}

int main(int argc, char **argv)
{
    const char *rooms = getenv("ETCH_LOG");
    const char *bad = etch_bound_set_by_environment();
    const struct etch_command *command;
    char unknown[64];
    int status;

    give_buffer();
    if (bad) {
        fprintf(stderr, "etch: %s holds no size (try: 512M)\n", bad);
        return ETCH_EXIT_USAGE;
    }
    if (rooms && etch_log_set(rooms, unknown, sizeof(unknown)) < 0) {
        fprintf(stderr,
                "etch: ETCH_LOG: '%s' is neither a level nor a room (try: error, warn, info or debug, or ROOM:LEVEL; "
                "docs/architecture.md lists the rooms)\n",
                etch_shown(unknown));
        return ETCH_EXIT_USAGE;
    }
    if (argc < 2) {
        print_help(stderr);
        return ETCH_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        if (argc > 2)
            return help_on(argv[2]);
        print_help(stdout);
        return fflush(stdout) == 0 ? ETCH_EXIT_DONE : ETCH_EXIT_FAILED;
    }
    if (strcmp(argv[1], "--version") == 0) {
        return print_version();
    }
    command = find(argv[1]);
    if (!command)
        return unknown_command(argv[1]);
    if (!command->keeps_signals)
        signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of write(2), which the end of output handles */
    argc--;
    argv++;
    if (command->reads && (status = etch_reading_begin(command, &argc, argv)) != 0)
        return status;
    return command->run(command, argc, argv);
}
