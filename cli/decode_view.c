/* SPDX-License-Identifier: MIT */
/* Functions that the views of etch decode share; see decode_view.h. */
#include "cli/decode_view.h"

#include "base/printable.h"

#include <inttypes.h>
#include <string.h>

void etch_view_clock_init(struct etch_view_clock *clock, const struct etch_recording *recording)
{
    *clock = (struct etch_view_clock){0};
    if (recording && recording->host && recording->host->tsc_hz)
        clock->ns_per_tick = 1e9 / (double)recording->host->tsc_hz;
    if (recording && recording->program)
        clock->origin = recording->program->start_tsc;
}

static void print_bound(const struct etch_view_clock *clock, uint64_t ticks, char *text, size_t size)
{
    if (clock->ns_per_tick > 0)
        snprintf(text, size, "%.3f", (double)(int64_t)(ticks - clock->origin) * clock->ns_per_tick / 1e3);
    else
        snprintf(text, size, "%" PRIu64, ticks);
}

void etch_view_time(const struct etch_view_clock *clock, struct etch_interval time, char *text, size_t size)
{
    char lo[48] = "?", hi[48] = "?";

    if (time.lo)
        print_bound(clock, time.lo, lo, sizeof(lo));
    if (time.hi != UINT64_MAX)
        print_bound(clock, time.hi, hi, sizeof(hi));
    if (strcmp(lo, hi) == 0)
        snprintf(text, size, "%s", lo);
    else
        snprintf(text, size, "%s..%s", lo, hi);
}

const char *etch_view_loss(const struct etch_step *step, char *text, size_t size)
{
    snprintf(text, size, "-- %s%s%s", etch_loss_name(step->cause), step->detail ? ": " : "",
             step->detail ? step->detail : "");
    return etch_printable(text);
}

const char *etch_view_nowhere(const struct etch_step *step, char *text, size_t size)
{
    snprintf(text, size, "-> %" PRIx64 ", where no code is known: the thread died there", step->ip);
    return text;
}

const char *etch_view_base(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

const char *etch_view_thread_name(const struct etch_recording *recording, uint32_t pid, uint32_t tid)
{
    for (size_t i = 0; recording && i < recording->threads.n; i++) {
        const Etch__Thread *thread = recording->threads.v[i];

        if (thread->tid == tid && (thread->pid == pid || thread->pid == 0) && thread->name)
            return thread->name;
    }
    return "";
}

void etch_view_thread_title(FILE *out, const struct etch_recording *recording, uint32_t pid, uint32_t tid)
{
    const char *name = etch_view_thread_name(recording, pid, tid);

    fprintf(out, "thread %" PRIu32 "/%" PRIu32 "%s", pid, tid, name[0] ? " " : "");
    etch_print(out, name);
    putc('\n', out);
}
