/* SPDX-License-Identifier: MIT */
/* Intel PT of several processes, or of a control group, that run already and that nobody traces: no launch, no failure
 * seen, only what every CPU executed for them until the recording ends. See pt.h. */
#include "collector/pt.h"

#include "base/array.h"
#include "collector/clock_record.h"
#include "collector/privacy.h"
#include "collector/session/host.h"
#include "collector/session/limit.h"
#include "collector/session/process.h"

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
    struct etch_bundle_writer *bundle;
    struct etch_limit limit;
    struct etch_pt *pt;
    struct etch_error write_error;
    bool broken; /* the bundle cannot be written any more */
    sigset_t before;
    int signals;
    struct rlimit files;
    struct pollfd fds[POLL_MAX];
};

/* ---- Where the findings go ---- */

static void sink_write(void *context, Etch__Record__BodyCase kind, void *message)
{
    struct group *g = context;
    Etch__Record record = ETCH__RECORD__INIT;

    record.body_case = kind;
    record.program = message; /* the members of the union are all pointers to messages */
    if (!g->broken)
        g->broken = etch_bundle_write(g->bundle, &record, &g->write_error) < 0;
}

static void sink_bytes(void *context, uint32_t stream, uint64_t offset, const void *data, size_t size, bool hurry)
{
    struct group *g = context;

    if (etch_limit_reached(&g->limit, g->bundle, g->options->max_size, size, 0))
        return;
    etch_bundle_hurry(g->bundle, hurry);
    if (!g->broken)
        g->broken = etch_bundle_write_flow(g->bundle, stream, offset, data, size, &g->write_error) < 0;
    etch_bundle_hurry(g->bundle, false);
    g->summary->flow_bytes += size;
}

static void sink_lost(void *context, const Etch__Loss *loss)
{
    struct group *g = context;

    if (!g->summary->loss[0])
        snprintf(g->summary->loss, sizeof(g->summary->loss), "%s", loss->detail);
    sink_write(g, ETCH__RECORD__BODY_LOSS, (void *)(uintptr_t)loss);
}

static void sink_note(void *context, const char *text)
{
    struct etch_record_summary *s = ((struct group *)context)->summary;

    if (s->n_notes < sizeof(s->notes) / sizeof(s->notes[0]))
        snprintf(s->notes[s->n_notes++], sizeof(s->notes[0]), "%s", text);
}

static void tell_limit(struct group *g)
{
    Etch__Loss loss = ETCH__LOSS__INIT;
    char detail[120];

    if (etch_limit_loss(&g->limit, g->options->max_size, &loss, detail))
        sink_lost(g, &loss);
}

/* ---- The records at both ends ---- */

static uint64_t unix_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t own_cpu_ns(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

static void write_clock(struct group *g)
{
    struct etch_calibration_options options = {.budget_ns = (uint64_t)(g->options->clock_s * 1e9), .skip_trap = true};
    struct etch_calibration calibration = {0};
    struct etch_error ignored;
    Etch__Clock *clock;

    if (!options.budget_ns || etch_calibrate(&calibration, &options, &ignored) < 0)
        return;
    clock = etch_clock_record(&calibration, ETCH__CLOCK_PHASE__CLOCK_BEFORE);
    if (clock) {
        sink_write(g, ETCH__RECORD__BODY_CLOCK, clock);
        etch__clock__free_unpacked(clock, NULL);
    }
    etch_calibration_free(&calibration);
}

/* The first process stands for the others. */
static void write_program(struct group *g, pid_t pid, uint64_t start_ns)
{
    Etch__Program program = ETCH__PROGRAM__INIT;
    char exe[4096] = "";
    uint8_t id[64];

    if (pid)
        etch_process_exe(pid, exe, sizeof(exe));
    program.etch_version = (char *)(uintptr_t)ETCH_VERSION;
    program.exe = exe;
    program.build_id.data = id;
    program.build_id.len = exe[0] ? etch_process_build_id(pid, exe, id) : 0;
    program.pid = (uint32_t)pid;
    program.start_unix_ns = start_ns;
    program.start_tsc = __rdtsc();
    program.source = ETCH__SOURCE__SOURCE_PT;
    sink_write(g, ETCH__RECORD__BODY_PROGRAM, &program);
}

static void write_outcome(struct group *g, uint64_t start_ns, uint64_t start_cpu_ns)
{
    Etch__Outcome outcome = ETCH__OUTCOME__INIT;

    outcome.end_unix_ns = unix_ns();
    outcome.end_tsc = __rdtsc();
    outcome.recorder_cpu_ns = own_cpu_ns() - start_cpu_ns;
    sink_write(g, ETCH__RECORD__BODY_OUTCOME, &outcome);
    g->summary->duration_ns = outcome.end_unix_ns - start_ns;
    g->summary->recorder_cpu_ns = outcome.recorder_cpu_ns;
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

static int add_cgroup(struct group *g, uint64_t start_ns, struct etch_error *err)
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
        write_program(g, seed_cgroup(g, fd), start_ns);
    }
    close(fd);
    return status;
}

static int add_processes(struct group *g, uint64_t start_ns, struct etch_error *err)
{
    write_program(g, g->options->pids[0], start_ns);
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

static void follow(struct group *g, uint64_t start_ns)
{
    bool ended = false;

    while (!ended) {
        size_t n = 1 + etch_pt_poll(g->pt, g->fds + 1, POLL_MAX - 1);

        g->fds[0] = (struct pollfd){.fd = g->signals, .events = POLLIN};
        poll(g->fds, n, TICK_MS);
        ended = g->fds[0].revents != 0;
        etch_pt_drain(g->pt);
        ended |= g->options->wall_s > 0 && (double)(unix_ns() - start_ns) / 1e9 >= g->options->wall_s;
        ended |= !g->options->cgroup && !etch_pt_alive(g->pt);
    }
    etch_pt_stop(g->pt);
}

static int run(struct group *g, struct etch_error *err)
{
    uint64_t start_ns = unix_ns(), start_cpu_ns = own_cpu_ns();

    if (etch_host_write(g->bundle, err) < 0)
        return -1;
    write_clock(g);
    if ((g->options->cgroup ? add_cgroup(g, start_ns, err) : add_processes(g, start_ns, err)) < 0)
        return -1;
    follow(g, start_ns);
    tell_limit(g);
    write_outcome(g, start_ns, start_cpu_ns);
    if (!g->broken && etch_bundle_finish(g->bundle, &g->write_error) < 0)
        g->broken = true;
    return 0;
}

int etch_pt_record_group(const struct etch_record_options *options, struct etch_record_summary *summary,
                         struct etch_error *err)
{
    struct group *g = calloc(1, sizeof(*g));
    struct etch_flow_sink sink = {g, sink_write, sink_bytes, sink_lost, sink_note, summary};
    int status = -1;

    if (!g)
        return etch_error_no_memory(err);
    g->options = options;
    g->summary = summary;
    g->signals = -1;
    summary->source = etch_flow_pt.name;
    if (options->n_watches || options->plan || options->n_filters) {
        etch_error_set(err, "watches, plans and filters are for one program, not for several or a control group");
        etch_error_advise(err, "--pid of one process");
    } else if (etch_pt_open(&g->pt, options, &sink, err) == 0 &&
               etch_bundle_create(&g->bundle, options->output, err) == 0) {
        etch_privacy_guard(options->privacy, g->bundle);
        if (take_signals(g, err) == 0)
            status = run(g, err);
        give_back_signals(g);
        etch_record_sum_up(summary, g->bundle);
        if (status < 0)
            etch_bundle_discard(g->bundle); /* nothing was recorded */
        else
            etch_bundle_writer_free(g->bundle);
    }
    etch_pt_close(g->pt);
    free(g);
    return status;
}
