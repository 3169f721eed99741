/* SPDX-License-Identifier: MIT */
/* etch decode --as chrome: function calls as a Trace Event file, for Perfetto and chrome://tracing. A time
 * in a recording is an interval, but the picture needs a point. So the calls within an interval are spread over the
 * interval, in order, by the instructions between them. Every event has the interval in its arguments. */
#include "cli/decode_view.h"
#include "decoder/calls.h"

#include <inttypes.h>
#include <string.h>

/* Time before the first event: callers that are found later begin there. */
enum { HEADROOM_NS = 64, HELD = 65536 };

struct open_event {
    struct etch_call entered;
    int64_t start_ns;
};

struct chrome_view {
    struct etch_view_options options;
    struct etch_view_clock clock;
    struct etch_calls *calls;
    bool first_event_written, origin_known;
    ETCH_ARRAY(struct open_event) open;

    /* The events of the current interval, until the number of instructions in the interval is known. */
    ETCH_ARRAY(struct etch_call) held;
    struct etch_interval interval;
    uint64_t interval_start; /* instructions before it */
    int64_t last_ns, part_ns;
    unsigned below; /* callers found in this part */
    uint32_t last_pid;
    bool any_process;
};

/* ---- JSON ---------------------------------------------------------------------------------------------------------
 */

static void print_string(FILE *out, const char *text)
{
    putc('"', out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f) /* names are bytes, JSON is UTF-8: a byte beyond ASCII becomes a number */
            fprintf(out, "\\u%04x", c);
        else
            putc(c, out);
    }
    putc('"', out);
}

static void print_ns(FILE *out, const char *key, int64_t ns)
{
    uint64_t magnitude = ns < 0 ? (uint64_t)-ns : (uint64_t)ns;

    fprintf(out, ",\"%s\":%s%" PRIu64 ".%03" PRIu64, key, ns < 0 ? "-" : "", magnitude / 1000, magnitude % 1000);
}

static void print_interval(FILE *out, const char *key, struct etch_interval time)
{
    const char *separator = "";

    fprintf(out, ",\"%s\":{", key);
    if (time.lo) {
        fprintf(out, "\"lo\":%" PRIu64, time.lo);
        separator = ",";
    }
    if (time.hi != UINT64_MAX)
        fprintf(out, "%s\"hi\":%" PRIu64, separator, time.hi);
    putc('}', out);
}

static void begin_event(struct chrome_view *view, const char *phase, uint32_t pid, uint32_t tid)
{
    FILE *out = view->options.out;

    fprintf(out, "%s{\"ph\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32, view->first_event_written ? ",\n" : "\n",
            phase, pid, tid);
    view->first_event_written = true;
}

static void print_metadata(struct chrome_view *view, const char *what, const char *name, uint32_t pid, uint32_t tid)
{
    begin_event(view, "M", pid, tid);
    fprintf(view->options.out, ",\"name\":\"%s\",\"args\":{\"name\":", what);
    print_string(view->options.out, name);
    fputs("}}", view->options.out);
}

static const char *why_name(enum etch_call_why why)
{
    static const char *const names[] = {"call", "running when the trace began", "tail call",          "signal",
                                        "jump", "left by longjmp or exception", "left within a loss", "trace ends"};

    return names[why];
}

static void print_call(struct chrome_view *view, const struct open_event *event, const struct etch_call *left,
                       int64_t end_ns)
{
    FILE *out = view->options.out;
    const struct etch_call *call = &event->entered;
    char name[64];

    begin_event(view, "X", call->pid, call->tid);
    fputs(",\"name\":", out);
    if (!call->name)
        snprintf(name, sizeof(name), "%.30s+0x%" PRIx64, call->module[0] ? etch_view_base(call->module) : "?",
                 call->module_offset);
    print_string(out, call->name ? call->name : name);
    print_ns(out, "ts", event->start_ns);
    print_ns(out, "dur", end_ns - event->start_ns);
    fputs(",\"args\":{\"module\":", out);
    print_string(out, etch_view_base(call->module));
    if (call->kind == ETCH_CALL_ENTER)
        print_interval(out, "entered", call->time);
    if (left->why != ETCH_WHY_END && left->why != ETCH_WHY_LOST)
        print_interval(out, "left", left->time);
    if (call->why != ETCH_WHY_CALL)
        fprintf(out, ",\"entry\":\"%s\"", why_name(call->why));
    if (left->why != ETCH_WHY_CALL)
        fprintf(out, ",\"exit\":\"%s\"", why_name(left->why));
    fputs("}}", out);
}

/* Prints the event of a loss, or of the place where the thread died. */
static void print_instant(struct chrome_view *view, const struct etch_call *call, int64_t ns)
{
    char name[400];

    if (call->kind == ETCH_CALL_LOSS)
        etch_view_loss(call->step, name, sizeof(name));
    else
        etch_view_nowhere(call->step, name, sizeof(name));
    begin_event(view, "i", call->pid, call->tid);
    fputs(",\"s\":\"t\",\"name\":", view->options.out);
    print_string(view->options.out, name);
    print_ns(view->options.out, "ts", ns);
    fprintf(view->options.out, ",\"args\":{\"stream\":%" PRIu32 ",\"offset\":%" PRIu64, call->step->stream,
            call->step->offset);
    print_interval(view->options.out, "time", call->time);
    fputs("}}", view->options.out);
}

/* ---- Points in time -----------------------------------------------------------------------------------------------
 */

static int64_t ticks_to_ns(const struct chrome_view *view, double ticks)
{
    double scale = view->clock.ns_per_tick > 0 ? view->clock.ns_per_tick : 1;

    return (int64_t)(ticks * scale);
}

/* The place of an event in the interval, if all instructions of the interval took equally long. */
static int64_t point(const struct chrome_view *view, const struct etch_call *call, uint64_t hi, uint64_t instructions,
                     int64_t before_ns)
{
    double share, from;

    if (!view->interval.lo) /* no time is known: count instructions from the last event */
        return before_ns + (int64_t)(call->instructions - view->interval_start);
    from = (double)(int64_t)(view->interval.lo - view->clock.origin);
    if (hi <= view->interval.lo || instructions == 0)
        return ticks_to_ns(view, from);
    share = (double)(call->instructions - view->interval_start) / (double)instructions;
    return ticks_to_ns(view, from + share * (double)(hi - view->interval.lo));
}

static int settle(struct chrome_view *view, const struct etch_call *call, int64_t ns)
{
    struct open_event event = {*call, ns};

    switch (call->kind) {
    case ETCH_CALL_ENTER:
        return etch_array_push(&view->open, event) ? 0 : -1;
    case ETCH_CALL_BELOW:
        view->below += view->below < HEADROOM_NS;
        event.start_ns = view->part_ns - (int64_t)view->below;
        return etch_array_push(&view->open, event) ? 0 : -1;
    case ETCH_CALL_LEAVE:
        if (view->open.n) {
            print_call(view, &view->open.v[view->open.n - 1], call, ns);
            view->open.n--;
        }
        return 0;
    case ETCH_CALL_LOSS:
    case ETCH_CALL_NOWHERE:
        print_instant(view, call, ns);
        return 0;
    case ETCH_CALL_PART:
    case ETCH_CALL_THREAD:
        view->part_ns = ns + HEADROOM_NS; /* room for callers that are found later */
        view->last_ns = view->part_ns;
        view->below = 0;
        return 0;
    case ETCH_CALL_THREAD_END:
        return 0;
    }
    return 0;
}

/* The interval is over. `next_lo` is the begin of the next interval. `instructions` is the count up to here. */
static int settle_held(struct chrome_view *view, uint64_t next_lo, uint64_t instructions)
{
    uint64_t hi = view->interval.hi < next_lo ? view->interval.hi : next_lo;
    uint64_t count = instructions - view->interval_start;
    int64_t before_ns = view->last_ns;
    int result = 0;

    hi = hi == UINT64_MAX ? view->interval.lo : hi;
    for (size_t i = 0; i < view->held.n && result == 0; i++) {
        int64_t ns = point(view, &view->held.v[i], hi, count, before_ns);

        /* Times increase, so that the screen shows events in the order in which they ran. */
        view->last_ns = ns > view->last_ns ? ns : view->last_ns + 1;
        result = settle(view, &view->held.v[i], view->last_ns);
    }
    view->held.n = 0;
    return result;
}

static void begin_thread(struct chrome_view *view, const struct etch_call *call)
{
    const struct etch_recording *recording = view->options.recording;
    const char *name = etch_view_thread_name(recording, call->pid, call->tid);
    const char *program = recording && recording->program && recording->program->exe ? recording->program->exe : "";

    if (!view->any_process || view->last_pid != call->pid)
        print_metadata(view, "process_name", etch_view_base(program[0] ? program : "process"), call->pid, call->tid);
    print_metadata(view, "thread_name", name[0] ? name : "thread", call->pid, call->tid);
    view->any_process = true;
    view->last_pid = call->pid;
    view->last_ns = 0;
    view->interval = call->time;
    view->interval_start = 0;
    if (!view->clock.origin && call->time.lo && !view->origin_known)
        view->clock.origin = call->time.lo;
    view->origin_known = true;
}

static int visit(void *context, const struct etch_call *call)
{
    struct chrome_view *view = context;
    struct etch_call copy = *call;
    int result = 0;

    if (call->kind == ETCH_CALL_THREAD)
        begin_thread(view, call);
    else if (call->time.lo > view->interval.lo || view->held.n >= HELD) {
        result = settle_held(view, call->time.lo, call->instructions);
        if (call->time.lo > view->interval.lo)
            view->interval = call->time;
        view->interval_start = call->instructions;
    }
    if (result == 0 && !etch_array_push(&view->held, copy))
        result = -1;
    if (result == 0 && (call->kind == ETCH_CALL_THREAD_END || call->step)) {
        result = settle_held(view, UINT64_MAX, call->instructions); /* the step is valid only during this call */
        view->interval_start = call->instructions;
    }
    return result;
}

/* ---- The view -----------------------------------------------------------------------------------------------------
 */

static int end(void *context, struct etch_error *err)
{
    struct chrome_view *view = context;
    int result = etch_calls_finish(view->calls);

    fputs("\n]}\n", view->options.out);
    etch_calls_free(view->calls);
    etch_array_free(&view->open);
    etch_array_free(&view->held);
    free(view);
    return result < 0 ? etch_error_no_memory(err) : 0;
}

static int begin(void **out, const struct etch_view_options *options, struct etch_error *err)
{
    struct chrome_view *view = calloc(1, sizeof(*view));

    if (options->fields) {
        free(view);
        return etch_error_set(err, "a Trace Event file has no fields to choose");
    }
    if (!view || !(view->calls = etch_calls_new(options->symbols, visit, view))) {
        free(view);
        return etch_error_no_memory(err);
    }
    view->options = *options;
    etch_view_clock_init(&view->clock, options->recording);
    fprintf(options->out,
            "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"clock\":\"%s\",\"producer\":\"etch\",\"times\":\"between two "
            "stamps events "
            "are placed by instructions; 'entered' and 'left' are the measured bounds\"},\"traceEvents\":[",
            view->clock.ns_per_tick > 0 ? "TSC" : "TSC ticks, 1000 shown as a microsecond: the rate is not known");
    *out = view;
    return 0;
}

static int step_chrome(void *context, const struct etch_step *step)
{
    struct chrome_view *view = context;

    return etch_calls_step(view->calls, step);
}

const struct etch_view etch_view_chrome = {"chrome", NULL, begin, step_chrome, end};
