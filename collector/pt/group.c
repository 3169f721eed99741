/* SPDX-License-Identifier: MIT */
/* Intel PT of several processes, or of a control group, that run already and that nobody traces: no launch, no failure
 * seen, only what every CPU executed for them until the recording ends. See pt.h. */
#include "collector/pt.h"

#include "base/array.h"
#include "collector/clock_record.h"
#include "collector/pt/for_cores.h"
#include "collector/session/host.h"
#include "collector/session/process.h"
#include "collector/session/records.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#define TICK_MS 100
#define POLL_MAX 4096

struct group {
    const struct etch_record_options *options;
    struct etch_record_summary *summary;
    struct etch_recorder recorder;
    struct etch_pt *pt;
    struct etch_pt_for_cores *cores; /* NULL: the recording is a bundle */
    sigset_t before;
    int signals;
    struct rlimit files;
    struct pollfd fds[POLL_MAX];
};

/* ---- The records at both ends ---- */

static Etch__Clock *measure_clock(struct group *g)
{
    uint64_t budget_ns = (uint64_t)(g->options->clock_s * 1e9);
    struct etch_calibration calibration = {0};
    Etch__Clock *clock =
        budget_ns ? etch_clock_measure(&calibration, NULL, budget_ns, true, g->options->clock_fresh) : NULL;

    etch_calibration_free(&calibration);
    return clock;
}

static void write_clock(struct group *g)
{
    Etch__Clock *clock = measure_clock(g);

    if (!clock)
        return;
    etch_recorder_write(&g->recorder, ETCH__RECORD__BODY_CLOCK, clock);
    etch__clock__free_unpacked(clock, NULL);
}

/* The first process stands for the others. */
static void write_program(struct group *g, pid_t pid)
{
    Etch__Program program = ETCH__PROGRAM__INIT;
    struct etch_program_file file;

    if (g->cores)
        return;
    if (pid)
        etch_program_set_file(&program, pid, &file);
    program.pid = (uint32_t)pid;
    program.source = ETCH__SOURCE__SOURCE_PT;
    etch_recorder_write_program(&g->recorder, &program);
}

static void write_outcome(struct group *g)
{
    const struct etch_ending ending = {.unix_ns = etch_unix_ns(), .tsc = __rdtsc()};

    etch_recorder_write_outcome(&g->recorder, &ending);
    g->summary->left_running = etch_pt_alive(g->pt);
}

/* ---- Whom to record ---- */

/* The processes of a control group now. The side-band reports processes that join the group later. Returns the first,
 * 0: none. */
static pid_t seed_cgroup(struct group *g, int cgroup)
{
    int fd = openat(cgroup, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    pid_t first = 0;
    int pid;

    while (file && fscanf(file, "%d", &pid) == 1) {
        etch_pt_seed(g->pt, pid);
        first = first ? first : pid;
    }
    if (file)
        fclose(file);
    else if (fd >= 0)
        close(fd);
    return first;
}

static int add_cgroup(struct group *g, struct etch_error *err)
{
    const char *name = g->options->cgroup;
    char path[4096];
    int fd, status;

    snprintf(path, sizeof(path), "%s%s", name[0] == '/' ? "" : "/sys/fs/cgroup/", name);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || faccessat(fd, "cgroup.procs", R_OK, 0) < 0) {
        etch_error_set_errno(err, errno, "cannot record the control group %s", path);
        if (fd >= 0)
            close(fd);
        return etch_error_advise(err, "a folder below /sys/fs/cgroup, such as system.slice/nginx.service");
    }
    status = etch_pt_add_cgroup(g->pt, fd, err);
    if (status == 0) {
        etch_pt_begin(g->pt);
        write_program(g, seed_cgroup(g, fd));
    }
    close(fd);
    return status;
}

static int add_processes(struct group *g, struct etch_error *err)
{
    write_program(g, g->options->pids[0]);
    for (size_t i = 0; i < g->options->n_pids; i++)
        if (etch_pt_add_process(g->pt, g->options->pids[i], err) < 0)
            return etch_error_prefix(err, "process %d", g->options->pids[i]);
    etch_pt_begin(g->pt);
    return 0;
}

/* ---- Until the end ---- */

static int take_signals(struct group *g, struct etch_error *err)
{
    struct rlimit files;
    sigset_t mask;

    sigemptyset(&mask);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGHUP);
    sigaddset(&mask, SIGQUIT);
    sigprocmask(SIG_BLOCK, &mask, &g->before);
    getrlimit(RLIMIT_NOFILE, &g->files);
    files = g->files;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    g->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    return g->signals < 0 ? etch_error_set_errno(err, errno, "cannot watch for signals") : 0;
}

static void give_back_signals(struct group *g)
{
    struct signalfd_siginfo info;

    while (g->signals >= 0 && read(g->signals, &info, sizeof(info)) == sizeof(info))
        ; /* they ended the recording; they shall not end etch before it says so */
    if (g->signals >= 0)
        close(g->signals);
    setrlimit(RLIMIT_NOFILE, &g->files);
    sigprocmask(SIG_SETMASK, &g->before, NULL);
}

static void follow(struct group *g)
{
    bool ended = false;

    while (!ended) {
        size_t n = 2 + etch_pt_poll(g->pt, g->fds + 2, POLL_MAX - 2);

        g->fds[0] = (struct pollfd){.fd = g->signals, .events = POLLIN};
        g->fds[1] = (struct pollfd){.fd = g->cores ? g->cores->standby.listener : -1, .events = POLLIN};
        poll(g->fds, n, TICK_MS);
        ended = g->fds[0].revents != 0;
        if (g->cores)
            etch_pt_for_cores_serve(g->cores, g->pt);
        etch_pt_drain(g->pt);
        ended |=
            g->options->wall_s > 0 && (double)(etch_unix_ns() - g->recorder.start_unix_ns) / 1e9 >= g->options->wall_s;
        ended |= !g->options->cgroup && !etch_pt_alive(g->pt);
    }
    etch_pt_stop(g->pt);
}

static int run(struct group *g, struct etch_error *err)
{
    etch_recorder_begin(&g->recorder);
    if (etch_host_write(&g->recorder, err) < 0)
        return -1;
    write_clock(g);
    if ((g->options->cgroup ? add_cgroup(g, err) : add_processes(g, err)) < 0)
        return -1;
    follow(g);
    etch_recorder_write_beyond(&g->recorder);
    write_outcome(g);
    etch_recorder_finish(&g->recorder);
    return 0;
}

/* Nothing is written until a process crashes. */
static int stand_by(struct group *g, struct etch_error *err)
{
    struct etch_pt_for_cores cores;
    int status = -1;

    g->cores = &cores;
    if (etch_pt_for_cores_open(&cores, g->options, g->summary, err) == 0 &&
        etch_pt_open(&g->pt, g->options, &cores.sink, err) == 0) {
        etch_recorder_begin(&g->recorder);
        cores.clock = measure_clock(g);
        if (take_signals(g, err) == 0)
            status = g->options->cgroup ? add_cgroup(g, err) : add_processes(g, err);
        if (status == 0)
            status = etch_pt_for_cores_listen(&cores, err);
        if (status == 0)
            follow(g);
        give_back_signals(g);
    }
    etch_pt_for_cores_close(&cores);
    return status;
}

static int record(struct group *g, struct etch_error *err)
{
    int status = -1;

    if (etch_pt_open(&g->pt, g->options, &g->recorder.sink, err) == 0 &&
        etch_recorder_create(&g->recorder, g->options->output, g->options->privacy, err) == 0) {
        if (take_signals(g, err) == 0)
            status = run(g, err);
        give_back_signals(g);
        etch_recorder_close(&g->recorder, status == 0);
    }
    return status;
}

static int refuse(const struct etch_record_options *o, struct etch_error *err)
{
    if (o->n_watches || o->plan || o->n_filters) {
        etch_error_set(err, "watches, plans and filters are for one program, not for several or a control group");
        return etch_error_advise(err, "--pid of one process, without --for-cores");
    }
    if (o->for_cores && o->full) {
        etch_error_set(err, "--for-cores keeps the newest bytes, and --full keeps all");
        return etch_error_advise(err, "--snapshot SIZE, which sets the size of the rings");
    }
    return 0;
}

int etch_pt_record_group(const struct etch_record_options *options, struct etch_record_summary *summary,
                         struct etch_error *err)
{
    struct group *g = calloc(1, sizeof(*g));
    int status = -1;

    if (!g)
        return etch_error_no_memory(err);
    g->options = options;
    g->summary = summary;
    g->signals = -1;
    etch_recorder_init(&g->recorder, options->max_size, summary);
    summary->source = etch_source_pt.name;
    if (refuse(options, err) == 0)
        status = options->for_cores ? stand_by(g, err) : record(g, err);
    etch_pt_close(g->pt);
    free(g);
    return status;
}
