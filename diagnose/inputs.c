/* SPDX-License-Identifier: MIT */
/* Several inputs of one program; see inputs.h. */
#include "diagnose/inputs.h"

#include "base/index.h"
#include "base/printable.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NAMED 6u   /* inputs of a kind that a sentence names */
#define QUOTED 40u /* bytes of a difference that a sentence quotes */

/* ---- Files ---- */

static bool has_place(char *const *argv)
{
    for (; *argv; argv++)
        if (strstr(*argv, "{}"))
            return true;
    return false;
}

static bool is_file(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

static int take_files(struct etch_inputs *inputs, const glob_t *found, const char *pattern, struct etch_error *err)
{
    inputs->v = calloc(found->gl_pathc + 1, sizeof(*inputs->v));
    if (!inputs->v)
        return etch_error_no_memory(err);
    for (size_t i = 0; i < found->gl_pathc; i++) {
        if (!is_file(found->gl_pathv[i]))
            continue;
        if (inputs->n == ETCH_INPUTS_MAX) {
            etch_error_set(err, "'%s' has more than %u files", pattern, ETCH_INPUTS_MAX);
            return etch_error_advise(err, "a pattern with fewer files");
        }
        inputs->v[inputs->n].path = strdup(found->gl_pathv[i]);
        if (!inputs->v[inputs->n++].path)
            return etch_error_no_memory(err);
    }
    if (inputs->n)
        return 0;
    etch_error_set(err, "no file is named '%s'", pattern);
    return etch_error_advise(err, "--inputs 'FOLDER/*', in quotes, so that the shell leaves the pattern alone");
}

int etch_inputs_open(struct etch_inputs *inputs, const char *pattern, char *const *argv, struct etch_error *err)
{
    glob_t found = {0};
    int status;

    *inputs =
        (struct etch_inputs){.in_argv = has_place(argv), .nearest_failing = SIZE_MAX, .nearest_passing = SIZE_MAX};
    status = glob(pattern, 0, NULL, &found);
    if (status != 0 && status != GLOB_NOMATCH)
        return etch_error_set_errno(err, status == GLOB_NOSPACE ? ENOMEM : EIO, "cannot list '%s'", pattern);
    status = take_files(inputs, &found, pattern, err);
    globfree(&found);
    return status;
}

void etch_inputs_release(struct etch_inputs *inputs)
{
    for (size_t i = 0; i < inputs->n; i++)
        free(inputs->v[i].path);
    free(inputs->v);
    *inputs = (struct etch_inputs){0};
}

/* The first bytes of a file; NULL: it cannot be read. */
static char *contents(const char *path, size_t *n)
{
    FILE *in = fopen(path, "rbe");
    char *bytes = in ? malloc(ETCH_INPUTS_BYTES) : NULL;

    *n = bytes ? fread(bytes, 1, ETCH_INPUTS_BYTES, in) : 0;
    if (in)
        fclose(in);
    return bytes;
}

uint64_t etch_inputs_hash(const struct etch_inputs *inputs)
{
    uint64_t hash = ETCH_HASH_START;

    for (size_t i = 0; i < inputs->n; i++) {
        size_t n;
        char *bytes = contents(inputs->v[i].path, &n);

        hash = etch_hash(hash, inputs->v[i].path, strlen(inputs->v[i].path) + 1);
        hash = etch_hash(hash, bytes ? bytes : "", n);
        free(bytes);
    }
    return hash;
}

/* ---- Arguments ---- */

static size_t count_places(const char *word)
{
    size_t n = 0;

    while ((word = strstr(word, "{}"))) {
        word += 2;
        n++;
    }
    return n;
}

static char *put_path(const char *word, const char *path)
{
    char *text = malloc(strlen(word) + count_places(word) * strlen(path) + 1), *to = text;
    const char *at;

    if (!text)
        return NULL;
    while ((at = strstr(word, "{}"))) {
        memcpy(to, word, (size_t)(at - word));
        to = stpcpy(to + (at - word), path);
        word = at + 2;
    }
    strcpy(to, word);
    return text;
}

char **etch_inputs_argv(const struct etch_inputs *inputs, size_t input, char *const *argv)
{
    size_t n = 0;
    char **made;

    while (argv[n])
        n++;
    made = calloc(n + 1, sizeof(*made));
    for (size_t i = 0; made && i < n; i++)
        if (!(made[i] = put_path(argv[i], inputs->v[input].path))) {
            etch_inputs_free_argv(made);
            return NULL;
        }
    return made;
}

void etch_inputs_free_argv(char **argv)
{
    for (size_t i = 0; argv && argv[i]; i++)
        free(argv[i]);
    free(argv);
}

/* ---- The difference ---- */

struct etch_difference etch_difference_of(const char *one, size_t n_one, const char *two, size_t n_two)
{
    struct etch_difference d = {.line = 1};
    size_t end = 0;

    for (; d.at < n_one && d.at < n_two && one[d.at] == two[d.at]; d.at++)
        d.line += one[d.at] == '\n';
    while (end < n_one - d.at && end < n_two - d.at && one[n_one - 1 - end] == two[n_two - 1 - end])
        end++;
    d.one = n_one - d.at - end;
    d.two = n_two - d.at - end;
    return d;
}

static bool fails(const struct etch_input *i)
{
    return i->failed > 0;
}

static bool passes(const struct etch_input *i)
{
    return i->runs > 0 && !i->failed;
}

/* The passing input that is nearest to a failing input. */
static size_t nearest_to(const struct etch_inputs *inputs, size_t failing, size_t *distance)
{
    size_t n_one, n_two, nearest = SIZE_MAX;
    char *one = contents(inputs->v[failing].path, &n_one);

    *distance = SIZE_MAX;
    for (size_t i = 0; one && i < inputs->n; i++) {
        char *two = passes(&inputs->v[i]) ? contents(inputs->v[i].path, &n_two) : NULL;

        if (two) {
            struct etch_difference d = etch_difference_of(one, n_one, two, n_two);

            if (d.one + d.two < *distance) {
                *distance = d.one + d.two;
                nearest = i;
            }
        }
        free(two);
    }
    free(one);
    return nearest;
}

static void find_nearest(struct etch_inputs *inputs)
{
    size_t best = SIZE_MAX, looked = 0;

    inputs->nearest_failing = inputs->nearest_passing = SIZE_MAX;
    for (size_t i = 0; i < inputs->n && looked < NAMED; i++) {
        size_t distance, other;

        if (!fails(&inputs->v[i]))
            continue;
        looked++;
        other = nearest_to(inputs, i, &distance);
        if (other != SIZE_MAX && distance < best) {
            best = distance;
            inputs->nearest_failing = i;
            inputs->nearest_passing = other;
        }
    }
}

/* ---- Runs ---- */

/* The input of a kind that began least often; the nearest before others. SIZE_MAX: there is none of this kind. */
static size_t least_begun(const struct etch_inputs *inputs, bool failing)
{
    size_t nearest = failing ? inputs->nearest_failing : inputs->nearest_passing, least = nearest;

    for (size_t i = 0; i < inputs->n; i++)
        if ((failing ? fails(&inputs->v[i]) : passes(&inputs->v[i])) &&
            (least == SIZE_MAX || inputs->v[i].begun < inputs->v[least].begun))
            least = i;
    return least;
}

size_t etch_inputs_next(struct etch_inputs *inputs)
{
    unsigned failing = 0, passing = 0;
    size_t next = 0;

    for (size_t i = 0; i < inputs->n; i++)
        next = inputs->v[i].begun < inputs->v[next].begun ? i : next;
    if (inputs->v[next].begun > 0) {
        size_t chosen;

        if (inputs->nearest_failing == SIZE_MAX)
            find_nearest(inputs);
        for (size_t i = 0; i < inputs->n; i++)
            *(fails(&inputs->v[i]) ? &failing : &passing) += inputs->v[i].begun - 1;
        chosen = least_begun(inputs, failing <= passing);
        next = chosen == SIZE_MAX ? next : chosen;
    }
    inputs->v[next].begun++;
    return next;
}

void etch_inputs_take(struct etch_inputs *inputs, size_t input, bool failed)
{
    inputs->v[input].runs++;
    inputs->v[input].failed += failed;
    if (failed && input == inputs->nearest_passing) /* it does not pass always */
        inputs->nearest_failing = inputs->nearest_passing = SIZE_MAX;
}

bool etch_inputs_are_alike(const struct etch_inputs *inputs)
{
    size_t failing = 0;

    for (size_t i = 0; i < inputs->n; i++) {
        if (!inputs->v[i].runs)
            return false;
        failing += fails(&inputs->v[i]);
    }
    return failing == 0 || failing == inputs->n;
}

/* ---- Words ---- */

/* "2 of 14 inputs fail: cases/a.ini, cases/b.ini" */
static void list_text(const struct etch_inputs *inputs, bool failing, char *text, size_t size)
{
    size_t n = 0, used, named = 0;

    for (size_t i = 0; i < inputs->n; i++)
        n += failing ? fails(&inputs->v[i]) : passes(&inputs->v[i]);
    used =
        (size_t)snprintf(text, size, "%zu of %zu inputs %s%s", n, inputs->n, failing ? "fail" : "pass", n ? ": " : "");
    for (size_t i = 0; i < inputs->n && named < NAMED; i++) {
        const struct etch_input *in = &inputs->v[i];

        if (!(failing ? fails(in) : passes(in)) || used >= size)
            continue;
        used += (size_t)snprintf(text + used, size - used, "%s%.200s", named++ ? ", " : "", etch_shown(in->path));
        if (failing && in->failed < in->runs && used < size)
            used += (size_t)snprintf(text + used, size - used, " (in %u of %u runs)", in->failed, in->runs);
    }
    if (n > named && used < size)
        snprintf(text + used, size - used, " and %zu more", n - named);
}

/* Some bytes as a C programmer would write them. */
static void quote(const char *bytes, size_t n, char *text, size_t size)
{
    size_t used = 0;

    if (!n) {
        snprintf(text, size, "nothing");
        return;
    }
    text[used++] = '\'';
    for (size_t i = 0; i < n && i < QUOTED && used + 8 < size; i++) {
        unsigned char c = (unsigned char)bytes[i];

        if (c == '\n')
            used += (size_t)snprintf(text + used, size - used, "\\n");
        else if (c < 0x20 || c >= 0x7f)
            used += (size_t)snprintf(text + used, size - used, "\\x%02x", c);
        else
            text[used++] = (char)c;
    }
    snprintf(text + used, size - used, n > QUOTED ? "...'" : "'");
}

static bool difference_text(struct etch_inputs *inputs, char *text, size_t size)
{
    char *one, *two, had[256], has[256];
    struct etch_difference d;
    size_t n_one, n_two;

    find_nearest(inputs);
    if (inputs->nearest_failing == SIZE_MAX)
        return false;
    one = contents(inputs->v[inputs->nearest_failing].path, &n_one);
    two = contents(inputs->v[inputs->nearest_passing].path, &n_two);
    if (one && two) {
        d = etch_difference_of(one, n_one, two, n_two);
        quote(one + d.at, d.one, had, sizeof(had));
        quote(two + d.at, d.two, has, sizeof(has));
        snprintf(text, size, "The smallest difference: %.200s fails with %s in line %u, where %.200s passes with %s",
                 etch_shown(inputs->v[inputs->nearest_failing].path), had, d.line,
                 etch_shown(inputs->v[inputs->nearest_passing].path), has);
    }
    free(one);
    free(two);
    return one && two;
}

bool etch_inputs_text(struct etch_inputs *inputs, unsigned i, char *text, size_t size)
{
    if (i == 2)
        return difference_text(inputs, text, size);
    if (i > 2)
        return false;
    list_text(inputs, i == 0, text, size);
    return true;
}
