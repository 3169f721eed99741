/* SPDX-License-Identifier: MIT */
/* The perf ABI by hand, where a tool would be in the way:
 *   collect cycles N    starts and stops an Intel PT event on each CPU for a child that ends, N times
 *   collect crashes N   the same with a child that crashes
 *   collect refusals F  every way to be refused, and the errno of each; F is a file with code
 * Prints what went wrong; exit status 1 then. */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, DATA_PAGES = 2, AUX_PAGES = 8, CPUS_MAX = 64 };
enum {
    CONFIG_PT = 1 << 0,
    CONFIG_TSC = 1 << 10,
    CONFIG_BRANCH = 1 << 13,
    CONFIG_GOOD = CONFIG_PT | CONFIG_TSC | CONFIG_BRANCH
};

static uint32_t pmu_type;
static unsigned wrong;

static uint32_t read_type(void)
{
    FILE *f = fopen("/sys/bus/event_source/devices/intel_pt/type", "re");
    unsigned type = 0;

    if (!f || fscanf(f, "%u", &type) != 1)
        exit(2);
    fclose(f);
    return type;
}

static struct perf_event_attr good_attr(void)
{
    struct perf_event_attr attr = {
        .type = pmu_type,
        .size = sizeof(attr),
        .config = CONFIG_GOOD,
        .disabled = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .inherit = 1,
    };

    return attr;
}

static int open_event(struct perf_event_attr *attr, pid_t pid, int cpu)
{
    return (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static void complain(const char *what, const char *why)
{
    printf("%s: %s\n", what, why);
    wrong++;
}

/* ---- Cycles ---- */

struct ring {
    int fd;
    struct perf_event_mmap_page *page;
    uint8_t *aux;
};

static bool open_ring(struct ring *ring, pid_t pid, int cpu)
{
    struct perf_event_attr attr = good_attr();

    *ring = (struct ring){.fd = open_event(&attr, pid, cpu), .page = MAP_FAILED, .aux = MAP_FAILED};
    if (ring->fd < 0)
        return false;
    ring->page = mmap(NULL, (1 + DATA_PAGES) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
    if (ring->page == MAP_FAILED)
        return false;
    ring->page->aux_offset = (1 + DATA_PAGES) * PAGE;
    ring->page->aux_size = AUX_PAGES * PAGE;
    ring->aux = mmap(NULL, AUX_PAGES * PAGE, PROT_READ, MAP_SHARED, ring->fd, (off_t)ring->page->aux_offset);
    return ring->aux != MAP_FAILED && ioctl(ring->fd, PERF_EVENT_IOC_ENABLE, 0) == 0;
}

static void close_ring(struct ring *ring)
{
    if (ring->aux != MAP_FAILED)
        munmap(ring->aux, AUX_PAGES * PAGE);
    if (ring->page != MAP_FAILED)
        munmap(ring->page, (1 + DATA_PAGES) * PAGE);
    if (ring->fd >= 0)
        close(ring->fd);
}

static void child(int go, bool crash)
{
    volatile long x = 1;
    char byte;

    if (read(go, &byte, 1) != 1)
        _exit(1);
    for (int i = 0; i < 300; i++)
        x = x & 1 ? 3 * x + 1 : x / 2;
    if (crash)
        *(volatile int *)8 = 1;
    _exit(0);
}

static void cycle(bool crash)
{
    struct ring rings[CPUS_MAX];
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t bytes = 0;
    int go[2], status = 0;
    pid_t pid;

    if (pipe(go) < 0 || (pid = fork()) < 0)
        exit(2);
    if (pid == 0) {
        close(go[1]);
        child(go[0], crash);
    }
    close(go[0]);
    for (long i = 0; i < cpus; i++)
        if (!open_ring(&rings[i], pid, (int)i))
            complain("start", strerror(errno));
    if (write(go[1], "x", 1) != 1 || waitpid(pid, &status, 0) < 0)
        complain("child", strerror(errno));
    close(go[1]);
    if (crash != (WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV))
        complain("child", "did not end as it should");
    for (long i = 0; i < cpus; i++) {
        if (rings[i].page != MAP_FAILED)
            bytes += __atomic_load_n(&rings[i].page->aux_head, __ATOMIC_ACQUIRE);
        close_ring(&rings[i]);
    }
    if (bytes < 50)
        complain("trace", "too few bytes");
}

/* As a user who may lock little: what one cycle would leave behind, the next would miss. */
static void become_nobody(void)
{
    struct rlimit none = {0, 0};

    if (setrlimit(RLIMIT_MEMLOCK, &none) < 0 || setrlimit(RLIMIT_CORE, &none) < 0 || setgid(65534) < 0 ||
        setuid(65534) < 0)
        exit(2);
    prctl(PR_SET_DUMPABLE, 1); /* so that the children may be traced */
}

/* ---- Refusals ---- */

static void expect_open(const char *what, struct perf_event_attr attr, pid_t pid, int cpu, int expected)
{
    int fd = open_event(&attr, pid, cpu), error = fd < 0 ? errno : 0;

    printf("%s: %s\n", what, error ? strerror(error) : "accepted");
    if (error != expected)
        complain(what, "expected otherwise");
    if (fd >= 0)
        close(fd);
}

static void expect_filter(const char *what, const char *filter, int expected)
{
    struct perf_event_attr attr = good_attr();
    int fd = open_event(&attr, 0, -1), error;

    error = fd >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter) < 0 ? errno : 0;
    printf("%s: %s\n", what, error ? strerror(error) : "accepted");
    if (fd < 0 || error != expected)
        complain(what, "expected otherwise");
    if (fd >= 0)
        close(fd);
}

static void filters(const char *file)
{
    char text[3][4096];

    snprintf(text[0], sizeof(text[0]), "filter 0x1000/0x100@%s", file);
    expect_filter("a range", text[0], 0);
    snprintf(text[0], sizeof(text[0]), "filter 0x1000/0x100@%s, filter 0x2000/0x100@%s", file, file);
    expect_filter("as many ranges as the CPU has", text[0], 0);
    snprintf(text[1], sizeof(text[1]), "%.2000s, filter 0x3000/0x100@%s", text[0], file);
    expect_filter("more ranges than the CPU has", text[1], EOPNOTSUPP);
    snprintf(text[0], sizeof(text[0]), "stop 0x1000/0x100@%s", file);
    expect_filter("a range that stops", text[0], 0);
    snprintf(text[0], sizeof(text[0]), "start 0x1000/0x100@%s", file);
    expect_filter("a range that starts", text[0], EOPNOTSUPP);
    snprintf(text[0], sizeof(text[0]), "start 0x1000@%s", file);
    expect_filter("a single address", text[0], EOPNOTSUPP);
    snprintf(text[0], sizeof(text[0]), "filter 0x1000/0@%s", file);
    expect_filter("an empty range", text[0], EINVAL);
    expect_filter("a kernel range of a user event", "filter 0xffffffff81000000/0x100", EINVAL);
    expect_filter("no such file", "filter 0x1000/0x100@/no/such/file", ENOENT);
    expect_filter("a folder", "filter 0x1000/0x100@/proc", EINVAL);
    expect_filter("no words of its language", "trace everything", EINVAL);
    expect_filter("a half", "filter 0x1000/", EINVAL);
}

static void refusals(const char *file)
{
    struct perf_event_attr attr = good_attr();
    int first;

    attr.config |= 1ull << 60;
    expect_open("an unknown bit", attr, 0, -1, EINVAL);
    attr = good_attr();
    attr.config |= 15ull << 24;
    expect_open("a PSB period that is not offered", attr, 0, -1, EINVAL);
    attr = good_attr();
    attr.config |= 1 << 9;
    expect_open("MTC where it is not offered", attr, 0, -1, EINVAL);
    attr = good_attr();
    attr.config &= ~(uint64_t)CONFIG_BRANCH;
    expect_open("no branches", attr, 0, -1, EINVAL);
    attr = good_attr();
    attr.exclude_kernel = 0;
    expect_open("kernel code, which the rig cannot trace", attr, 0, -1, EOPNOTSUPP);
    attr = good_attr();
    expect_open("a good one", attr, 0, -1, 0);
    first = open_event(&attr, 0, -1);
    expect_open("a second event of one task", attr, 0, -1, EBUSY);
    expect_open("a CPU's event beside a task's", attr, -1, 0, EBUSY);
    close(first);
    expect_open("a good one again", attr, 0, -1, 0);
    first = open_event(&attr, -1, 0);
    expect_open("a task's event beside a CPU's", attr, 0, -1, EBUSY);
    close(first);
    filters(file);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: collect cycles N | crashes N | refusals FILE\n");
        return 2;
    }
    pmu_type = read_type();
    if (!strcmp(argv[1], "refusals")) {
        refusals(argv[2]);
        return wrong != 0;
    }
    become_nobody();
    for (int i = atoi(argv[2]); i > 0 && !wrong; i--)
        cycle(!strcmp(argv[1], "crashes"));
    return wrong != 0;
}
