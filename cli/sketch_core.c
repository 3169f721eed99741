/* SPDX-License-Identifier: MIT */
/* See sketch_core.h. */
#include "cli/sketch_core.h"

#include "base/output.h"
#include "collector/core.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The temporary folder, with core.etch, and with core if coredumpctl gave it. */
static char folder[PATH_MAX];
static bool given;

static int make_folder(struct etch_error *err)
{
    const char *place = getenv("TMPDIR");

    if (folder[0])
        return 0;
    snprintf(folder, sizeof(folder), "%.4000s/etch-core-XXXXXX", place && place[0] ? place : "/tmp");
    if (mkdtemp(folder))
        return 0;
    etch_error_set_errno(err, errno, "cannot make a temporary folder %s", folder);
    folder[0] = '\0';
    return etch_error_advise(err, "TMPDIR=FOLDER, a folder that you can write to");
}

static const char *file_in(char path[PATH_MAX + 16], const char *name)
{
    snprintf(path, PATH_MAX + 16, "%s/%s", folder, name);
    return path;
}

void etch_sketch_core_clean(void)
{
    char path[PATH_MAX + 16];

    if (!folder[0])
        return;
    unlink(file_in(path, "core"));
    unlink(file_in(path, "core.etch"));
    unlink(file_in(path, "said"));
    rmdir(folder);
    folder[0] = '\0';
}

/* ---- coredumpctl ---- */

/* The value of --coredump, and the program: the first word that is no option. */
static const char *find_option(int argc, char **argv, const char **program)
{
    static const char name[] = "--coredump";
    const char *which = NULL;

    *program = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], name) == 0 && i + 1 < argc)
            which = argv[++i];
        else if (strncmp(argv[i], name, sizeof(name) - 1) == 0 && argv[i][sizeof(name) - 1] == '=')
            which = argv[i] + sizeof(name);
        else if (argv[i][0] != '-' && !*program)
            *program = argv[i];
    }
    return which;
}

static int check_which(const char *which, struct etch_error *err)
{
    if (strcmp(which, "latest") == 0 || (which[0] && strspn(which, "0123456789") == strlen(which)))
        return 0;
    return etch_error_set(err, "--coredump takes a process number or latest, not '%s'", which);
}

/* Runs it, with its messages in the file `said`. Returns its wait status, or -1 with errno set. */
static int run_coredumpctl(char *const *words)
{
    posix_spawn_file_actions_t actions;
    char path[PATH_MAX + 16];
    int said = etch_output_fresh(file_in(path, "said")), status = -1;
    pid_t pid;

    if (said < 0)
        return -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, said, STDERR_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    errno = posix_spawnp(&pid, words[0], &actions, NULL, words, environ);
    if (errno == 0)
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    posix_spawn_file_actions_destroy(&actions);
    close(said);
    return status;
}

static void first_words(char *line, size_t size)
{
    char path[PATH_MAX + 16];
    FILE *said = fopen(file_in(path, "said"), "re");

    if (!said || !fgets(line, (int)size, said))
        line[0] = '\0';
    if (said)
        fclose(said);
    line[strcspn(line, "\n")] = '\0';
}

static int dump(const char *which, const char *program, struct etch_error *err)
{
    char path[PATH_MAX + 16], real[PATH_MAX], output[PATH_MAX + 32], said[256];
    bool latest = strcmp(which, "latest") == 0;
    char *words[] = {"coredumpctl", "dump", output, "-1", (char *)(uintptr_t)which, NULL};
    struct stat st;
    int status;

    if (make_folder(err) < 0)
        return -1;
    if (latest && (!program || !realpath(program, real)))
        return etch_error_set_errno(err, errno, "cannot find the program %s", program ? program : "");
    if (latest)
        words[4] = real; /* the newest core of this program, not of any */
    snprintf(output, sizeof(output), "--output=%s", file_in(path, "core"));
    status = run_coredumpctl(words);
    if (status < 0) {
        etch_error_set_errno(err, errno, "cannot run coredumpctl");
        return etch_error_advise(err,
                                 "install systemd-coredump; or --core FILE with the core that the kernel wrote; or "
                                 "etch core --install, so that etch keeps the next one");
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && stat(path, &st) == 0)
        return 0;
    first_words(said, sizeof(said));
    etch_error_set(err, "coredumpctl has no core of %s: %s", latest ? real : which, said[0] ? said : "it says nothing");
    return etch_error_advise(err, "coredumpctl list, which lists the cores; sudo, if the core is another user's");
}

int etch_sketch_core_before(const struct etch_command *self, int argc, char **argv)
{
    struct etch_error err;
    const char *program, *which = find_option(argc, argv, &program);

    if (!which)
        return 0;
    if (check_which(which, &err) < 0)
        return etch_command_usage(self, "%s", err.what);
    if (dump(which, program, &err) == 0) {
        given = true;
        return 0;
    }
    etch_sketch_core_clean();
    return etch_command_failed(self, &err);
}

/* ---- The bundle ---- */

/* In words, because the loss is not in the bundle of the rings that the core may be joined to. */
static void note_all(struct etch_run_set *runs, const struct etch_record_summary *summary)
{
    for (size_t i = 0; i < summary->n_notes; i++)
        etch_run_set_note(runs, summary->notes[i]);
    if (summary->loss[0])
        etch_run_set_note(runs, summary->loss);
}

int etch_sketch_core_make(struct etch_sketch_core *made, struct etch_run_set *runs, const char *program,
                          const char *core, struct etch_error *err)
{
    struct etch_core_request request = {.core = core, .program = program, .output = made->path};
    struct etch_record_summary summary;
    char dumped[PATH_MAX + 16];

    made->recording = NULL;
    if (make_folder(err) < 0)
        return -1;
    if (!core && !given)
        return etch_error_set(err, "there is no core");
    if (!core)
        request.core = file_in(dumped, "core");
    snprintf(made->core, sizeof(made->core), "%.4150s", request.core);
    snprintf(made->path, sizeof(made->path), "%.4150s/core.etch", folder);
    if (etch_core_bundle(&request, &summary, err) < 0)
        return -1;
    note_all(runs, &summary);
    return etch_recording_open(&made->recording, made->path, err);
}

void etch_sketch_core_release(struct etch_sketch_core *made)
{
    etch_recording_free(made->recording);
    made->recording = NULL;
}

const char *etch_sketch_core_rings(const struct etch_sketch_core *made)
{
    const Etch__Program *program = made->recording->program;

    return program && program->rings[0] && access(program->rings, R_OK) == 0 ? program->rings : NULL;
}
