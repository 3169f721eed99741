/* SPDX-License-Identifier: MIT */
/* See sketch_rings.h. */
#include "cli/sketch_rings.h"

#include "collector/ring_process.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUNS_MAX 256u /* of each kind, the newest */

static char folder[PATH_MAX];

static int make_folder(struct etch_error *err)
{
    const char *place = getenv("TMPDIR");

    snprintf(folder, sizeof(folder), "%.4000s/etch-rings-XXXXXX", place && place[0] ? place : "/tmp");
    if (mkdtemp(folder))
        return 0;
    etch_error_set_errno(err, errno, "cannot make a temporary folder %s", folder);
    folder[0] = '\0';
    return etch_error_advise(err, "TMPDIR=FOLDER, a folder that you can write to");
}

void etch_sketch_rings_clean(void)
{
    char path[PATH_MAX + 300];
    struct dirent *entry;
    DIR *dir = folder[0] ? opendir(folder) : NULL;

    if (!dir)
        return;
    while ((entry = readdir(dir))) {
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(path);
    }
    closedir(dir);
    rmdir(folder);
    folder[0] = '\0';
}

/* ---- Which processes ---- */

struct choice {
    struct etch_ring_processes all;
    struct etch_elf elf;
    char path[PATH_MAX]; /* of the program, resolved */
    uint32_t failed, passed, silent, running;
    uint32_t other_builds; /* of the same path */
    uint32_t others;       /* other programs */
    const char *other;     /* the first of them */
    const struct etch_recording *core;
    const char *core_file;
    const struct etch_ring_process *of_core; /* the process that the core is of; NULL: none */
};

static bool is_of_program(const struct choice *c, const struct etch_ring_process *p)
{
    return p->build_id_size && p->build_id_size == c->elf.build_id_size &&
           memcmp(p->build_id, c->elf.build_id, p->build_id_size) == 0;
}

#define START_NS ((uint64_t)3 * 1000000000u) /* the kernel's word of a start is that wrong at most */

/* A process number is used again after a while. */
static bool is_of_core(const struct choice *c, const struct etch_ring_process *p)
{
    const Etch__Program *ran = c->core ? c->core->program : NULL;
    uint64_t a = ran ? ran->start_unix_ns : 0, b = p->start_unix_ns;

    if (!ran || ran->pid != p->pid || !is_of_program(c, p) || p->end == ETCH_RING_EXITED)
        return false;
    if (ran->pid_namespace && p->pid_namespace && ran->pid_namespace != p->pid_namespace)
        return false;
    return !a || !b || p->child || (a > b ? a - b : b - a) < START_NS;
}

static void count(struct choice *c)
{
    for (size_t i = 0; i < c->all.list.n; i++) /* the newest, if there are several */
        if (is_of_core(c, &c->all.list.v[i]))
            c->of_core = &c->all.list.v[i];
    for (size_t i = 0; i < c->all.list.n; i++) {
        const struct etch_ring_process *p = &c->all.list.v[i];

        if (!is_of_program(c, p)) {
            c->other_builds += strcmp(p->exe, c->path) == 0;
            c->others += strcmp(p->exe, c->path) != 0;
            c->other = c->other ? c->other : p->exe;
        } else if (etch_ring_process_failed(p)) {
            c->failed++;
        } else {
            c->passed += p->end == ETCH_RING_EXITED;
            c->silent += p->end == ETCH_RING_SILENT;
            c->running += p->end == ETCH_RING_RUNS;
        }
    }
}

static int say_no_rings(const struct choice *c, const char *rings, struct etch_error *err)
{
    if (c->all.others) {
        etch_error_set(err, "the rings in %s are of a program built with another version of etch", rings);
        return etch_error_advise(err, "the etch that built the program");
    }
    if (c->all.empty || c->all.unreadable) {
        etch_error_set(err, "%s has no rings: %s", rings,
                       c->all.empty ? "a process found no room for them" : "a file of rings makes no sense");
        return etch_error_advise(err, "a folder on a file system with space, 5 MB for each process");
    }
    etch_error_set(err, "no program left rings in %s", rings);
    return etch_error_advise(err, "build the program with etch cc --record, and start it with ETCH_RING=%s", rings);
}

static int say_other(const struct choice *c, const char *program, const char *rings, struct etch_error *err)
{
    if (c->other_builds) {
        etch_error_set(err, "%u process%s in %s ran another build of %s", c->other_builds,
                       c->other_builds == 1 ? "" : "es", rings, program);
        return etch_error_advise(err, "the program file that ran there: its build-id must be the same");
    }
    etch_error_set(err, "the rings in %s are of %u process%s of other programs, such as %.200s", rings, c->others,
                   c->others == 1 ? "" : "es", c->other && c->other[0] ? c->other : "an unknown one");
    return etch_error_advise(err, "that program in place of %s", program);
}

static int say_none_failed(const struct choice *c, const char *rings, struct etch_error *err)
{
    etch_error_set(err,
                   "none of the processes in %s failed: %u passed, %u ended without a word (SIGKILL, _exit or exec), "
                   "%u may still run",
                   rings, c->passed, c->silent, c->running);
    if (!c->silent)
        return -1;
    return etch_error_advise(err,
                             "etch record --rings %s -o last.etch; etch decode last.etch --as line --last 50: the "
                             "last statements of the newest",
                             rings);
}

static int choose(struct choice *c, const char *program, const char *rings, bool failed, struct etch_error *err)
{
    if (etch_elf_read(&c->elf, program, err) < 0)
        return -1;
    if (!c->elf.build_id_size) {
        etch_error_set(err, "%s has no build-id: nobody can say which rings are its own", program);
        return etch_error_advise(err, "link it with -Wl,--build-id");
    }
    if (!realpath(program, c->path))
        c->path[0] = '\0';
    if (etch_ring_processes_read(rings, &c->all, err) < 0)
        return etch_error_advise(err, "the folder of ETCH_RING");
    count(c);
    if (!c->all.list.n)
        return say_no_rings(c, rings, err);
    if (c->others + c->other_builds == c->all.list.n)
        return say_other(c, program, rings, err);
    return c->failed || failed ? 0 : say_none_failed(c, rings, err);
}

/* ---- Bundles ---- */

static void note_rest(struct etch_run_set *runs, const struct choice *c, const char *rings)
{
    char text[PATH_MAX + 300];

    if (c->others + c->other_builds) {
        snprintf(text, sizeof(text), "%u process%s of other programs or builds left rings in %.300s too",
                 c->others + c->other_builds, c->others + c->other_builds == 1 ? "" : "es", rings);
        etch_run_set_note(runs, text);
    }
    if (c->silent + c->running) {
        snprintf(text, sizeof(text),
                 "not compared: %u process%s that ended without a word (SIGKILL, _exit or exec), %u that may still run",
                 c->silent, c->silent == 1 ? "" : "es", c->running);
        etch_run_set_note(runs, text);
    }
}

static int add_process(struct etch_run_set *runs, const struct choice *c, const char *rings, size_t number,
                       struct etch_error *err)
{
    const struct etch_ring_process *p = &c->all.list.v[number];
    char path[PATH_MAX + 64];
    struct etch_ring_bundle bundle = {.folder = rings, .output = path, .program = c->path[0] ? c->path : NULL};
    struct etch_soft_summary summary;

    if (p == c->of_core)
        bundle.failure = c->core->failure;
    snprintf(path, sizeof(path), "%s/%s-%zu-%u.etch", folder, etch_ring_process_failed(p) ? "fail" : "pass", number,
             p->pid);
    if (etch_ring_process_bundle(p, &bundle, &summary, err) < 0)
        return -1;
    if (etch_run_set_add(runs, path, ETCH_VERDICT_AS_RECORDED, false, err) < 0)
        return -1;
    return p == c->of_core ? etch_run_set_join_core(runs, path, c->core_file, err) : 0;
}

/* The newest of each kind. */
static int add_all(struct etch_run_set *runs, struct choice *c, const char *rings, struct etch_error *err)
{
    size_t taken[2] = {0}, left = 0;

    if (make_folder(err) < 0)
        return -1;
    for (size_t i = c->all.list.n; i-- > 0;) {
        const struct etch_ring_process *p = &c->all.list.v[i];
        bool failed = etch_ring_process_failed(p) || p == c->of_core;

        if (!is_of_program(c, p) || (!failed && p->end != ETCH_RING_EXITED))
            continue;
        if (taken[failed]++ >= RUNS_MAX)
            left++;
        else if (add_process(runs, c, rings, i, err) < 0)
            return -1;
    }
    if (left)
        etch_run_set_note(runs, "of each kind the newest 256 runs are compared");
    note_rest(runs, c, rings);
    return 0;
}

int etch_sketch_rings_add(struct etch_run_set *runs, const char *program, const char *rings, bool failed,
                          const struct etch_recording *core, const char *core_file, bool *joined,
                          struct etch_error *err)
{
    struct choice c = {.core = core, .core_file = core_file};
    int status = choose(&c, program, rings, failed || core, err);

    *joined = status == 0 && c.of_core;
    if (status == 0)
        status = add_all(runs, &c, rings, err);
    etch_ring_processes_release(&c.all);
    return status;
}
