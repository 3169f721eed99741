/* SPDX-License-Identifier: MIT */
/* QEMU with the plugin in it, in place of the program. */
#include "collector/vpt/vpt.h"
#include "collector/vpt_find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

int vpt_find_parts(struct vpt *v, struct etch_error *err)
{
    if (!etch_vpt_find_qemu(v->qemu, sizeof(v->qemu))) {
        etch_error_set(err, "cannot record with vpt: there is no qemu-x86_64 here");
        return etch_error_advise(err, "apt-get install qemu-user, or etch cc --record and --source soft");
    }
    if (!etch_vpt_find_plugin(v->plugin, sizeof(v->plugin))) {
        etch_error_set(err, "cannot record with vpt: there is no plugin %s", v->plugin[0] ? v->plugin : "etch-vpt.so");
        return etch_error_advise(err, "ETCH_VPT_PLUGIN=PATH, or install etch whole");
    }
    return 0;
}

/* In the child. */
static void enter_sync(struct vpt *v)
{
    if (!v->sync)
        return;
    putenv(v->words.preload);
    putenv(v->words.sync);
    if (v->words.before[0])
        putenv(v->words.before);
}

/* The target's LD_ variables are for its own dynamic linker, not for QEMU's: they go in by QEMU's option instead. */
static size_t move_environment(const char **argv, size_t n, size_t limit)
{
    extern char **environ;
    char **to = environ;

    for (char **from = environ; *from; from++) {
        if (strncmp(*from, "LD_", 3) == 0 && n + 2 < limit) {
            argv[n++] = "-E";
            argv[n++] = *from;
        } else {
            *to++ = *from;
        }
    }
    *to = NULL;
    return n;
}

/* QEMU's core files are not the kernel's and land in the program's folder; and with their size limited to 0 it always
 * says that a signal kills the program, which the plugin listens for. */
void vpt_launch(struct etch_recorder *r)
{
    struct etch_folder_story story = {.source = "vpt", .pid = (uint32_t)getpid()};
    struct vpt *v = r->state;
    struct rlimit no_core = {0, 0};
    static char option[8300];
    bool script = r->interpreter[0];
    size_t n = 0, given = 0, limit;
    const char **argv;

    while (r->options->argv[given])
        given++;
    limit = given + 256;
    argv = calloc(limit, sizeof(*argv));
    if (!argv)
        return;
    sprintf(option + etch_vpt_plugin_option(v->plugin, option, 8200), ",dir=%s", v->folder.path);
    argv[n++] = v->qemu;
    argv[n++] = "-plugin";
    argv[n++] = option;
    enter_sync(v);
    n = move_environment(argv, n, limit - given - 8);
    argv[n++] = "-0";
    argv[n++] = script ? r->interpreter : r->options->argv[0];
    argv[n++] = script ? r->interpreter : r->program;
    if (script && r->interpreter_argument[0])
        argv[n++] = r->interpreter_argument;
    if (script)
        argv[n++] = r->program;
    for (size_t i = 1; i < given; i++)
        argv[n++] = r->options->argv[i];
    if (getrlimit(RLIMIT_CORE, &no_core) == 0) {
        no_core.rlim_cur = 0;
        setrlimit(RLIMIT_CORE, &no_core);
    }
    snprintf(story.output, sizeof(story.output), "%s", r->options->output);
    etch_folder_tell(&v->folder, &story);
    etch_guarded_forget();
    execv(v->qemu, (char **)(uintptr_t)argv);
    free((void *)argv);
}

/* The reason is the first line of QEMU's own message. */
bool vpt_never_ran(struct etch_recorder *r, struct etch_error *err)
{
    const struct vpt *v = r->state;
    char log[sizeof(v->control->log) + 1] = "";

    if (atomic_load(&v->control->threads) || atomic_load(&v->control->refused))
        return false;
    if (!etch_vpt_takes_plugins(v->qemu)) {
        etch_error_set(err, "cannot record with vpt: %s takes no plugins", v->qemu);
        etch_error_advise(
            err, "etch cc --record and --source soft; or ./run qemu in etch's source, which builds one that does");
        return true;
    }
    memcpy(log, v->control->log, sizeof(v->control->log));
    log[strcspn(log, "\n")] = '\0';
    etch_error_set(err, "cannot run %s under QEMU: %.200s", r->program, log[0] ? log : "it ended before it began");
    etch_error_advise(err, "%s %s, to see what QEMU says", v->qemu, r->program);
    return true;
}
