/* SPDX-License-Identifier: MIT */
/* etch bench: records two builds or command lines in turn, and says what became slower. */
#include "base/printable.h"
#include "cli/command.h"
#include "cli/comparing.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RUNS = 20, RUNS_MAX = 1000, SLOWER = 3 };

struct bench {
    unsigned long runs;
    const char *source;   /* NULL: soft if both programs have the recorder, else none */
    const char *snapshot; /* of soft */
    const char *keep, *against;
    bool json;
    char **commands[2]; /* ended by NULL; [0] NULL: --against */
    char folder[PATH_MAX];
    char folders[2][PATH_MAX + 8];
};

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

/* ---- One run ---- */

static void exec_record(const struct bench *b, const char *source, char **command, const char *file, const char *log)
{
    char *argv[64 + 16], self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    size_t n = 0;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), err = open(log, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (length < 0 || null < 0 || err < 0)
        _exit(ETCH_EXIT_RECORD);
    self[length] = '\0';
    argv[n++] = self;
    argv[n++] = (char *)(uintptr_t)"record";
    argv[n++] = (char *)(uintptr_t)"--source";
    argv[n++] = (char *)(uintptr_t)source;
    argv[n++] = (char *)(uintptr_t)"--no-sync";
    argv[n++] = (char *)(uintptr_t)"--clock=0";
    if (strcmp(source, "soft") == 0) {
        argv[n++] = (char *)(uintptr_t)"--snapshot";
        argv[n++] = (char *)(uintptr_t)b->snapshot;
    }
    argv[n++] = (char *)(uintptr_t)"-o";
    argv[n++] = (char *)(uintptr_t)file;
    argv[n++] = (char *)(uintptr_t)"--";
    for (size_t i = 0; command[i] && n < sizeof(argv) / sizeof(argv[0]) - 1; i++)
        argv[n++] = command[i];
    argv[n] = NULL;
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    execv(self, argv);
    _exit(ETCH_EXIT_RECORD);
}

/* The first line that the recorder wrote, to explain a failure. */
static void first_line(const char *log, char *line, size_t size)
{
    FILE *in = fopen(log, "r");

    line[0] = '\0';
    if (in && fgets(line, (int)size, in))
        line[strcspn(line, "\n")] = '\0';
    if (in)
        fclose(in);
}

/* Returns the exit status of the recorder: that of the program, or ETCH_EXIT_RECORD. -1 with `err` set. */
static int record(const struct bench *b, const char *source, int side, const char *file, char *words, size_t size,
                  struct etch_error *err)
{
    char log[PATH_MAX + 64];
    int status = 0;
    pid_t child;

    snprintf(log, sizeof(log), "%s/log", b->folder);
    unlink(log);
    child = fork();
    if (child == 0)
        exec_record(b, source, b->commands[side], file, log);
    if (child < 0)
        return etch_error_set_errno(err, errno, "cannot start a run");
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return etch_error_set_errno(err, errno, "cannot wait for a run");
    first_line(log, words, size);
    unlink(log);
    return WIFEXITED(status) ? WEXITSTATUS(status) : ETCH_EXIT_RECORD;
}

static int one_run(const struct bench *b, int side, unsigned long number, struct etch_error *err)
{
    char file[PATH_MAX + 64], words[400];
    int status;

    snprintf(file, sizeof(file), "%s/%04lu.etch", b->folders[side], number);
    status = record(b, b->source, side, file, words, sizeof(words), err);
    if (status < 0 || stopped)
        return status < 0 ? -1 : etch_error_set(err, "stopped");
    if (status == 0)
        return 0;
    etch_error_set(err, "run %lu of %s ended with status %d: %s", number, b->commands[side][0], status, words);
    return etch_error_advise(err, "run it by itself; only runs that end with status 0 are compared");
}

/* soft needs the recorder in the programs. */
static int choose_source(struct bench *b, struct etch_error *err)
{
    char file[PATH_MAX + 64], words[400];

    if (b->source)
        return 0;
    b->source = "soft";
    for (int side = 0; side < 2 && strcmp(b->source, "soft") == 0; side++) {
        int status;

        if (!b->commands[side])
            continue;
        snprintf(file, sizeof(file), "%s/first.etch", b->folder);
        status = record(b, "soft", side, file, words, sizeof(words), err);
        unlink(file);
        if (status < 0)
            return -1;
        if (status == ETCH_EXIT_RECORD)
            b->source = "none";
    }
    return 0;
}

/* ---- All runs ---- */

static int make_folders(struct bench *b, struct etch_error *err)
{
    const char *temporary = getenv("TMPDIR");

    if (b->keep) {
        snprintf(b->folder, sizeof(b->folder), "%s", b->keep);
        if (mkdir(b->keep, 0700) < 0) {
            etch_error_set_errno(err, errno, "cannot make %s", b->keep);
            return etch_error_advise(err, "a name that is not there yet, or rm -r %s", b->keep);
        }
    } else {
        snprintf(b->folder, sizeof(b->folder), "%.4000s/etch-bench-XXXXXX", temporary ? temporary : "/tmp");
        if (!mkdtemp(b->folder))
            return etch_error_set_errno(err, errno, "cannot make %s", b->folder);
    }
    for (int side = 0; side < 2; side++) {
        bool alone = !b->commands[0];

        if (!b->commands[side])
            continue;
        snprintf(b->folders[side], sizeof(b->folders[side]), "%s%s", b->folder, alone ? "" : side ? "/B" : "/A");
        if (!alone && mkdir(b->folders[side], 0700) < 0)
            return etch_error_set_errno(err, errno, "cannot make %s", b->folders[side]);
    }
    return 0;
}

/* In turn, and in alternating order, so that a drift of the machine meets both sides alike. */
static int record_all(struct bench *b, struct etch_error *err)
{
    for (unsigned long i = 1; i <= b->runs; i++)
        for (int k = 0; k < 2; k++) {
            int side = (int)((i + (unsigned long)k) % 2);

            if (b->commands[side] && one_run(b, side, i, err) < 0)
                return -1;
        }
    return 0;
}

static void remove_folder(const char *path)
{
    struct etch_run_files files = {0};
    struct etch_error err;

    if (path[0] && etch_run_files_find(&files, path, &err) == 0)
        for (size_t i = 0; i < files.v.n; i++)
            unlink(files.v.v[i]);
    etch_run_files_release(&files);
    rmdir(path);
}

static int print_comparison(struct bench *b, struct etch_error *err)
{
    struct etch_run_files a = {0}, other = {0};
    const char *before = b->against ? b->against : b->folders[0];
    const struct etch_profile_options options = {0};
    struct etch_comparison *c = NULL;
    int status = -1;

    if (etch_run_files_find(&a, before, err) == 0 && etch_run_files_find(&other, b->folders[1], err) == 0)
        c = etch_compare_files(&a, &other, b->against != NULL, &options, err);
    if (c) {
        if (b->json)
            etch_comparison_json(c, stdout);
        else
            etch_comparison_print(c, b->against ? b->against : b->commands[0][0], b->commands[1][0], stdout);
        status = etch_comparison_is_slower(c) ? SLOWER : ETCH_EXIT_DONE;
    }
    etch_comparison_free(c);
    etch_run_files_release(&a);
    etch_run_files_release(&other);
    return status;
}

static int bench(struct bench *b, struct etch_error *err)
{
    int status = make_folders(b, err);

    if (status == 0)
        status = choose_source(b, err);
    if (status == 0)
        status = record_all(b, err);
    if (status == 0 && (b->commands[0] || b->against))
        status = print_comparison(b, err);
    else if (status == 0)
        printf("kept       %lu runs in %s\n", b->runs, etch_shown(b->keep));
    if (!b->keep) {
        for (int side = 0; side < 2; side++)
            if (b->commands[side])
                remove_folder(b->folders[side]);
        rmdir(b->folder);
    }
    return status;
}

/* ---- Options ---- */

enum { SOURCE = 256, SNAPSHOT, KEEP, AGAINST, JSON };

/* A -- B, or one command. argv is changed. */
static int take_commands(const struct etch_command *self, struct bench *b, int n, char **words)
{
    int split = 0;

    while (split < n && strcmp(words[split], "--") != 0)
        split++;
    if (n == 0 || split == 0 || split == n - 1)
        return etch_command_usage(self, "which program?");
    if (n > 60)
        return etch_command_usage(self, "the command lines are too long (try: a script)");
    if (split < n && b->against)
        return etch_command_usage(self, "--against takes one command line");
    if (split == n && !b->against && !b->keep)
        return etch_command_usage(self, "which program to compare with? A -- B, --against FOLDER, or --keep FOLDER");
    words[split] = NULL;
    if (split < n) {
        b->commands[0] = words;
        b->commands[1] = words + split + 1;
    } else
        b->commands[1] = words;
    return 0;
}

static int take_option(const struct etch_command *self, struct bench *b, int c, char **argv)
{
    char *end;

    switch (c) {
    case 'n':
        b->runs = strtoul(optarg, &end, 10);
        if (*end || end == optarg || !b->runs || b->runs > RUNS_MAX)
            return etch_command_usage(self, "'%s' is no number of runs from 1 to %d", optarg, RUNS_MAX);
        return 0;
    case SOURCE:
        b->source = optarg;
        return 0;
    case SNAPSHOT:
        b->snapshot = optarg;
        return 0;
    case KEEP:
        b->keep = optarg;
        return 0;
    case AGAINST:
        b->against = optarg;
        return 0;
    case JSON:
        b->json = true;
        return 0;
    default:
        return etch_command_bad_option(self, c, argv);
    }
}

static int run(const struct etch_command *self, int argc, char **argv)
{
    static const struct option long_options[] = {{"help", no_argument, NULL, 'h'},
                                                 {"source", required_argument, NULL, SOURCE},
                                                 {"snapshot", required_argument, NULL, SNAPSHOT},
                                                 {"keep", required_argument, NULL, KEEP},
                                                 {"against", required_argument, NULL, AGAINST},
                                                 {"json", no_argument, NULL, JSON},
                                                 {0}};
    struct bench b = {.runs = RUNS, .snapshot = "16M"};
    struct sigaction action = {.sa_handler = on_signal};
    struct etch_error err;
    int c, status;

    while ((c = getopt_long(argc, argv, "+:hn:", long_options, NULL)) != -1) {
        if (c == 'h')
            return etch_command_help(self);
        status = take_option(self, &b, c, argv);
        if (status)
            return status;
    }
    status = take_commands(self, &b, argc - optind, argv + optind);
    if (status)
        return status;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    status = bench(&b, &err);
    return status < 0 ? etch_command_failed(self, &err) : etch_command_close_output(self, status);
}

const struct etch_command etch_command_bench = {
    .name = "bench",
    .summary = "what became slower between two builds, from interleaved runs",
    .help =
        "usage: etch bench [-n N] [OPTION...] -- A [ARG...] -- B [ARG...]\n"
        "       etch bench [-n N] --keep FOLDER -- PROG [ARG...]\n"
        "       etch bench [-n N] --against FOLDER -- PROG [ARG...]\n\n"
        "Records A and B in turn, N times each (20), and prints what became slower in B, by how much, with an\n"
        "interval. Functions are compared if both programs were built with etch cc --record, else the CPU time and "
        "the\n"
        "wall time of whole runs. Runs of one side are compared among themselves first. A difference is claimed only "
        "if\n"
        "it is greater than that noise, and if its interval excludes 0. All claims of one comparison together are\n"
        "wrong with a chance of 1 in 1000 at most. The programs' output is dropped.\n\n"
        "The exit status is 3 if something became slower, 0 if nothing did, and 1 if a run failed.\n\n"
        "  -n N              runs of each side\n"
        "  --source S        none, soft or vpt, as in etch record. vpt counts instructions of any program\n"
        "  --snapshot SIZE   with soft: the ring of each thread (16M). If a ring is too small, the functions of its "
        "run\n"
        "                    are not compared\n"
        "  --keep FOLDER     keep the recordings in FOLDER, which is made\n"
        "  --against FOLDER  compare with recordings kept earlier. These were not made in turn with the new ones, so\n"
        "                    differences of time are not claimed where functions are compared: instructions tell\n"
        "  --json            print JSON\n\n"
        "examples:\n"
        "  etch bench -- ./lua-old bench.lua -- ./lua-new bench.lua\n"
        "  etch bench -n 30 --keep last-week -- ./server --selftest\n"
        "  etch bench -n 30 --against last-week -- ./server --selftest\n",
    .run = run,
};
