/* SPDX-License-Identifier: MIT */
/* See reading.h. */
#include "cli/reading.h"

#include "base/bound.h"
#include "base/input.h"
#include "base/log.h"
#include "base/sandbox.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char etch_reading_help[] =
    "\n"
    "reading:\n"
    "  --max-memory SIZE   keep at most SIZE of each file in memory: 512M, 2G. The default is 256 MiB, or 256 times "
    "the\n"
    "                      file if that is more, but at most half of the machine's memory. Records beyond the limit "
    "are\n"
    "                      a counted loss\n"
    "  --max-output SIZE   print at most SIZE (default 64G); a cut is reported\n"
    "  --source-root DIRS  show source files below these folders, separated by colons (default: the current folder, "
    "the\n"
    "                      program's folder, and the git work trees of both). A file with the checksum of the debug\n"
    "                      information is shown wherever it lies\n"
    "A sandbox keeps the reader from writing anywhere else, running programs and using the network. etch doctor shows\n"
    "if this machine has a sandbox. ETCH_SANDBOX=off turns the sandbox off.\n";

/* ---- Output ---- */

static uint64_t written;
static bool cut;

int etch_reading_write(const char *text, size_t size)
{
    uint64_t limit = etch_bound(ETCH_BOUND_OUTPUT, 0);

    while (size) {
        size_t room = written < limit ? (size < limit - written ? size : (size_t)(limit - written)) : 0;
        ssize_t n;

        cut |= room < size;
        if (!room)
            return EFBIG;
        n = write(STDOUT_FILENO, text, room);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        written += (uint64_t)n;
        text += n;
        size -= (size_t)n;
    }
    return 0;
}

static ssize_t write_cookie(void *cookie, const char *text, size_t size)
{
    int status = etch_reading_write(text, size);

    (void)cookie;
    errno = status ? status : errno;
    return status ? 0 : (ssize_t)size;
}

/* Counts and limits everything that is printed. */
static void bound_output(void)
{
    FILE *out = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_cookie});

    if (!out)
        return;
    fflush(stdout);
    setvbuf(out, NULL, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, (size_t)1 << 16);
    stdout = out;
}

const char *etch_reading_cut(void)
{
    static char text[96];

    if (!cut)
        return NULL;
    snprintf(text, sizeof(text), "the output was cut at %" PRIu64 " bytes (try: --max-output SIZE)", written);
    return text;
}

/* ---- Options ---- */

/* Returns true if `word` is --NAME or an abbreviation, with "=VALUE" or with the value in the next word. */
static bool is_option(const char *word, const char *name, const char **value)
{
    size_t n = word && strncmp(word, "--", 2) == 0 ? strcspn(word + 2, "=") : 0;

    if (!n || strncmp(word + 2, name, n) != 0)
        return false;
    *value = word[2 + n] == '=' ? word + 3 + n : NULL;
    return true;
}

static int set_option(const struct etch_command *self, unsigned which, const char *value)
{
    static const enum etch_bound_kind limits[] = {ETCH_BOUND_MEMORY, ETCH_BOUND_OUTPUT};

    if (which == 2)
        etch_input_set_roots(value);
    else if (etch_bound_set(limits[which], value) < 0)
        return etch_command_usage(self, "'%s' is no size (try: 512M)", value);
    return 0;
}

static int take_options(const struct etch_command *self, int *argc, char **argv)
{
    static const char *const names[] = {"max-memory", "max-output", "source-root"};
    int kept = 1, i = 1;

    for (; i < *argc && strcmp(argv[i], "--") != 0; i++) {
        const char *value = NULL;
        unsigned which = 0;
        int status;

        /* Only whole words are taken: an abbreviation could mean an option of the command. */
        while (which < 3 &&
               !(is_option(argv[i], names[which], &value) && strcspn(argv[i] + 2, "=") == strlen(names[which])))
            which++;
        if (which == 3) {
            argv[kept++] = argv[i];
            continue;
        }
        if (!value && i + 1 == *argc)
            return etch_command_usage(self, "option '%s' needs a value", argv[i]);
        status = set_option(self, which, value ? value : argv[++i]);
        if (status)
            return status;
    }
    for (; i < *argc; i++)
        argv[kept++] = argv[i];
    argv[kept] = NULL;
    *argc = kept;
    return 0;
}

/* ---- Sandbox ---- */

#define OUTPUTS_MAX 16u

static size_t find_outputs(const struct etch_command *self, int argc, char **argv, const char **outputs)
{
    size_t n = 0;

    for (int i = 1; i < argc; i++)
        for (const char *const *name = self->outputs; name && *name && n < OUTPUTS_MAX; name++) {
            const char *value = NULL, *next = i + 1 < argc ? argv[i + 1] : NULL;

            if (is_option(argv[i], *name, &value))
                value = value ? value : next;
            else if (strncmp(argv[i], "-o", 2) == 0)
                value = argv[i][2] ? argv[i] + 2 : next;
            if (value)
                outputs[n++] = value;
        }
    return n;
}

static void enter_sandbox(const struct etch_command *self, int argc, char **argv)
{
    const char *wish = getenv("ETCH_SANDBOX"), *outputs[OUTPUTS_MAX];
    struct etch_sandbox sandbox;
    size_t n;

    if (wish && strcmp(wish, "off") == 0)
        return;
    n = find_outputs(self, argc, argv, outputs);
    etch_sandbox_enter(&sandbox, outputs, n);
    etch_log(ETCH_LOG_CLI, ETCH_LOG_DEBUG, "sandbox: landlock %d, seccomp %s", sandbox.landlock,
             sandbox.seccomp ? "on" : "off");
}

int etch_reading_begin(const struct etch_command *self, int *argc, char **argv)
{
    int status = take_options(self, argc, argv);

    if (!status && self->before)
        status = self->before(self, *argc, argv);
    if (status)
        return status;
    bound_output();
    enter_sandbox(self, *argc, argv);
    return 0;
}
