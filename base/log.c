/* SPDX-License-Identifier: MIT */
/* Log lines; see log.h. */
#include "base/log.h"

#include "base/printable.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_LEVEL ETCH_LOG_WARN
#define N_LEVELS ((int)(sizeof(levels) / sizeof(levels[0])))

static const char *const levels[] = {"error", "warn", "info", "debug"};

static const struct room {
    const char *name;
    enum etch_log_room in; /* itself, or the room that a sub-room is in */
} rooms[ETCH_LOG_N_ROOMS] = {
    [ETCH_LOG_BASE] = {"base", ETCH_LOG_BASE},
    [ETCH_LOG_PROTO] = {"proto", ETCH_LOG_PROTO},
    [ETCH_LOG_BINARY] = {"binary", ETCH_LOG_BINARY},
    [ETCH_LOG_CALIBRATE] = {"calibrate", ETCH_LOG_CALIBRATE},
    [ETCH_LOG_COLLECTOR] = {"collector", ETCH_LOG_COLLECTOR},
    [ETCH_LOG_SESSION] = {"session", ETCH_LOG_COLLECTOR},
    [ETCH_LOG_NATIVE] = {"native", ETCH_LOG_COLLECTOR},
    [ETCH_LOG_PT] = {"pt", ETCH_LOG_COLLECTOR},
    [ETCH_LOG_SOFT] = {"soft", ETCH_LOG_COLLECTOR},
    [ETCH_LOG_VPT] = {"vpt", ETCH_LOG_COLLECTOR},
    [ETCH_LOG_SYNC] = {"sync", ETCH_LOG_COLLECTOR},
    [ETCH_LOG_LAB] = {"lab", ETCH_LOG_COLLECTOR},
    [ETCH_LOG_DECODER] = {"decoder", ETCH_LOG_DECODER},
    [ETCH_LOG_RECORDING] = {"recording", ETCH_LOG_DECODER},
    [ETCH_LOG_FLOW] = {"flow", ETCH_LOG_DECODER},
    [ETCH_LOG_ORDER] = {"order", ETCH_LOG_DECODER},
    [ETCH_LOG_VALUES] = {"values", ETCH_LOG_DECODER},
    [ETCH_LOG_SLICER] = {"slicer", ETCH_LOG_SLICER},
    [ETCH_LOG_MODEL] = {"model", ETCH_LOG_SLICER},
    [ETCH_LOG_SLICE] = {"slice", ETCH_LOG_SLICER},
    [ETCH_LOG_PLAN] = {"plan", ETCH_LOG_SLICER},
    [ETCH_LOG_INSTRUMENT] = {"instrument", ETCH_LOG_SLICER},
    [ETCH_LOG_SKETCH] = {"sketch", ETCH_LOG_SKETCH},
    [ETCH_LOG_RUNS] = {"runs", ETCH_LOG_SKETCH},
    [ETCH_LOG_PREDICT] = {"predict", ETCH_LOG_SKETCH},
    [ETCH_LOG_EXPLAIN] = {"explain", ETCH_LOG_SKETCH},
    [ETCH_LOG_RENDER] = {"render", ETCH_LOG_SKETCH},
    [ETCH_LOG_DIAGNOSE] = {"diagnose", ETCH_LOG_DIAGNOSE},
    [ETCH_LOG_CLI] = {"cli", ETCH_LOG_CLI},
};

/* The level of each room, less the default: zero is the default. */
static atomic_int raised[ETCH_LOG_N_ROOMS];

static bool is_word(const char *text, size_t size, const char *word)
{
    return strlen(word) == size && memcmp(text, word, size) == 0;
}

/* -1: no level has that name. */
static int find_level(const char *text, size_t size)
{
    for (int i = 0; i < N_LEVELS; i++)
        if (is_word(text, size, levels[i]))
            return i;
    return -1;
}

static bool set_room(int wanted[ETCH_LOG_N_ROOMS], const char *text, size_t size, int level)
{
    bool known = false;

    for (int i = 0; i < ETCH_LOG_N_ROOMS; i++) {
        if (!is_word(text, size, rooms[i].name) && !is_word(text, size, rooms[rooms[i].in].name))
            continue;
        wanted[i] = level;
        known = true;
    }
    return known;
}

/* Takes one entry of the list. False: it names no level, or no room. */
static bool take_entry(int wanted[ETCH_LOG_N_ROOMS], const char *entry, size_t size)
{
    const char *colon = memchr(entry, ':', size);
    size_t name = colon ? (size_t)(colon - entry) : size;
    int level = colon ? find_level(colon + 1, size - name - 1) : find_level(entry, size);

    if (!colon && level >= 0) {
        for (int i = 0; i < ETCH_LOG_N_ROOMS; i++)
            wanted[i] = level;
        return true;
    }
    if (colon && level < 0)
        return false;
    return set_room(wanted, entry, name, colon ? level : ETCH_LOG_DEBUG);
}

int etch_log_set(const char *list, char *unknown, size_t size)
{
    int wanted[ETCH_LOG_N_ROOMS];

    for (int i = 0; i < ETCH_LOG_N_ROOMS; i++)
        wanted[i] = DEFAULT_LEVEL;
    for (const char *entry = list;; entry++) {
        size_t n = strcspn(entry, ",");

        if (!take_entry(wanted, entry, n)) {
            snprintf(unknown, size, "%.*s", (int)n, entry);
            return -1;
        }
        entry += n;
        if (!*entry)
            break;
    }
    for (int i = 0; i < ETCH_LOG_N_ROOMS; i++)
        atomic_store_explicit(&raised[i], wanted[i] - DEFAULT_LEVEL, memory_order_relaxed);
    return 0;
}

bool etch_log_is_on(enum etch_log_room room, enum etch_log_level level)
{
    return (int)level - DEFAULT_LEVEL <= atomic_load_explicit(&raised[room], memory_order_relaxed);
}

void etch_log_write(enum etch_log_room room, enum etch_log_level level, const char *fmt, ...)
{
    char line[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    fprintf(stderr, "etch: %s: %s: %s\n", levels[level], rooms[room].name, etch_printable(line));
}
