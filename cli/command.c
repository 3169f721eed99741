/* SPDX-License-Identifier: MIT */
/* Help, usage errors and failures of the sub-commands; see command.h. */
#include "cli/command.h"

#include "base/printable.h"
#include "cli/reading.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int etch_command_help(const struct etch_command *self)
{
    if (!self->help) { /* the command is in another program, and so is its help */
        char name[32], *words[] = {"etch", "help", name, NULL};

        snprintf(name, sizeof(name), "%s", self->name);
        return self->run(self, 2, words + 1);
    }
    fputs(self->help, stdout);
    if (self->reads)
        fputs(etch_reading_help, stdout);
    return etch_command_close_output(self, ETCH_EXIT_DONE);
}

int etch_command_usage(const struct etch_command *self, const char *fmt, ...)
{
    char text[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    fprintf(stderr, "etch %s: %s (try: etch %s --help)\n", self->name, etch_printable(text), self->name);
    return ETCH_EXIT_USAGE;
}

int etch_command_bad_option(const struct etch_command *self, int c, char **argv)
{
    const char *word = optind > 0 ? argv[optind - 1] : "";

    if (c == ':')
        return etch_command_usage(self, "option '%s' needs a value", word);
    if (optopt && strncmp(word, "--", 2) != 0)
        return etch_command_usage(self, "there is no option '-%c'", optopt);
    return etch_command_usage(self, "there is no option '%s', or the option takes no value", word);
}

int etch_command_failed(const struct etch_command *self, const struct etch_error *err)
{
    char name[64];

    snprintf(name, sizeof(name), "etch %s", self->name);
    etch_error_print(err, name, stderr);
    return ETCH_EXIT_FAILED;
}

int etch_command_close_output(const struct etch_command *self, int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    if (etch_reading_cut())
        fprintf(stderr, "etch %s: %s\n", self->name, etch_reading_cut());
    else if (errno != EPIPE) /* a reader such as head may stop early: no message */
        fprintf(stderr, "etch %s: cannot write the output: %s\n", self->name, strerror(errno));
    return status == ETCH_EXIT_DONE ? ETCH_EXIT_FAILED : status;
}
