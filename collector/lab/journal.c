/* SPDX-License-Identifier: MIT */
/* See lab_journal.h. */
#include "collector/lab_journal.h"

#include <string.h>

bool etch_lab_journal_link(void *journal, size_t size, uint64_t first[ETCH_LAB_THREADS + 1], uint64_t *answers)
{
    uint8_t *bytes = journal;
    uint64_t last[ETCH_LAB_THREADS + 1] = {0}; /* plus 1 */
    struct etch_lab_answer a, before;

    memset(first, 0, (ETCH_LAB_THREADS + 1) * sizeof(*first));
    *answers = 0;
    for (size_t at = 0; at < size; ++*answers) {
        size_t left = size - at, whole;

        if (left < sizeof(a))
            return false;
        memcpy(&a, bytes + at, sizeof(a));
        whole = sizeof(a) + (((size_t)a.size + 7) & ~(size_t)7);
        if (whole > left || a.thread > ETCH_LAB_THREADS || a.call >= ETCH_LAB_CALLS)
            return false;
        a.next = 0;
        memcpy(bytes + at, &a, sizeof(a));
        if (last[a.thread]) {
            memcpy(&before, bytes + last[a.thread] - 1, sizeof(before));
            before.next = at + 1;
            memcpy(bytes + last[a.thread] - 1, &before, sizeof(before));
        } else {
            first[a.thread] = at + 1;
        }
        last[a.thread] = at + 1;
        at += whole;
    }
    return true;
}

const char *etch_lab_call_name(uint32_t call)
{
    static const char *const names[ETCH_LAB_CALLS] = {
        [ETCH_LAB_CALL_CLASS] = "first use",
        [ETCH_LAB_CALL_READY] = "wait",
        [ETCH_LAB_CALL_JUMP] = "time",
        [ETCH_LAB_CALL_READ] = "read",
        [ETCH_LAB_CALL_RECEIVE] = "receive",
        [ETCH_LAB_CALL_WRITE] = "write",
        [ETCH_LAB_CALL_SEND] = "send",
        [ETCH_LAB_CALL_SOCKET] = "socket",
        [ETCH_LAB_CALL_CONNECT] = "connect",
        [ETCH_LAB_CALL_BIND] = "bind",
        [ETCH_LAB_CALL_LISTEN] = "listen",
        [ETCH_LAB_CALL_ACCEPT] = "accept",
        [ETCH_LAB_CALL_SHUTDOWN] = "shutdown",
        [ETCH_LAB_CALL_SETSOCKOPT] = "setsockopt",
        [ETCH_LAB_CALL_GETSOCKOPT] = "getsockopt",
        [ETCH_LAB_CALL_GETSOCKNAME] = "getsockname",
        [ETCH_LAB_CALL_GETPEERNAME] = "getpeername",
        [ETCH_LAB_CALL_POLL] = "poll",
        [ETCH_LAB_CALL_EPOLL] = "epoll_wait",
        [ETCH_LAB_CALL_RANDOM] = "random number",
        [ETCH_LAB_CALL_CLOCK] = "clock",
        [ETCH_LAB_CALL_PROCESS] = "process number",
        [ETCH_LAB_CALL_WAIT] = "waitpid",
    };

    return call < ETCH_LAB_CALLS ? names[call] : "unknown call";
}

/* ---- The policy ---- */

static const struct {
    const char *name;
    uint32_t source;
} sources[] = {
    {"sockets", ETCH_LAB_SOCKETS},     {"pipes", ETCH_LAB_PIPES},           {"terminals", ETCH_LAB_TERMINALS},
    {"devices", ETCH_LAB_DEVICES},     {"random", ETCH_LAB_RANDOM_NUMBERS}, {"clocks", ETCH_LAB_CLOCKS},
    {"processes", ETCH_LAB_PROCESSES},
};

static uint32_t source_named(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
        if (strlen(sources[i].name) == n && memcmp(sources[i].name, name, n) == 0)
            return sources[i].source;
    return 0;
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
        at++;
    return at;
}

static size_t word_size(const char *at, const char *end)
{
    size_t n = 0;

    while (at + n < end && at[n] != ' ' && at[n] != '\t' && at[n] != '\r')
        n++;
    return n;
}

/* One line: "SOURCE record" or "SOURCE repeat". */
static bool take_line(const char *at, const char *end, uint32_t *kept)
{
    const char *name = skip_blanks(at, end), *how;
    size_t n = word_size(name, end), k;
    uint32_t source = source_named(name, n);

    if (n == 0 || *name == '#')
        return true;
    how = skip_blanks(name + n, end);
    k = word_size(how, end);
    if (!source || skip_blanks(how + k, end) != end)
        return false;
    if (k == 6 && memcmp(how, "record", k) == 0)
        *kept |= source;
    else if (k == 6 && memcmp(how, "repeat", k) == 0)
        *kept &= ~source;
    else
        return false;
    return true;
}

int etch_lab_policy_parse(uint32_t *kept, const char *text, size_t size, struct etch_error *err)
{
    const char *at = text, *end = text + size;

    *kept = ETCH_LAB_ALL_SOURCES;
    for (unsigned line = 1; at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));

        if (!stop)
            stop = end;
        if (!take_line(at, stop, kept)) {
            etch_error_set(err, "line %u of the input policy is not understood", line);
            return etch_error_advise(err, "a line is a source and \"record\" or \"repeat\"; the sources are sockets, "
                                          "pipes, terminals, devices, random, clocks and processes");
        }
        at = stop < end ? stop + 1 : end;
    }
    return 0;
}
