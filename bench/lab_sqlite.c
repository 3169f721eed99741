/* SPDX-License-Identifier: MIT */
/* Four threads, each with a connection of its own to one database in memory, which they share: the way of sqlite's own
 * threadtest. */
#include "sqlite3.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define NAME "file:shared?mode=memory&cache=shared"

static void run(sqlite3 *db, const char *sql)
{
    int status;

    do {
        status = sqlite3_exec(db, sql, NULL, NULL, NULL);
        if (status == SQLITE_LOCKED || status == SQLITE_BUSY)
            sqlite3_sleep(1);
    } while (status == SQLITE_LOCKED || status == SQLITE_BUSY);
    if (status != SQLITE_OK) {
        fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
        abort();
    }
}

static void *work(void *number)
{
    sqlite3 *db;
    char sql[100];

    if (sqlite3_open_v2(NAME, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI, NULL) != SQLITE_OK)
        abort();
    for (int i = 0; i < 10; i++) {
        snprintf(sql, sizeof(sql), "INSERT INTO t VALUES(%ld, %d)", (long)number, i);
        run(db, sql);
    }
    run(db, "SELECT count(*) FROM t");
    sqlite3_close(db);
    return NULL;
}

static int take(void *count, int n, char **values, char **names)
{
    (void)n;
    (void)names;
    *(int *)count = atoi(values[0]);
    return 0;
}

int main(void)
{
    pthread_t t[4];
    sqlite3 *db;
    int count = 0;

    if (sqlite3_open_v2(NAME, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI, NULL) != SQLITE_OK)
        abort();
    run(db, "CREATE TABLE t(a INT, b INT)");
    for (long i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, work, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    if (sqlite3_exec(db, "SELECT count(*) FROM t", take, &count, NULL) != SQLITE_OK)
        abort();
    sqlite3_close(db);
    return count == 40 ? 0 : 1;
}
