/* SPDX-License-Identifier: MIT */
/* etch core: keeps the cores of programs, as the kernel's handler of cores (core_pattern). */
#include "base/printable.h"
#include "cli/command.h"
#include "collector/core_keep.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { INSTALL = 'i', UNINSTALL = 'u', LIST = 'l', CHECK = 'c', TO = 't', MAX_SIZE = 's', MAX_TOTAL = 'T', KEEP = 'k' };

static const struct option long_options[] = {{"help", no_argument, NULL, 'h'},
                                             {"install", no_argument, NULL, INSTALL},
                                             {"uninstall", no_argument, NULL, UNINSTALL},
                                             {"list", no_argument, NULL, LIST},
                                             {"check", no_argument, NULL, CHECK},
                                             {"to", required_argument, NULL, TO},
                                             {"max-size", required_argument, NULL, MAX_SIZE},
                                             {"max-total", required_argument, NULL, MAX_TOTAL},
                                             {"keep", required_argument, NULL, KEEP},
                                             {0}};

struct core_options {
    struct etch_core_place place;
    int action; /* INSTALL, UNINSTALL, LIST; 0: a core comes on standard input */
    bool check;
    char words[256]; /* the options for the pattern, as they were given */
};

/* ---- Options ---- */

static int parse_size(const char *text, uint64_t *size)
{
    unsigned long long value;
    char *end;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (end == text || errno || text[0] == '-' || value > (uint64_t)1 << 30)
        return -1;
    if (*end == 'K')
        value <<= 10, end++;
    else if (*end == 'M')
        value <<= 20, end++;
    else if (*end == 'G')
        value <<= 30, end++;
    *size = value;
    return *end || value < 4096 ? -1 : 0;
}

static int take_bound(const struct etch_command *self, struct core_options *o, int c)
{
    char *end;
    long n;

    if (c != KEEP)
        return parse_size(optarg, c == MAX_SIZE ? &o->place.max_size : &o->place.max_total) < 0
                   ? etch_command_usage(self, "'%s' is no size of at least 4K (try: 512M)", optarg)
                   : 0;
    n = strtol(optarg, &end, 10);
    if (end == optarg || *end || n < 1 || n > 1 << 20)
        return etch_command_usage(self, "--keep takes a number of cores from 1, not '%s'", optarg);
    o->place.keep = (uint32_t)n;
    return 0;
}

/* The kernel splits its pattern at blanks. */
static int note_words(const struct etch_command *self, struct core_options *o, const char *name)
{
    size_t n = strlen(o->words);

    if (strpbrk(optarg, " \t\n"))
        return etch_command_usage(self, "--%s cannot hold a blank: '%s'", name, optarg);
    snprintf(o->words + n, sizeof(o->words) - n, "%s--%s %s", n ? " " : "", name, optarg);
    return 0;
}

static int take_option(const struct etch_command *self, struct core_options *o, int c, int index, char **argv)
{
    int status = 0;

    switch (c) {
    case INSTALL:
    case UNINSTALL:
    case LIST:
        o->action = c;
        return 0;
    case CHECK:
        o->check = true;
        return 0;
    case TO:
        o->place.folder = optarg;
        break;
    case MAX_SIZE:
    case MAX_TOTAL:
    case KEEP:
        status = take_bound(self, o, c);
        break;
    default:
        return etch_command_bad_option(self, c, argv);
    }
    return status ? status : note_words(self, o, long_options[index].name);
}

/* Takes everything from --then on out of the arguments. A single word is split at blanks. */
static char **split_then(int *argc, char **argv)
{
    static char *words[64];
    char *rest, *word;
    size_t n = 0;
    int i = 1;

    while (i < *argc && strcmp(argv[i], "--then") != 0)
        i++;
    if (i >= *argc)
        return NULL;
    argv[i] = NULL;
    rest = i + 2 == *argc ? argv[i + 1] : NULL;
    *argc = i;
    if (!rest)
        return argv[i + 1] ? argv + i + 1 : NULL;
    while (n < 63 && (word = strsep(&rest, " ")))
        if (word[0])
            words[n++] = word;
    return n ? words : NULL;
}

/* ---- The handler ---- */

/* The kernel starts a handler with standard input alone. Messages then go to the kernel's log. */
static void open_standard(void)
{
    int fd;

    if (fcntl(STDIN_FILENO, F_GETFD) < 0)
        open("/dev/null", O_RDONLY);
    if (fcntl(STDOUT_FILENO, F_GETFD) < 0)
        open("/dev/null", O_WRONLY);
    if (fcntl(STDERR_FILENO, F_GETFD) >= 0)
        return;
    fd = open("/dev/kmsg", O_WRONLY);
    if (fd < 0)
        open("/dev/null", O_WRONLY);
}

static bool parse_number(const char *text, uint64_t most, uint64_t *value)
{
    char *end;

    errno = 0;
    *value = strtoull(text, &end, 10);
    return end != text && !*end && !errno && text[0] != '-' && *value <= most;
}

static int receive(const struct etch_command *self, const struct core_options *o, int argc, char **argv, char **then)
{
    struct etch_core_dump dump = {0};
    struct etch_error err;
    uint64_t numbers[4];
    char path[4096];

    if (argc < 4)
        return etch_command_usage(self, "the handler needs %%P %%p %%s %%t");
    for (int i = 0; i < 4; i++)
        if (!parse_number(argv[i], i == 3 ? (uint64_t)1 << 40 : 1u << 30, &numbers[i]))
            return etch_command_usage(self, "'%s' is no number", argv[i]);
    dump.pid = (int)numbers[0];
    dump.own_pid = (int)numbers[1];
    dump.signal = (int)numbers[2];
    dump.unix_s = numbers[3];
    dump.exe = argc > 4 ? argv[4] : NULL;
    if (isatty(STDIN_FILENO))
        return etch_command_usage(self, "the core comes on standard input, not from a terminal");
    return etch_core_receive(&o->place, &dump, then, path, &err) < 0 ? etch_command_failed(self, &err) : ETCH_EXIT_DONE;
}

/* Whatever is wrong with etch, the former handler gets the core. */
static int pass_on(int status, char **then)
{
    if (then)
        execv(then[0], then);
    return status;
}

/* ---- The list ---- */

static void print_kept(const struct etch_core_kept *k)
{
    time_t at = (time_t)(k->end_unix_ns / 1000000000u);
    const char *name = k->signal ? sigabbrev_np((int)k->signal) : NULL;
    struct tm tm;
    char when[32];

    localtime_r(&at, &tm);
    strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
    printf("%s  pid %" PRIu32, when, k->pid);
    if (k->outer_pid && k->outer_pid != k->pid)
        printf(" (%" PRIu32 " outside of its container)", k->outer_pid);
    printf("  %s%s  %" PRIu64 " KB%s  %s\n", name ? "SIG" : "", name ? name : "signal unknown", k->size >> 10,
           k->cut ? ", cut" : "", etch_shown(k->command && k->command[0] ? k->command : k->name));
    printf("  %s\n", etch_shown(k->path));
    if (k->has_exe)
        printf("  the program is beside it: %.*s.exe\n", (int)strlen(etch_shown(k->path)) - 5, etch_shown(k->path));
    if (k->has_trace)
        printf("  with a trace of Intel PT\n");
    if (k->rings && k->rings[0])
        printf("  rings in %s\n", etch_shown(k->rings));
}

static int list(const struct etch_command *self, const struct core_options *o)
{
    struct etch_core_list cores;
    struct etch_error err;

    if (etch_core_list(&cores, o->place.folder, &err) < 0) {
        etch_core_list_release(&cores);
        return etch_command_failed(self, &err);
    }
    for (size_t i = 0; i < cores.list.n; i++)
        print_kept(&cores.list.v[i]);
    if (!cores.list.n)
        printf("no cores in %s\n", etch_shown(o->place.folder));
    etch_core_list_release(&cores);
    return etch_command_close_output(self, ETCH_EXIT_DONE);
}

/* ---- The pattern ---- */

static int change(const struct etch_command *self, const struct core_options *o)
{
    const char *wish = getenv("ETCH_CORE_PATTERN_FILE"), *file = wish ? wish : ETCH_CORE_PATTERN;
    struct etch_core_pattern pattern;
    struct etch_error err;
    int status = o->action == INSTALL ? etch_core_install(&pattern, file, o->place.folder, o->words, o->check, &err)
                                      : etch_core_uninstall(&pattern, file, o->place.folder, o->check, &err);

    if (status < 0)
        return etch_command_failed(self, &err);
    printf("%s%s\n  before: %s\n  now:    %s\n", o->check ? "would change " : "changed ", file,
           etch_shown(pattern.former), etch_shown(pattern.now));
    if (o->action == INSTALL) {
        printf("Cores are kept in %s, the newest %" PRIu32 ", up to %" PRIu64 " MB each.\n",
               etch_shown(o->place.folder), o->place.keep, o->place.max_size >> 20);
        printf(pattern.former[0] == '|' ? "The handler before gets each core, too.\n"
                                        : "The kernel writes no core into the folder of the program any more.\n");
        printf("It lasts until the next start of the machine. For longer, put this into /etc/sysctl.d/etch.conf:\n"
               "  kernel.core_pattern=%s\n",
               etch_shown(pattern.now));
    }
    return etch_command_close_output(self, ETCH_EXIT_DONE);
}

static int run(const struct etch_command *self, int argc, char **argv)
{
    struct core_options o = {.place = {ETCH_CORE_FOLDER, ETCH_CORE_SIZE_MAX, ETCH_CORE_TOTAL_MAX, ETCH_CORE_KEPT}};
    char **then = split_then(&argc, argv);
    int c, index = 0, status = 0;

    open_standard();
    while (!status && (c = getopt_long(argc, argv, "+:h", long_options, &index)) != -1) {
        if (c == 'h')
            return etch_command_help(self);
        status = take_option(self, &o, c, index, argv);
    }
    if (status)
        return pass_on(status, then);
    if (o.action == LIST)
        return list(self, &o);
    if (o.action)
        return change(self, &o);
    status = receive(self, &o, argc - optind, argv + optind, then);
    return status == ETCH_EXIT_USAGE ? pass_on(status, then) : status;
}

const struct etch_command etch_command_core = {
    .name = "core",
    .summary = "keeps the cores of crashed programs, as the kernel's handler of cores",
    .help =
        "usage: etch core --install [--to DIR] [--max-size SIZE] [--max-total SIZE] [--keep N] [--check]\n"
        "       etch core --uninstall [--to DIR] [--check]\n"
        "       etch core --list [--to DIR]\n"
        "       etch core [OPTION...] PID OWN-PID SIGNAL TIME [EXE] [--then HANDLER [ARG...]]\n\n"
        "Keeps the core of each program that crashes, so that etch sketch PROG --core FILE can show how it happened. "
        "The\n"
        "last form is the handler itself. The kernel runs it by the pattern '|/usr/bin/etch core %P %p %s %t %E' and\n"
        "gives it the core on standard input. Beside each core is a small recording with the command line (by the\n"
        "policy), the thread names, the signal, both process numbers and the folder of ETCH_RING. If the program's "
        "path\n"
        "leads to another file outside of its container, the program is copied, too.\n\n"
        "A handler needs no core limit: the kernel ignores ulimit -c here, except for a limit of 1.\n\n"
        "  --install         make etch the handler, and keep the former pattern. A former handler gets each core, too\n"
        "  --uninstall       put the former pattern back\n"
        "  --check           with these two: say what would be changed, and change nothing\n"
        "  --list            the kept cores, the newest first\n"
        "  --to DIR          the folder of the cores (/var/lib/etch/core), for its owner alone\n"
        "  --max-size SIZE   keep at most SIZE of a core (1G), and at most half of the free disk. A cut core is still\n"
        "                    read, as far as it goes\n"
        "  --max-total SIZE  the cores together (4G); the oldest are removed\n"
        "  --keep N          the newest N cores (16)\n"
        "  --then HANDLER    the handler before etch. All words after it are its arguments. The handler gets the same\n"
        "                    bytes, whatever becomes of etch's own copy\n\n"
        "examples:\n"
        "  etch core --list\n"
        "  etch core --install --check\n"
        "  sudo etch core --install --keep 4\n"
        "  sudo etch sketch ./server --core /var/lib/etch/core/server.4711.1700000000.core\n",
    .run = run,
};
