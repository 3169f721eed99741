/* SPDX-License-Identifier: MIT */
/* What the views of etch decode share; see decode_view.h. */
#include "cli/decode_view.h"

#include <ctype.h>
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

/* "ring wrapped" for LOSS_RING_WRAPPED. */
static void loss_name(Etch__LossCause cause, char name[64])
{
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(&etch__loss_cause__descriptor, (int)cause);
    const char *tail = value ? strchr(value->name, '_') + 1 : "unspecified";
    size_t n = 0;

    for (; *tail && n < 63; tail++)
        name[n++] = (char)(*tail == '_' ? ' ' : tolower((unsigned char)*tail));
    name[n] = '\0';
}

const char *etch_view_loss(const struct etch_step *step, char *text, size_t size)
{
    char name[64];

    loss_name(step->cause, name);
    snprintf(text, size, "-- %s%s%s", name, step->detail ? ": " : "", step->detail ? step->detail : "");
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

void etch_view_print(FILE *out, const char *text)
{
    for (; *text; text++)
        putc_unlocked((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text, out);
}

void etch_view_thread_title(FILE *out, const struct etch_recording *recording, uint32_t pid, uint32_t tid)
{
    const char *name = etch_view_thread_name(recording, pid, tid);

    fprintf(out, "thread %" PRIu32 "/%" PRIu32 "%s", pid, tid, name[0] ? " " : "");
    etch_view_print(out, name);
    putc('\n', out);
}
