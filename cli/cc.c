/* SPDX-License-Identifier: MIT */
/* etch cc and etch c++: clang, with what the slicer needs. Nothing is taken apart: the arguments go to clang as they are,
 * behind a few of ours, so every mode of clang (-c, -S, -E, -M, @file, several sources, linking) stays clang's own. */
#include "cli/command.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef ETCH_CLANG
#define ETCH_CLANG "clang-19"
#endif
#ifndef ETCH_CLANGXX
#define ETCH_CLANGXX "clang++-19"
#endif

/* Does this option, unless a later one undoes it, take away the types and variables that the slicer names things by? */
static bool weakens_debug(const char *arg)
{
    return strcmp(arg, "-g0") == 0 || strcmp(arg, "-g1") == 0 || strcmp(arg, "-gmlt") == 0 ||
           strcmp(arg, "-gline-tables-only") == 0 || strcmp(arg, "-gline-directives-only") == 0 ||
           strcmp(arg, "-ggdb0") == 0 || strcmp(arg, "-ggdb1") == 0;
}

static bool sets_debug(const char *arg)
{
    return strcmp(arg, "-g") == 0 || strcmp(arg, "-g2") == 0 || strcmp(arg, "-g3") == 0 ||
           strncmp(arg, "-gdwarf", 7) == 0 || (strncmp(arg, "-ggdb", 5) == 0 && !weakens_debug(arg)) ||
           strcmp(arg, "-gfull") == 0 || strcmp(arg, "-glldb") == 0;
}

/* An option that says where clang must end or begin must stay where it is; ours go to the end only where that is safe. */
static bool ends_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--") == 0)
            return true;
    return false;
}

static int exec_clang(const struct etch_command *self, const char *clang, int argc, char **argv)
{
    /* Before optimisation, so that statements and names are the source's own whatever -O says; in cc1, because the
     * driver's -fembed-bitcode refuses options that real builds use (-ffunction-sections). */
    static const char *const ours[] = {"-g", "-gcolumn-info", "-Xclang", "-fembed-bitcode=bitcode"};
    size_t n_ours = sizeof(ours) / sizeof(ours[0]);
    bool weak = false;
    char **args = calloc((size_t)argc + n_ours + 3, sizeof(*args));
    size_t n = 0;

    if (!args) {
        struct etch_error err;

        etch_error_set(&err, "out of memory");
        return etch_command_failed(self, &err);
    }
    args[n++] = (char *)clang;
    for (size_t i = 0; i < n_ours; i++)
        args[n++] = (char *)ours[i];
    for (int i = 1; i < argc; i++) {
        weak = weakens_debug(argv[i]) || (weak && !sets_debug(argv[i]));
        args[n++] = argv[i];
    }
    if (weak && !ends_options(argc, argv))
        args[n++] = (char *)"-g";
    execvp(clang, args);

    struct etch_error err;

    etch_error_set_errno(&err, errno, "cannot run %s", clang);
    etch_error_advise(&err, "install clang-19, or name one in ETCH_CLANG");
    free(args);
    return etch_command_failed(self, &err);
}

static const char *compiler(const char *variable, const char *usual)
{
    const char *named = getenv(variable);

    return named && named[0] ? named : usual;
}

static int run_cc(const struct etch_command *self, int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--help") == 0)
        return etch_command_help(self);
    return exec_clang(self, compiler("ETCH_CLANG", ETCH_CLANG), argc, argv);
}

static int run_cxx(const struct etch_command *self, int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--help") == 0)
        return etch_command_help(self);
    return exec_clang(self, compiler("ETCH_CLANGXX", ETCH_CLANGXX), argc, argv);
}

#define CC_HELP(name, variable)                                                                                        \
    "usage: etch " name " [ARGUMENT...]\n\n"                                                                           \
    "Runs clang with these arguments, and with debug information and the program's bitcode embedded\n"    \
    "in the objects (section .llvmbc, not loaded at run time), so that etch slice can read the program from the\n"     \
    "binary alone. All arguments are clang's. " variable " names another clang of version 19.\n\n"                    \
    "examples:\n"                                                                                                      \
    "  etch " name " -O2 -c file.c\n"                                                                                  \
    "  CC=\"etch cc\" CXX=\"etch c++\" ./configure && make\n"                                                          \
    "  CC=\"etch cc\" CXX=\"etch c++\" cmake -B build\n"

const struct etch_command etch_command_cc = {
    .name = "cc",
    .summary = "clang with what etch needs built in: CC=\"etch cc\"",
    .help = CC_HELP("cc", "ETCH_CLANG"),
    .run = run_cc,
};

const struct etch_command etch_command_cxx = {
    .name = "c++",
    .summary = "the same for C++: CXX=\"etch c++\"",
    .help = CC_HELP("c++", "ETCH_CLANGXX"),
    .run = run_cxx,
};
