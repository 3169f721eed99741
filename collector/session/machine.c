/* SPDX-License-Identifier: MIT */
/* The checks of this machine; see machine.h. */
#include "collector/machine.h"

#include "base/sandbox.h"
#include "calibrate/trap.h"
#include "collector/pt_events.h"
#include "collector/vpt_find.h"
#include "proto/soft_layout.h"

#include <cpuid.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#define MAX_SLOTS 16
#define MIN_RINGS (1u << 20)
#define PARANOID_UNKNOWN 99

struct probe {
    struct etch_machine *m;
    const char *root;
};

static struct etch_check *add(struct etch_machine *m, const char *id, const char *title, enum etch_check_state state)
{
    struct etch_check *check = &m->checks[m->n_checks++];

    *check = (struct etch_check){.id = id, .title = title, .state = state};
    return check;
}

__attribute__((format(printf, 2, 3))) static void found(struct etch_check *check, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(check->found, sizeof(check->found), fmt, args);
    va_end(args);
}

__attribute__((format(printf, 2, 3))) static void advise(struct etch_check *check, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(check->advice, sizeof(check->advice), fmt, args);
    va_end(args);
}

bool etch_machine_read_line(const char *root, const char *name, char *line, size_t size)
{
    char path[4096];
    FILE *file;
    bool got;

    snprintf(path, sizeof(path), "%s%s", root, name);
    file = fopen(path, "re");
    if (!file)
        return false;
    got = fgets(line, (int)size, file) != NULL;
    fclose(file);
    if (got)
        line[strcspn(line, "\n")] = '\0';
    return got;
}

static int read_number(const struct probe *p, const char *name, int otherwise)
{
    char line[64];
    char *end;
    long v;

    if (!etch_machine_read_line(p->root, name, line, sizeof(line)))
        return otherwise;
    v = strtol(line, &end, 10);
    return end == line || v < -1000000 || v > 1000000000 ? otherwise : (int)v;
}

/* Reads the first line that a fixed command prints; false if the command fails or cannot be run. */
static bool ask(const char *command, char *line, size_t size)
{
    FILE *pipe = popen(command, "re");
    bool got;

    if (!pipe)
        return false;
    got = fgets(line, (int)size, pipe) != NULL;
    if (got)
        line[strcspn(line, "\n")] = '\0';
    return pclose(pipe) == 0 && got;
}

static int open_event(struct perf_event_attr *attr, pid_t pid, int cpu)
{
    return (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static bool has_capability(int capability)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};

    if (syscall(SYS_capget, &header, data) < 0)
        return false;
    return data[capability / 32].effective >> (capability % 32) & 1;
}

static void check_kernel(const struct probe *p)
{
    struct utsname name;
    unsigned a, b, c, d;
    struct etch_check *check = add(p->m, "kernel", "kernel", ETCH_CHECK_OK);

    if (uname(&name) == 0)
        snprintf(p->m->kernel, sizeof(p->m->kernel), "%s", name.release);
    if (__get_cpuid(1, &a, &b, &c, &d) && c >> 31) {
        char vendor[13] = "";

        __cpuid(0x40000000, a, b, c, d);
        memcpy(vendor, &b, 4);
        memcpy(vendor + 4, &c, 4);
        memcpy(vendor + 8, &d, 4);
        snprintf(p->m->hypervisor, sizeof(p->m->hypervisor), "%s", vendor[0] ? vendor : "unknown");
    }
    found(check, "Linux %s, %s%s", p->m->kernel, p->m->hypervisor[0] ? "virtualised under " : "bare metal",
          p->m->hypervisor);
}

/* Explains why the machine has no intel_pt device, and gives advice. */
static void explain_no_pt(const struct probe *p, struct etch_check *check)
{
    unsigned a, b, c, d;
    bool intel = false;

    if (__get_cpuid(0, &a, &b, &c, &d))
        intel = b == 0x756e6547; /* "Genu" */
    if (!intel) {
        found(check, "no: this CPU is not Intel's");
        advise(check, "nothing here; etch records with its software recorder or with vpt instead");
        return;
    }
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) && b >> 25 & 1) {
        found(check, "no: the CPU has it, the kernel offers no device");
        advise(check, "use a kernel with CONFIG_PERF_EVENTS_INTEL_UNCORE and Intel PT support, and no intel_pt=off");
    } else if (p->m->hypervisor[0]) {
        found(check, "no: the hypervisor does not pass it on");
        advise(check, "run on bare metal, or on a host with kvm_intel.pt_mode=1");
    } else {
        found(check, "no: this CPU lacks it");
        advise(check, "use a CPU from Broadwell on; or the software recorder, or vpt");
    }
}

static void check_pt(const struct probe *p)
{
    struct etch_check *check = add(p->m, "intel_pt", "Intel PT", ETCH_CHECK_MISSING);
    struct etch_pt_caps caps;
    struct etch_error err;
    size_t ring = 0;

    etch_pt_caps_read(&caps, p->root);
    p->m->pt_present = caps.present;
    p->m->pt_filters = (int)caps.filters;
    if (!caps.present) {
        explain_no_pt(p, check);
        return;
    }
    if (etch_pt_events_try(&caps, &ring, &err) < 0) {
        found(check, "present, %u address filters, but not usable: %.120s", caps.filters, err.what);
        advise(check, "%.290s", err.advice[0] ? err.advice : "see the kernel log (dmesg | grep -i 'intel_pt')");
        return;
    }
    p->m->pt_usable = true;
    check->state = ring < ETCH_PT_RING || !caps.mtc.mask ? ETCH_CHECK_LIMITED : ETCH_CHECK_OK;
    found(check, "usable, %u address filters, %s, rings of %zu KiB on each CPU", caps.filters,
          caps.mtc.mask ? "MTC" : "no MTC", ring >> 10);
    if (ring < ETCH_PT_RING)
        advise(check,
               "sysctl kernel.perf_event_mlock_kb=%u, or ulimit -l unlimited, or CAP_IPC_LOCK, for a longer memory",
               (ETCH_PT_RING >> 10) + 516);
    else if (!caps.mtc.mask)
        advise(check, "a CPU from Skylake on: without MTC events of different CPUs are ordered only coarsely");
}

/* The watched words. They have cache lines of their own, because no other variable may share them. */
static _Alignas(64) volatile uint64_t watched[MAX_SLOTS];

static int open_watchpoint(int slot)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_BREAKPOINT,
        .size = sizeof(attr),
        .bp_type = HW_BREAKPOINT_W,
        .bp_addr = (uintptr_t)&watched[slot],
        .bp_len = HW_BREAKPOINT_LEN_8,
        .sample_period = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };

    return open_event(&attr, 0, -1);
}

/* Takes all debug registers, then writes to the first watched word and tests if the count moves. */
static void check_watchpoints(const struct probe *p)
{
    struct etch_check *check = add(p->m, "watchpoints", "hardware watchpoints", ETCH_CHECK_MISSING);
    int fds[MAX_SLOTS];
    int n = 0, cause = 0;
    uint64_t hits = 0;

    while (n < MAX_SLOTS) {
        fds[n] = open_watchpoint(n);
        if (fds[n] < 0) {
            cause = errno;
            break;
        }
        n++;
    }
    p->m->watch_slots = n;
    if (n) {
        struct etch_trap_guard guard;

        etch_trap_guard_begin(&guard);
        watched[0] = 1;
        watched[0] = 2;
        etch_trap_guard_end(&guard);
        p->m->watch_delivered = read(fds[0], &hits, sizeof(hits)) == sizeof(hits) && hits == 2;
    }
    while (n)
        close(fds[--n]);
    if (p->m->watch_delivered) {
        check->state = ETCH_CHECK_OK;
        found(check, "%d slots, hits are delivered", p->m->watch_slots);
    } else if (p->m->watch_slots) {
        found(check, "%d slots, but a hit was not delivered", p->m->watch_slots);
        advise(check,
               "the hypervisor swallows debug registers; use another one, or --source vpt with emulated watches");
    } else if (cause == ENOSPC) {
        found(check, "none free");
        advise(check, "end the debugger or perf session that holds them");
    } else {
        found(check, "none: %s", strerror(cause));
        advise(check, cause == EACCES || cause == EPERM
                          ? "sysctl kernel.perf_event_paranoid=2 or lower, or give etch CAP_PERFMON, or run as root"
                          : "use a kernel with hardware breakpoints (CONFIG_HAVE_HW_BREAKPOINT)");
    }
}

static void check_permissions(const struct probe *p)
{
    struct etch_check *check = add(p->m, "permissions", "perf permissions", ETCH_CHECK_OK);
    bool may_perf = has_capability(CAP_SYS_ADMIN) || has_capability(CAP_PERFMON);
    int ptrace_scope = read_number(p, "/proc/sys/kernel/yama/ptrace_scope", 0);

    p->m->paranoid = read_number(p, "/proc/sys/kernel/perf_event_paranoid", PARANOID_UNKNOWN);
    if (p->m->paranoid == PARANOID_UNKNOWN) {
        check->state = ETCH_CHECK_MISSING;
        found(check, "this kernel has no perf events");
        advise(check, "use a kernel with CONFIG_PERF_EVENTS");
        return;
    }
    found(check, "perf_event_paranoid %d, %s, ptrace_scope %d", p->m->paranoid,
          may_perf ? "CAP_PERFMON held" : "no CAP_PERFMON", ptrace_scope);
    if (!may_perf && p->m->paranoid > 2) {
        check->state = ETCH_CHECK_MISSING;
        advise(check, "sysctl kernel.perf_event_paranoid=1, or give etch CAP_PERFMON, or run as root");
    } else if (!may_perf && p->m->paranoid > 1) {
        check->state = ETCH_CHECK_LIMITED;
        advise(check, "own programs only, no context switches; sysctl kernel.perf_event_paranoid=1 lifts that");
    } else if (ptrace_scope > 1 && !has_capability(CAP_SYS_PTRACE)) {
        check->state = ETCH_CHECK_LIMITED;
        advise(check, "sysctl kernel.yama.ptrace_scope=1 lets etch see failures");
    }
}

static void check_locked_memory(const struct probe *p)
{
    struct etch_check *check = add(p->m, "locked_memory", "memory for rings", ETCH_CHECK_OK);
    int perf_kb = read_number(p, "/proc/sys/kernel/perf_event_mlock_kb", 0);
    bool unlimited = has_capability(CAP_IPC_LOCK) || p->m->paranoid < 0;
    struct rlimit limit = {0, 0};

    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (unlimited) {
        found(check, "no limit (CAP_IPC_LOCK)");
        return;
    }
    found(check, "%d KiB per user for perf, %llu KiB per process", perf_kb,
          limit.rlim_cur == RLIM_INFINITY ? ~0ull >> 10 : (unsigned long long)limit.rlim_cur >> 10);
    if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < (rlim_t)(64u << 20)) {
        check->state = ETCH_CHECK_LIMITED;
        advise(check, "ulimit -l unlimited, or sysctl kernel.perf_event_mlock_kb=65536, for Intel PT rings");
    }
}

static void check_tsc(const struct probe *p)
{
    struct etch_check *check = add(p->m, "tsc", "time stamp counter", ETCH_CHECK_OK);
    const struct etch_clock_health *h = &p->m->clock;

    found(check, "%s, %s, clock source %s", h->constant ? "constant" : "not constant",
          h->nonstop ? "nonstop" : "stops in sleep", h->clocksource[0] ? h->clocksource : "unknown");
    if (!etch_clock_orders(h)) {
        check->state = ETCH_CHECK_MISSING;
        advise(check,
               "events of different CPUs cannot be ordered by time here; synchronisation and values still order them");
    } else if (strcmp(h->clocksource, "tsc") != 0 && strncmp(h->clocksource, "kvm", 3) != 0 &&
               strncmp(h->clocksource, "hyperv", 6) != 0) {
        check->state = ETCH_CHECK_LIMITED;
        advise(check, "the kernel does not trust the TSC itself; see dmesg | grep -i tsc");
    }
}

static void check_perf_clock(const struct probe *p)
{
    struct etch_check *check = add(p->m, "perf_clock", "perf clock to TSC", ETCH_CHECK_OK);
    const struct etch_clock_health *h = &p->m->clock;

    if (!h->perf_clock_known) {
        check->state = ETCH_CHECK_MISSING;
        found(check, "unknown: no perf event could be opened");
        advise(check, "sysctl kernel.perf_event_paranoid=2 or lower");
    } else if (h->perf_clock_offered) {
        found(check, "offered by the kernel");
    } else {
        check->state = ETCH_CHECK_LIMITED;
        found(check, "not offered, to be measured");
    }
}

static void check_qemu(const struct probe *p)
{
    struct etch_check *check = add(p->m, "qemu", "QEMU user mode", ETCH_CHECK_MISSING);
    char qemu[4096], version[128], *distribution;

    if (!etch_vpt_find_qemu(qemu, sizeof(qemu)) || !etch_vpt_qemu_version(qemu, version, sizeof(version))) {
        found(check, "not found");
        advise(check, "apt-get install qemu-user, for vpt; or etch cc --record, which needs no QEMU");
        return;
    }
    p->m->qemu_plugins = etch_vpt_takes_plugins(qemu);
    if ((distribution = strstr(version, " (")))
        *distribution = '\0';
    found(check, "%s, %s plugins", version, p->m->qemu_plugins ? "with" : "without");
    if (p->m->qemu_plugins)
        check->state = ETCH_CHECK_OK;
    else
        advise(check,
               "etch cc --record, which needs no QEMU; or ./run qemu in etch's source, which builds one for vpt");
}

static void check_plugin(const struct probe *p)
{
    struct etch_check *check = add(p->m, "vpt_plugin", "vpt's QEMU plugin", ETCH_CHECK_MISSING);
    char path[4096] = "", qemu[4096];

    if (!etch_vpt_find_plugin(path, sizeof(path))) {
        found(check, "not found");
        advise(check, "install etch whole: etch-vpt.so belongs beside etch or in ../lib/etch; or set ETCH_VPT_PLUGIN");
        return;
    }
    p->m->vpt_plugin = true;
    found(check, "%.190s", path);
    if (p->m->qemu_plugins && etch_vpt_find_qemu(qemu, sizeof(qemu)) && !etch_vpt_takes_plugin(qemu, path)) {
        p->m->vpt_plugin = false;
        found(check, "this QEMU does not take it: %.150s", path);
        advise(check, "%.100s -plugin %.150s /bin/true, to see why", qemu, path);
        return;
    }
    check->state = ETCH_CHECK_OK;
}

static void check_clang(const struct probe *p)
{
    struct etch_check *check = add(p->m, "clang", "clang and LLVM", ETCH_CHECK_MISSING);
    char line[160];

    if (ask("clang-19 --version 2>/dev/null", line, sizeof(line))) {
        check->state = ETCH_CHECK_OK;
        found(check, "%s", line);
        return;
    }
    if (ask("clang --version 2>/dev/null", line, sizeof(line)))
        found(check, "not version 19: %s", line);
    else
        found(check, "not found");
    advise(check, "apt-get install clang-19");
}

/* For the commands that read files: they go on without. */
static void check_sandbox(const struct probe *p)
{
    struct etch_check *check = add(p->m, "sandbox", "sandbox for reading", ETCH_CHECK_OK);
    struct etch_sandbox sandbox;

    etch_sandbox_probe(&sandbox);
    if (sandbox.landlock && sandbox.seccomp) {
        found(check, "Landlock (version %d) and seccomp", sandbox.landlock);
        return;
    }
    check->state = sandbox.landlock || sandbox.seccomp ? ETCH_CHECK_LIMITED : ETCH_CHECK_MISSING;
    found(check, "%s", sandbox.landlock ? "Landlock, no seccomp" : sandbox.seccomp ? "seccomp, no Landlock" : "none");
    advise(check, "Linux 5.13 or later with lsm=landlock; until then read files of others as a user without rights");
}

/* A program that was built with etch cc --record does not report an unusable folder, because standard error belongs to
 * the program. */
static void check_rings(const struct probe *p)
{
    const char *folder = getenv(ETCH_SOFT_VARIABLE);
    struct etch_check *check;
    struct stat st;
    struct statvfs fs;

    if (!folder || !*folder)
        return;
    check = add(p->m, "rings", ETCH_SOFT_VARIABLE, ETCH_CHECK_MISSING);
    advise(check, "mkdir -m 700 %.150s, or name another folder; " ETCH_SOFT_LOG_VARIABLE "=1 lets programs say why",
           folder);
    if (stat(folder, &st) != 0) {
        found(check, "%.120s: %s", folder, strerror(errno));
    } else if (!S_ISDIR(st.st_mode)) {
        found(check, "%.150s is not a folder", folder);
    } else if (access(folder, R_OK | W_OK | X_OK) != 0) {
        found(check, "%.120s cannot be written to: %s", folder, strerror(errno));
    } else if (statvfs(folder, &fs) == 0 && fs.f_blocks && (fs.f_bavail >> 1) * fs.f_frsize < MIN_RINGS) {
        found(check, "%.150s has no room", folder);
    } else {
        check->state = ETCH_CHECK_OK;
        check->advice[0] = '\0';
        found(check, "%.190s", folder);
    }
}

static void choose_source(struct etch_machine *m)
{
    if (m->pt_usable) {
        m->source = "pt";
        snprintf(m->source_reason, sizeof(m->source_reason), "Intel PT is present and may be used");
    } else if (m->qemu_plugins && m->vpt_plugin) {
        m->source = "vpt";
        snprintf(m->source_reason, sizeof(m->source_reason), "%s; QEMU user mode with plugins is here",
                 m->pt_present ? "Intel PT is present but cannot be used" : "no Intel PT");
    } else {
        m->source = "none";
        snprintf(m->source_reason, sizeof(m->source_reason), "no Intel PT, and %s",
                 m->qemu_plugins ? "vpt's plugin for QEMU is not found, or not taken"
                                 : "no QEMU user mode with plugins");
    }
}

void etch_machine_probe(struct etch_machine *machine, const char *root)
{
    struct probe p = {machine, root};

    memset(machine, 0, sizeof(*machine));
    etch_clock_health_read(&machine->clock, root);
    check_kernel(&p);
    check_pt(&p);
    check_watchpoints(&p);
    check_permissions(&p);
    check_locked_memory(&p);
    check_tsc(&p);
    check_perf_clock(&p);
    check_qemu(&p);
    check_plugin(&p);
    check_clang(&p);
    check_sandbox(&p);
    check_rings(&p);
    choose_source(machine);
}

const struct etch_check *etch_machine_check(const struct etch_machine *machine, const char *id)
{
    for (size_t i = 0; i < machine->n_checks; i++)
        if (strcmp(machine->checks[i].id, id) == 0)
            return &machine->checks[i];
    return NULL;
}
