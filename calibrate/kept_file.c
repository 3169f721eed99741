/* SPDX-License-Identifier: MIT */
/* The file of a kept measurement, and the machine that it is for; see kept.h. */
#include "calibrate/kept.h"

#include "base/crc32c.h"
#include "base/input.h"
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define NAME "clocks"
#define CPUS_MAX 4096

/* ---- The machine ---- */

static bool read_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "re");
    bool got = file && fgets(line, (int)size, file);

    if (file)
        fclose(file);
    if (got)
        line[strcspn(line, "\n")] = '\0';
    return got && line[0];
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec t = {0};

    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* A kernel that found the TSC wanting takes another source. */
static bool kernel_trusts(const struct etch_clock_health *health)
{
    static const char *const sources[] = {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page"};

    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
        if (strcmp(health->clocksource, sources[i]) == 0)
            return etch_clock_orders(health);
    return false;
}

/* The CPUs of this process, as a number: there may be thousands. */
static uint32_t sum_of_cpus(void)
{
    cpu_set_t *set = CPU_ALLOC(CPUS_MAX);
    size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
    uint32_t sum = 0;

    if (set) {
        CPU_ZERO_S(size, set);
        if (sched_getaffinity(0, size, set) == 0)
            sum = etch_crc32c(0, set, size);
        CPU_FREE(set);
    }
    return sum;
}

bool etch_kept_key_read(struct etch_kept_key *key, const struct etch_clock_health *health)
{
    char boot[64], online[4096];
    struct utsname kernel;
    int n;

    if (!kernel_trusts(health) || uname(&kernel) < 0 ||
        !read_line("/proc/sys/kernel/random/boot_id", boot, sizeof(boot)) ||
        !read_line("/sys/devices/system/cpu/online", online, sizeof(online)))
        return false;
    n = snprintf(key->text, sizeof(key->text),
                 "boot=%s\nkernel=%s %s\ncpu=%s\nsource=%s\nonline=%08x\nallowed=%08x\noffered=%d\n", boot,
                 kernel.release, kernel.version, health->model, health->clocksource,
                 etch_crc32c(0, online, strlen(online)), sum_of_cpus(), health->perf_clock_offered);
    key->suspended_ns = clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC);
    key->raw_ns = (uint64_t)clock_ns(CLOCK_MONOTONIC_RAW);
    return n > 0 && (size_t)n < sizeof(key->text);
}

/* ---- The folder ---- */

/* Can nobody but the caller, and root, change what is in it? */
static bool is_private(const char *path, bool own)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && !(st.st_mode & 022) &&
           (st.st_uid == geteuid() || (!own && st.st_uid == 0));
}

static bool try_folder(char *path, size_t size, const char *parent, const char *below)
{
    char upper[4096];
    int n;

    if (!parent || parent[0] != '/')
        return false;
    n = snprintf(upper, sizeof(upper), "%s%s", parent, below);
    if (n < 0 || (size_t)n >= sizeof(upper))
        return false;
    if (below[0] && is_private(parent, true) && mkdir(upper, 0700) < 0 && errno != EEXIST)
        return false;
    n = snprintf(path, size, "%s/etch", upper);
    if (n < 0 || (size_t)n >= size || !is_private(upper, false))
        return false;
    return (mkdir(path, 0700) == 0 || errno == EEXIST) && is_private(path, true);
}

/* What is of one boot belongs into memory, if this user has a folder there. */
static bool find_folder(char *path, size_t size)
{
    return try_folder(path, size, getenv("XDG_RUNTIME_DIR"), "") ||
           (geteuid() == 0 && try_folder(path, size, "/run", "")) ||
           try_folder(path, size, getenv("XDG_CACHE_HOME"), "") || try_folder(path, size, getenv("HOME"), "/.cache");
}

static bool find_file(char *path, size_t size)
{
    char folder[4096];
    int n;

    if (!find_folder(folder, sizeof(folder)))
        return false;
    n = snprintf(path, size, "%s/" NAME, folder);
    return n > 0 && (size_t)n < size;
}

/* ---- The file ---- */

uint8_t *etch_kept_load(size_t *size)
{
    char folder[4096];
    uint8_t *bytes = NULL;
    struct stat st;
    int at, fd;

    if (!find_folder(folder, sizeof(folder)))
        return NULL;
    at = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    fd = at < 0 ? -1 : etch_input_open_at(at, NAME);
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & 077))
        bytes = (uint8_t *)etch_input_read(fd, ETCH_KEPT_SIZE_MAX, size);
    if (fd >= 0)
        close(fd);
    if (at >= 0)
        close(at);
    return bytes;
}

bool etch_kept_save(const void *bytes, size_t size)
{
    struct etch_error ignored;
    char path[4200];

    return size <= ETCH_KEPT_SIZE_MAX && find_file(path, sizeof(path)) &&
           etch_output_write(path, bytes, size, &ignored) == 0;
}

void etch_kept_remove(void)
{
    char path[4200];

    if (find_file(path, sizeof(path)))
        unlink(path);
}
