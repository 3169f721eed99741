/* SPDX-License-Identifier: MIT */
/* See generate.h. The recorder comes after the ThreadSanitizer pass: the pass would take the recorder's stores for
 * accesses of the program. clang generates the code, because LLVM's C API cannot ask for the map of basic blocks that
 * the decoder needs. The options are those of etch cc --record. */
#include "slicer/lab/generate.h"

#include "slicer/instrument.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <llvm-c/BitWriter.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int run(const char *const *words, struct etch_error *err)
{
    posix_spawn_file_actions_t actions;
    int status = 0, errnum;
    pid_t pid;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    errnum = posix_spawnp(&pid, words[0], &actions, NULL, (char *const *)(uintptr_t)words, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (errnum)
        return etch_error_set_errno(err, errnum, "cannot run %s", words[0]);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0
               ? 0
               : etch_error_set(err, "%s cannot generate code for the lab build", words[0]);
}

/* Selects of the bitcode must not become branches, which the recorder would not see. */
static int generate(const struct etch_lab_generate *about, const char *bitcode, struct etch_error *err)
{
    const char *const words[] = {about->clang,
                                 "-c",
                                 "-x",
                                 "ir",
                                 bitcode,
                                 "-o",
                                 about->object,
                                 about->optimised ? "-O2" : "-O0",
                                 "-fPIC",
                                 "-w",
                                 "-Xclang",
                                 "-disable-llvm-passes",
                                 "-fbasic-block-address-map",
                                 "-mllvm",
                                 "-x86-cmov-converter=false",
                                 "-mllvm",
                                 "-disable-cgp-select2branch",
                                 NULL};

    return run(words, err);
}

int etch_lab_generate(LLVMModuleRef module, const struct etch_lab_generate *about, struct etch_error *err)
{
    const struct etch_instrument_options options = {.lab = true};
    char plain[PATH_MAX], recorded[PATH_MAX];
    int status;

    snprintf(plain, sizeof(plain), "%.*s.plain.bc", PATH_MAX - 32, about->object);
    snprintf(recorded, sizeof(recorded), "%.*s.recorded.bc", PATH_MAX - 32, about->object);
    status = LLVMWriteBitcodeToFile(module, plain) ? etch_error_set(err, "cannot write %s", plain)
                                                   : etch_instrument(plain, recorded, &options, NULL, err);
    if (status == 0)
        status = generate(about, recorded, err);
    unlink(plain);
    unlink(recorded);
    return status;
}
