/* SPDX-License-Identifier: MIT */
/* See cc_record.h. clang -### prints the commands that a command line expands to. So every mode of the driver works
 * (several sources, -o, linking at once, response files, dependency files). */
#include "cli/cc_record.h"

#include "base/array.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef ETCH_ARRAY(char *) words;

struct commands {
    ETCH_ARRAY(words) all;
    bool verbose; /* -v: print each command before it runs */
};

static void release_words(words *w)
{
    for (size_t i = 0; i < w->n; i++)
        free(w->v[i]);
    etch_array_free(w);
}

static void release_commands(struct commands *c)
{
    for (size_t i = 0; i < c->all.n; i++)
        release_words(&c->all.v[i]);
    etch_array_free(&c->all);
}

/* ---- Running ---- */

static int run(char **args, struct etch_error *err)
{
    pid_t pid;
    int status, errnum = posix_spawnp(&pid, args[0], NULL, NULL, args, environ);

    if (errnum)
        return etch_error_set_errno(err, errnum, "cannot run %s", args[0]);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return etch_error_set_errno(err, errno, "cannot wait for %s", args[0]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Returns the output of clang -###, or NULL with `err` set or `status` other than 0. */
static char *ask(char **args, int *status, struct etch_error *err)
{
    posix_spawn_file_actions_t actions;
    ETCH_ARRAY(char) text = {0};
    int ends[2], errnum;
    ssize_t got = 1;
    pid_t pid;

    *status = -1;
    if (pipe2(ends, O_CLOEXEC) < 0) {
        etch_error_set_errno(err, errno, "cannot run %s", args[0]);
        return NULL;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    errnum = posix_spawnp(&pid, args[0], &actions, NULL, args, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    while (!errnum && got != 0 && etch_array_reserve(&text, text.n + 4096)) {
        got = read(ends[0], text.v + text.n, 4095);
        text.n += got > 0 ? (size_t)got : 0;
        if (got < 0 && errno != EINTR)
            break;
    }
    close(ends[0]);
    if (errnum) {
        etch_error_set_errno(err, errnum, "cannot run %s", args[0]);
        etch_error_advise(err, "install clang-19, or name another clang of version 19 in ETCH_CLANG");
        return NULL;
    }
    while (waitpid(pid, status, 0) < 0 && errno == EINTR)
        ;
    if (text.v)
        text.v[text.n] = '\0';
    return text.v;
}

/* ---- The commands ---- */

/* Takes a word in double quotes, with a backslash before each special character. Returns the end of the word, or NULL
 * if there is no word. */
static const char *take_word(const char *at, words *w)
{
    char *word = malloc(strlen(at) + 1);
    size_t n = 0;

    while (*at == ' ')
        at++;
    if (!word || *at++ != '"') {
        free(word);
        return NULL;
    }
    for (; *at && *at != '"' && *at != '\n'; at++) {
        if (*at == '\\' && at[1])
            at++;
        word[n++] = *at;
    }
    word[n] = '\0';
    if (*at != '"' || !etch_array_push(w, word)) {
        free(word);
        return NULL;
    }
    return at + 1;
}

static bool take_commands(const char *text, struct commands *c)
{
    for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        words w = {0};
        const char *at = line;

        if (strncmp(line, " \"", 2) != 0)
            continue;
        while (at)
            at = take_word(at, &w);
        if (w.n == 0 || !etch_array_push(&c->all, w)) {
            release_words(&w);
            return false;
        }
    }
    return true;
}

/* ---- Output of the driver ---- */

/* Prints the text that clang -### printed before the commands: warnings about arguments, and with -v the version and
 * the paths. Configure scripts read both. */
static void print_heading(const char *text, bool verbose)
{
    for (const char *line = text, *end; *line && strncmp(line, " \"", 2) != 0; line = *end ? end + 1 : end) {
        const char *warning = strstr(line, ": warning: ");

        end = line + strcspn(line, "\n");
        if (verbose || (warning && warning < end))
            fprintf(stderr, "%.*s\n", (int)(end - line), line);
    }
}

/* Prints a command as clang -v does, with quotes only around words that need them. libtool reads the libraries of the
 * program from this output. */
static void print_command(const words *w)
{
    for (size_t i = 0; i < w->n; i++) {
        bool quoted = i == 0 || strpbrk(w->v[i], " \"\\$");

        fputs(quoted ? " \"" : " ", stderr);
        for (const char *c = w->v[i]; *c; c++) {
            if (quoted && strchr("\"\\$", *c))
                fputc('\\', stderr);
            fputc(*c, stderr);
        }
        if (quoted)
            fputc('"', stderr);
    }
    fputc('\n', stderr);
}

/* ---- The commands' kinds ---- */

static size_t find(const words *w, const char *word)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->v[i], word) == 0)
            return i;
    return SIZE_MAX;
}

static bool has(const words *w, const char *word)
{
    return find(w, word) != SIZE_MAX;
}

static const char *after(const words *w, const char *word)
{
    size_t i = find(w, word);

    return i != SIZE_MAX && i + 1 < w->n ? w->v[i + 1] : NULL;
}

static bool is_compilation(const words *w)
{
    static const char *const languages[] = {"c", "c++", "cpp-output", "c++-cpp-output", "ir"};
    const char *language = after(w, "-x");

    if (!has(w, "-cc1") || !(has(w, "-emit-obj") || has(w, "-S")) || !after(w, "-o") || !language)
        return false;
    for (size_t i = 0; i < sizeof(languages) / sizeof(languages[0]); i++)
        if (strcmp(language, languages[i]) == 0)
            return true;
    return false;
}

static bool is_link(const words *w)
{
    return !has(w, "-cc1") && !has(w, "-cc1as") && after(w, "-o") && !has(w, "-r") && !has(w, "--relocatable");
}

/* ---- One compilation in three steps ---- */

struct step {
    ETCH_ARRAY(char *) words; /* borrowed */
};

static void add(struct step *s, const char *word)
{
    etch_array_push(&s->words, (char *)(uintptr_t)word);
}

static int run_step(struct step *s, struct etch_error *err)
{
    int status;

    add(s, NULL);
    if (!s->words.n || s->words.v[s->words.n - 1])
        return etch_error_no_memory(err);
    status = run(s->words.v, err);
    etch_array_free(&s->words);
    return status;
}

/* Compiles to optimised bitcode. */
static int optimise(const words *w, const char *to, struct etch_error *err)
{
    struct step s = {0};

    for (size_t i = 0; i < w->n; i++) {
        bool kind = strcmp(w->v[i], "-emit-obj") == 0 || strcmp(w->v[i], "-S") == 0;

        add(&s, kind ? "-emit-llvm-bc" : w->v[i]);
        if (strcmp(w->v[i], "-o") == 0) {
            add(&s, to);
            i++;
        }
    }
    return run_step(&s, err);
}

/* Generates code from the bitcode, without another optimisation. The options `ours` keep selects of the bitcode from
 * becoming branches, which the recorder would not see. They also record where the machine's blocks begin. */
static int generate(const words *w, const char *from, struct etch_error *err)
{
    static const char *const with_value[] = {
        "-dependency-file",          "-MT", "-MQ", "-dependency-dot", "-header-include-file", "-diagnostic-log-file",
        "-serialize-diagnostic-file"};
    static const char *const without[] = {"-sys-header-deps",  "-MP", "-MG", "-MV", "--show-includes",
                                          "-module-file-deps", "-v"};
    static const char *const ours[] = {
        "-disable-llvm-passes",      "-fbasic-block-address-map", "-mllvm", "-x86-cmov-converter=false", "-mllvm",
        "-disable-cgp-select2branch"};
    struct step s = {0};

    for (size_t i = 0; i + 1 < w->n; i++) { /* the last is the source */
        bool drop = strncmp(w->v[i], "-fembed-bitcode", 15) == 0;

        for (size_t k = 0; k < sizeof(without) / sizeof(without[0]); k++)
            drop |= strcmp(w->v[i], without[k]) == 0;
        for (size_t k = 0; k < sizeof(with_value) / sizeof(with_value[0]); k++)
            if (strcmp(w->v[i], with_value[k]) == 0) {
                drop = true;
                i++;
            }
        if (drop)
            continue;
        if (strcmp(w->v[i], "-x") == 0) {
            add(&s, "-x");
            add(&s, "ir");
            i++;
            continue;
        }
        add(&s, w->v[i]);
    }
    for (size_t k = 0; k < sizeof(ours) / sizeof(ours[0]); k++)
        add(&s, ours[k]);
    add(&s, from);
    return run_step(&s, err);
}

/* The same folder as clang's. */
static const char *temporary_folder(void)
{
    const char *folder = getenv("TMPDIR");

    return folder && folder[0] ? folder : P_tmpdir;
}

static bool make_name(char path[PATH_MAX], struct etch_error *err)
{
    int fd;

    snprintf(path, PATH_MAX, "%s/etch-cc-XXXXXX", temporary_folder());
    fd = mkstemp(path);
    if (fd < 0) {
        path[0] = '\0';
        etch_error_set_errno(err, errno, "cannot make a file in %s", temporary_folder());
        etch_error_advise(err, "TMPDIR=FOLDER names another folder");
        return false;
    }
    close(fd);
    return true;
}

/* -fno-semantic-interposition: the driver leaves both options out. */
static bool calls_within_file(const words *w)
{
    return !has(w, "-fsemantic-interposition") && !has(w, "-fhalf-no-semantic-interposition");
}

static int compile(const words *w, const struct etch_instrument_options *wanted, struct etch_error *err)
{
    char plain[PATH_MAX] = "", recorded[PATH_MAX] = "";
    struct etch_instrument_options options = *wanted;
    int status = -1;

    options.local = calls_within_file(w);

    if (make_name(plain, err) && make_name(recorded, err)) {
        status = optimise(w, plain, err);
        if (status == 0)
            status = etch_instrument(plain, recorded, &options, NULL, err);
        if (status == 0)
            status = generate(w, recorded, err);
    }
    if (plain[0])
        unlink(plain);
    if (recorded[0])
        unlink(recorded);
    return status;
}

/* ---- Linking ---- */

static bool find_runtime(char *path, size_t size)
{
    static const char *const places[] = {"etch-soft.o", "../lib/etch/etch-soft.o"};
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash;

    self[n > 0 ? n : 0] = '\0';
    slash = strrchr(self, '/');
    for (size_t i = 0; slash && i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(path, size, "%.*s%s", (int)(slash + 1 - self), self, places[i]);
        if (access(path, R_OK) == 0)
            return true;
    }
    return false;
}

/* Links with the runtime. The symbols `shared` are exported, because all modules with a recorder use the same ones: a
 * library takes them from the program even if the library is linked with -Bsymbolic. */
static int link_program(const words *w, struct etch_error *err)
{
    static const char *const shared[] = {"etch_soft_cur",      "etch_soft_top",   "etch_soft_ring",
                                         "etch_soft_recorder", "etch_soft_quiet", "etch_soft_quieting"};
    static const char option[] = "--export-dynamic-symbol";
    char runtime[4200];
    struct step s = {0};

    if (!find_runtime(runtime, sizeof(runtime)))
        return etch_error_set(err, "cannot find etch-soft.o, which recorded programs are linked with, beside etch");
    for (size_t i = 0; i < w->n; i++) {
        add(&s, w->v[i]);
        if (strcmp(w->v[i], "-o") != 0 || i + 1 == w->n)
            continue;
        add(&s, w->v[++i]);
        add(&s, runtime);
        for (size_t k = 0; k < sizeof(shared) / sizeof(shared[0]); k++) {
            add(&s, option);
            add(&s, shared[k]);
        }
    }
    return run_step(&s, err);
}

/* Removes the temporary objects, as the driver would. */
static void remove_temporaries(const struct commands *c)
{
    const char *folder = temporary_folder();
    bool linked = c->all.n && is_link(&c->all.v[c->all.n - 1]);

    for (size_t i = 0; linked && i + 1 < c->all.n; i++) {
        const char *output = after(&c->all.v[i], "-o");

        if (output && strncmp(output, folder, strlen(folder)) == 0)
            unlink(output);
    }
}

static int run_all(const struct commands *c, const struct etch_instrument_options *options, struct etch_error *err)
{
    int status = 0;

    for (size_t i = 0; i < c->all.n && status == 0; i++) {
        words *w = &c->all.v[i];

        if (c->verbose)
            print_command(w);
        if (is_compilation(w))
            status = compile(w, options, err);
        else if (is_link(w))
            status = link_program(w, err);
        else
            status = etch_array_push(w, NULL) ? (w->n--, run(w->v, err)) : etch_error_no_memory(err);
    }
    return status;
}

static bool among(char **args, const char *word)
{
    while (*args && strcmp(*args, word) != 0)
        args++;
    return *args != NULL;
}

int etch_cc_record(char **args, const struct etch_instrument_options *options, struct etch_error *err)
{
    static char question[] = "-###";
    struct commands commands = {0};
    struct step s = {0};
    char *text = NULL;
    int status = 0;

    err->what[0] = '\0';
    if (among(args, question))
        return run(args, err);
    add(&s, args[0]);
    add(&s, question);
    for (size_t i = 1; args[i]; i++)
        add(&s, args[i]);
    add(&s, NULL);
    if (s.words.n)
        text = ask(s.words.v, &status, err);
    etch_array_free(&s.words);
    if (!text)
        return -1;
    commands.verbose = among(args, "-v") || among(args, "--verbose");
    if (status != 0 || !take_commands(text, &commands) || commands.all.n == 0) {
        status = run(args, err); /* clang reports an error, or answers a question about itself */
    } else {
        print_heading(text, commands.verbose);
        status = run_all(&commands, options, err);
    }
    remove_temporaries(&commands);
    release_commands(&commands);
    free(text);
    return status;
}
