/* SPDX-License-Identifier: MIT */
/* etch decode --as line: the source lines that ran, one a line, each with its function. An inlined line also has the
 * calls around it: "queue.h:12 pop <- crash.c:41 consumer". */
#include "base/printable.h"
#include "cli/decode_view.h"
#include "decoder/lines.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum field { PID, TID, CPU, TIME, IP, SRCLINE, SYM, DSO, FIELDS };

static const char *const field_names[FIELDS] = {"pid", "tid", "cpu", "time", "ip", "srcline", "sym", "dso"};

struct line_view {
    struct etch_view_options options;
    struct etch_lines *lines;
    enum field fields[16];    /* in the order in which they were named */
    size_t n_fields;          /* 0: for people */
    ETCH_ARRAY(char *) texts; /* by line id: the text of a line, for people */
    uint32_t pid, tid;
    bool any;
};

static int parse_fields(struct line_view *view, const char *list, struct etch_error *err)
{
    while (*list) {
        size_t n = strcspn(list, ","), f = 0;

        while (f < FIELDS && (strlen(field_names[f]) != n || strncmp(field_names[f], list, n) != 0))
            f++;
        if (f == FIELDS || view->n_fields == sizeof(view->fields) / sizeof(view->fields[0])) {
            etch_error_set(err, "--as line has no field '%.*s', or there are too many fields", (int)n, list);
            return etch_error_advise(err, "pid, tid, cpu, time, ip, srcline, sym, dso");
        }
        view->fields[view->n_fields++] = (enum field)f;
        list += n + (list[n] == ',');
    }
    return 0;
}

static void print_place(FILE *out, const struct etch_frame *frame)
{
    etch_print(out, frame->file ? etch_view_base(frame->file) : "?");
    if (frame->line)
        fprintf(out, ":%" PRIu32, frame->line);
}

/* "queue.h:12 pop <- crash.c:41 consumer"; without a known line "qsort (libc.so.6)" or "libfoo.so". */
static void print_people(FILE *out, const struct etch_location *location)
{
    const char *module = location->module[0] ? etch_view_base(location->module) : "?";

    if (!location->frame.file) {
        etch_print(out, location->symbol ? location->symbol : module);
        if (location->symbol) {
            fputs(" (", out);
            etch_print(out, module);
            putc(')', out);
        }
        return;
    }
    for (const struct etch_frame *frame = &location->frame; frame; frame = frame->caller) {
        fputs(frame == &location->frame ? "" : " <- ", out);
        print_place(out, frame);
        putc(' ', out);
        etch_print(out, frame->function ? frame->function : "?");
    }
}

/* Returns the text of a line, which is made once. NULL when memory is short. */
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
    print_people(out, &line->location);
    if (fclose(out) != 0)
        return NULL;
    return view->texts.v[line->id] = text;
}

static void print_field(const struct line_view *view, enum field field, const struct etch_step *step,
                        const struct etch_location *location, uint64_t ip)
{
    FILE *out = view->options.out;
    static const struct etch_view_clock ticks;
    char time[120];

    switch (field) {
    case PID:
        fprintf(out, "%" PRIu32, step->pid);
        break;
    case TID:
        fprintf(out, "%" PRIu32, step->tid);
        break;
    case CPU:
        if (step->cpu == UINT32_MAX)
            putc('?', out);
        else
            fprintf(out, "%" PRIu32, step->cpu);
        break;
    case TIME:
        etch_view_time(&ticks, step->time, time, sizeof(time));
        fputs(time, out);
        break;
    case IP:
        fprintf(out, "%" PRIx64, ip);
        break;
    case SRCLINE:
        print_place(out, &location->frame);
        break;
    case SYM:
        etch_print(out, location->frame.function ? location->frame.function : "?");
        break;
    default:
        etch_print(out, location->module[0] ? etch_view_base(location->module) : "?");
    }
}

/* Prints a line for people. Code without a name gets its offset in the module. */
static int print_line(struct line_view *view, const struct etch_step *step, const struct etch_line *line, uint64_t ip)
{
    const char *text = line_text(view, line);
    FILE *out = view->options.out;

    if (!text)
        return -1;
    fputs_unlocked(text, out);
    if (!line->location.symbol && !line->location.frame.file) {
        struct etch_location here;

        etch_symbols_find(view->options.symbols, step->image, ip, &here);
        fprintf(out, "+0x%" PRIx64, here.module_offset);
    }
    putc_unlocked('\n', out);
    return ferror_unlocked(out) ? errno : 0;
}

static int print_fields(struct line_view *view, const struct etch_step *step, const struct etch_line *line, uint64_t ip)
{
    for (size_t i = 0; i < view->n_fields; i++) {
        if (i)
            putc_unlocked(' ', view->options.out);
        print_field(view, view->fields[i], step, &line->location, ip);
    }
    putc_unlocked('\n', view->options.out);
    return ferror_unlocked(view->options.out) ? errno : 0;
}

static int visit(void *context, const struct etch_step *step, const struct etch_line *line, uint64_t ip)
{
    struct line_view *view = context;

    if (view->n_fields)
        return line ? print_fields(view, step, line, ip) : 0;
    if (!view->any || step->pid != view->pid || step->tid != view->tid)
        etch_view_thread_title(view->options.out, view->options.recording, step->pid, step->tid);
    view->any = true;
    view->pid = step->pid;
    view->tid = step->tid;
    if (line)
        return print_line(view, step, line, ip);
    if (step->kind == ETCH_STEP_LOSS) {
        char text[400];

        fprintf(view->options.out, "%s (stream %" PRIu32 ", byte %" PRIu64 ")\n",
                etch_view_loss(step, text, sizeof(text)), step->stream, step->offset);
    }
    if (step->kind == ETCH_STEP_INTERRUPT && step->nowhere) {
        char text[ETCH_VIEW_NOWHERE_ROOM];

        fprintf(view->options.out, "%s\n", etch_view_nowhere(step, text, sizeof(text)));
    }
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
        return etch_error_no_memory(err);
    }
    view->options = *options;
    if (options->fields && parse_fields(view, options->fields, err) < 0) {
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
