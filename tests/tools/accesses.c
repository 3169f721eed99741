/* SPDX-License-Identifier: MIT */
/* accesses [--callers] BUNDLE: every watched access, by time, one a line: watch, thread, function, direction, value;
 * with
 * --callers also the line of the program from which a library was called that made it, or "-". */
#include "decoder/accesses.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_time(const void *x, const void *y)
{
    const Etch__Access *a = x, *b = y;

    return a->tsc < b->tsc ? -1 : a->tsc > b->tsc;
}

static const Etch__Image *image_at(const struct etch_recording *r, uint64_t ip)
{
    for (size_t i = 0; i < r->images.n; i++)
        if (ip >= r->images.v[i]->start && ip - r->images.v[i]->start < r->images.v[i]->size)
            return r->images.v[i];
    return NULL;
}

static void print_caller(const struct etch_recording *r, struct etch_symbols *symbols, const Etch__Access *a)
{
    struct etch_location at;

    if (!a->caller) {
        printf(" -");
        return;
    }
    etch_symbols_find(symbols, image_at(r, a->caller), a->caller - 1, &at);
    printf(" %s:%u", at.frame.function ? at.frame.function : "?", at.frame.line);
}

static void print(const struct etch_recording *r, struct etch_symbols *symbols, const Etch__Access *a, bool callers)
{
    struct etch_location at;

    etch_symbols_find(symbols, image_at(r, a->ip), a->ip, &at);
    printf("%u %u %s+%" PRIu64 "%s %s%s%s ", a->watch, a->tid, at.symbol ? at.symbol : "?", at.offset,
           a->ip_is_after ? "(after)" : "", a->direction_unknown ? "?" : "", a->read ? "r" : "", a->write ? "w" : "");
    if (a->known_case == ETCH__ACCESS__KNOWN_VALUE)
        printf("%" PRId64, (int64_t)a->value);
    else
        printf("unknown");
    if (callers)
        print_caller(r, symbols, a);
    printf("\n");
}

int main(int argc, char **argv)
{
    struct etch_symbols *symbols = etch_symbols_new(&(struct etch_symbols_options){0});
    struct etch_recording *r = NULL;
    struct etch_code *code = NULL;
    struct etch_error err;
    bool callers = argc > 1 && strcmp(argv[1], "--callers") == 0;

    if (argc != 2 + callers || !symbols || etch_recording_open(&r, argv[1 + callers], &err) < 0 ||
        etch_code_open(&code, r, NULL, &err) < 0 || etch_accesses_settle(r, code, symbols, &err) < 0) {
        if (argc == 2 + callers)
            etch_error_print(&err, "accesses", stderr);
        return 1;
    }
    qsort(r->accesses.v, r->accesses.n, sizeof(*r->accesses.v), by_time);
    for (size_t i = 0; i < r->accesses.n; i++)
        print(r, symbols, &r->accesses.v[i], callers);
    etch_symbols_free(symbols);
    etch_code_free(code);
    etch_recording_free(r);
    return 0;
}
