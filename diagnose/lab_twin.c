/* SPDX-License-Identifier: MIT */
/* See lab_twin.h. A twin is kept in the user's cache. Its name is the checksums of the program with its own
 * libraries, and of the lab's runtime. A twin is built in a temporary folder and then renamed, so that nobody sees half
 * a twin. */
#include "diagnose/lab_twin.h"

#include "base/input.h"
#include "base/md5.h"
#include "base/output.h"
#include "collector/lab_run.h"
#include "slicer/lab_build.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECIPE 2u /* one more whenever etch makes other lab builds of the same program */

static int sum_of(const char *path, uint8_t sum[16], struct etch_error *err)
{
    int fd = etch_input_open(path);
    off_t size = fd >= 0 ? etch_input_size(fd) : -1;
    void *at = MAP_FAILED;

    if (fd < 0)
        return etch_error_set_errno(err, errno, "cannot open %s", path);
    if (size > 0)
        at = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (at == MAP_FAILED)
        return etch_error_set(err, "%s is not a program", path);
    etch_md5(at, (size_t)size, sum);
    munmap(at, (size_t)size);
    return 0;
}

static int add_sum(void *context, const char *path, struct etch_error *err)
{
    uint8_t sums[32];

    memcpy(sums, context, 16);
    if (sum_of(path, sums + 16, err) < 0)
        return -1;
    etch_md5(sums, sizeof(sums), context);
    return 0;
}

/* One checksum of the program and of its own shared libraries. */
static int sum_of_program(const char *program, uint8_t sum[16], struct etch_error *err)
{
    return sum_of(program, sum, err) < 0 ? -1 : etch_lab_build_each_library(program, add_sum, sum, err);
}

/* Looks beside etch, and in the folder where etch is installed. */
static int find_object(const char *name, char path[PATH_MAX], struct etch_error *err)
{
    static const char *const places[] = {"", "../lib/etch/"};
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash;

    self[n > 0 ? n : 0] = '\0';
    slash = strrchr(self, '/');
    for (size_t i = 0; slash && i < sizeof(places) / sizeof(places[0]); i++) {
        int length = snprintf(path, PATH_MAX, "%.*s%s%s", (int)(slash + 1 - self), self, places[i], name);

        if (length > 0 && length < PATH_MAX && access(path, R_OK) == 0)
            return 0;
    }
    return etch_error_set(err, "cannot find %s, which lab builds are linked with, beside etch", name);
}

/* The files that lab builds are linked with, and one checksum of them and of how a lab build is made. */
struct runtime {
    char lab[PATH_MAX], recorder[PATH_MAX];
    uint8_t sum[16];
};

static int find_runtime(struct runtime *r, struct etch_error *err)
{
    uint8_t sums[33] = {[32] = RECIPE};

    if (find_object("etch-lab.o", r->lab, err) < 0 || find_object("etch-lab-soft.o", r->recorder, err) < 0 ||
        sum_of(r->lab, sums, err) < 0 || sum_of(r->recorder, sums + 16, err) < 0)
        return -1;
    etch_md5(sums, sizeof(sums), r->sum);
    return 0;
}

static int make_folder(char *path, struct etch_error *err)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return etch_error_set_errno(err, errno, "cannot make %s", path);
    return 0;
}

/* etch runs programs from this folder, so no other user may write to the folder. */
static int cache_folder(char path[PATH_MAX], struct etch_error *err)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    struct stat st;

    if (cache && cache[0] == '/')
        snprintf(path, PATH_MAX, "%s/etch/lab", cache);
    else if (home && home[0] == '/')
        snprintf(path, PATH_MAX, "%s/.cache/etch/lab", home);
    else
        return etch_error_set(err, "there is no place for lab builds: neither XDG_CACHE_HOME nor HOME is set");
    if (make_folder(path, err) < 0)
        return -1;
    if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH)))
        return 0;
    etch_error_set(err, "lab builds cannot be kept in %s: other users may write to that folder", path);
    return etch_error_advise(err, "remove that folder, or set XDG_CACHE_HOME to a folder of your own");
}

/* The note is kept beside the lab build. */
static void note_path(const struct etch_lab_twin *twin, char path[PATH_MAX + 8])
{
    snprintf(path, PATH_MAX + 8, "%s.note", twin->path);
}

static void read_note(struct etch_lab_twin *twin)
{
    char path[PATH_MAX + 8];
    size_t n = 0;
    int fd;
    char *text;

    note_path(twin, path);
    fd = etch_input_open(path);
    text = fd >= 0 ? etch_input_read(fd, sizeof(twin->note) - 1, &n) : NULL;
    if (text)
        snprintf(twin->note, sizeof(twin->note), "%.*s", (int)n, text);
    free(text);
    if (fd >= 0)
        close(fd);
}

static int keep_note(const struct etch_lab_twin *twin, struct etch_error *err)
{
    char path[PATH_MAX + 8];

    note_path(twin, path);
    return twin->note[0] ? etch_output_write(path, twin->note, strlen(twin->note), err) : 0;
}

static int build(struct etch_lab_twin *twin, const char *program, const struct runtime *runtime, const char *cache,
                 struct etch_error *err)
{
    char folder[PATH_MAX], made[PATH_MAX + 16], log[PATH_MAX + 16];
    struct etch_lab_build about = {.program = program,
                                   .runtime = runtime->lab,
                                   .recorder = runtime->recorder,
                                   .folder = folder,
                                   .twin = made,
                                   .note = twin->note,
                                   .note_size = sizeof(twin->note)};
    int status;

    snprintf(folder, sizeof(folder), "%.*s/making-XXXXXX", PATH_MAX - 32, cache);
    if (!mkdtemp(folder))
        return etch_error_set_errno(err, errno, "cannot make a folder in %s", cache);
    snprintf(made, sizeof(made), "%s/twin", folder);
    snprintf(log, sizeof(log), "%s/link.log", folder);
    status = etch_lab_build(&about, err);
    if (status == 0)
        status = keep_note(twin, err);
    if (status == 0 && rename(made, twin->path) < 0)
        status = etch_error_set_errno(err, errno, "cannot keep %s", twin->path);
    if (status == 0)
        unlink(log);
    rmdir(folder); /* the folder stays if it holds the linker's log */
    return status;
}

int etch_lab_twin(struct etch_lab_twin *twin, const char *program, struct etch_error *err)
{
    char cache[PATH_MAX], key[65] = "";
    struct runtime runtime;
    uint8_t sums[32] = {0};

    memset(twin, 0, sizeof(*twin));
    if (sum_of_program(program, sums, err) < 0 || find_runtime(&runtime, err) < 0 || cache_folder(cache, err) < 0)
        return -1;
    memcpy(sums + 16, runtime.sum, 16);
    memcpy(twin->program, sums, 16);
    for (size_t i = 0; i < sizeof(sums); i++)
        snprintf(key + 2 * i, 3, "%02x", sums[i]);
    snprintf(twin->path, sizeof(twin->path), "%.*s/%s", PATH_MAX - 80, cache, key);
    if (access(twin->path, X_OK) == 0) {
        read_note(twin);
        return 0;
    }
    twin->made = true;
    return build(twin, program, &runtime, cache, err);
}

bool etch_lab_twin_is_of(const char *path, const char *program)
{
    struct etch_error ignored;
    char cache[PATH_MAX], key[33] = "";
    uint8_t sum[16] = {0};
    size_t n;

    if (cache_folder(cache, &ignored) < 0 || sum_of_program(program, sum, &ignored) < 0)
        return false;
    for (size_t i = 0; i < sizeof(sum); i++)
        snprintf(key + 2 * i, 3, "%02x", sum[i]);
    n = strlen(cache);
    return strncmp(path, cache, n) == 0 && path[n] == '/' && strncmp(path + n + 1, key, 32) == 0;
}

static void sites_path(const struct etch_lab_twin *twin, char path[PATH_MAX + 8])
{
    snprintf(path, PATH_MAX + 8, "%s.sites", twin->path);
}

bool etch_lab_sites_read(const struct etch_lab_twin *twin, uint64_t *sites)
{
    char path[PATH_MAX + 8];
    size_t n = 0;
    int fd;
    char *bytes;

    sites_path(twin, path);
    fd = etch_input_open(path);
    bytes = fd >= 0 ? etch_input_read(fd, ETCH_LAB_SITES * sizeof(*sites), &n) : NULL;
    if (fd >= 0)
        close(fd);
    memset(sites, 0, ETCH_LAB_SITES * sizeof(*sites));
    for (size_t i = 0; bytes && i + sizeof(*sites) <= n; i += sizeof(*sites)) {
        uint64_t site;
        uint32_t slot;

        memcpy(&site, bytes + i, sizeof(site));
        slot = etch_lab_site_slot(sites, site);
        if (site && slot < ETCH_LAB_SITES)
            sites[slot] = site;
    }
    free(bytes);
    return bytes != NULL;
}

void etch_lab_sites_keep(const struct etch_lab_twin *twin, const uint64_t *sites)
{
    uint64_t *list = malloc(ETCH_LAB_SITES * sizeof(*list));
    struct etch_error ignored;
    char path[PATH_MAX + 8];
    size_t n = 0;

    sites_path(twin, path);
    for (uint32_t i = 0; list && i < ETCH_LAB_SITES; i++)
        if (sites[i])
            list[n++] = sites[i];
    if (list)
        etch_output_write(path, list, n * sizeof(*list), &ignored);
    free(list);
}
