/* SPDX-License-Identifier: MIT */
/* Prints a sketch, and writes it to files; see sketch_output.h. */
#include "cli/sketch_output.h"

#include "base/output.h"
#include "diagnose/source_text.h"
#include "sketch/render.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int write_file(const char *path, const char *text, size_t size, struct etch_error *err)
{
    if (!text)
        return etch_error_no_memory(err);
    if (strcmp(path, "-") == 0)
        return fwrite(text, 1, size, stdout) == size && fflush(stdout) == 0
                   ? 0
                   : etch_error_set_errno(err, errno, "cannot write the output");
    return etch_output_write(path, text, size, err);
}

static void fit_terminal(struct etch_render_terminal *options)
{
    const char *columns = getenv("COLUMNS");
    struct winsize size;

    setlocale(LC_CTYPE, "");
    options->width = 120;
    if (isatty(1) && ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_col)
        options->width = size.ws_col;
    else if (columns && atoi(columns) > 0)
        options->width = (unsigned)atoi(columns);
    options->colour = isatty(1) && !getenv("NO_COLOR");
    options->unicode = isatty(1) && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

static bool is_stdout(const struct etch_sketch_output *o)
{
    return (o->html && strcmp(o->html, "-") == 0) || (o->json && strcmp(o->json, "-") == 0) ||
           (o->sarif && strcmp(o->sarif, "-") == 0) || (o->gdb && strcmp(o->gdb, "-") == 0);
}

int etch_sketch_output_write(struct etch_run_set *s, const Etch__Sketch *sketch,
                             const struct etch_sketch_output *output, struct etch_error *err)
{
    struct etch_render_html html = {etch_source_text_line, s->source};
    struct etch_render_terminal terminal = {.all = output->all};
    char root[4096];
    size_t size = 0;
    char *text;
    int status = 0;

    if (!is_stdout(output)) {
        fit_terminal(&terminal);
        text = etch_render_terminal(sketch, &terminal, &size);
        status = write_file("-", text, size, err);
        free(text);
    }
    if (status == 0 && output->html) {
        text = etch_render_html(sketch, &html, &size);
        status = write_file(output->html, text, size, err);
        free(text);
    }
    if (status == 0 && output->json) {
        text = etch_render_json(sketch, &size);
        status = write_file(output->json, text, size, err);
        free(text);
    }
    if (status == 0 && output->sarif) {
        text = etch_render_sarif(sketch, getcwd(root, sizeof(root)), &size);
        status = write_file(output->sarif, text, size, err);
        free(text);
    }
    if (status == 0 && output->gdb) {
        text = etch_render_gdb(sketch, &size);
        status = write_file(output->gdb, text, size, err);
        free(text);
    }
    return status;
}

bool etch_sketch_output_take_option(struct etch_sketch_output *output, int option, const char *value)
{
    switch (option) {
    case 'H':
        output->html = value;
        return true;
    case 'j':
        output->json = value;
        return true;
    case 's':
        output->sarif = value;
        return true;
    case 'G':
        output->gdb = value;
        return true;
    case 'a':
        output->all = true;
        return true;
    default:
        return false;
    }
}
