/* SPDX-License-Identifier: MIT */
/* This machine; see host.h. */
#include "collector/session/host.h"

#include "calibrate/clock.h"

#include <cpuid.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

static void read_brand(char brand[49])
{
    unsigned r[12] = {0};

    for (size_t i = 0; i < 3; i++)
        if (!__get_cpuid(0x80000002u + (unsigned)i, &r[4 * i], &r[4 * i + 1], &r[4 * i + 2], &r[4 * i + 3]))
            return;
    memcpy(brand, r, 48);
}

void etch_host_cpu(char vendor[13], uint32_t *family, uint32_t *model, uint32_t *stepping)
{
    unsigned a, b, c, d;

    memset(vendor, 0, 13);
    if (__get_cpuid(0, &a, &b, &c, &d)) {
        memcpy(vendor, &b, 4);
        memcpy(vendor + 4, &d, 4);
        memcpy(vendor + 8, &c, 4);
    }
    if (!__get_cpuid(1, &a, &b, &c, &d))
        return;
    *family = (a >> 8 & 15) + ((a >> 8 & 15) == 15 ? a >> 20 & 255 : 0);
    *model = (a >> 4 & 15) | (a >> 12 & 0xf0);
    *stepping = a & 15;
}

static void read_hypervisor(char name[13])
{
    unsigned a, b, c, d;

    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 31))
        return;
    __cpuid(0x40000000, a, b, c, d);
    memcpy(name, &b, 4);
    memcpy(name + 4, &c, 4);
    memcpy(name + 8, &d, 4);
}

static void read_boot_id(char *id, size_t size)
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

    if (!file)
        return;
    if (fgets(id, (int)size, file))
        id[strcspn(id, "\n")] = '\0';
    fclose(file);
}

/* Ticks against the kernel's raw clock over a few milliseconds: right to some hundred millionths, for people's eyes. */
static uint64_t measure_tsc_hz(void)
{
    struct timespec from, to, pause = {.tv_nsec = 3000000};
    uint64_t first, last;
    double ns;

    clock_gettime(CLOCK_MONOTONIC_RAW, &from);
    first = __rdtsc();
    nanosleep(&pause, NULL);
    clock_gettime(CLOCK_MONOTONIC_RAW, &to);
    last = __rdtsc();
    ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
    return ns > 0 ? (uint64_t)((double)(last - first) / ns * 1e9) : 0;
}

int etch_host_write(struct etch_recorder *recorder, struct etch_error *err)
{
    Etch__Host host = ETCH__HOST__INIT;
    char vendor[13] = "", brand[49] = "", hypervisor[13] = "", boot_id[64] = "";
    struct etch_clock_health clock;
    struct utsname name;

    memset(&name, 0, sizeof(name));
    uname(&name);
    etch_host_cpu(vendor, &host.cpu_family, &host.cpu_model_number, &host.cpu_stepping);
    read_brand(brand);
    read_hypervisor(hypervisor);
    read_boot_id(boot_id, sizeof(boot_id));
    etch_clock_health_read(&clock, "");
    host.kernel = name.release;
    host.arch = name.machine;
    host.cpu_vendor = vendor;
    host.cpu_model = brand;
    host.cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    host.boot_id = boot_id;
    host.hypervisor = hypervisor;
    host.clocksource = clock.clocksource;
    host.tsc_hz = measure_tsc_hz();
    host.page_size = (uint32_t)sysconf(_SC_PAGESIZE);
    etch_recorder_write(recorder, ETCH__RECORD__BODY_HOST, &host);
    return etch_recorder_check(recorder, err);
}
