/* SPDX-License-Identifier: MIT */
/* DT_NEEDED, resolved as ld.so(8) does: RPATH where there is no RUNPATH, LD_LIBRARY_PATH, RUNPATH, the system's
 * folders.
 */
#include "slicer/model/libraries.h"

#include "binary/object.h"
#include "slicer/bitcode.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

struct needs {
    etch_paths names;
    char *rpath, *runpath;
};

void etch_paths_release(etch_paths *paths)
{
    for (size_t i = 0; i < paths->n; i++)
        free(paths->v[i]);
    etch_array_free(paths);
}

static bool push_copy(etch_paths *paths, const char *text)
{
    char *copy = strdup(text);

    if (copy && etch_array_push(paths, copy))
        return true;
    free(copy);
    return false;
}

/* ---- What a file says ---- */

/* NULL: the file is no ELF file for this machine. */
static struct etch_object *open_library(const char *path)
{
    struct etch_object *object;
    struct etch_error ignored;

    return etch_object_open(&object, path, &ignored) == 0 ? object : NULL;
}

bool etch_library_has_bitcode(const char *path)
{
    struct etch_object *object = open_library(path);
    bool found = object && (etch_object_has_section(object, ETCH_BITCODE_CLANG) ||
                            etch_object_has_section(object, ETCH_BITCODE_OWN));

    etch_object_free(object);
    return found;
}

static bool take_entry(void *context, enum etch_object_dynamic entry, const char *text)
{
    struct needs *needs = context;
    char **to = entry == ETCH_OBJECT_RPATH ? &needs->rpath : &needs->runpath;

    if (entry == ETCH_OBJECT_NEEDED)
        return push_copy(&needs->names, text);
    free(*to);
    *to = strdup(text);
    return *to != NULL;
}

static bool read_needs(struct needs *needs, const char *path)
{
    struct etch_object *object = open_library(path);
    bool ok = !object || etch_object_each_dynamic(object, take_entry, needs);

    etch_object_free(object);
    return ok;
}

static void release_needs(struct needs *needs)
{
    etch_paths_release(&needs->names);
    free(needs->rpath);
    free(needs->runpath);
}

/* ---- Where the loader finds it ---- */

static bool is_library(const char *path)
{
    struct etch_object *object = open_library(path);
    bool found = object != NULL;

    etch_object_free(object);
    return found;
}

/* One folder of a list, with $ORIGIN and ${ORIGIN} as the folder that the file which asks is in. */
static void expand(const char *folder, size_t n, const char *origin, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < n && used + 1 < size;) {
        size_t skip = n - i >= 9 && strncmp(folder + i, "${ORIGIN}", 9) == 0 ? 9
                      : n - i >= 7 && strncmp(folder + i, "$ORIGIN", 7) == 0 ? 7
                                                                             : 0;

        if (skip) {
            used += (size_t)snprintf(text + used, size - used, "%s", origin);
            i += skip;
        } else {
            text[used++] = folder[i++];
            text[used] = '\0';
        }
    }
}

/* Looks along a list of folders, parted by colons. */
static bool search(const char *list, const char *origin, const char *name, char found[PATH_MAX])
{
    char folder[PATH_MAX / 2];

    for (const char *at = list; at && *at;) {
        size_t n = strcspn(at, ":;");

        expand(at, n, origin, folder, sizeof(folder));
        if (n && snprintf(found, PATH_MAX, "%s/%s", folder, name) < PATH_MAX && is_library(found))
            return true;
        at += n + (at[n] != '\0');
    }
    return false;
}

static bool resolve(const char *name, const struct needs *needs, const char *program_rpath, const char *origin,
                    char found[PATH_MAX])
{
    static const char system[] = "/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/lib64:/usr/lib64:/lib:/usr/lib:"
                                 "/usr/local/lib/x86_64-linux-gnu:/usr/local/lib";

    if (strchr(name, '/'))
        return snprintf(found, PATH_MAX, "%s", name) < PATH_MAX && is_library(found);
    if (!needs->runpath && (search(needs->rpath, origin, name, found) || search(program_rpath, origin, name, found)))
        return true;
    return search(getenv("LD_LIBRARY_PATH"), origin, name, found) || search(needs->runpath, origin, name, found) ||
           search(system, origin, name, found);
}

/* ---- All of them ---- */

static bool is_known(const etch_paths *paths, const char *path)
{
    for (size_t i = 0; i < paths->n; i++)
        if (strcmp(paths->v[i], path) == 0)
            return true;
    return false;
}

static void folder_of(const char *path, char folder[PATH_MAX])
{
    char *slash;

    if (!realpath(path, folder))
        snprintf(folder, PATH_MAX, ".");
    slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
}

/* Adds the libraries that file `index` needs to `all`. */
static bool visit(etch_paths *all, size_t index, char **program_rpath)
{
    char folder[PATH_MAX], found[PATH_MAX], real[PATH_MAX];
    struct needs needs = {0};
    bool ok = read_needs(&needs, all->v[index]);

    folder_of(all->v[index], folder);
    for (size_t i = 0; ok && i < needs.names.n; i++)
        if (resolve(needs.names.v[i], &needs, *program_rpath, folder, found) && realpath(found, real) &&
            !is_known(all, real))
            ok = push_copy(all, real);
    if (index == 0 && needs.rpath && !needs.runpath) {
        *program_rpath = needs.rpath;
        needs.rpath = NULL;
    }
    release_needs(&needs);
    return ok;
}

bool etch_paths_add(etch_paths *paths, const char *path)
{
    return is_known(paths, path) || push_copy(paths, path);
}

bool etch_libraries_find(const char *program, etch_paths *libraries)
{
    etch_paths all = {0};
    char *program_rpath = NULL;
    bool ok = push_copy(&all, program);

    for (size_t i = 0; ok && i < all.n; i++)
        ok = visit(&all, i, &program_rpath);
    for (size_t i = 1; ok && i < all.n; i++)
        if (etch_library_has_bitcode(all.v[i]))
            ok = etch_paths_add(libraries, all.v[i]);
    free(program_rpath);
    etch_paths_release(&all);
    return ok;
}
