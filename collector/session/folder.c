/* SPDX-License-Identifier: MIT */
/* See folder.h. All names are relative to a descriptor whose owner was checked. */
#include "collector/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define MEMORY "/dev/shm"
#define STORY "story"
#define RUN "run-"
#define FRESH "new-" /* not yet locked; then renamed */
#define FRESH_S 60   /* after that time its maker is dead */

/* ---- The user's own folder ---- */

/* Opens a folder that belongs to this user alone and is no link. Returns its descriptor, or -1. */
static int open_own(int at, const char *name, mode_t forbidden)
{
    int fd = at < 0 ? -1 : openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & forbidden))
        return fd;
    close(fd);
    errno = EPERM;
    return -1;
}

static void random_name(char *name, size_t size, const char *prefix)
{
    uint64_t number = 0;

    if (getrandom(&number, sizeof(number), 0) < 0)
        number = (uint64_t)time(NULL) << 20 ^ (uint64_t)getpid();
    snprintf(name, size, "%s%012" PRIx64, prefix, number & 0xffffffffffffu);
}

/* Names of the user's folders: etch-UID, and the names made because somebody else had etch-UID. */
static bool is_place(const char *name)
{
    char plain[24];
    size_t n = (size_t)snprintf(plain, sizeof(plain), "etch-%u", (unsigned)geteuid());

    return strncmp(name, plain, n) == 0 && (name[n] == '\0' || name[n] == '.');
}

static int next_place(DIR *memory, char name[32])
{
    struct dirent *entry;

    while ((entry = readdir(memory))) {
        int fd =
            is_place(entry->d_name) && strlen(entry->d_name) < 32 ? open_own(dirfd(memory), entry->d_name, 077) : -1;

        if (fd < 0)
            continue;
        snprintf(name, 32, "%s", entry->d_name);
        return fd;
    }
    return -1;
}

/* Opens the user's folder: etch-UID, else an existing folder etch-UID.*, else a new folder with an unpredictable
 * name. */
static int find_place(char name[32])
{
    DIR *memory = opendir(MEMORY);
    int fd, at = memory ? dirfd(memory) : -1;
    char prefix[24];

    if (at < 0) {
        if (memory)
            closedir(memory);
        return -1;
    }
    snprintf(name, 32, "etch-%u", (unsigned)geteuid());
    mkdirat(at, name, 0700);
    fd = open_own(at, name, 077);
    if (fd < 0)
        fd = next_place(memory, name);
    if (fd < 0) {
        snprintf(prefix, sizeof(prefix), "etch-%u.", (unsigned)geteuid());
        random_name(name, 32, prefix);
        if (mkdirat(at, name, 0700) == 0)
            fd = open_own(at, name, 077);
    }
    closedir(memory);
    return fd;
}

/* ---- Files in a folder ---- */

/* Opens a separate directory stream on the same folder. */
static DIR *list_of(int fd)
{
    int other = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = other < 0 ? NULL : fdopendir(other);

    if (!dir && other >= 0)
        close(other);
    return dir;
}

static void empty(int fd)
{
    DIR *dir = list_of(fd);
    struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.' && unlinkat(fd, entry->d_name, 0) < 0 && errno == EISDIR)
            unlinkat(fd, entry->d_name, AT_REMOVEDIR);
    if (dir)
        closedir(dir);
}

static uint64_t bytes_in(int fd)
{
    DIR *dir = list_of(fd);
    struct dirent *entry;
    struct stat st;
    uint64_t bytes = 0;

    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.' && fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            bytes += (uint64_t)st.st_blocks * 512;
    if (dir)
        closedir(dir);
    return bytes;
}

static const char *name_in(const char *path)
{
    return strrchr(path, '/') + 1;
}

void etch_folder_leave(struct etch_folder *folder)
{
    if (folder->fd >= 0)
        close(folder->fd);
    if (folder->place >= 0)
        close(folder->place);
    *folder = ETCH_FOLDER_NONE;
}

void etch_folder_remove(struct etch_folder *folder)
{
    if (folder->fd >= 0) {
        empty(folder->fd);
        unlinkat(folder->place, name_in(folder->path), AT_REMOVEDIR);
    }
    etch_folder_leave(folder);
}

/* ---- Folders of dead etches ---- */

/* The lock is free only if the folder's etch is gone. From here on this process holds the lock. */
static int open_dead(int place, const char *name)
{
    int fd = open_own(place, name, 0);

    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Adds the folder to `lefts`. Removes a folder in which no recording began. */
static void look_at(struct etch_lefts *lefts, int place, const char *place_name, const char *name)
{
    bool fresh = strncmp(name, FRESH, strlen(FRESH)) == 0;
    struct etch_left left = {0};
    struct stat st;
    int fd;

    if ((!fresh && strncmp(name, RUN, strlen(RUN)) != 0) || strlen(name) > 20)
        return;
    fd = open_dead(place, name);
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && !(fresh && time(NULL) - st.st_mtime < FRESH_S)) {
        bool told = faccessat(fd, STORY, F_OK, AT_SYMLINK_NOFOLLOW) == 0;

        snprintf(left.path, sizeof(left.path), MEMORY "/%s/%s", place_name, name);
        left.bytes = fresh || !told ? 0 : bytes_in(fd); /* nothing began */
        left.changed = st.st_mtime;
        if (!left.bytes || !etch_array_push(&lefts->list, left)) {
            empty(fd);
            unlinkat(place, name, AT_REMOVEDIR);
        }
    }
    close(fd);
}

static int newest_first(const void *a, const void *b)
{
    const struct etch_left *x = a, *y = b;

    return x->changed != y->changed ? (x->changed < y->changed ? 1 : -1) : strcmp(x->path, y->path);
}

static uint64_t bytes_kept(void)
{
    struct statvfs memory;
    uint64_t quarter;

    if (statvfs(MEMORY, &memory) < 0)
        return ETCH_FOLDER_KEPT_BYTES;
    quarter = (uint64_t)memory.f_blocks * memory.f_frsize / 4;
    return quarter < ETCH_FOLDER_KEPT_BYTES ? quarter : ETCH_FOLDER_KEPT_BYTES;
}

static void remove_beyond(struct etch_lefts *lefts)
{
    uint64_t bytes = 0, most = bytes_kept();
    int64_t now = time(NULL);
    size_t kept = 0;

    for (size_t i = 0; i < lefts->list.n; i++) {
        struct etch_left left = lefts->list.v[i];
        struct etch_folder folder;
        struct etch_error ignored;

        bytes += left.bytes;
        if (kept < ETCH_FOLDER_KEPT && bytes <= most && now - left.changed <= (int64_t)ETCH_FOLDER_KEPT_S) {
            lefts->list.v[kept++] = left;
        } else if (etch_folder_take(&folder, left.path, &ignored) == 0) {
            etch_folder_remove(&folder);
            lefts->removed++;
        }
    }
    lefts->list.n = kept;
}

void etch_folder_lefts(struct etch_lefts *lefts)
{
    DIR *memory = opendir(MEMORY), *dir;
    struct dirent *entry;
    char name[32];
    int place;

    memset(lefts, 0, sizeof(*lefts));
    while (memory && (place = next_place(memory, name)) >= 0) {
        dir = list_of(place);
        while (dir && (entry = readdir(dir)))
            look_at(lefts, place, name, entry->d_name);
        if (dir)
            closedir(dir);
        close(place);
    }
    if (memory)
        closedir(memory);
    if (lefts->list.n)
        qsort(lefts->list.v, lefts->list.n, sizeof(lefts->list.v[0]), newest_first);
    remove_beyond(lefts);
}

/* "/dev/shm/etch-UID/run-...", and nothing else. */
static bool split(const char *path, char place[32], const char **name)
{
    const char *from = path + strlen(MEMORY "/");
    size_t n;

    if (strncmp(path, MEMORY "/", strlen(MEMORY "/")) != 0 || strlen(path) >= ETCH_FOLDER_SIZE)
        return false;
    n = strcspn(from, "/");
    if (n >= 32 || !from[n])
        return false;
    snprintf(place, 32, "%.*s", (int)n, from);
    *name = from + n + 1;
    return is_place(place) && strncmp(*name, RUN, strlen(RUN)) == 0 && !strchr(*name, '/');
}

int etch_folder_take(struct etch_folder *folder, const char *path, struct etch_error *err)
{
    char place[32];
    const char *name;
    int memory;

    *folder = ETCH_FOLDER_NONE;
    if (!split(path, place, &name)) {
        etch_error_set(err, "%s is no folder of a recording", path);
        return etch_error_advise(err, "such as " MEMORY "/etch-%u/" RUN "...", (unsigned)geteuid());
    }
    memory = open(MEMORY, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    folder->place = memory < 0 ? -1 : open_own(memory, place, 077);
    if (memory >= 0)
        close(memory);
    folder->fd = folder->place < 0 ? -1 : open_own(folder->place, name, 0);
    if (folder->fd < 0) {
        etch_error_set_errno(err, errno, "cannot open %s", path);
    } else if (flock(folder->fd, LOCK_EX | LOCK_NB) < 0) {
        etch_error_set(err, "the etch that records into %s lives", path);
        etch_error_advise(err, "wait for its end");
    } else {
        snprintf(folder->path, sizeof(folder->path), "%s", path);
        return 0;
    }
    etch_folder_leave(folder);
    return -1;
}

/* ---- A new folder ---- */

static int cannot_make(struct etch_folder *folder, int cause, struct etch_error *err)
{
    etch_folder_leave(folder);
    etch_error_set_errno(err, cause, "cannot make a folder in " MEMORY);
    return etch_error_advise(err, "mount a tmpfs on " MEMORY " that you may write to");
}

/* The folder gets its final name after it is locked. Nobody can therefore take it for the folder of a dead etch. */
int etch_folder_make(struct etch_folder *folder, struct etch_error *err)
{
    struct etch_lefts lefts;
    char place[32], fresh[24], name[24];

    etch_folder_lefts(&lefts);
    etch_array_free(&lefts.list);
    *folder = ETCH_FOLDER_NONE;
    folder->place = find_place(place);
    if (folder->place < 0)
        return cannot_make(folder, errno, err);
    random_name(fresh, sizeof(fresh), FRESH);
    snprintf(name, sizeof(name), RUN "%s", fresh + strlen(FRESH));
    snprintf(folder->path, sizeof(folder->path), MEMORY "/%s/%s", place, name);
    if (mkdirat(folder->place, fresh, 0700) < 0)
        return cannot_make(folder, errno, err);
    folder->fd = open_own(folder->place, fresh, 077);
    if (folder->fd < 0 || flock(folder->fd, LOCK_EX | LOCK_NB) < 0 ||
        renameat(folder->place, fresh, folder->place, name) < 0) {
        int cause = errno;

        unlinkat(folder->place, fresh, AT_REMOVEDIR);
        return cannot_make(folder, cause, err);
    }
    return 0;
}

/* ---- Its story ---- */

void etch_folder_tell(const struct etch_folder *folder, const struct etch_folder_story *story)
{
    char text[8400], cwd[4096] = "";
    int fd = openat(folder->fd, STORY, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int n;

    if (fd < 0)
        return;
    if (story->output[0] != '/' && !getcwd(cwd, sizeof(cwd)))
        cwd[0] = '\0';
    n = snprintf(text, sizeof(text), "%s %" PRIu32 " %s%s%s", story->source, story->pid, cwd, cwd[0] ? "/" : "",
                 story->output);
    if (write(fd, text, (size_t)n) != n) /* then there is no story, and only the rings can be read */
        unlinkat(folder->fd, STORY, 0);
    close(fd);
}

int etch_folder_told(const struct etch_folder *folder, struct etch_folder_story *story)
{
    int fd = openat(folder->fd, STORY, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    char text[4200];
    struct stat st;
    ssize_t n = -1;
    int at = 0;

    memset(story, 0, sizeof(*story));
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        n = read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return -1;
    text[n] = '\0';
    if (sscanf(text, "%15s %" SCNu32 " %n", story->source, &story->pid, &at) < 2 || !at)
        return -1;
    snprintf(story->output, sizeof(story->output), "%.4095s", text + at);
    return 0;
}
