/* SPDX-License-Identifier: MIT */
/* The run store in SQLite; see store.h. */
#include "diagnose/store.h"

#include "base/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct etch_store {
    sqlite3 *db;
    char folder[4000], path[4096];
    int lock; /* held shared while the store is open */
};

static int trouble(const struct etch_store *store, const char *what, struct etch_error *err)
{
    int code = sqlite3_errcode(store->db);

    etch_error_set(err, "cannot %s %s: %s", what, store->path, sqlite3_errmsg(store->db));
    if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT)
        return etch_error_advise(err, "--fresh, which forgets the runs in it");
    if (code == SQLITE_FULL || code == SQLITE_IOERR)
        return etch_error_advise(err, "room on the disk, or --store DIR on another");
    return etch_error_advise(err, "--store DIR elsewhere");
}

/* mkdir -p */
static int make_folder(const char *folder)
{
    char path[4096];

    if (snprintf(path, sizeof(path), "%s", folder) >= (int)sizeof(path))
        return ENAMETOOLONG;
    for (char *p = path + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return errno;
        *p = '/';
    }
    return mkdir(path, 0700) < 0 && errno != EEXIST ? errno : 0;
}

/* Another user who may put files there could lead etch anywhere. */
static int check_folder(const char *folder, struct etch_error *err)
{
    struct stat st;

    if (stat(folder, &st) < 0)
        return etch_error_set_errno(err, errno, "cannot use the run store %s", folder);
    if (st.st_uid == geteuid() && !(st.st_mode & S_IWOTH))
        return 0;
    etch_error_set(err, "cannot use the run store %s: %s", folder,
                   st.st_uid == geteuid() ? "everybody may write to it" : "it belongs to another user");
    return etch_error_advise(err, "--store DIR of your own");
}

/* ---- Files of unfinished runs ---- */

/* The run that a file of the folder belongs to: "000012.etch", or the program's output; -1: no such file. */
static int64_t run_of(const char *name)
{
    long long id;
    int end = 0;

    if (sscanf(name, "%lld.etch%n", &id, &end) != 1 || !end || (name[end] && strcmp(name + end, ".output") != 0))
        return -1;
    return id;
}

static bool is_kept(struct etch_store *s, int64_t id)
{
    sqlite3_stmt *statement = NULL;
    bool kept = true; /* a failed query keeps the file */

    if (sqlite3_prepare_v2(s->db, "SELECT 1 FROM runs WHERE id = ? AND bundle <> ''", -1, &statement, NULL) ==
        SQLITE_OK) {
        sqlite3_bind_int64(statement, 1, id);
        kept = sqlite3_step(statement) != SQLITE_DONE;
    }
    sqlite3_finalize(statement);
    return kept;
}

/* Removes the files that belong to no kept run; `all`: every run's files. */
static void sweep(struct etch_store *s, bool all)
{
    DIR *dir = opendir(s->folder);
    int fd = dir ? dirfd(dir) : -1;
    struct dirent *entry;

    while (fd >= 0 && (entry = readdir(dir))) {
        int64_t id = run_of(entry->d_name);

        if (id >= 0 && (all || !is_kept(s, id)))
            unlinkat(fd, entry->d_name, 0);
    }
    if (dir)
        closedir(dir);
}

/* ---- Opening ---- */

static int remove_all(struct etch_store *s, struct etch_error *err)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    char path[4128];

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        snprintf(path, sizeof(path), "%s%s", s->path, ends[i]);
        if (unlink(path) < 0 && errno != ENOENT)
            return etch_error_set_errno(err, errno, "cannot remove %s", path);
    }
    sweep(s, true);
    return 0;
}

/* Alone in the store for a moment, or beside others. */
static int take_lock(struct etch_store *s, bool *alone, struct etch_error *err)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/lock", s->folder);
    s->lock = etch_output_lasting(path);
    if (s->lock < 0) {
        etch_error_set_errno(err, errno, "cannot use the run store %s", s->folder);
        etch_error_advise(err, "--store DIR where you may write");
        return -1;
    }
    *alone = flock(s->lock, LOCK_EX | LOCK_NB) == 0;
    return 0;
}

static int open_database(struct etch_store *s, struct etch_error *err)
{
    static const char schema[] =
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA busy_timeout=5000;"
        "CREATE TABLE IF NOT EXISTS numbers (last INTEGER NOT NULL);"
        "INSERT INTO numbers SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM numbers);"
        "CREATE TABLE IF NOT EXISTS runs (id INTEGER PRIMARY KEY, bundle TEXT NOT NULL, verdict TEXT NOT NULL,"
        " sigma INTEGER NOT NULL, seconds REAL NOT NULL);";

    int fd = etch_output_lasting(s->path); /* only for its owner, and so are the files that SQLite puts beside it */

    if (fd < 0)
        return etch_error_set_errno(err, errno, "cannot use the run store %s", s->path);
    close(fd);
    if (sqlite3_open(s->path, &s->db) == SQLITE_OK && sqlite3_exec(s->db, schema, NULL, NULL, NULL) == SQLITE_OK)
        return 0;
    return trouble(s, "use the run store", err);
}

static int open_folder(struct etch_store *s, bool fresh, struct etch_error *err)
{
    bool alone = false;
    int cause = make_folder(s->folder);

    if (cause) {
        etch_error_set_errno(err, cause, "cannot make the folder %s", s->folder);
        return etch_error_advise(err, "--store DIR where you may write");
    }
    if (check_folder(s->folder, err) < 0 || take_lock(s, &alone, err) < 0)
        return -1;
    if (fresh && !alone) {
        etch_error_set(err, "another etch diagnose is at work in %s", s->folder);
        return etch_error_advise(err, "wait for it, or --store DIR elsewhere");
    }
    if ((fresh && remove_all(s, err) < 0) || open_database(s, err) < 0)
        return -1;
    if (alone)
        sweep(s, false);
    flock(s->lock, LOCK_SH);
    return 0;
}

int etch_store_open(struct etch_store **store, const char *folder, bool fresh, struct etch_error *err)
{
    struct etch_store *s = calloc(1, sizeof(*s));

    *store = NULL;
    if (!s)
        return etch_error_no_memory(err);
    s->lock = -1;
    if (snprintf(s->folder, sizeof(s->folder), "%s", folder) >= (int)sizeof(s->folder)) {
        free(s);
        return etch_error_set_errno(err, ENAMETOOLONG, "cannot make the folder %.100s...", folder);
    }
    snprintf(s->path, sizeof(s->path), "%s/runs.db", folder);
    if (open_folder(s, fresh, err) < 0) {
        etch_store_close(s);
        return -1;
    }
    *store = s;
    return 0;
}

void etch_store_close(struct etch_store *store)
{
    if (!store)
        return;
    sqlite3_close_v2(store->db);
    if (store->lock >= 0)
        close(store->lock);
    free(store);
}

/* ---- Runs ---- */

int64_t etch_store_reserve(struct etch_store *store, struct etch_error *err)
{
    sqlite3_stmt *statement = NULL;
    int64_t number = -1;

    if (sqlite3_prepare_v2(store->db, "UPDATE numbers SET last = last + 1 RETURNING last", -1, &statement, NULL) ==
            SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        number = sqlite3_column_int64(statement, 0);
    if (number < 0)
        trouble(store, "write to", err);
    sqlite3_finalize(statement);
    return number;
}

int etch_store_add(struct etch_store *store, const struct etch_store_run *run, struct etch_error *err)
{
    sqlite3_stmt *statement = NULL;
    int result =
        sqlite3_prepare_v2(store->db, "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?)", -1, &statement, NULL);

    if (result == SQLITE_OK) {
        sqlite3_bind_int64(statement, 1, run->id);
        sqlite3_bind_text(statement, 2, run->bundle, -1, SQLITE_STATIC);
        sqlite3_bind_text(statement, 3, etch_verdict_name(run->verdict), -1, SQLITE_STATIC);
        sqlite3_bind_int64(statement, 4, run->sigma);
        sqlite3_bind_double(statement, 5, run->seconds);
        result = sqlite3_step(statement);
    }
    sqlite3_finalize(statement);
    return result == SQLITE_DONE ? 0 : trouble(store, "write to", err);
}

static void copy_text(char *to, size_t size, const unsigned char *from)
{
    snprintf(to, size, "%s", from ? (const char *)from : "");
}

int etch_store_list(struct etch_store *store, int (*visit)(void *context, const struct etch_store_run *run),
                    void *context, struct etch_error *err)
{
    sqlite3_stmt *statement = NULL;
    int step, status = 0;

    if (sqlite3_prepare_v2(store->db, "SELECT id, bundle, verdict, sigma, seconds FROM runs ORDER BY id", -1,
                           &statement, NULL) != SQLITE_OK)
        return trouble(store, "read", err);
    while (status == 0 && (step = sqlite3_step(statement)) != SQLITE_DONE) {
        struct etch_store_run run = {0};
        char verdict[8];

        if (step != SQLITE_ROW) {
            status = trouble(store, "read", err);
            break;
        }
        run.id = sqlite3_column_int64(statement, 0);
        copy_text(run.bundle, sizeof(run.bundle), sqlite3_column_text(statement, 1));
        copy_text(verdict, sizeof(verdict), sqlite3_column_text(statement, 2));
        run.verdict = etch_verdict_of(verdict);
        run.sigma = (uint32_t)sqlite3_column_int64(statement, 3);
        run.seconds = sqlite3_column_double(statement, 4);
        if (!strchr(run.bundle, '/'))
            status = visit(context, &run);
    }
    sqlite3_finalize(statement);
    return status;
}
