/* SPDX-License-Identifier: MIT */
/* See watchdog.h. */
#include "collector/session/watchdog.h"

#include "collector/session/process.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* In memory that both have. */
struct shared {
    _Atomic uint32_t beats;
    _Atomic uint32_t rests;
    _Atomic uint32_t barked;
    _Atomic int32_t target; /* 0: none yet */
};

struct etch_watchdog {
    struct shared *shared;
    pid_t pid;
};

/* ---- The other process ---- */

static char state_of(const char *path)
{
    char text[512];
    const char *behind;

    if (etch_process_text(path, text, sizeof(text)) <= 0)
        return 0;
    behind = strrchr(text, ')');
    return behind && behind[1] == ' ' ? behind[2] : 0;
}

static char etch_state(pid_t etch)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)etch);
    return state_of(path);
}

/* Returns true if a thread of the program is in a ptrace stop, which only its tracer can end. */
static bool somebody_waits(pid_t target)
{
    struct etch_tids tids;
    bool waits = false;

    if (target <= 0 || etch_process_threads(target, &tids) < 0)
        return false;
    for (size_t i = 0; !waits && i < tids.list.n; i++) {
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)target, (int)tids.list.v[i]);
        waits = state_of(path) == 't';
    }
    etch_array_free(&tids.list);
    return waits;
}

struct look {
    uint32_t beats;
    unsigned idle;    /* looks without a beat */
    unsigned waiting; /* looks in a row at which a thread waited and etch was stopped */
    unsigned hanging; /* looks in a row at which a thread waited and etch was idle but not stopped */
};

static void look(struct look *l, struct shared *s, pid_t etch)
{
    uint32_t beats = atomic_load(&s->beats);
    char state;

    l->idle = beats == l->beats ? l->idle + 1 : 0;
    l->beats = beats;
    if (!l->idle || atomic_load(&s->rests)) {
        l->waiting = l->hanging = 0;
        return;
    }
    state = etch_state(etch);
    l->waiting = state == 'T' && somebody_waits(atomic_load(&s->target)) ? l->waiting + 1 : 0;
    if (l->waiting >= 2) {
        atomic_store(&s->barked, 1);
        kill(etch, SIGCONT);
    }
    /* 't': somebody debugs etch. The threads are looked at only after etch was idle for half of
     * ETCH_WATCHDOG_HANG_MS. */
    if (state == 'T' || state == 't' || l->idle * ETCH_WATCHDOG_LOOK_MS < ETCH_WATCHDOG_HANG_MS / 2)
        l->hanging = 0;
    else
        l->hanging = somebody_waits(atomic_load(&s->target)) ? l->hanging + 1 : 0;
    if (l->hanging * ETCH_WATCHDOG_LOOK_MS >= ETCH_WATCHDOG_HANG_MS / 2)
        kill(etch, SIGKILL);
}

/* The watchdog closes all descriptors of etch, so that it keeps no pipe open and no lock taken. */
static _Noreturn void watch(struct shared *s, pid_t etch)
{
    const struct timespec turn = {.tv_nsec = ETCH_WATCHDOG_LOOK_MS * 1000000l};
    struct look l = {0};
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, ETCH_WATCHDOG_NAME);
    if (syscall(SYS_close_range, 0, ~0u, 0) < 0)
        for (int fd = 0; fd < 4096; fd++)
            close(fd);
    while (getppid() == etch) {
        nanosleep(&turn, NULL);
        look(&l, s, etch);
    }
    _exit(0);
}

/* ---- Etch ---- */

struct etch_watchdog *etch_watchdog_start(void)
{
    struct etch_watchdog *w = calloc(1, sizeof(*w));
    void *map =
        w ? mmap(NULL, sizeof(*w->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
    pid_t etch = getpid();

    if (map == MAP_FAILED) {
        free(w);
        return NULL;
    }
    w->shared = map;
    w->pid = fork();
    if (w->pid == 0)
        watch(w->shared, etch);
    if (w->pid > 0)
        return w;
    munmap(map, sizeof(*w->shared));
    free(w);
    return NULL;
}

void etch_watchdog_set_target(struct etch_watchdog *watchdog, pid_t pid)
{
    if (watchdog)
        atomic_store(&watchdog->shared->target, pid);
}

void etch_watchdog_beat(struct etch_watchdog *watchdog)
{
    if (watchdog)
        atomic_fetch_add_explicit(&watchdog->shared->beats, 1, memory_order_relaxed);
}

void etch_watchdog_rest(struct etch_watchdog *watchdog, bool rests)
{
    if (watchdog)
        atomic_store(&watchdog->shared->rests, rests);
}

bool etch_watchdog_barked(const struct etch_watchdog *watchdog)
{
    return watchdog && atomic_load(&watchdog->shared->barked);
}

void etch_watchdog_end(struct etch_watchdog *watchdog)
{
    if (!watchdog)
        return;
    kill(watchdog->pid, SIGKILL);
    waitpid(watchdog->pid, NULL, 0);
    munmap(watchdog->shared, sizeof(*watchdog->shared));
    free(watchdog);
}
