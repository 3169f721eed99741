/* SPDX-License-Identifier: MIT */
/* See comparing.h. */
#include "cli/comparing.h"

#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_name(struct etch_run_files *files, const char *path, struct etch_error *err)
{
    char *copy = strdup(path);

    if (!copy || !etch_array_push(&files->v, copy)) {
        free(copy);
        return etch_error_no_memory(err);
    }
    return 0;
}

static bool is_recording(const char *name)
{
    size_t n = strlen(name);

    return n > 5 && strcmp(name + n - 5, ".etch") == 0;
}

static int add_folder(struct etch_run_files *files, const char *path, DIR *folder, struct etch_error *err)
{
    char name[PATH_MAX + 300];
    const struct dirent *entry;

    while ((entry = readdir(folder))) {
        if (!is_recording(entry->d_name))
            continue;
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        if (add_name(files, name, err) < 0)
            return -1;
    }
    if (!files->v.n) {
        etch_error_set(err, "no recording is in %s", path);
        return etch_error_advise(err, "etch bench --keep %s -- PROG", path);
    }
    qsort(files->v.v, files->v.n, sizeof(*files->v.v), compare_names);
    return 0;
}

int etch_run_files_find(struct etch_run_files *files, const char *path, struct etch_error *err)
{
    DIR *folder = opendir(path);
    int status;

    if (!folder && errno != ENOTDIR)
        return etch_error_set_errno(err, errno, "cannot open %s", path);
    if (!folder)
        return add_name(files, path, err);
    status = add_folder(files, path, folder, err);
    closedir(folder);
    return status;
}

void etch_run_files_release(struct etch_run_files *files)
{
    for (size_t i = 0; i < files->v.n; i++)
        free(files->v.v[i]);
    etch_array_free(&files->v);
}

/* Symbols serve all runs of one side: its files are read once. */
static struct etch_symbols *symbols_beside(const char *path, const char *sysroot)
{
    char folder[PATH_MAX];
    struct etch_symbols_options options = {.sysroot = sysroot};

    snprintf(folder, sizeof(folder), "%s", path);
    options.beside = dirname(folder);
    return etch_symbols_new(&options);
}

static int add_run(struct etch_comparison *c, bool b, size_t run, const char *path, struct etch_symbols *symbols,
                   const struct etch_profile_options *options, struct etch_error *err)
{
    struct etch_profile *profile = etch_profile_new();
    struct etch_recording *recording = NULL;
    int status = profile ? etch_recording_open(&recording, path, err) : etch_error_no_memory(err);

    if (status == 0 && recording->streams.n)
        status = etch_profile_add(profile, recording, symbols, options, err);
    if (status == 0)
        status = etch_comparison_add(c, b, run, profile, recording, err);
    etch_symbols_forget_images(symbols);
    etch_recording_free(recording);
    etch_profile_free(profile);
    return status;
}

static int add_side(struct etch_comparison *c, bool b, const struct etch_run_files *files,
                    const struct etch_profile_options *options, struct etch_error *err)
{
    struct etch_symbols *symbols = symbols_beside(files->v.v[0], options->sysroot);
    int status = symbols ? 0 : etch_error_no_memory(err);

    for (size_t i = 0; i < files->v.n && status == 0; i++)
        status = add_run(c, b, i, files->v.v[i], symbols, options, err);
    etch_symbols_free(symbols);
    return status;
}

struct etch_comparison *etch_compare_files(const struct etch_run_files *a, const struct etch_run_files *b, bool apart,
                                           const struct etch_profile_options *options, struct etch_error *err)
{
    struct etch_comparison *c = etch_comparison_new(a->v.n, b->v.n);

    if (!c) {
        etch_error_set_no_memory(err);
        return NULL;
    }
    c->apart = apart;
    if (add_side(c, false, a, options, err) == 0 && add_side(c, true, b, options, err) == 0) {
        if (etch_comparison_decide(c) == 0)
            return c;
        etch_error_set_no_memory(err);
    }
    etch_comparison_free(c);
    return NULL;
}
