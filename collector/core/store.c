/* SPDX-License-Identifier: MIT */
/* See store.h. */
#include "collector/core/store.h"

#include "base/printable.h"
#include "base/text.h"
#include "collector/standby.h"
#include "proto/bundle.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static const char *const suffixes[] = {".core", ".etch", ".exe", ETCH_STANDBY_TRACE};

void core_store_path(char path[4096], const char *folder, const char *name, const char *suffix)
{
    snprintf(path, 4096, "%.3800s/%.200s%s", folder, name, suffix);
}

/* ---- The folder ---- */

static void make_parents(const char *folder)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s", folder);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
}

int core_store_make(const char *folder, struct etch_error *err)
{
    struct stat st;

    if (mkdir(folder, 0700) < 0 && errno == ENOENT) {
        make_parents(folder);
        mkdir(folder, 0700);
    }
    if (lstat(folder, &st) < 0) {
        etch_error_set_errno(err, errno, "cannot make the folder %s", folder);
        return etch_error_advise(err, "--to FOLDER with another folder, or as root");
    }
    if (S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022))
        return 0;
    etch_error_set(err, "%s is not a folder of this user alone, and cores hold secrets", folder);
    return etch_error_advise(err, "--to FOLDER with a folder that nobody else can write to");
}

uint64_t core_store_room(const char *folder)
{
    struct statvfs v;

    return statvfs(folder, &v) < 0 ? UINT64_MAX : (uint64_t)v.f_bavail * v.f_frsize / 2;
}

/* ---- The list ---- */

static void release_kept(struct etch_core_kept *kept)
{
    free(kept->command);
    free(kept->rings);
    free(kept->exe);
}

void etch_core_list_release(struct etch_core_list *list)
{
    for (size_t i = 0; i < list->list.n; i++)
        release_kept(&list->list.v[i]);
    etch_array_free(&list->list);
}

static void take_program(struct etch_core_kept *kept, const Etch__Program *program)
{
    struct etch_text text = {0};

    for (size_t i = 0; i < program->n_argv; i++) {
        etch_text_bytes(&text, " ", i > 0);
        etch_text_string(&text, program->argv[i]);
    }
    etch_text_char(&text, '\0');
    kept->command = text.failed ? NULL : text.v;
    if (text.failed)
        free(text.v);
    kept->rings = strdup(program->rings);
    kept->exe = strdup(program->exe);
    kept->pid = program->pid;
    kept->outer_pid = program->outer_pid;
}

/* The bundle beside the core. A core without it was kept by an etch that ended too soon. */
static void take_about(struct etch_core_kept *kept, const char *path)
{
    struct etch_bundle_reader *reader;
    struct etch_bundle_item item;
    struct etch_error ignored;

    if (access(path, F_OK) < 0 || etch_bundle_open(&reader, path, &ignored) < 0)
        return;
    while (etch_bundle_next(reader, &item, &ignored) < ETCH_BUNDLE_END) {
        if (!item.record)
            continue;
        if (item.record->body_case == ETCH__RECORD__BODY_PROGRAM && !kept->command)
            take_program(kept, item.record->program);
        kept->cut |= item.record->body_case == ETCH__RECORD__BODY_LOSS;
        if (item.record->body_case == ETCH__RECORD__BODY_OUTCOME) {
            kept->signal = item.record->outcome->signal;
            kept->end_unix_ns = item.record->outcome->end_unix_ns;
        }
    }
    etch_bundle_reader_free(reader);
}

static bool add_kept(struct etch_core_list *list, const char *folder, const char *file)
{
    struct etch_core_kept kept = {0};
    size_t length = strlen(file);
    char name[256], path[4096];
    struct stat st;

    if (length < 6 || length > 200 || strcmp(file + length - 5, ".core") != 0)
        return true;
    snprintf(name, sizeof(name), "%.*s", (int)(length - 5), file);
    core_store_path(kept.path, folder, name, ".core");
    if (lstat(kept.path, &st) < 0 || !S_ISREG(st.st_mode))
        return true;
    snprintf(kept.name, sizeof(kept.name), "%.*s", (int)strcspn(name, "."), name);
    kept.size = (uint64_t)st.st_blocks * 512;
    kept.end_unix_ns = (uint64_t)st.st_mtime * 1000000000u;
    core_store_path(path, folder, name, ".exe");
    kept.has_exe = access(path, F_OK) == 0;
    core_store_path(path, folder, name, ETCH_STANDBY_TRACE);
    kept.has_trace = lstat(path, &st) == 0 && S_ISREG(st.st_mode);
    kept.size += kept.has_trace ? (uint64_t)st.st_blocks * 512 : 0;
    core_store_path(path, folder, name, ".etch");
    take_about(&kept, path);
    if (etch_array_push(&list->list, kept))
        return true;
    release_kept(&kept);
    return false;
}

static int by_age(const void *x, const void *y)
{
    const struct etch_core_kept *a = x, *b = y;

    if (a->end_unix_ns != b->end_unix_ns)
        return a->end_unix_ns > b->end_unix_ns ? -1 : 1;
    return strcmp(a->path, b->path);
}

int etch_core_list(struct etch_core_list *list, const char *folder, struct etch_error *err)
{
    struct dirent *entry;
    bool good = true;
    DIR *dir;

    memset(list, 0, sizeof(*list));
    dir = opendir(folder);
    if (!dir && errno == ENOENT)
        return 0;
    if (!dir) {
        etch_error_set_errno(err, errno, "cannot read the folder %s", folder);
        return etch_error_advise(err, "sudo: the cores are root's");
    }
    while (good && (entry = readdir(dir)))
        good = add_kept(list, folder, entry->d_name);
    closedir(dir);
    if (list->list.n)
        qsort(list->list.v, list->list.n, sizeof(*list->list.v), by_age);
    return good ? 0 : etch_error_no_memory(err);
}

/* ---- Bounds ---- */

static void remove_core(const char *path)
{
    char other[4200];

    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        snprintf(other, sizeof(other), "%.*s%s", (int)strlen(path) - 5, path, suffixes[i]);
        unlink(other);
    }
}

void core_store_prune(const struct etch_core_place *place, const char *name)
{
    struct etch_core_list list;
    struct etch_error ignored;
    uint64_t total = 0;
    uint32_t kept = 0;
    char own[4096];

    core_store_path(own, place->folder, name, ".core");
    if (etch_core_list(&list, place->folder, &ignored) < 0)
        return;
    for (size_t i = 0; i < list.list.n; i++) {
        const struct etch_core_kept *k = &list.list.v[i];

        total += k->size;
        kept++;
        if (strcmp(k->path, own) != 0 && (kept > place->keep || total > place->max_total))
            remove_core(k->path);
    }
    etch_core_list_release(&list);
}
