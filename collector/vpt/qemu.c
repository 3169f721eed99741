/* SPDX-License-Identifier: MIT */
/* QEMU with the plugin in it, in place of the program. */
#include "collector/vpt/exec.h"
#include "collector/vpt/vpt.h"
#include "collector/vpt_find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

int etch_vpt_find_parts(struct vpt *v, struct etch_error *err)
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

int etch_vpt_find_program(struct vpt *v, struct etch_error *err)
{
    struct etch_vpt_exec exec;
    struct etch_error cause;
    char absolute[sizeof(v->program)] = "";

    if (etch_record_find_program(v->options->argv[0], v->program, sizeof(v->program), err) < 0)
        return -1;
    if (!etch_vpt_exec_can_follow(v->program, &exec)) {
        etch_error_set(err, "cannot record %s: it is not an x86-64 program or a script that one runs", v->program);
        return etch_error_advise(err, "a 64-bit ELF file without set-user-id; file %s says what it is", v->program);
    }
    memcpy(v->interpreter, exec.interpreter, sizeof(v->interpreter));
    memcpy(v->interpreter_argument, exec.argument, sizeof(v->interpreter_argument));
    if (!exec.interpreter[0] && realpath(v->program, absolute))
        memcpy(v->program, absolute, sizeof(v->program));
    return etch_elf_read(&v->elf, exec.interpreter[0] ? exec.interpreter : v->program, &cause) == 0
               ? 0
               : etch_error_set(err, "%s", cause.what);
}

void etch_vpt_program(const void *state, Etch__Program *program)
{
    const struct vpt *v = state;

    program->exe = (char *)(uintptr_t)(v->interpreter[0] ? v->interpreter : v->program);
    program->build_id.data = (uint8_t *)(uintptr_t)v->elf.build_id;
    program->build_id.len = v->elf.build_id_size;
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
void etch_vpt_launch(void *state)
{
    struct etch_folder_story story = {.source = "vpt", .pid = (uint32_t)getpid()};
    struct vpt *v = state;
    struct rlimit no_core = {0, 0};
    static char option[8300];
    bool script;
    size_t n = 0, given = 0, limit;
    const char **argv;

    script = v->interpreter[0];
    while (v->options->argv[given])
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
    argv[n++] = script ? v->interpreter : v->options->argv[0];
    argv[n++] = script ? v->interpreter : v->program;
    if (script && v->interpreter_argument[0])
        argv[n++] = v->interpreter_argument;
    if (script)
        argv[n++] = v->program;
    for (size_t i = 1; i < given; i++)
        argv[n++] = v->options->argv[i];
    if (getrlimit(RLIMIT_CORE, &no_core) == 0) {
        no_core.rlim_cur = 0;
        setrlimit(RLIMIT_CORE, &no_core);
    }
    snprintf(story.output, sizeof(story.output), "%s", v->options->output);
    etch_folder_tell(&v->folder, &story);
    etch_guarded_forget();
    execv(v->qemu, (char **)(uintptr_t)argv);
    free((void *)argv);
}

/* The reason is the first line of QEMU's own message. */
bool etch_vpt_never_ran(void *state, struct etch_error *err)
{
    const struct vpt *v = state;
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
    etch_error_set(err, "cannot run %s under QEMU: %.200s", v->program, log[0] ? log : "it ended before it began");
    etch_error_advise(err, "%s %s, to see what QEMU says", v->qemu, v->program);
    return true;
}
