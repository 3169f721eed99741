/* SPDX-License-Identifier: MIT */
/* The run store in SQLite; see store.h. */
#include "sketch/store.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct etch_store {
    sqlite3 *db;
    char path[4096];
};

static int trouble(const struct etch_store *store, const char *what, struct etch_error *err)
{
    etch_error_set(err, "cannot %s %s: %s", what, store->path, sqlite3_errmsg(store->db));
    return etch_error_advise(err, "another --store, or remove this one");
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
        if (mkdir(path, 0777) < 0 && errno != EEXIST)
            return errno;
        *p = '/';
    }
    return mkdir(path, 0777) < 0 && errno != EEXIST ? errno : 0;
}

int etch_store_open(struct etch_store **store, const char *folder, struct etch_error *err)
{
    static const char schema[] =
        "PRAGMA journal_mode=WAL; PRAGMA busy_timeout=5000;"
        "CREATE TABLE IF NOT EXISTS numbers (last INTEGER NOT NULL);"
        "INSERT INTO numbers SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM numbers);"
        "CREATE TABLE IF NOT EXISTS runs (id INTEGER PRIMARY KEY, bundle TEXT NOT NULL, verdict TEXT NOT NULL,"
        " sigma INTEGER NOT NULL, seconds REAL NOT NULL);";
    struct etch_store *s = calloc(1, sizeof(*s));
    int cause = make_folder(folder);

    *store = NULL;
    if (!s)
        return etch_error_set(err, "out of memory");
    if (cause) {
        free(s);
        return etch_error_set_errno(err, cause, "cannot make the folder %s", folder);
    }
    snprintf(s->path, sizeof(s->path), "%s/runs.db", folder);
    if (sqlite3_open(s->path, &s->db) != SQLITE_OK || sqlite3_exec(s->db, schema, NULL, NULL, NULL) != SQLITE_OK) {
        trouble(s, "use the run store", err);
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
    sqlite3_close(store->db);
    free(store);
}

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
        sqlite3_bind_text(statement, 3, run->verdict, -1, SQLITE_STATIC);
        sqlite3_bind_int64(statement, 4, run->sigma);
        sqlite3_bind_double(statement, 5, run->seconds);
        result = sqlite3_step(statement);
    }
    sqlite3_finalize(statement);
    return result == SQLITE_DONE ? 0 : trouble(store, "write to", err);
}

int etch_store_drop(struct etch_store *store, int64_t id, struct etch_error *err)
{
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v2(store->db, "DELETE FROM runs WHERE id = ?", -1, &statement, NULL);

    if (result == SQLITE_OK) {
        sqlite3_bind_int64(statement, 1, id);
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

        if (step != SQLITE_ROW) {
            status = trouble(store, "read", err);
            break;
        }
        run.id = sqlite3_column_int64(statement, 0);
        copy_text(run.bundle, sizeof(run.bundle), sqlite3_column_text(statement, 1));
        copy_text(run.verdict, sizeof(run.verdict), sqlite3_column_text(statement, 2));
        run.sigma = (uint32_t)sqlite3_column_int64(statement, 3);
        run.seconds = sqlite3_column_double(statement, 4);
        if (!strchr(run.bundle, '/'))
            status = visit(context, &run);
    }
    sqlite3_finalize(statement);
    return status;
}
