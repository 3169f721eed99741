/* SPDX-License-Identifier: MIT */
/* Facts about a process from /proc; see process.h. */
#include "collector/session/process.h"

#include "binary/object.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

ssize_t etch_process_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t n = 0;

    if (fd < 0)
        return -1;
    while (n < size - 1) {
        ssize_t got = read(fd, text + n, size - 1 - n);

        if (got <= 0)
            break;
        n += (size_t)got;
    }
    close(fd);
    text[n] = '\0';
    return (ssize_t)n;
}

bool etch_mapping_parse(char *line, struct etch_mapping *mapping)
{
    char prot[5];
    unsigned long long start, end, offset, inode;
    int path = 0;

    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "%llx-%llx %4s %llx %*x:%*x %llu %n", &start, &end, prot, &offset, &inode, &path) < 5 || !path ||
        start >= end)
        return false;
    *mapping = (struct etch_mapping){
        .start = start,
        .end = end,
        .offset = offset,
        .inode = inode,
        .shared = prot[3] == 's',
        .prot = (prot[0] == 'r') | (uint32_t)(prot[1] == 'w') << 1 | (uint32_t)(prot[2] == 'x') << 2,
        .path = line + path,
    };
    return true;
}

static bool append_mapping(struct etch_mappings *mappings, const struct etch_mapping *line)
{
    struct etch_mapping copy = *line;

    copy.path = strdup(line->path);
    if (copy.path && etch_array_push(&mappings->list, copy))
        return true;
    free(copy.path);
    return false;
}

int etch_process_mappings(pid_t pid, struct etch_mappings *mappings, struct etch_error *err)
{
    char name[64];
    char *line = NULL;
    size_t size = 0;
    bool good = true;
    FILE *file;

    memset(mappings, 0, sizeof(*mappings));
    snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
    file = fopen(name, "re");
    if (!file)
        return etch_error_set_errno(err, errno, "cannot read %s", name);
    while (good && getline(&line, &size, file) > 0) {
        struct etch_mapping mapping;

        good = !etch_mapping_parse(line, &mapping) || append_mapping(mappings, &mapping);
    }
    good = good && feof(file); /* else getline had no memory */
    free(line);
    fclose(file);
    if (good)
        return 0;
    etch_mappings_release(mappings);
    errno = ENOMEM;
    return etch_error_no_memory(err);
}

void etch_mappings_release(struct etch_mappings *mappings)
{
    for (size_t i = 0; i < mappings->list.n; i++)
        free(mappings->list.v[i].path);
    etch_array_free(&mappings->list);
}

const struct etch_mapping *etch_mappings_at(const struct etch_mappings *mappings, uint64_t address)
{
    size_t lo = 0, hi = mappings->list.n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const struct etch_mapping *m = &mappings->list.v[mid];

        if (address < m->start)
            hi = mid;
        else if (address >= m->end)
            lo = mid + 1;
        else
            return m;
    }
    return NULL;
}

int etch_process_threads(pid_t pid, struct etch_tids *tids)
{
    char name[64];
    DIR *dir;
    struct dirent *entry;

    memset(tids, 0, sizeof(*tids));
    snprintf(name, sizeof(name), "/proc/%d/task", (int)pid);
    dir = opendir(name);
    if (!dir)
        return -1;
    while ((entry = readdir(dir))) {
        long tid = strtol(entry->d_name, NULL, 10);

        if (tid > 0 && !etch_array_push(&tids->list, (pid_t)tid))
            break;
    }
    closedir(dir);
    return 0;
}

static uint64_t status_field(const char *text, const char *name, int base)
{
    const char *at = strstr(text, name);

    return at ? strtoull(at + strlen(name), NULL, base) : 0;
}

void etch_process_status_parse(const char *text, struct etch_process_status *status)
{
    const char *state = strstr(text, "\nState:\t");

    *status = (struct etch_process_status){
        .pid = (pid_t)status_field(text, "\nTgid:\t", 10),
        .tracer = (pid_t)status_field(text, "\nTracerPid:\t", 10),
        .state = state ? state[8] : '?',
        .blocked = status_field(text, "\nSigBlk:\t", 16),
        .ignored = status_field(text, "\nSigIgn:\t", 16),
        .caught = status_field(text, "\nSigCgt:\t", 16),
        .switches = status_field(text, "\nvoluntary_ctxt_switches:\t", 10) +
                    status_field(text, "\nnonvoluntary_ctxt_switches:\t", 10),
    };
}

int etch_process_status(pid_t pid, pid_t tid, struct etch_process_status *status)
{
    char name[64], text[4096];

    snprintf(name, sizeof(name), "/proc/%d/task/%d/status", (int)pid, (int)tid);
    if (etch_process_text(name, text, sizeof(text)) <= 0)
        return -1;
    etch_process_status_parse(text, status);
    return 0;
}

bool etch_signal_is_failure(int signal)
{
    switch (signal) {
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGABRT:
    case SIGTRAP:
    case SIGSYS:
        return true;
    default:
        return false;
    }
}

bool etch_signal_is_fatal(const struct etch_process_status *status, int signal)
{
    uint64_t bit = (uint64_t)1 << (signal - 1);

    return !((status->caught | status->ignored) & bit);
}

uint64_t etch_process_ran_ns(pid_t pid)
{
    struct etch_tids tids;
    uint64_t sum = 0;

    if (etch_process_threads(pid, &tids) < 0)
        return 0;
    for (size_t i = 0; i < tids.list.n; i++) {
        char name[64], text[256];

        snprintf(name, sizeof(name), "/proc/%d/task/%d/schedstat", (int)pid, (int)tids.list.v[i]);
        if (etch_process_text(name, text, sizeof(text)) > 0)
            sum += strtoull(text, NULL, 10);
    }
    etch_array_free(&tids.list);
    return sum;
}

void etch_thread_name(pid_t pid, pid_t tid, char name[32])
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)pid, (int)tid);
    if (etch_process_text(path, name, 32) < 0)
        name[0] = '\0';
    name[strcspn(name, "\n")] = '\0';
}

void etch_thread_wait_parse(const char *text, struct etch_thread_wait *wait)
{
    long long call;
    unsigned long long a[6] = {0}, sp, pc;

    memset(wait, 0, sizeof(*wait));
    if (sscanf(text, "%lld 0x%llx 0x%llx 0x%llx 0x%llx 0x%llx 0x%llx 0x%llx 0x%llx", &call, &a[0], &a[1], &a[2], &a[3],
               &a[4], &a[5], &sp, &pc) == 9) {
        wait->call_plus_1 = call >= 0 && call < 4096 ? (uint32_t)call + 1 : 0;
        for (int i = 0; i < 6; i++)
            wait->arguments[i] = a[i];
        wait->sp = sp;
        wait->pc = pc;
    } else if (sscanf(text, "-1 0x%llx 0x%llx", &sp, &pc) == 2) {
        wait->sp = sp;
        wait->pc = pc;
    }
}

void etch_thread_wait(pid_t pid, pid_t tid, struct etch_thread_wait *wait)
{
    char name[64], text[512];

    snprintf(name, sizeof(name), "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
    if (etch_process_text(name, text, sizeof(text)) < 0)
        text[0] = '\0';
    etch_thread_wait_parse(text, wait);
}

size_t etch_process_read(pid_t pid, uint64_t address, void *buffer, size_t size)
{
    size_t done = 0;

    /* Reads one page at a time: on some kernels a call over several pages does not report the position of a failure. */
    while (done < size) {
        uint64_t at = address + done;
        size_t piece = 4096 - (at & 4095);
        struct iovec local, remote;
        ssize_t got;

        if (piece > size - done)
            piece = size - done;
        local = (struct iovec){(char *)buffer + done, piece};
        remote = (struct iovec){(void *)(uintptr_t)at, piece};
        got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
        if (got <= 0)
            break;
        done += (size_t)got;
    }
    return done;
}

static void read_link(pid_t pid, const char *link, char *path, size_t size)
{
    char name[64];
    ssize_t n;

    snprintf(name, sizeof(name), "/proc/%d/%s", (int)pid, link);
    n = readlink(name, path, size - 1);
    path[n > 0 ? n : 0] = '\0';
}

void etch_process_exe(pid_t pid, char *path, size_t size)
{
    read_link(pid, "exe", path, size);
}

void etch_process_cwd(pid_t pid, char *path, size_t size)
{
    read_link(pid, "cwd", path, size);
}

size_t etch_process_build_id(pid_t pid, const char *path, uint8_t id[64])
{
    struct etch_object *object;
    struct etch_error ignored;
    char name[4200];
    size_t size;

    snprintf(name, sizeof(name), "/proc/%d/root%s", (int)pid, path);
    if (etch_object_open(&object, name, &ignored) < 0)
        return 0;
    size = etch_object_build_id(object, id);
    etch_object_free(object);
    return size;
}

int etch_process_perf_events(pid_t pid)
{
    char name[64], target[64];
    struct dirent *entry;
    int events = 0;
    DIR *dir;

    snprintf(name, sizeof(name), "/proc/%d/fd", (int)pid);
    dir = opendir(name);
    if (!dir)
        return 0;
    while ((entry = readdir(dir))) {
        ssize_t n;

        snprintf(name, sizeof(name), "/proc/%d/fd/%.20s", (int)pid, entry->d_name);
        n = readlink(name, target, sizeof(target) - 1);

        target[n > 0 ? n : 0] = '\0';
        events += strcmp(target, "anon_inode:[perf_event]") == 0;
    }
    closedir(dir);
    return events;
}
