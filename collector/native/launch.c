/* SPDX-License-Identifier: MIT */
/* How a native recording gets its program; see launch.h. */
#include "collector/native/launch.h"
#include "collector/native/arm.h"
#include "collector/session/signals.h"
#include "collector/sync/preload.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

struct environment {
    char **words;
    struct etch_sync_words sync;
};

/* The program's environment, with the library in it. */
static int prepare_environment(struct environment *e, const char *library, const struct native *native)
{
    extern char **environ;
    size_t n = 0, k = 0;
    bool given = false;

    while (environ[n])
        n++;
    e->words = calloc(n + 8, sizeof(char *));
    if (!e->words)
        return -1;
    if (native->flow && native->flow->environment) /* first: of two of a name the first counts */
        k = native->flow->environment(native->flow_state, e->words, 5);
    if (library)
        etch_sync_words_make(&e->sync, library, native->sync);
    for (size_t i = 0; i < n; i++) { /* each in its place: the program may look */
        bool ours = library && strncmp(environ[i], "LD_PRELOAD=", 11) == 0;

        given |= ours;
        e->words[k++] = ours ? e->sync.preload : environ[i];
    }
    if (!library)
        return 0;
    e->words[k++] = e->sync.sync;
    e->words[k++] = given ? e->sync.before : e->sync.preload;
    return 0;
}

/* A program with more rights than its user loses them under a tracer: that would not be the same program. */
static int refuse_privileged(const char *path, struct etch_error *err)
{
    struct stat st;

    if (geteuid() == 0 || stat(path, &st) < 0 || !(st.st_mode & (S_ISUID | S_ISGID)))
        return 0;
    etch_error_set(err, "cannot record %s: it is set-user-id or set-group-id, and would lose that under a tracer",
                   path);
    return etch_error_advise(err, "run etch as root");
}

static int refuse_tracer(struct native *n, const struct etch_object *object, struct etch_error *err)
{
    if (n->options->allow_ptrace || !etch_object_imports(object, "ptrace"))
        return 0;
    etch_error_set(err, "cannot record %s: it uses ptrace itself, and a process has one tracer only", n->path);
    return etch_error_advise(err,
                             "record the program that it traces; or --allow-ptrace if it traces none but children");
}

/* The watches and the program's own breakpoints would share four registers. The program would meet refusals that it
 * does not meet without etch. */
static int refuse_breakpoints(struct native *n, const struct etch_object *object, struct etch_error *err)
{
    if (!n->n_list || n->options->allow_breakpoints || !etch_object_makes_call(object, SYS_perf_event_open))
        return 0;
    etch_error_set(err, "cannot watch in %s: it opens perf events, perhaps hardware breakpoints, itself", n->path);
    return etch_error_advise(err,
                             "record it without --watch; or --allow-breakpoints if it can do with fewer than four");
}

/* Looks at the file, and decides whether the library goes in. */
static int examine(struct native *n, char *library, size_t size, struct etch_error *err)
{
    struct etch_object *object = NULL;
    struct etch_error ignored;
    const char *name = n->options->file ? n->options->file : n->options->argv[0];

    library[0] = '\0';
    if (etch_record_find_program(name, n->path, sizeof(n->path), err) < 0 || refuse_privileged(n->path, err) < 0)
        return -1;
    if (etch_object_open(&object, n->path, &ignored) == 0 &&
        (refuse_tracer(n, object, err) < 0 || refuse_breakpoints(n, object, err) < 0)) {
        etch_object_free(object);
        return -1;
    }
    if (n->options->no_sync)
        library[0] = '\0';
    else if (object && !etch_object_is_dynamic(object))
        etch_recorder_note(&n->recorder, "no synchronisation events: %s is linked statically", n->path);
    else if (!etch_sync_library_find(library, size))
        etch_recorder_note(&n->recorder, "no synchronisation events: etch-sync.so is not beside etch");
    else if (strpbrk(library, ": \t"))
        library[0] = '\0',
        etch_recorder_note(&n->recorder, "no synchronisation events: the path of etch-sync.so has a space or colon");
    etch_object_free(object);
    return 0;
}

int etch_native_launch(struct native *n, const struct etch_signals *signals, const struct rlimit *descriptors,
                       struct etch_error *err)
{
    struct environment *e = calloc(1, sizeof(*e));
    struct etch_launch launch;
    char library[4096];
    int status = -1;

    if (!e)
        return etch_error_no_memory(err);
    if (examine(n, library, sizeof(library), err) == 0 && (!library[0] || etch_sync_reader_new(&n->sync, err) == 0)) {
        if (prepare_environment(e, library[0] ? library : NULL, n) < 0) {
            etch_error_no_memory(err);
        } else {
            launch = (struct etch_launch){.argv = n->options->argv,
                                          .path = n->path,
                                          .environment = e->words,
                                          .signal_mask = &signals->mask_before,
                                          .sigchld_ignored = signals->child_before.sa_handler == SIG_IGN,
                                          .descriptors = descriptors};
            status = etch_target_launch(&n->target, &launch, err);
        }
    }
    free(e->words);
    free(e);
    return status;
}

int etch_native_join(struct native *n, struct etch_error *err)
{
    if (etch_process_perf_events(n->options->pid) && n->n_list) {
        etch_error_set(err, "cannot watch in process %d: it uses perf events, perhaps hardware breakpoints, itself",
                       (int)n->options->pid);
        return etch_error_advise(err, "record it without --watch");
    }
    if (etch_target_attach(&n->target, n->options->pid, err) < 0)
        return -1;
    etch_watchdog_set_target(n->watchdog, n->target.pid);
    etch_recorder_note(&n->recorder, "no synchronisation events: the library goes into a program only at its start");
    n->recorder.start_tsc = __rdtsc();
    n->late = true;
    etch_native_write_program(n);
    etch_native_write_images(n);
    return etch_native_arm(n, err) < 0 ? -1 : etch_native_flow_start(n, err);
}
