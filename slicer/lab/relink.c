/* SPDX-License-Identifier: MIT */
/* See relink.h. The words of the program's link command are kept, but for its own objects and libraries, whose code the
 * lab build has from bitcode. What such a library was linked with is added. */
#include "slicer/lab/relink.h"

#include "base/input.h"
#include "base/path.h"
#include "slicer/bitcode.h"
#include "slicer/lab/mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Words ---- */

static bool ends_with(const char *text, const char *tail)
{
    size_t n = strlen(text), k = strlen(tail);

    return n >= k && strcmp(text + n - k, tail) == 0;
}

static bool is_source(const char *word)
{
    static const char *const tails[] = {".c", ".cc", ".cpp", ".cxx", ".C", ".c++", ".cp", ".i", ".ii", ".m", ".mm"};

    for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++)
        if (ends_with(word, tails[i]))
            return true;
    return false;
}

static int has_any(void *context, const uint8_t *section, size_t size, struct etch_error *err)
{
    (void)section;
    (void)err;
    *(bool *)context = size > 0;
    return 0;
}

/* An object whose code the twin has from its bitcode. */
static bool has_bitcode(const char *folder, const char *word)
{
    struct etch_error ignored;
    char path[PATH_MAX];
    struct etch_lab_mapped m;
    bool found = false;

    snprintf(path, sizeof(path), "%s%s%s", word[0] == '/' ? "" : folder, word[0] == '/' ? "" : "/", word);
    if (!etch_lab_map(&m, path))
        return false;
    etch_bitcode_sections(m.bytes, m.size, has_any, &found, &ignored);
    etch_lab_unmap(&m);
    return found;
}

/* Options whose value is the next word, and that say nothing to the linker. */
static bool drops_next(const char *word)
{
    static const char *const options[] = {"-o", "-x", "-MF", "-MT", "-MQ", "-I", "-D", "-U", "-include", "-isystem"};

    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        if (strcmp(word, options[i]) == 0)
            return true;
    return false;
}

static bool drops(const char *folder, const char *word)
{
    static const char *const heads[] = {"-o", "-x", "-M", "-fsanitize", "-W,", "-I", "-D", "-O", "-Werror"};

    if (word[0] != '-')
        return is_source(word) || (ends_with(word, ".o") && has_bitcode(folder, word));
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
        if (strncmp(word, heads[i], strlen(heads[i])) == 0)
            return true;
    return false;
}

/* A word that names one of the libraries: -lNAME, -l:FILE, or a path. */
static bool is_library_word(const etch_lab_libraries *libraries, const char *word)
{
    const char *wanted = strncmp(word, "-l:", 3) == 0  ? word + 3
                         : strncmp(word, "-l", 2) == 0 ? word + 2
                         : word[0] == '-'              ? NULL
                                                       : etch_path_name(word);
    bool is_short = strncmp(word, "-l", 2) == 0 && word[2] != ':';

    for (size_t i = 0; wanted && i < libraries->n; i++) {
        const char *name = etch_path_name(libraries->v[i].path);
        size_t n = strlen(wanted);

        if (is_short && (strncmp(name, "lib", 3) != 0 || strncmp(name + 3, wanted, n) != 0))
            continue;
        if (is_short ? strncmp(name + 3 + n, ".so", 3) == 0 : strncmp(name, wanted, n) == 0 && strstr(wanted, ".so"))
            return true;
    }
    return false;
}

struct words {
    ETCH_ARRAY(const char *) all;
    ETCH_ARRAY(char *) made; /* of them, that release_words() frees */
    bool full;               /* memory was short */
};

static void release_words(struct words *w)
{
    for (size_t i = 0; i < w->made.n; i++)
        free(w->made.v[i]);
    etch_array_free(&w->made);
    etch_array_free(&w->all);
}

static void add(struct words *w, const char *word)
{
    w->full |= !etch_array_push(&w->all, word);
}

/* Adds `option` and a path, which was relative to `folder`. */
static void add_path(struct words *w, const char *option, const char *folder, const char *path)
{
    char text[PATH_MAX], *copy;

    snprintf(text, sizeof(text), "%s%s%s%s", option, path[0] == '/' ? "" : folder, path[0] == '/' ? "" : "/", path);
    copy = strdup(text);
    if (copy && etch_array_push(&w->made, copy)) {
        add(w, copy);
    } else {
        free(copy);
        w->full = true;
    }
}

static bool is_link_mode(const char *word)
{
    static const char *const modes[] = {"-Wl,--whole-archive", "-Wl,--no-whole-archive", "-Wl,--start-group",
                                        "-Wl,--end-group",     "-Wl,-Bstatic",           "-Wl,-Bdynamic",
                                        "-Wl,--as-needed",     "-Wl,--no-as-needed"};

    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
        if (strcmp(word, modes[i]) == 0)
            return true;
    return false;
}

/* What a library was linked with. Options about the library as a file say nothing about the program. */
static void add_library_words(struct words *w, const struct etch_lab_relink *l, const struct etch_lab_library *library)
{
    const struct etch_link_note *note = &library->note;

    for (size_t i = 1; i < note->words.n; i++) {
        const char *word = note->words.v[i];

        if (strcmp(word, "-L") == 0 && i + 1 < note->words.n)
            add_path(w, "-L", note->folder, note->words.v[++i]);
        else if (drops_next(word) || strcmp(word, "-Xlinker") == 0)
            i++;
        else if (strncmp(word, "-L", 2) == 0)
            add_path(w, "-L", note->folder, word + 2);
        else if (is_library_word(l->libraries, word) || drops(note->folder, word))
            continue;
        else if (word[0] != '-')
            add_path(w, "", note->folder, word);
        else if (strncmp(word, "-l", 2) == 0 || is_link_mode(word))
            add(w, word);
    }
}

/* The compiler that links: the one for C++ if the program or a library needs it. */
static const char *linker_of(const struct etch_lab_relink *l)
{
    for (size_t i = 0; i < l->libraries->n; i++)
        if (ends_with(l->libraries->v[i].note.words.v[0], "++"))
            return l->libraries->v[i].note.words.v[0];
    return l->note->words.v[0];
}

static void add_words(struct words *w, const struct etch_lab_relink *l)
{
    static const char *const tail[] = {"-pthread", "-ldl", "-Wl,--export-dynamic", "-Wno-unused-command-line-argument",
                                       "-o"};
    const struct etch_link_note *note = l->note;

    add(w, linker_of(l));
    for (size_t i = 0; i < l->n_objects; i++)
        add(w, l->objects[i]);
    add(w, l->about->runtime);
    add(w, l->about->recorder);
    for (size_t i = 1; i < note->words.n; i++) {
        if (drops_next(note->words.v[i]))
            i++;
        else if (!drops(note->folder, note->words.v[i]) && !is_library_word(l->libraries, note->words.v[i]))
            add(w, note->words.v[i]);
    }
    for (size_t i = 0; i < l->libraries->n; i++)
        add_library_words(w, l, &l->libraries->v[i]);
    for (size_t i = 0; i < sizeof(tail) / sizeof(tail[0]); i++)
        add(w, tail[i]);
    add(w, l->about->twin);
    add(w, NULL);
}

/* ---- The linker ---- */

/* Runs the linker in its former folder. Its standard error goes to `log`, from which quote() takes the reason of a
 * failure. */
static int run_link(const struct etch_link_note *note, const struct words *w, const char *log, struct etch_error *err)
{
    posix_spawn_file_actions_t actions;
    int status = 0, errnum;
    pid_t pid;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_EXCL, 0600);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addchdir_np(&actions, note->folder);
    errnum = posix_spawnp(&pid, w->all.v[0], &actions, NULL, (char *const *)(uintptr_t)w->all.v, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (errnum)
        return etch_error_set_errno(err, errnum, "cannot run %s in %s", w->all.v[0], note->folder);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}

/* The first line that names an error. */
static void quote(const char *log, char *reason, size_t size)
{
    int fd = etch_input_open(log);
    size_t n = 0;
    char *text = fd >= 0 ? etch_input_read(fd, 1 << 20, &n) : NULL, *rest = NULL;

    snprintf(reason, size, "the linker gave no reason");
    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest))
        if ((strstr(line, "error") && !strstr(line, "linker command failed")) || strstr(line, "undefined") ||
            strstr(line, "cannot") || strstr(line, "bad value")) {
            snprintf(reason, size, "%s", line);
            break;
        }
    free(text);
    if (fd >= 0)
        close(fd);
}

int etch_lab_relink(const struct etch_lab_relink *link, struct etch_error *err)
{
    char log[PATH_MAX], reason[400];
    struct words w = {0};
    int status;

    snprintf(log, sizeof(log), "%s/link.log", link->about->folder);
    unlink(log); /* of an attempt before */
    add_words(&w, link);
    status = w.full ? etch_error_no_memory(err) : run_link(link->note, &w, log, err);
    if (status > 0) {
        quote(log, reason, sizeof(reason));
        etch_error_set(err, "cannot repeat the link of %s: %s", link->about->program, reason);
        status = etch_error_advise(err, "%s has all of what the linker said", log);
    }
    release_words(&w);
    return status;
}
