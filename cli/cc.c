/* SPDX-License-Identifier: MIT */
/* etch cc and etch c++: clang, with the options that the slicer needs. The user's arguments go to clang unchanged,
 * after a few options of ours. Every mode of clang (-c, -S, -E, -M, @file, several sources, linking) works as in clang.
 */
#include "slicer/bitcode.h"

#include "base/array.h"
#include "base/path.h"
#include "cli/cc_link.h"
#include "cli/cc_record.h"
#include "cli/cc_slice.h"
#include "cli/command.h"
#include "cli/summaries.h"
#include "diagnose/lab_twin.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef ETCH_CLANG
#define ETCH_CLANG "clang-19"
#endif
#ifndef ETCH_CLANGXX
#define ETCH_CLANGXX "clang++-19"
#endif

/* Returns true if the option removes the types and variables whose names the slicer shows. A later option can undo it.
 */
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

/* Returns true if "--" ends the options: our own options cannot be appended then. */
static bool ends_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--") == 0)
            return true;
    return false;
}

/* ---- The request in the arguments ---- */

struct request {
    bool compiles_only; /* -c: leaves objects behind */
    bool has_language;  /* -x: file names do not tell the language */
    bool has_source;    /* by its name, a file of a language that clang compiles */
    bool has_assembler; /* .s: neither compiled nor preprocessed */
    bool ends_early;    /* preprocesses, checks, assembles or asks only: makes no program */
    bool weakens;       /* ends up with less debug information than the slicer needs */
    const char *output; /* -o */
    ETCH_ARRAY(char *) inputs;
    ETCH_ARRAY(char *) owned; /* words from response files */
};

static bool ends_with(const char *text, const char *tail)
{
    size_t n = strlen(text), k = strlen(tail);

    return n >= k && strcmp(text + n - k, tail) == 0;
}

static bool is_source(const char *name)
{
    static const char *const tails[] = {".c",  ".cc", ".cpp", ".cxx", ".C",  ".c++",
                                        ".cp", ".i",  ".ii",  ".m",   ".mm", ".S"};

    for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++)
        if (ends_with(name, tails[i]))
            return true;
    return strcmp(name, "-") == 0;
}

static void take_words(struct request *r, char **words, size_t n, int depth);

/* Takes the words of a response file, by the shell's simple quoting. If the file cannot be read, clang reports that. */
static void take_response_file(struct request *r, const char *path, int depth)
{
    ETCH_ARRAY(char *) words = {0};
    FILE *in = depth < 8 ? fopen(path, "r") : NULL;
    char word[4096];
    size_t n = 0;
    int c, quote = 0;
    bool inside = false;

    while (in && (c = fgetc(in), true)) {
        bool ends = c == EOF || (!quote && (c == ' ' || c == '\t' || c == '\n' || c == '\r'));

        if (ends && inside) {
            char *copy = strndup(word, n);

            if (!copy || !etch_array_push(&r->owned, copy)) {
                free(copy);
                break;
            }
            if (!etch_array_push(&words, copy))
                break;
            n = 0;
        }
        if (c == EOF)
            break;
        inside = !ends;
        if (ends)
            continue;
        if (quote ? c == quote : c == '"' || c == '\'')
            quote = quote ? 0 : c;
        else if (c == '\\' && quote != '\'' && (c = fgetc(in)) == EOF)
            break;
        else if (n + 1 < sizeof(word))
            word[n++] = (char)c;
    }
    if (in)
        fclose(in);
    take_words(r, words.v, words.n, depth + 1);
    etch_array_free(&words);
}

/* Options that make the driver stop before the link, or make something else than a program or a library. -v is one of
 * them: libtool reads the link command from the output of -v, and would remember our temporary file. */
static bool is_early_end(const char *w)
{
    static const char *const options[] = {"-S",   "-E",        "-M",         "-MM", "-fsyntax-only", "-r",
                                          "-###", "--version", "-emit-llvm", "-v",  "--verbose"};

    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        if (strcmp(w, options[i]) == 0)
            return true;
    return strncmp(w, "-print-", 7) == 0 || strncmp(w, "--print-", 8) == 0;
}

static void take_words(struct request *r, char **words, size_t n, int depth)
{
    for (size_t i = 0; i < n; i++) {
        char *w = words[i];

        r->weakens = weakens_debug(w) || (r->weakens && !sets_debug(w));
        if (w[0] == '@') {
            take_response_file(r, w + 1, depth);
        } else if (strcmp(w, "-c") == 0) {
            r->compiles_only = true;
        } else if (is_early_end(w)) {
            r->ends_early = true;
        } else if (strcmp(w, "-o") == 0 && i + 1 < n) {
            r->output = words[++i];
        } else if (strncmp(w, "-o", 2) == 0 && w[2]) {
            r->output = w + 2;
        } else if (strncmp(w, "-x", 2) == 0) {
            r->has_language = true;
        } else if (w[0] != '-' || !w[1]) {
            r->has_source = r->has_source || is_source(w);
            r->has_assembler = r->has_assembler || ends_with(w, ".s");
            etch_array_push(&r->inputs, w);
        }
    }
}

static void release_request(struct request *r)
{
    for (size_t i = 0; i < r->owned.n; i++)
        free(r->owned.v[i]);
    etch_array_free(&r->owned);
    etch_array_free(&r->inputs);
}

/* ---- Objects that are left behind ---- */

/* ETCH_BITCODE_CLANG explains the renaming. A file that is missing or not an object is left alone. */
static void rename_section(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    struct stat st;
    uint8_t *bytes;

    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        bytes = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (bytes != MAP_FAILED) {
            etch_bitcode_rename(bytes, (size_t)st.st_size);
            munmap(bytes, (size_t)st.st_size);
        }
    }
    close(fd);
}

/* Without -o, clang writes the object of dir/name.c to name.o. */
static void rename_in_objects(const struct request *r)
{
    if (r->output) {
        rename_section(r->output);
        return;
    }
    for (size_t i = 0; i < r->inputs.n; i++) {
        const char *base = etch_path_name(r->inputs.v[i]);
        const char *dot = strrchr(base, '.');
        char object[4096];

        snprintf(object, sizeof(object), "%.*s.o", dot ? (int)(dot - base) : (int)strlen(base), base);
        rename_section(object);
    }
}

/* ---- Running clang ---- */

static int cannot_run(const struct etch_command *self, const char *clang, int errnum)
{
    struct etch_error err;

    etch_error_set_errno(&err, errnum, "cannot run %s", clang);
    etch_error_advise(&err, "install clang-19, or name another clang of version 19 in ETCH_CLANG");
    return etch_command_failed(self, &err);
}

/* Runs clang, waits, and returns its status. A signal to the process group reaches clang and etch. */
static int run_clang(const struct etch_command *self, char **args)
{
    pid_t pid;
    int status, errnum = posix_spawnp(&pid, args[0], NULL, NULL, args, environ);

    if (errnum)
        return cannot_run(self, args[0], errnum);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return cannot_run(self, args[0], errno);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- The software recorder ---- */

struct recording {
    bool on;
    char *names; /* the memory that `only` points into */
    ETCH_ARRAY(const char *) only;
    ETCH_ARRAY(const char *) slices; /* files */
};

/* Takes our own options out of the arguments. Returns the number of arguments left. */
static int take_own(struct recording *r, int argc, char **argv)
{
    static const char only[] = "--record-only=";
    const char *wanted = getenv("ETCH_RECORD"), *name = getenv("ETCH_RECORD_ONLY");
    int kept = 1;

    r->on = wanted && wanted[0] && strcmp(wanted, "0") != 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--record") == 0) {
            r->on = true;
        } else if (strncmp(argv[i], only, strlen(only)) == 0) {
            r->on = true;
            name = argv[i] + strlen(only);
        } else {
            argv[kept++] = argv[i];
        }
    }
    argv[kept] = NULL;
    r->names = strdup(name ? name : "");
    for (char *word = r->names ? strtok(r->names, ",") : NULL; word; word = strtok(NULL, ","))
        if (word[0] == '@')
            etch_array_push(&r->slices, word + 1);
        else
            etch_array_push(&r->only, word);
    return kept;
}

static int run_recorded(const struct etch_command *self, char **args, const struct recording *recording)
{
    struct etch_instrument_options options = {.only = recording->only.v, .n_only = recording->only.n};
    struct etch_cc_slice slice = {0};
    struct etch_error err;
    int status = 0;

    for (size_t i = 0; i < recording->slices.n && status == 0; i++)
        status = etch_cc_slice_read(&slice, recording->slices.v[i], &err);
    options.scopes = slice.scopes.v;
    options.n_scopes = slice.scopes.n;
    if (status == 0)
        status = etch_cc_record(args, &options, &err);
    etch_cc_slice_release(&slice);
    return status < 0 ? etch_command_failed(self, &err) : status;
}

static int run_request(const struct etch_command *self, char **args, const struct request *r,
                       const struct recording *recording)
{
    int status = recording->on ? run_recorded(self, args, recording) : run_clang(self, args);

    if (status == 0 && r->compiles_only)
        rename_in_objects(r);
    return status;
}

static bool is_program(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "-shared") == 0 || strcmp(argv[i], "-r") == 0)
            return false;
    return true;
}

/* ETCH_LAB=1: the lab build is made now, while all inputs of the link are there. A failure is reported, and the program
 * itself is built all the same. */
static void build_for_lab(const struct etch_command *self, const struct request *r, int argc, char **argv)
{
    const char *wanted = getenv("ETCH_LAB");
    struct etch_lab_twin twin;
    struct etch_error err;

    if (!wanted || strcmp(wanted, "1") != 0 || !is_program(argc, argv))
        return;
    if (etch_lab_twin(&twin, r->output ? r->output : "a.out", &err) < 0)
        etch_command_failed(self, &err);
}

static int compile(const struct etch_command *self, const char *clang, int argc, char **argv)
{
    /* The bitcode is embedded before optimisation, so that statements and names are those of the source at every -O.
     * The option goes to cc1, because the driver's -fembed-bitcode refuses options that real builds use
     * (-ffunction-sections). */
    static const char *const ours[] = {"-g", "-Xclang", "-fembed-bitcode=bitcode"};
    char **args = calloc((size_t)argc + 8, sizeof(*args));
    struct request r = {0};
    struct recording recording = {0};
    struct etch_cc_link_note note = {0};
    size_t n = 0;
    int status;

    if (!args)
        return cannot_run(self, clang, ENOMEM);
    argc = take_own(&recording, argc, argv);
    take_words(&r, argv + 1, (size_t)argc - 1, 0);
    args[n++] = (char *)clang;
    if (!r.has_assembler || r.has_source || r.has_language) /* otherwise clang would warn about unused options */
        for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
            args[n++] = (char *)ours[i];
    for (int i = 1; i < argc; i++)
        args[n++] = argv[i];
    if (r.weakens && !ends_options(argc, argv))
        args[n++] = (char *)"-g";
    if (!r.compiles_only && !r.ends_early && r.inputs.n && !ends_options(argc, argv)) {
        etch_cc_link_note(&note, clang, argv + 1, (size_t)argc - 1);
        if (note.path[0]) {
            args[n++] = (char *)"-Xlinker";
            args[n++] = note.path;
        }
    }
    status = run_request(self, args, &r, &recording);
    if (status == 0 && note.path[0])
        build_for_lab(self, &r, argc, argv);
    etch_cc_link_note_remove(&note);
    release_request(&r);
    etch_array_free(&recording.only);
    etch_array_free(&recording.slices);
    free(recording.names);
    free(args);
    return status;
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
    return compile(self, compiler("ETCH_CLANG", ETCH_CLANG), argc, argv);
}

static int run_cxx(const struct etch_command *self, int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--help") == 0)
        return etch_command_help(self);
    return compile(self, compiler("ETCH_CLANGXX", ETCH_CLANGXX), argc, argv);
}

#define CC_HELP(name, variable)                                                                                        \
    "usage: etch " name " [ARGUMENT...]\n\n"                                                                           \
    "Runs clang with these arguments, and adds debug information and the program's bitcode to the objects (section\n"  \
    ".llvmbc or .etchbc, not loaded at run time). etch slice then reads the program from the binary alone. " variable  \
    "\n"                                                                                                               \
    "names another clang of version 19. All arguments go to clang except these:\n\n"                                   \
    "  --record            also build the software recorder in (etch record --source soft); or ETCH_RECORD=1\n"        \
    "  --record-only=LIST  build the recorder into these functions or files only: f,g,queue.c; or ETCH_RECORD_ONLY.\n" \
    "                      @FILE stands for the functions of the statements in the plan in FILE (etch slice --plan\n"  \
    "                      FILE), and for the functions that they were inlined into\n\n"                               \
    "examples:\n"                                                                                                      \
    "  etch " name " -O2 -c file.c\n"                                                                                  \
    "  CC=\"etch cc\" CXX=\"etch c++\" ./configure && make\n"                                                          \
    "  CC=\"etch cc\" CXX=\"etch c++\" cmake -B build\n"

const struct etch_command etch_command_cc = {
    .name = "cc",
    .summary = ETCH_SUMMARY_CC,
    .help = CC_HELP("cc", "ETCH_CLANG"),
    .run = run_cc,
};

const struct etch_command etch_command_cxx = {
    .name = "c++",
    .summary = ETCH_SUMMARY_CXX,
    .help = CC_HELP("c++", "ETCH_CLANGXX"),
    .run = run_cxx,
};
