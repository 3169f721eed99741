/* SPDX-License-Identifier: MIT */
/* Connects the forms of etch decode that show source. decode_line.c, decode_call.c and decode_chrome.c print them. */
#include "cli/decode.h"
#include "cli/decode_view.h"

#include "base/output.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>

struct source_form {
    const struct etch_view *view;
    struct etch_symbols *symbols;
    struct etch_output *output; /* NULL: standard output */
    FILE *out;
    void *context;
};

static const struct etch_view *view_named(const char *name)
{
    static const struct etch_view *const views[] = {&etch_view_line, &etch_view_call, &etch_view_chrome};

    for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++)
        if (strcmp(views[i]->name, name) == 0)
            return views[i];
    return NULL;
}

static const char *list_fields(const struct etch_decode *decode, char list[256])
{
    size_t n = 0;

    for (size_t i = 0; i < decode->n_fields && n < 256; i++)
        n += (size_t)snprintf(list + n, 256 - n, "%s%s", i ? "," : "", etch_decode_field_names[decode->fields[i]]);
    return decode->n_fields ? list : NULL;
}

static int begin_view(struct source_form *form, const struct etch_decode *decode, struct etch_error *err)
{
    char folder[PATH_MAX];
    struct etch_symbols_options symbol_options = {.sysroot = decode->options.sysroot, .beside = folder};
    struct etch_view_options options = {.recording = decode->recording};
    char list[256]; /* ETCH_FIELDS names of at most 7 letters fit */

    snprintf(folder, sizeof(folder), "%s", decode->recording->path);
    symbol_options.beside = dirname(folder);
    form->view = view_named(decode->form->name);
    form->symbols = etch_symbols_new(&symbol_options);
    if (!form->symbols)
        return etch_error_no_memory(err);
    if (decode->output && etch_output_report(&form->output, decode->output, err) < 0)
        return -1;
    form->out = decode->output ? etch_output_stream(form->output) : stdout;
    if (!form->out)
        return etch_error_set_errno(err, errno, "cannot write %s", decode->output);
    __fsetlocking(form->out,
                  FSETLOCKING_BYCALLER); /* one thread prints; locks for each character would take half of the time */
    options.out = form->out;
    options.symbols = form->symbols;
    options.fields = list_fields(decode, list);
    return form->view->begin(&form->context, &options, err);
}

static void free_form(struct source_form *form)
{
    etch_output_discard(form->output);
    etch_symbols_free(form->symbols);
    free(form);
}

static int begin(const struct etch_decode *decode, void **context, struct etch_error *err)
{
    struct source_form *form = calloc(1, sizeof(*form));

    if (!form)
        return etch_error_no_memory(err);
    if (begin_view(form, decode, err) < 0) {
        free_form(form);
        return -1;
    }
    *context = form;
    return 0;
}

static int visit(void *context, const struct etch_step *step)
{
    struct source_form *form = context;

    return form->view->step(form->context, step);
}

static int end(const struct etch_decode *decode, void *context, int status, struct etch_error *err)
{
    struct source_form *form = context;
    struct etch_error ending;
    int result = form->view->end(form->context, status < 0 ? &ending : err); /* the first error is the cause */

    (void)decode;
    if (result == 0 && status == 0 && etch_symbols_starved(form->symbols))
        result = etch_error_set(err, "out of memory: lines and names are missing from the output");
    if (form->output && result == 0 && status == 0) {
        result = etch_output_finish(form->output, err);
        form->output = NULL;
    }
    free_form(form);
    return result;
}

#define COMMON                                                                                                         \
    (1u << ETCH_FIELD_PID | 1u << ETCH_FIELD_TID | 1u << ETCH_FIELD_CPU | 1u << ETCH_FIELD_TIME | 1u << ETCH_FIELD_IP)

const struct etch_decode_form etch_decode_line = {
    .name = "line",
    .summary = "the source lines that ran, with function and inlined calls",
    .fields = COMMON | 1u << ETCH_FIELD_SRCLINE | 1u << ETCH_FIELD_SYM | 1u << ETCH_FIELD_DSO,
    .begin = begin,
    .visit = visit,
    .end = end,
};

const struct etch_decode_form etch_decode_call = {
    .name = "call",
    .summary = "a tree of calls, with times",
    .begin = begin,
    .visit = visit,
    .end = end,
};

const struct etch_decode_form etch_decode_chrome = {
    .name = "chrome",
    .summary = "a Trace Event file, for Perfetto or chrome://tracing",
    .begin = begin,
    .visit = visit,
    .end = end,
};
