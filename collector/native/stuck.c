/* SPDX-License-Identifier: MIT */
/* Processes that wait for themselves; see stuck.h. */
#include "collector/native/stuck.h"

#include "base/index.h"
#include "binary/object.h"

#include <dirent.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OWN_SIGNALS 32, 33 /* glibc's, for cancelling threads and changing user ids of all */

static bool is_private(const struct etch_thread_wait *wait)
{
    return wait->arguments[1] & FUTEX_PRIVATE_FLAG;
}

bool etch_wait_is_own(const struct etch_thread_wait *wait, const struct etch_mappings *mappings)
{
    uint64_t operation = wait->arguments[1] & (uint64_t)FUTEX_CMD_MASK;
    const struct etch_mapping *m;

    if (wait->call_plus_1 != SYS_futex + 1 || wait->arguments[3] ||
        (operation != FUTEX_WAIT && operation != FUTEX_WAIT_BITSET && operation != FUTEX_LOCK_PI))
        return false;
    if (is_private(wait))
        return true;
    /* pthread_join() waits like this, for a word on the other thread's stack. Another process could share a page of a
     * file. */
    m = etch_mappings_at(mappings, wait->arguments[0]);
    return m && !m->shared && !m->inode;
}

bool etch_signals_may_wake(const struct etch_process_status *status)
{
    /* Signals of faults: nobody sends them. */
    static const uint8_t harmless[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, OWN_SIGNALS};
    uint64_t caught = status->caught;

    for (size_t i = 0; i < sizeof(harmless); i++)
        caught &= ~((uint64_t)1 << (harmless[i] - 1));
    return caught != 0;
}

/* ---- A look ---- */

/* Returns true if the file of /proc exists and is empty. */
static bool is_empty(const char *path)
{
    char text[64];

    return etch_process_text(path, text, sizeof(text)) == 0;
}

static bool look_at_thread(pid_t pid, pid_t tid, const struct etch_mappings *mappings, bool *own, uint64_t *print)
{
    struct etch_process_status status;
    struct etch_thread_wait wait;
    char path[64], text[256];

    if (etch_process_status(pid, tid, &status) < 0 || status.state != 'S' || etch_signals_may_wake(&status))
        return false;
    etch_thread_wait(pid, tid, &wait);
    if (!etch_wait_is_own(&wait, mappings))
        return false;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)tid);
    if (!is_empty(path))
        return false;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
    if (etch_process_text(path, text, sizeof(text)) <= 0)
        return false;
    *own |= is_private(&wait);
    *print = etch_hash(*print, &tid, sizeof(tid));
    *print = etch_hash(*print, wait.arguments, sizeof(wait.arguments));
    *print = etch_hash(*print, &status.switches, sizeof(status.switches));
    *print = etch_hash(*print, text, strlen(text));
    return true;
}

/* An io_uring may hold a request that wakes a thread. */
static bool holds_ring(pid_t pid)
{
    char name[64], target[64];
    struct dirent *entry;
    bool found = false;
    DIR *dir;

    snprintf(name, sizeof(name), "/proc/%d/fd", (int)pid);
    dir = opendir(name);
    if (!dir)
        return true;
    while (!found && (entry = readdir(dir))) {
        ssize_t n;

        snprintf(name, sizeof(name), "/proc/%d/fd/%.20s", (int)pid, entry->d_name);
        n = readlink(name, target, sizeof(target) - 1);
        target[n > 0 ? n : 0] = '\0';
        found = strcmp(target, "anon_inode:[io_uring]") == 0;
    }
    closedir(dir);
    return found;
}

bool etch_stuck_look(pid_t pid, uint64_t *print)
{
    struct etch_mappings mappings;
    struct etch_tids tids;
    struct etch_error ignored;
    bool stuck = true, own = false;
    char path[64];

    *print = ETCH_HASH_START;
    if (etch_process_threads(pid, &tids) < 0)
        return false;
    if (etch_process_mappings(pid, &mappings, &ignored) < 0) {
        etch_array_free(&tids.list);
        return false;
    }
    for (size_t i = 0; stuck && i < tids.list.n; i++)
        stuck = look_at_thread(pid, tids.list.v[i], &mappings, &own, print);
    etch_array_free(&tids.list);
    etch_mappings_release(&mappings);
    snprintf(path, sizeof(path), "/proc/%d/timers", (int)pid);
    return stuck && own && is_empty(path) && !holds_ring(pid);
}

/* ---- Alarms ---- */

static bool can_set_alarm(pid_t pid, const char *file)
{
    struct etch_object *object;
    struct etch_error ignored;
    char path[4200];
    bool can;

    snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, file);
    if (etch_object_open(&object, path, &ignored) < 0)
        return true;
    can = etch_object_imports(object, "alarm") || etch_object_imports(object, "ualarm") ||
          etch_object_imports(object, "setitimer") || etch_object_makes_call(object, SYS_alarm) ||
          etch_object_makes_call(object, SYS_setitimer);
    etch_object_free(object);
    return can;
}

/* libc and its loader define these functions for other code, and do not call them by themselves. */
static bool is_libc(const char *path)
{
    const char *name = strrchr(path, '/');

    return name && (strcmp(name, "/libc.so.6") == 0 || strcmp(name, "/ld-linux-x86-64.so.2") == 0);
}

bool etch_stuck_has_alarm(pid_t pid)
{
    struct etch_mappings mappings;
    struct etch_error ignored;
    bool found = false;

    if (etch_process_mappings(pid, &mappings, &ignored) < 0)
        return true;
    for (size_t i = 0; !found && i < mappings.list.n; i++) {
        const struct etch_mapping *m = &mappings.list.v[i];

        /* Code that no file has cannot be looked through, but for the kernel's own. */
        if (!(m->prot & 4) || strcmp(m->path, "[vdso]") == 0 || strcmp(m->path, "[vsyscall]") == 0)
            continue;
        found = m->path[0] != '/' || (!is_libc(m->path) && can_set_alarm(pid, m->path));
    }
    etch_mappings_release(&mappings);
    return found;
}
