/* SPDX-License-Identifier: MIT */
/* The critical path as text and as JSON. */
#include "report/critical.h"

#include "base/function_name.h"
#include "base/path.h"
#include "base/printable.h"
#include "report/json.h"
#include "report/quantity.h"

#include <inttypes.h>
#include <string.h>

enum { SHOWN = 12 };

static const char *const kinds[ETCH_LINKS] = {"work", "lock", "condition", "semaphore", "join", "barrier", "start"};

static const char *ticks_text(const struct etch_critical *c, struct etch_span ticks, char *text)
{
    const struct etch_profile rate = {.ns_per_tick = c->ns_per_tick};

    return etch_quantity_ticks(&rate, ticks, text);
}

static const char *one(const struct etch_critical *c, uint64_t ticks, char *text)
{
    return ticks_text(c, (struct etch_span){ticks, ticks}, text);
}

/* The nearest place outside of headers of the system: a lock is taken through several of them in C++. */
static void place_of(const struct etch_critical *c, uint64_t caller, char *text, size_t size)
{
    const Etch__Image *image = caller ? etch_recording_image_at(c->recording, 0, caller - 1) : NULL;
    struct etch_location at = {0};
    const struct etch_frame *frame = &at.frame;

    snprintf(text, size, "?");
    if (!image)
        return;
    etch_symbols_find(c->symbols, image, caller - 1, &at);
    while (frame->caller && (!frame->file || etch_file_is_system(frame->file)))
        frame = frame->caller;
    if (frame->file && frame->line)
        snprintf(text, size, "%.200s:%" PRIu32 " in %.300s", etch_path_name(frame->file), frame->line,
                 frame->function ? frame->function : "?");
    else if (at.symbol)
        snprintf(text, size, "%.300s", at.symbol);
}

static const char *thread_name(const struct etch_critical *c, uint32_t tid, char *text, size_t size)
{
    const char *name = "";

    for (size_t i = 0; i < c->recording->threads.n; i++)
        if (c->recording->threads.v[i]->tid == tid)
            name = c->recording->threads.v[i]->name;
    snprintf(text, size, "thread %" PRIu32 "%s%s", tid, name[0] ? " " : "", name);
    return text;
}

static void print_object(const struct etch_contended *x, FILE *out)
{
    fprintf(out, "%s ", kinds[x->kind]);
    if (x->name)
        etch_print(out, x->name);
    else
        fprintf(out, "0x%" PRIx64, x->object);
}

static void print_contended(const struct etch_critical *c, const struct etch_contended *x, FILE *out)
{
    char sum[ETCH_QUANTITY_ROOM], longest[ETCH_QUANTITY_ROOM], path[ETCH_QUANTITY_ROOM], owned[ETCH_QUANTITY_ROOM];
    char place[600], thread[120];

    fprintf(out, "%8" PRIu64 "  %-18s %-10s %-10s ", x->waits, ticks_text(c, x->waited, sum),
            one(c, x->longest, longest), x->on_path ? one(c, x->on_path, path) : "-");
    print_object(x, out);
    if (x->owner) {
        fprintf(out, "; %s ", x->kind == ETCH_LINK_LOCK ? "held most by" : "ended most by");
        etch_print(out, thread_name(c, x->owner, thread, sizeof(thread)));
        fprintf(out, ", for %s of these waits", ticks_text(c, x->owned, owned));
    }
    if (x->owner_caller) {
        place_of(c, x->owner_caller, place, sizeof(place));
        fputs(", which took it at ", out);
        etch_print(out, place);
    }
    putc('\n', out);
}

/* The work on the path, of each thread. */
static void print_work(const struct etch_critical *c, FILE *out)
{
    uint64_t all = c->end - c->begin;
    char text[ETCH_QUANTITY_ROOM], name[120];

    for (size_t i = 0; i < c->links.n; i++) {
        uint64_t sum = 0;
        bool first = true;

        for (size_t k = 0; k < c->links.n; k++)
            if (c->links.v[k].kind == ETCH_LINK_WORK && c->links.v[k].tid == c->links.v[i].tid) {
                sum += c->links.v[k].to - c->links.v[k].from;
                first = first && k >= i;
            }
        if (!first || !sum || c->links.v[i].kind != ETCH_LINK_WORK)
            continue;
        fprintf(out, "  %5.1f %%  %-10s ", all ? 100.0 * (double)sum / (double)all : 0, one(c, sum, text));
        etch_print(out, thread_name(c, c->links.v[i].tid, name, sizeof(name)));
        fputs(" ran, or waited for something that no thread ended\n", out);
    }
}

static void print_link(const struct etch_critical *c, const struct etch_link *l, FILE *out)
{
    char at[ETCH_QUANTITY_ROOM], length[ETCH_QUANTITY_ROOM], name[120], other[120], place[600];

    fprintf(out, "  +%-10s %-10s ", one(c, l->from - c->begin, at), one(c, l->to - l->from, length));
    etch_print(out, thread_name(c, l->tid, name, sizeof(name)));
    if (l->kind == ETCH_LINK_WORK)
        fputs(" ran", out);
    else if (l->kind == ETCH_LINK_START) {
        fputs(" was created by ", out);
        etch_print(out, thread_name(c, l->other, other, sizeof(other)));
    } else {
        fprintf(out, " got the %s from ", kinds[l->kind]);
        etch_print(out, thread_name(c, l->other, other, sizeof(other)));
        fprintf(out, ", after waiting %s at ", ticks_text(c, l->waited, length));
        place_of(c, l->caller, place, sizeof(place));
        etch_print(out, place);
    }
    putc('\n', out);
}

void etch_critical_print(const struct etch_critical *c, FILE *out)
{
    char text[ETCH_QUANTITY_ROOM];
    size_t from = c->links.n > SHOWN ? c->links.n - SHOWN : 0;

    fprintf(out, "critical path: %s until the last synchronisation, %zu links\n", one(c, c->end - c->begin, text),
            c->links.n);
    if (c->lost)
        fprintf(out, "lost       %" PRIu64 " events: links may be missing\n", c->lost);
    print_work(c, out);
    fprintf(out, "\n%8s  %-18s %-10s %-10s %s\n", "waits", "waited", "longest", "on path", "for");
    for (size_t i = 0; i < c->contended.n; i++)
        print_contended(c, &c->contended.v[i], out);
    if (!c->contended.n)
        fputs("no thread waited for another one\n", out);
    fprintf(out, "\nthe end of the path\n");
    for (size_t i = from; i < c->links.n; i++)
        print_link(c, &c->links.v[i], out);
}

void etch_critical_json(const struct etch_critical *c, FILE *out)
{
    const struct etch_profile rate = {.ns_per_tick = c->ns_per_tick};
    char place[600];

    fprintf(out, "{\"ns\":%.1f,\"lost\":%" PRIu64 ",\"contended\":[",
            etch_quantity_ns(&rate, (double)(c->end - c->begin)), c->lost);
    for (size_t i = 0; i < c->contended.n; i++) {
        const struct etch_contended *x = &c->contended.v[i];

        fprintf(out, "%s\n{\"kind\":\"%s\",\"object\":\"0x%" PRIx64 "\"", i ? "," : "", kinds[x->kind], x->object);
        if (x->name) {
            fputs(",\"name\":", out);
            etch_json_string(out, x->name);
        }
        fprintf(out, ",\"waits\":%" PRIu64, x->waits);
        etch_json_span(out, ",\"waited_ns\"", &rate, x->waited);
        fprintf(out, ",\"longest_ns\":%.1f,\"on_path_ns\":%.1f,\"owner\":%" PRIu32,
                etch_quantity_ns(&rate, (double)x->longest), etch_quantity_ns(&rate, (double)x->on_path), x->owner);
        etch_json_span(out, ",\"owned_ns\"", &rate, x->owned);
        place_of(c, x->owner_caller, place, sizeof(place));
        fputs(",\"taken_at\":", out);
        etch_json_string(out, place);
        putc('}', out);
    }
    fputs("],\n\"links\":[", out);
    for (size_t i = 0; i < c->links.n; i++) {
        const struct etch_link *l = &c->links.v[i];

        fprintf(out, "%s\n{\"kind\":\"%s\",\"tid\":%" PRIu32 ",\"other\":%" PRIu32 ",\"from_ns\":%.1f,\"to_ns\":%.1f",
                i ? "," : "", kinds[l->kind], l->tid, l->other, etch_quantity_ns(&rate, (double)(l->from - c->begin)),
                etch_quantity_ns(&rate, (double)(l->to - c->begin)));
        if (l->kind != ETCH_LINK_WORK && l->kind != ETCH_LINK_START)
            etch_json_span(out, ",\"waited_ns\"", &rate, l->waited);
        putc('}', out);
    }
    fputs("]}\n", out);
}
