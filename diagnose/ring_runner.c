/* SPDX-License-Identifier: MIT */
/* See ring_runner.h. */
#include "diagnose/ring_runner.h"

#include "base/time.h"
#include "binary/object.h"
#include "collector/ring_process.h"
#include "proto/etch.pb-c.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- The script ---- */

static pid_t start(const struct etch_record_options *o, const char *rings, struct etch_error *err)
{
    pid_t pid = fork();

    if (pid == 0) {
        setpgid(0, 0);
        setenv("ETCH_RING", rings, 1);
        execvp(o->argv[0], o->argv);
        _exit(127);
    }
    if (pid < 0)
        etch_error_set_errno(err, errno, "cannot start %s", o->argv[0]);
    else
        setpgid(pid, pid);
    return pid;
}

/* Waits for the script, and ends it and its processes after the time limit. */
static int wait_for(pid_t pid, double limit, bool *late)
{
    const struct timespec nap = {0, 2000000};
    double until = etch_time_seconds() + limit;
    int status = 0;

    *late = false;
    while (waitpid(pid, &status, *late ? 0 : WNOHANG) == 0) {
        *late = limit > 0 && etch_time_seconds() > until;
        if (*late)
            kill(-pid, SIGKILL);
        else
            nanosleep(&nap, NULL);
    }
    kill(-pid, SIGKILL); /* the processes that it left */
    return status;
}

/* ---- Its processes ---- */

/* The process to record: of the program's own build, one that failed or else the newest. */
static const struct etch_ring_process *pick(const struct etch_ring_processes *all, const struct etch_elf *elf)
{
    const struct etch_ring_process *found = NULL;

    for (size_t i = 0; i < all->list.n; i++) {
        const struct etch_ring_process *p = &all->list.v[i];

        if (p->build_id_size != elf->build_id_size || memcmp(p->build_id, elf->build_id, p->build_id_size) != 0)
            continue;
        if (!found || etch_ring_process_failed(p) || !etch_ring_process_failed(found))
            found = p;
    }
    return found;
}

static int bundle(const struct etch_record_options *o, const char *rings, struct etch_record_summary *summary,
                  struct etch_error *err)
{
    struct etch_ring_bundle options = {.folder = rings, .output = o->output, .program = o->subject};
    struct etch_ring_processes all = {0};
    const struct etch_ring_process *p;
    struct etch_soft_summary soft;
    struct etch_elf elf;
    int status = -1;

    if (etch_elf_read(&elf, o->subject, err) < 0 || etch_ring_processes_read(rings, &all, err) < 0)
        return -1;
    p = pick(&all, &elf);
    if (p) {
        summary->failed = summary->failure_placed = p->end == ETCH_RING_SIGNALLED;
        status = etch_ring_process_bundle(p, &options, &soft, err);
    } else {
        etch_error_set(err, "%s did not run: %s started no process of this build of it", o->subject, o->argv[0]);
        etch_error_advise(err, "--program with the very file that %s runs; its environment must have ETCH_RING",
                          o->argv[0]);
    }
    etch_ring_processes_release(&all);
    return status;
}

static void remove_rings(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
    rmdir(folder);
}

int etch_ring_runner_record(const struct etch_record_options *o, struct etch_record_summary *summary,
                            struct etch_error *err)
{
    char made[PATH_MAX], rings[PATH_MAX];
    int status = -1;
    pid_t pid;

    *summary = (struct etch_record_summary){.source = "soft"};
    snprintf(made, sizeof(made), "%s.rings", o->output);
    if (mkdir(made, 0700) < 0 && errno != EEXIST)
        return etch_error_set_errno(err, errno, "cannot make %s", made);
    if (!realpath(made, rings)) /* the script may change its folder */
        return etch_error_set_errno(err, errno, "cannot find %s", made);
    pid = start(o, rings, err);
    if (pid > 0) {
        summary->status = wait_for(pid, o->wall_s, &summary->out_of_time);
        status = bundle(o, rings, summary, err);
    }
    remove_rings(rings);
    return status;
}
