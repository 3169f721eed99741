/* SPDX-License-Identifier: MIT */
/* etch decode --as line: the source lines that ran, one a line, each with its function and, where it was inlined, the
 * calls around it: "queue.h:12 pop <- crash.c:41 consumer". */
#include "cli/decode_view.h"
#include "decoder/lines.h"

#include <inttypes.h>
#include <string.h>

enum field { PID, TID, CPU, TIME, IP, SRCLINE, SYM, DSO, FIELDS };

static const char *const field_names[FIELDS] = {"pid", "tid", "cpu", "time", "ip", "srcline", "sym", "dso"};

struct line_view {
    struct etch_view_options options;
    struct etch_view_clock clock;
    struct etch_lines *lines;
    bool fields[FIELDS];
    bool titles;
    ETCH_ARRAY(char *) texts; /* by line id: the part that is the same every time */
    uint32_t pid, tid;
    bool any;
};

static int parse_fields(struct line_view *view, const char *list, struct etch_error *err)
{
    while (*list) {
        size_t n = strcspn(list, ","), f = 0;

        while (f < FIELDS && (strlen(field_names[f]) != n || strncmp(field_names[f], list, n) != 0))
            f++;
        if (f == FIELDS) {
            etch_error_set(err, "lines have no field '%.*s'", (int)n, list);
            return etch_error_advise(err, "pid, tid, cpu, time, ip, srcline, sym, dso");
        }
        view->fields[f] = true;
        list += n + (list[n] == ',');
    }
    return 0;
}

static void print_frame(const struct line_view *view, FILE *out, const struct etch_frame *frame)
{
    if (view->fields[SRCLINE]) {
        etch_view_print(out, etch_view_base(frame->file ? frame->file : "?"));
        if (frame->line)
            fprintf(out, ":%" PRIu32, frame->line);
    }
    if (view->fields[SYM]) {
        fputs(view->fields[SRCLINE] ? " " : "", out);
        etch_view_print(out, frame->function ? frame->function : "?");
    }
}

static void print_location(const struct line_view *view, FILE *out, const struct etch_location *location)
{
    const struct etch_frame *frame = &location->frame;
    const char *module = location->module[0] ? etch_view_base(location->module) : "?";

    if (!frame->file && (view->fields[SRCLINE] || view->fields[SYM])) {
        if (location->symbol)
            etch_view_print(out, location->symbol);
        if (location->symbol && view->fields[SRCLINE])
            fputs(" (", out);
        if (view->fields[SRCLINE] || !location->symbol)
            etch_view_print(out, module);
        if (location->symbol && view->fields[SRCLINE])
            putc(')', out);
    }
    for (; frame && frame->file; frame = frame->caller) {
        print_frame(view, out, frame);
        if (frame->caller && (view->fields[SRCLINE] || view->fields[SYM]))
            fputs(" <- ", out);
    }
    if (view->fields[DSO]) {
        fputs(view->fields[SRCLINE] || view->fields[SYM] ? " " : "", out);
        etch_view_print(out, module);
    }
}

/* What a line looks like is put together once. NULL when memory is short. */
static const char *line_text(struct line_view *view, const struct etch_line *line)
{
    char *text = NULL;
    size_t size;
    FILE *out;

    while (view->texts.n <= line->id)
        if (!etch_array_push(&view->texts, NULL))
            return NULL;
    if (view->texts.v[line->id])
        return view->texts.v[line->id];
    out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    print_location(view, out, &line->location);
    if (fclose(out) != 0)
        return NULL;
    return view->texts.v[line->id] = text;
}

/* The columns before the line itself. */
static void print_columns(const struct line_view *view, const struct etch_step *step, uint64_t ip)
{
    FILE *out = view->options.out;
    char time[120];

    if (view->fields[PID])
        fprintf(out, "%7" PRIu32 " ", step->pid);
    if (view->fields[TID])
        fprintf(out, "%7" PRIu32 " ", step->tid);
    if (view->fields[CPU] && step->cpu != UINT32_MAX)
        fprintf(out, "[%03" PRIu32 "] ", step->cpu);
    else if (view->fields[CPU])
        fputs("[ ? ] ", out);
    if (view->fields[TIME]) {
        etch_view_time(&view->clock, step->time, time, sizeof(time));
        fprintf(out, "%s ", time);
    }
    if (view->fields[IP])
        fprintf(out, "%" PRIx64 " ", ip);
}

static int print_line(struct line_view *view, const struct etch_step *step, const struct etch_line *line, uint64_t ip)
{
    const char *text = line_text(view, line);
    FILE *out = view->options.out;

    if (!text)
        return -1;
    if (view->fields[PID] || view->fields[TID] || view->fields[CPU] || view->fields[TIME] || view->fields[IP])
        print_columns(view, step, ip);
    fputs_unlocked(text, out);
    if (!line->location.symbol && !line->location.frame.file && view->fields[SRCLINE]) {
        struct etch_location here;

        etch_symbols_find(view->options.symbols, step->image, ip, &here);
        fprintf(out, "+0x%" PRIx64, here.module_offset);
    }
    putc_unlocked('\n', out);
    return ferror_unlocked(out) ? 1 : 0;
}

static void print_loss(struct line_view *view, const struct etch_step *step)
{
    char cause[64];

    print_columns(view, step, step->ip);
    fprintf(view->options.out, "! lost: %s%s%s (stream %" PRIu32 ", byte %" PRIu64 ")\n",
            etch_view_loss(step->cause, cause), step->detail ? ", " : "", step->detail ? step->detail : "",
            step->stream, step->offset);
}

static int visit(void *context, const struct etch_step *step, const struct etch_line *line, uint64_t ip)
{
    struct line_view *view = context;

    if (view->titles && (!view->any || step->pid != view->pid || step->tid != view->tid))
        etch_view_thread_title(view->options.out, view->options.recording, step->pid, step->tid);
    view->any = true;
    view->pid = step->pid;
    view->tid = step->tid;
    if (line)
        return print_line(view, step, line, ip);
    if (step->kind == ETCH_STEP_LOSS)
        print_loss(view, step);
    return 0;
}

static int end(void *context, struct etch_error *err)
{
    struct line_view *view = context;

    (void)err;
    for (size_t i = 0; i < view->texts.n; i++)
        free(view->texts.v[i]);
    etch_array_free(&view->texts);
    etch_lines_free(view->lines);
    free(view);
    return 0;
}

static int begin(void **out, const struct etch_view_options *options, struct etch_error *err)
{
    struct line_view *view = calloc(1, sizeof(*view));

    if (!view || !(view->lines = etch_lines_new(options->symbols, visit, view))) {
        free(view);
        return etch_error_set(err, "out of memory");
    }
    view->options = *options;
    view->titles = !options->fields;
    etch_view_clock_init(&view->clock, options->recording);
    if (parse_fields(view, options->fields ? options->fields : "srcline,sym", err) < 0) {
        end(view, err);
        return -1;
    }
    *out = view;
    return 0;
}

static int step_line(void *context, const struct etch_step *step)
{
    struct line_view *view = context;

    return etch_lines_step(view->lines, step);
}

const struct etch_view etch_view_line = {"line", "pid,tid,cpu,time,ip,srcline,sym,dso", begin, step_line, end};
