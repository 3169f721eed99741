/* SPDX-License-Identifier: MIT */
/* etch decode --as call: an indented tree of calls per thread, each with the time of its entry. A function that was
 * called before the trace began becomes known when a callee returns to the function. So a part of the tree is kept in a
 * temporary file until its outermost function is known. */
#include "base/printable.h"
#include "cli/decode_view.h"
#include "decoder/calls.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define INDENT_MAX 64 /* levels */

/* A call that has called nothing yet. The line waits, because equal calls may follow and are counted on the same line.
 */
struct leaf {
    bool held, left;
    struct etch_call call;
    uint64_t count;
};

struct spooled {
    int32_t depth;
    uint32_t size;
};

struct call_view {
    struct etch_view_options options;
    struct etch_view_clock clock;
    struct etch_calls *calls;
    FILE *spool;
    int lowest; /* depth in this part */
    ETCH_ARRAY(struct etch_call) below;
    struct leaf leaf;
    int deepest_left; /* the innermost function that still runs at the end is printed */
};

static void spool_line(struct call_view *view, int depth, const char *time, const char *text)
{
    char column[64];
    int n = snprintf(column, sizeof(column), "%27.40s | ", time);
    struct spooled header = {depth, (uint32_t)((size_t)n + strlen(text))};

    view->lowest = depth < view->lowest ? depth : view->lowest;
    fwrite(&header, sizeof(header), 1, view->spool);
    fwrite(column, 1, (size_t)n, view->spool);
    fwrite(text, 1, header.size - (size_t)n, view->spool);
}

/* Beyond INDENT_MAX the depth is a number: a recursion a million deep would print a megabyte of blanks a line. */
static void print_indented(FILE *out, const char *line, size_t size, int indent)
{
    const char *bar = memchr(line, '|', size);
    size_t head = bar ? (size_t)(bar - line) + 2 : 0;

    fwrite(line, 1, head, out);
    if (indent > INDENT_MAX)
        fprintf(out, "%*s[%d] ", 2 * INDENT_MAX, "", indent);
    else
        fprintf(out, "%*s", indent > 0 ? indent * 2 : 0, "");
    etch_print_bytes(out, line + head, size - head);
    putc('\n', out);
}

static void name_of(const struct etch_call *call, char *text, size_t size)
{
    if (call->name)
        snprintf(text, size, "%s", call->name);
    else
        snprintf(text, size, "%s+0x%" PRIx64, call->module[0] ? etch_view_base(call->module) : "?",
                 call->module_offset);
}

static const char *entry_mark(enum etch_call_why why)
{
    switch (why) {
    case ETCH_WHY_BEGAN:
        return "  (running when the trace began)";
    case ETCH_WHY_TAIL:
        return "  (tail call)";
    case ETCH_WHY_SIGNAL:
        return "  (signal handler)";
    case ETCH_WHY_JUMP:
        return "  (jumped to)";
    default:
        return "";
    }
}

static void release_leaf(struct call_view *view)
{
    char name[1024], text[1200], time[120], count[32] = "";

    if (!view->leaf.held)
        return;
    view->leaf.held = false;
    name_of(&view->leaf.call, name, sizeof(name));
    etch_view_time(&view->clock, view->leaf.call.time, time, sizeof(time));
    if (view->leaf.count > 1)
        snprintf(count, sizeof(count), "  x%" PRIu64, view->leaf.count);
    snprintf(text, sizeof(text), "%s%s%s", name, count, entry_mark(view->leaf.call.why));
    spool_line(view, view->leaf.call.depth, time, text);
}

static bool same_function(const struct etch_call *a, const struct etch_call *b)
{
    if (a->name || b->name)
        return a->name && b->name && strcmp(a->name, b->name) == 0;
    return a->module_offset == b->module_offset && strcmp(a->module, b->module) == 0;
}

static void on_enter(struct call_view *view, const struct etch_call *call)
{
    struct leaf *leaf = &view->leaf;

    if (leaf->held && leaf->left && leaf->call.depth == call->depth && leaf->call.why == call->why &&
        same_function(&leaf->call, call)) {
        leaf->count++;
        leaf->left = false;
        leaf->call.time.hi = call->time.hi;
        return;
    }
    if (leaf->held && !leaf->left &&
        leaf->count > 1) { /* the last of the equal calls has a callee: it gets its own line */
        struct etch_call last = leaf->call;

        leaf->count--;
        release_leaf(view);
        *leaf = (struct leaf){.held = true, .call = last, .count = 1};
    }
    release_leaf(view);
    *leaf = (struct leaf){.held = true, .call = *call, .count = 1};
}

static void on_leave(struct call_view *view, const struct etch_call *call)
{
    char name[1024], text[1200], time[120];

    if (view->leaf.held && !view->leaf.left && view->leaf.call.depth == call->depth && call->why != ETCH_WHY_UNWOUND &&
        call->why != ETCH_WHY_END) {
        view->leaf.left = true;
        return;
    }
    if (call->why != ETCH_WHY_UNWOUND && call->why != ETCH_WHY_END)
        return;
    release_leaf(view);
    name_of(call, name, sizeof(name));
    etch_view_time(&view->clock, call->time, time, sizeof(time));
    if (call->why == ETCH_WHY_UNWOUND)
        snprintf(text, sizeof(text), "! %s left without a return (longjmp or exception)", name);
    else if (call->depth > view->deepest_left)
        snprintf(text, sizeof(text), "(the trace ends in %s)", name);
    else
        return;
    view->deepest_left = call->why == ETCH_WHY_END ? call->depth : view->deepest_left;
    spool_line(view, call->depth, time, text);
}

static void on_loss(struct call_view *view, const struct etch_call *call)
{
    char text[400], time[120];

    release_leaf(view);
    etch_view_time(&view->clock, call->time, time, sizeof(time));
    etch_view_loss(call->step, text, sizeof(text));
    spool_line(view, call->depth, time, text);
}

static void on_nowhere(struct call_view *view, const struct etch_call *call)
{
    char text[ETCH_VIEW_NOWHERE_ROOM], time[120];

    release_leaf(view);
    etch_view_time(&view->clock, call->time, time, sizeof(time));
    etch_view_nowhere(call->step, text, sizeof(text));
    spool_line(view, call->depth, time, text);
}

static void print_below(struct call_view *view)
{
    char line[1200], name[1024];

    for (size_t i = view->below.n; i > 0; i--) {
        const struct etch_call *call = &view->below.v[i - 1];
        int n;

        name_of(call, name, sizeof(name));
        n = snprintf(line, sizeof(line), "%27s | %s  (called before the trace began)", "", name);
        print_indented(view->options.out, line, (size_t)n, call->depth - view->lowest);
    }
}

/* The outermost function of this part is known now. Prints the lines kept in the temporary file. */
static int flush_part(struct call_view *view)
{
    struct spooled header;
    char line[2048];

    release_leaf(view);
    for (size_t i = 0; i < view->below.n; i++)
        view->lowest = view->below.v[i].depth < view->lowest ? view->below.v[i].depth : view->lowest;
    if (fflush(view->spool) != 0 || ferror(view->spool))
        return -1;
    print_below(view);
    if (fseek(view->spool, 0, SEEK_SET) != 0)
        return -1;
    while (fread(&header, sizeof(header), 1, view->spool) == 1) {
        if (header.size > sizeof(line) || fread(line, 1, header.size, view->spool) != header.size)
            return -1;
        print_indented(view->options.out, line, header.size, header.depth - view->lowest);
    }
    view->below.n = 0;
    view->lowest = INT32_MAX;
    if (fseek(view->spool, 0, SEEK_SET) != 0)
        return -1;
    return ftruncate(fileno(view->spool), 0) == 0 ? 0 : -1;
}

static int visit(void *context, const struct etch_call *call)
{
    struct call_view *view = context;

    switch (call->kind) {
    case ETCH_CALL_THREAD:
        etch_view_thread_title(view->options.out, view->options.recording, call->pid, call->tid);
        view->deepest_left = INT32_MIN;
        return 0;
    case ETCH_CALL_ENTER:
        on_enter(view, call);
        return 0;
    case ETCH_CALL_LEAVE:
        on_leave(view, call);
        return 0;
    case ETCH_CALL_BELOW:
        return etch_array_push(&view->below, *call) ? 0 : -1;
    case ETCH_CALL_LOSS:
        on_loss(view, call);
        return 0;
    case ETCH_CALL_NOWHERE:
        on_nowhere(view, call);
        return 0;
    case ETCH_CALL_PART:
    case ETCH_CALL_THREAD_END:
        return flush_part(view);
    }
    return 0;
}

static int end(void *context, struct etch_error *err)
{
    struct call_view *view = context;
    int result = etch_calls_finish(view->calls);

    etch_calls_free(view->calls);
    etch_array_free(&view->below);
    fclose(view->spool);
    free(view);
    return result < 0 ? etch_error_set(err, "cannot keep the calls: out of memory or temporary space") : 0;
}

static int begin(void **out, const struct etch_view_options *options, struct etch_error *err)
{
    struct call_view *view = calloc(1, sizeof(*view));

    if (view) {
        view->spool = tmpfile();
        view->calls = etch_calls_new(options->symbols, visit, view);
    }
    if (!view || !view->spool || !view->calls) {
        etch_error_set(err, "cannot make a temporary file");
        etch_error_advise(err, "free space in /tmp");
        if (view && view->spool)
            fclose(view->spool);
        etch_calls_free(view ? view->calls : NULL);
        free(view);
        return -1;
    }
    view->options = *options;
    view->lowest = INT32_MAX;
    etch_view_clock_init(&view->clock, options->recording);
    *out = view;
    return 0;
}

static int step_call(void *context, const struct etch_step *step)
{
    struct call_view *view = context;

    return etch_calls_step(view->calls, step);
}

const struct etch_view etch_view_call = {"call", NULL, begin, step_call, end};
