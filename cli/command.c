/* SPDX-License-Identifier: MIT */
/* Help, usage errors and failures of the sub-commands; see command.h. */
#include "cli/command.h"

#include "base/nearest.h"
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

/* Offers the long options between `at` and `end`. */
static void try_words(struct etch_nearest *near, const char *at, const char *end)
{
    while ((at = strstr(at, "--")) && at < end) {
        size_t size = 2 + strspn(at + 2, "abcdefghijklmnopqrstuvwxyz0123456789-");

        if (size > 2)
            etch_nearest_try(near, at, size);
        at += size;
    }
}

/* Offers the options of a help: those in the usage, which ends at the first empty line, and those that a list explains.
 * Other lines name options of other commands, too. */
static void try_options(struct etch_nearest *near, const char *help)
{
    bool usage = true;

    for (const char *line = help, *end; *line; line = *end ? end + 1 : end) {
        const char *text;

        end = line + strcspn(line, "\n");
        text = strstr(line + (end - line > 2 ? 2 : 0), "  ");
        if (end == line)
            usage = false;
        else if (usage)
            try_words(near, line, end);
        else if (strncmp(line, "  -", 3) == 0)
            try_words(near, line, text && text < end ? text : end);
    }
}

/* A long option that getopt refused. */
static int bad_long_option(const struct etch_command *self, const char *word)
{
    struct etch_nearest near;

    etch_nearest_begin(&near, word, strcspn(word, "="));
    try_options(&near, self->help);
    if (self->reads)
        try_options(&near, etch_reading_help);
    try_options(&near, "usage: --help");
    if (!near.best[0])
        return etch_command_usage(self, "there is no option '%s', or the option takes no value", word);
    if (near.steps == 0)
        return etch_command_usage(self, "option '%s' takes no value", near.best);
    return etch_command_usage(self, "there is no option '%s'; did you mean %s?", word, near.best);
}

int etch_command_bad_option(const struct etch_command *self, int c, char **argv)
{
    const char *word = optind > 0 ? argv[optind - 1] : "";

    if (c == ':')
        return etch_command_usage(self, "option '%s' needs a value", word);
    if (optopt && strncmp(word, "--", 2) != 0)
        return etch_command_usage(self, "there is no option '-%c'", optopt);
    return bad_long_option(self, word);
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
