/* SPDX-License-Identifier: MIT */
/* See attach.h. */
#include "collector/soft/attach.h"

#include "base/input.h"
#include "base/log.h"
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK (64u << 10)
#define LIT_MAX (16u << 20) /* bytes of flags in a module */

/* ---- Reasons not to ---- */

static int refuse(struct etch_error *err, pid_t pid, const char *why, const char *advice)
{
    etch_error_set(err, "cannot switch the recorder of process %d on: %s", (int)pid, why);
    return etch_error_advise(err, "%s", advice);
}

static bool is_same_namespace(pid_t pid, const char *kind)
{
    char path[64];
    struct stat own, other;

    snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
    if (stat(path, &own) < 0)
        return true;
    snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, kind);
    return stat(path, &other) == 0 && own.st_ino == other.st_ino && own.st_dev == other.st_dev;
}

/* A filter of system calls may kill a process that makes rings. */
static bool is_sandboxed(pid_t pid)
{
    struct etch_tids tids = {0};
    bool found = false;

    if (etch_process_threads(pid, &tids) < 0)
        return false;
    for (size_t i = 0; i < tids.list.n && !found; i++) {
        char path[64], text[4096];
        const char *at;

        snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tids.list.v[i]);
        at = etch_process_text(path, text, sizeof(text)) > 0 ? strstr(text, "\nSeccomp:\t") : NULL;
        found = at && at[10] != '0';
    }
    etch_array_free(&tids.list);
    return found;
}

/* The process must find the folder by its name, and be able to write there. */
static int offer_folder(pid_t pid, const char *folder, struct etch_error *err)
{
    char path[4096];
    struct stat own, seen, process;

    snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, folder);
    if (stat(folder, &own) < 0 || stat(path, &seen) < 0 || own.st_ino != seen.st_ino || own.st_dev != seen.st_dev)
        return refuse(err, pid, "it does not see the folder of the rings: it has another root",
                      "run etch in the same container, or start the program with ETCH_RING=FOLDER");
    snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    if (stat(path, &process) == 0 && process.st_uid != own.st_uid && chown(folder, process.st_uid, (gid_t)-1) < 0)
        return refuse(err, pid, "it is another user's, who cannot write to the folder of the rings",
                      "run etch as that user");
    return 0;
}

static int check(const struct etch_soft_attach *a, const struct etch_soft_wish *wish, struct etch_error *err)
{
    for (size_t i = 0; i < a->doors.list.n; i++)
        if (a->doors.list.v[i].secure)
            return refuse(err, a->pid, "it has raised rights (setuid, setgid, file capabilities)",
                          "--source none, or pt");
    if (!is_same_namespace(a->pid, "pid"))
        return refuse(err, a->pid, "it is in another PID namespace", "run etch in the same container");
    if (is_sandboxed(a->pid))
        return refuse(err, a->pid, "it is in a sandbox (seccomp), which may forbid the calls that make rings",
                      "start the program with ETCH_RING=FOLDER in its environment: rings are then made before");
    return offer_folder(a->pid, wish->folder, err);
}

static int say_none(const struct etch_soft_doors *doors, pid_t pid, struct etch_error *err)
{
    if (doors->others) {
        etch_error_set(err, "the recorder in process %d is of another version of etch, or has not begun", (int)pid);
        return etch_error_advise(err, "the etch that built the program; or once more in a moment");
    }
    etch_error_set(err, "process %d has no software recorder%s", (int)pid,
                   doors->replaced ? ", or its file was replaced since it was started" : "");
    return etch_error_advise(err, "build the program with etch cc --record; or --source none, or pt");
}

/* ---- The memory of the process ---- */

static bool write_memory(const struct etch_soft_attach *a, uint64_t address, const void *bytes, size_t size)
{
    return pwrite(a->memory, bytes, size, (off_t)address) == (ssize_t)size;
}

static bool read_memory(const struct etch_soft_attach *a, uint64_t address, void *bytes, size_t size)
{
    return pread(a->memory, bytes, size, (off_t)address) == (ssize_t)size;
}

/* ---- On and off, with all threads stopped ---- */

static bool set_lit(const struct etch_soft_attach *a, const struct etch_soft_door *door, bool lit)
{
    size_t size = door->lit_end - door->lit;
    struct etch_soft_lit *all;
    bool whole;

    if (!size || size > LIT_MAX)
        return size == 0;
    all = malloc(size);
    whole = all && read_memory(a, door->lit, all, size);
    for (size_t i = 0; whole && i < size / sizeof(*all); i++)
        all[i].lit = lit;
    whole = whole && write_memory(a, door->lit, all, size);
    free(all);
    return whole;
}

static bool set_flags(const struct etch_soft_attach *a, bool on)
{
    uint8_t byte = on;
    bool whole = true;

    for (size_t i = 0; i < a->doors.list.n; i++)
        whole &= set_lit(a, &a->doors.list.v[i], on) && write_memory(a, a->doors.list.v[i].on, &byte, 1);
    return whole;
}

/* Somebody else may have changed the code: such a copy is left alone. */
static bool set_detours(const struct etch_soft_attach *a, bool on)
{
    const uint16_t jump = ETCH_SOFT_DETOUR;
    bool whole = true;

    for (size_t i = 0; i < a->doors.detours.n; i++) {
        const struct etch_soft_detour *d = &a->doors.detours.v[i];
        uint16_t from = on ? d->bytes : jump, to = on ? jump : d->bytes, now;

        if (read_memory(a, d->address, &now, sizeof(now)) && now == from)
            whole &= write_memory(a, d->address, &to, sizeof(to));
    }
    return whole;
}

static bool ask_for_rings(const struct etch_soft_attach *a, const struct etch_soft_wish *wish)
{
    struct etch_soft_request request = {.state = ETCH_SOFT_REQUEST_MADE};

    snprintf(request.folder, sizeof(request.folder), "%s", wish->folder);
    snprintf(request.kb, sizeof(request.kb), "%s", wish->kb);
    snprintf(request.threads, sizeof(request.threads), "%s", wish->threads);
    return write_memory(a, a->doors.list.v[0].request, &request, sizeof(request));
}

/* While code is led to recorded code, no function may be dark: the recorded code of a dark function calls its plain
 * copy. So the flags come first, and go last. */
static bool switch_on(struct etch_soft_attach *a, const struct etch_soft_wish *wish)
{
    a->switched = true;
    return (a->pool || ask_for_rings(a, wish)) && set_flags(a, true) && set_detours(a, true);
}

static void switch_off(struct etch_soft_attach *a)
{
    const uint32_t none = ETCH_SOFT_REQUEST_NONE;
    uint32_t state = none;

    if (set_detours(a, false))
        set_flags(a, false);
    if (read_memory(a, a->doors.list.v[0].request, &state, sizeof(state)) && state == ETCH_SOFT_REQUEST_MADE)
        write_memory(a, a->doors.list.v[0].request, &none, sizeof(none));
    a->switched = false;
}

/* ---- Rings from before ---- */

static void find_rings(struct etch_soft_attach *a, const struct etch_mappings *mappings)
{
    const struct etch_mapping *m;
    uint64_t at = 0;

    if (!read_memory(a, a->doors.list.v[0].pool, &at, sizeof(at)) || !at)
        return;
    m = etch_mappings_at(mappings, at);
    if (!m || m->start != at)
        return;
    a->pool = at;
    a->bytes = m->end - m->start;
    a->rings = etch_soft_open_mapped(a->pid, m);
}

/* From the file, else from the memory of the process while it lives. */
static ssize_t read_rings(const struct etch_soft_attach *a, uint64_t at, void *block, size_t size)
{
    return a->rings >= 0 ? pread(a->rings, block, size, (off_t)at)
                         : pread(a->memory, block, size, (off_t)(a->pool + at));
}

void etch_soft_attach_copy(struct etch_soft_attach *a, const char *folder)
{
    uint8_t *block = malloc(BLOCK);
    char path[512];
    ssize_t n = 1;
    int fd = -1;

    if (a->pool && block) {
        snprintf(path, sizeof(path), "%s/%d-0" ETCH_SOFT_SUFFIX, folder, (int)a->pid);
        fd = etch_output_fresh(path);
    }
    for (uint64_t at = 0; fd >= 0 && n > 0 && at < a->bytes; at += (uint64_t)n) {
        n = read_rings(a, at, block, a->bytes - at < BLOCK ? (size_t)(a->bytes - at) : BLOCK);
        if (n > 0 && write(fd, block, (size_t)n) != n)
            break;
    }
    if (fd >= 0)
        close(fd);
    free(block);
    a->pool = 0;
}

/* ---- Attach and leave ---- */

/* Rings of ETCH_RING are on. Rings of an earlier attach are switched on again. */
static bool is_on(const struct etch_soft_attach *a)
{
    uint32_t state = ETCH_SOFT_REQUEST_NONE;

    read_memory(a, a->doors.list.v[0].request, &state, sizeof(state));
    return a->pool && state == ETCH_SOFT_REQUEST_NONE;
}

static int begin(struct etch_soft_attach *a, struct etch_target *target, const struct etch_soft_wish *wish,
                 struct etch_error *err)
{
    bool whole;

    if (is_on(a))
        return 0;
    if (!a->pool && check(a, wish, err) < 0)
        return -1;
    if (etch_target_stop_all(target, err) < 0)
        return -1;
    whole = switch_on(a, wish);
    if (!whole)
        switch_off(a);
    etch_target_release_held(target);
    etch_log(ETCH_LOG_SOFT, ETCH_LOG_DEBUG, "attached to %d: %zu modules, %zu plain copies lead to recorded code",
             (int)a->pid, a->doors.list.n, a->doors.detours.n);
    return whole ? 0 : etch_error_set(err, "cannot write to the memory of process %d", (int)a->pid);
}

int etch_soft_attach(struct etch_soft_attach *a, struct etch_target *target, const struct etch_soft_wish *wish,
                     struct etch_error *err)
{
    struct etch_mappings mappings = {0};
    char path[64];
    int status;

    a->pid = target->pid;
    if (etch_process_mappings(target->pid, &mappings, err) < 0)
        return -1;
    status = etch_soft_doors_find(&a->doors, target->pid, &mappings, err);
    if (status == 0 && !a->doors.list.n)
        status = say_none(&a->doors, target->pid, err);
    if (status == 0) {
        snprintf(path, sizeof(path), "/proc/%d/mem", (int)target->pid);
        a->memory = open(path, O_RDWR | O_CLOEXEC);
        if (a->memory < 0)
            status = etch_error_set_errno(err, errno, "cannot open %s", path);
    }
    if (status == 0) {
        find_rings(a, &mappings);
        status = begin(a, target, wish, err);
    }
    etch_mappings_release(&mappings);
    return status;
}

void etch_soft_attach_leave(struct etch_soft_attach *a, struct etch_target *target, const char *folder)
{
    struct etch_error err;
    bool held = (a->switched || a->pool) && etch_target_stop_all(target, &err) == 0;

    if (a->switched && held)
        switch_off(a);
    else if (a->switched)
        etch_log(ETCH_LOG_SOFT, ETCH_LOG_WARN, "the recorder of process %d stays on: %s", (int)a->pid, err.what);
    if (a->pool)
        etch_soft_attach_copy(a, folder);
    if (held)
        etch_target_release_held(target);
}

void etch_soft_attach_release(struct etch_soft_attach *a)
{
    if (a->memory >= 0)
        close(a->memory);
    if (a->rings >= 0)
        close(a->rings);
    etch_soft_doors_release(&a->doors);
    *a = ETCH_SOFT_ATTACH_NONE;
}
