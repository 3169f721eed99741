/* SPDX-License-Identifier: MIT */
/* A core from standard input; see collector/core_keep.h. The dying process waits until its core is read, so everything
 * that can wait is done after that. */
#include "collector/core_keep.h"

#include "base/input.h"
#include "base/output.h"
#include "base/printable.h"
#include "collector/core/dying.h"
#include "collector/core/store.h"
#include "collector/privacy.h"
#include "collector/session/host.h"
#include "collector/session/recorder.h"
#include "collector/standby.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BUFFER (256u << 10)
#define BLOCK 4096u
#define PIPE (1 << 20)
#define EXE_MAX ((uint64_t)256 << 20) /* of a copied program */

extern char **environ;

struct receiving {
    const struct etch_core_place *place;
    const struct etch_core_dump *dump;
    struct core_dying dying;
    char name[200];
    int file, then; /* descriptors: etch's copy, the pipe to the former handler; -1: none (any more) */
    pid_t handler;
    uint64_t bound;       /* bytes of etch's copy, at most */
    uint64_t size;        /* of the core so far */
    uint64_t kept;        /* of it in etch's copy */
    bool by_room, failed; /* the bound is that of the disk; writing failed, for `err` */
    struct etch_error *err;
};

/* ---- The former handler ---- */

static void start_handler(struct receiving *r, char *const *then)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t defaults;
    int ends[2];

    r->handler = -1;
    if (!then || pipe2(ends, O_CLOEXEC) < 0)
        return;
    fcntl(ends[1], F_SETPIPE_SZ, PIPE);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
    if (posix_spawn(&r->handler, then[0], &actions, &attributes, then, environ) != 0)
        r->handler = -1;
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    close(ends[0]);
    if (r->handler > 0)
        r->then = ends[1];
    else
        close(ends[1]);
}

/* A handler that died, or that wants no more, is not fed any further. */
static void feed_handler(struct receiving *r, const char *bytes, size_t size)
{
    while (size && r->then >= 0) {
        ssize_t n = write(r->then, bytes, size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            close(r->then);
            r->then = -1;
            return;
        }
        bytes += n;
        size -= (size_t)n;
    }
}

static void end_handler(struct receiving *r)
{
    int status;

    if (r->then >= 0)
        close(r->then);
    r->then = -1;
    if (r->handler > 0)
        while (waitpid(r->handler, &status, 0) < 0 && errno == EINTR)
            ;
}

/* ---- etch's copy ---- */

static bool is_zero(const char *bytes, size_t size)
{
    return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

static void stop_keeping(struct receiving *r, int error)
{
    r->failed = true;
    etch_error_set_errno(r->err, error, "cannot write %s/%s.core", r->place->folder, r->name);
}

/* Blocks of zeroes take no space on the disk. */
static void keep(struct receiving *r, const char *bytes, size_t size)
{
    if (r->file < 0 || r->failed || r->kept < r->size)
        return;
    if (size > r->bound - r->kept)
        size = (size_t)(r->bound - r->kept);
    while (size) {
        size_t piece = BLOCK - (size_t)(r->kept % BLOCK);
        ssize_t n = (ssize_t)(piece = piece < size ? piece : size);

        if (!is_zero(bytes, piece)) {
            size_t more = piece;

            while (more < size && !is_zero(bytes + more, size - more < BLOCK ? size - more : BLOCK))
                more += size - more < BLOCK ? size - more : BLOCK;
            n = pwrite(r->file, bytes, more, (off_t)r->kept);
        }
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            stop_keeping(r, n < 0 ? errno : ENOSPC);
            return;
        }
        r->kept += (uint64_t)n;
        bytes += n;
        size -= (size_t)n;
    }
}

/* Without a former handler, bytes beyond the bound need not be read: the process can go. */
static void read_core(struct receiving *r)
{
    char *buffer = malloc(BUFFER);
    ssize_t n;

    fcntl(STDIN_FILENO, F_SETPIPE_SZ, PIPE);
    while (buffer && (r->then >= 0 || (r->file >= 0 && !r->failed && r->kept == r->size))) {
        n = read(STDIN_FILENO, buffer, BUFFER);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        feed_handler(r, buffer, (size_t)n);
        keep(r, buffer, (size_t)n);
        r->size += (uint64_t)n;
    }
    free(buffer);
}

/* ---- The folder ---- */

/* "NAME.PID.TIME", of letters that are harmless in a shell. */
static void make_name(struct receiving *r)
{
    const char *name = r->dying.name[0] ? r->dying.name : "unknown";
    size_t n = 0;

    for (; name[n] && n < 32; n++)
        r->name[n] =
            strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", name[n]) ? name[n] : '_';
    snprintf(r->name + n, sizeof(r->name) - n, ".%d.%llu", r->dump->pid, (unsigned long long)r->dump->unix_s);
}

static void open_copy(struct receiving *r)
{
    char path[4096];
    uint64_t room;

    if (core_store_make(r->place->folder, r->err) < 0)
        return;
    make_name(r);
    etch_standby_ask(r->place->folder, r->dump->pid, r->name); /* first: each moment costs the rings bytes */
    core_store_path(path, r->place->folder, r->name, ".core");
    r->file = etch_output_fresh(path);
    if (r->file < 0)
        etch_error_set_errno(r->err, errno, "cannot make %s", path);
    room = core_store_room(r->place->folder);
    r->by_room = room < r->place->max_size;
    r->bound = r->by_room ? room : r->place->max_size;
}

static void copy_exe(struct receiving *r)
{
    uint64_t room = core_store_room(r->place->folder), left = room < EXE_MAX ? room : EXE_MAX;
    char path[4096], *buffer;
    ssize_t n = 0;
    int to;

    if (!r->dying.exe_elsewhere || etch_input_size(r->dying.exe_fd) > (off_t)left)
        return;
    core_store_path(path, r->place->folder, r->name, ".exe");
    to = etch_output_fresh(path);
    buffer = to >= 0 ? malloc(BUFFER) : NULL;
    while (buffer && (n = read(r->dying.exe_fd, buffer, BUFFER)) > 0)
        if (write(to, buffer, (size_t)n) != n) {
            n = -1;
            break;
        }
    if (to >= 0 && (!buffer || n < 0))
        unlink(path);
    if (to >= 0)
        close(to);
    free(buffer);
}

/* ---- The bundle about the process ---- */

static void from_kernel(char *path)
{
    for (; *path; path++)
        if (*path == '!')
            *path = '/';
}

static void write_program(struct receiving *r, struct etch_recorder *recorder)
{
    Etch__Program program = ETCH__PROGRAM__INIT;
    struct core_dying *d = &r->dying;
    char *words[256];

    if (!d->exe[0] && r->dump->exe) {
        snprintf(d->exe, sizeof(d->exe), "%s", r->dump->exe);
        from_kernel(d->exe);
    }
    for (size_t at = 0; at < d->command_size && program.n_argv < 256; at += strlen(d->command + at) + 1)
        words[program.n_argv++] = etch_printable(d->command + at);
    program.etch_version = (char *)(uintptr_t)ETCH_VERSION;
    program.argv = words;
    program.exe = etch_printable(d->exe);
    program.cwd = etch_printable(d->cwd);
    program.rings = etch_printable(d->rings);
    program.pid = (uint32_t)(r->dump->own_pid ? r->dump->own_pid : r->dump->pid);
    program.outer_pid = (uint32_t)r->dump->pid;
    program.start_unix_ns = d->start_unix_ns;
    program.pid_namespace = d->pid_namespace;
    etch_recorder_write(recorder, ETCH__RECORD__BODY_PROGRAM, &program);
}

static void write_threads(struct receiving *r, struct etch_recorder *recorder)
{
    for (size_t i = 0; i < r->dying.threads.n; i++) {
        Etch__Thread thread = ETCH__THREAD__INIT;

        thread.pid = (uint32_t)(r->dump->own_pid ? r->dump->own_pid : r->dump->pid);
        thread.tid = r->dying.threads.v[i].tid;
        thread.name = etch_printable(r->dying.threads.v[i].name);
        etch_recorder_write(recorder, ETCH__RECORD__BODY_THREAD, &thread);
    }
}

static void write_loss(struct receiving *r, struct etch_recorder *recorder)
{
    Etch__Loss loss = ETCH__LOSS__INIT;

    if (r->kept == r->size && !r->failed)
        return;
    loss.cause = r->failed || r->by_room ? ETCH__LOSS_CAUSE__LOSS_NO_SPACE : ETCH__LOSS_CAUSE__LOSS_LIMIT;
    loss.events = 1;
    loss.bytes = r->size - r->kept; /* at least: a core without a former handler is not read to its end */
    loss.detail =
        (char *)(uintptr_t)(loss.cause == ETCH__LOSS_CAUSE__LOSS_LIMIT ? "the core is larger than --max-size"
                                                                       : "the disk has no room for the whole core");
    etch_recorder_write(recorder, ETCH__RECORD__BODY_LOSS, &loss);
}

static void write_outcome(struct receiving *r, struct etch_recorder *recorder)
{
    Etch__Outcome outcome = ETCH__OUTCOME__INIT;

    outcome.how_case = ETCH__OUTCOME__HOW_SIGNAL;
    outcome.signal = (uint32_t)r->dump->signal;
    outcome.end_unix_ns = r->dump->unix_s * 1000000000u;
    etch_recorder_write(recorder, ETCH__RECORD__BODY_OUTCOME, &outcome);
}

/* The core is worth keeping without its bundle, too. */
static void write_about(struct receiving *r)
{
    struct etch_record_summary summary = {0};
    struct etch_recorder recorder;
    struct etch_privacy *privacy;
    struct etch_error ignored;
    char path[4096];

    core_store_path(path, r->place->folder, r->name, ".etch");
    etch_recorder_init(&recorder, 0, &summary);
    if (etch_privacy_open(&privacy, NULL, false, &ignored) < 0)
        return;
    if (etch_recorder_create(&recorder, path, privacy, &ignored) == 0) {
        etch_host_write(&recorder, &ignored);
        write_program(r, &recorder);
        write_threads(r, &recorder);
        write_loss(r, &recorder);
        write_outcome(r, &recorder);
        etch_recorder_finish(&recorder);
        etch_recorder_close(&recorder, !recorder.broken);
    }
    etch_privacy_free(privacy);
}

/* ---- All ---- */

static void end_copy(struct receiving *r)
{
    if (r->file < 0)
        return;
    if (ftruncate(r->file, (off_t)r->kept) < 0 && !r->failed) /* zeroes at the end */
        stop_keeping(r, errno);
    close(r->file);
    write_about(r);
    copy_exe(r);
    core_store_prune(r->place, r->name);
}

int etch_core_receive(const struct etch_core_place *place, const struct etch_core_dump *dump, char *const *then,
                      char path[4096], struct etch_error *err)
{
    struct receiving *r = calloc(1, sizeof(*r));
    int status;

    if (!r)
        return etch_error_no_memory(err);
    *r = (struct receiving){.place = place, .dump = dump, .file = -1, .then = -1, .err = err};
    start_handler(r, then);
    core_dying_look(&r->dying, dump->pid);
    open_copy(r);
    read_core(r);
    if (r->handler <= 0)
        close(STDIN_FILENO); /* the process can go */
    else if (r->then >= 0) {
        close(r->then);
        r->then = -1;
    }
    end_copy(r);
    end_handler(r); /* until then the process is there for the handler to look at */
    core_store_path(path, place->folder, r->name, ".core");
    status = r->file < 0 || r->failed ? -1 : 0;
    core_dying_release(&r->dying);
    free(r);
    return status;
}
