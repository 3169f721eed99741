/* SPDX-License-Identifier: MIT */
/* The sketch as a script for gdb: a breakpoint at each step, which prints the step and the values that its statement is
 * about to use. The program stops at the failing statement. Text from outside stands only in quoted strings. */
#include "sketch/render.h"
#include "sketch/render/model.h"
#include "sketch/render/sentence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char support[] = "import gdb\n"
                              "class EtchStep(gdb.Breakpoint):\n"
                              "    def __init__(self, file, line, steps, names, stops):\n"
                              "        super().__init__(source=file, line=line)\n"
                              "        self.silent, self.steps, self.names, self.stops = True, steps, names, stops\n"
                              "    def stop(self):\n"
                              "        for step in self.steps:\n"
                              "            print('etch: ' + step)\n"
                              "        for name in self.names:\n"
                              "            try:\n"
                              "                print('etch:     %s is %s' % (name, gdb.parse_and_eval(name)))\n"
                              "            except gdb.error:\n"
                              "                print('etch:     %s is not known here' % name)\n"
                              "        return self.stops\n";

/* A string of Python in ASCII. */
static void write_string(struct etch_text *out, const char *text)
{
    char code[16];

    etch_text_char(out, '"');
    for (text = etch_render_string(text); *text;) {
        uint32_t rune = etch_utf8_next(&text);

        if (rune >= 0x20 && rune < 0x7f && rune != '"' && rune != '\\') {
            etch_text_char(out, (char)rune);
            continue;
        }
        snprintf(code, sizeof(code), "\\U%08x", rune);
        etch_text_string(out, code);
    }
    etch_text_char(out, '"');
}

/* A comment of gdb's: one line, printable. */
static void write_comment(struct etch_text *out, const char *text)
{
    etch_text_string(out, "# ");
    for (text = etch_render_string(text); *text; text++)
        etch_text_char(out, *text >= 0x20 && *text < 0x7f ? *text : '?');
    etch_text_char(out, '\n');
}

/* gdb evaluates the name: nothing in it may call a function or assign. */
static bool is_plain(const char *name)
{
    return *name && !strpbrk(name, "(){};=!+?,\"'`$@#\\\n") && !strstr(name, "--");
}

static bool is_same_line(const Etch__SketchStep *a, const Etch__SketchStep *b)
{
    const Etch__Place *x = etch_render_place(a->place), *y = etch_render_place(b->place);

    return x->line == y->line && strcmp(etch_render_string(x->file), etch_render_string(y->file)) == 0;
}

static void write_step(struct etch_text *out, const struct etch_render_model *m, size_t i)
{
    const Etch__SketchStep *step = m->sketch->steps[i];
    const char *thread =
        step->thread < m->sketch->n_threads ? etch_render_string(m->sketch->threads[step->thread]->name) : "";
    char text[1024];

    snprintf(text, sizeof(text), "step %zu, T%u %.100s, %.100s:%u: %.400s%s", m->row_of[i] + 1, step->thread + 1,
             thread, etch_render_basename(etch_render_place(step->place)->file), etch_render_place(step->place)->line,
             etch_render_string(step->text), step->failing ? " (fails here)" : "");
    write_string(out, text);
}

/* The variables of a step, each once on a line. */
static void write_names(struct etch_text *out, const struct etch_render_model *m, size_t first)
{
    const Etch__Sketch *s = m->sketch;
    bool any = false;

    for (size_t v = 0; v < s->n_variables; v++) {
        bool used = false;

        for (size_t i = first; i < m->n_steps; i++)
            for (size_t k = 0; k < s->steps[m->order[i]]->n_values; k++)
                used |= s->steps[m->order[i]]->values[k]->variable == v &&
                        is_same_line(s->steps[m->order[i]], s->steps[m->order[first]]);
        if (!used || !is_plain(etch_render_string(s->variables[v]->name)))
            continue;
        etch_text_string(out, any ? ", " : "");
        write_string(out, s->variables[v]->name);
        any = true;
    }
}

static bool came_before(const struct etch_render_model *m, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (is_same_line(m->sketch->steps[m->order[i]], m->sketch->steps[m->order[at]]))
            return true;
    return false;
}

/* All steps of one line share a breakpoint. */
static void write_line(struct etch_text *out, const struct etch_render_model *m, size_t first)
{
    const Etch__SketchStep *step = m->sketch->steps[m->order[first]];
    const Etch__Place *place = etch_render_place(step->place);
    bool stops = false, any = false;
    char number[32];

    if (!place->line || came_before(m, first))
        return;
    etch_text_string(out, "EtchStep(");
    write_string(out, place->file);
    snprintf(number, sizeof(number), ", %u, [", place->line);
    etch_text_string(out, number);
    for (size_t i = first; i < m->n_steps; i++) {
        const Etch__SketchStep *same = m->sketch->steps[m->order[i]];

        if (!is_same_line(step, same))
            continue;
        stops |= same->failing;
        etch_text_string(out, any ? ", " : "");
        write_step(out, m, m->order[i]);
        any = true;
    }
    etch_text_string(out, "], [");
    write_names(out, m, first);
    etch_text_string(out, stops ? "], True)\n" : "], False)\n");
}

static void write_head(struct etch_text *out, const Etch__Sketch *s)
{
    char text[2048], words[1600] = "";
    size_t n = 0;

    etch_render_headline(s, text, sizeof(text));
    write_comment(out, text);
    etch_render_sentence(s, text, sizeof(text));
    write_comment(out, text);
    for (size_t i = 0; i < s->n_command && n < sizeof(words); i++)
        n += (size_t)snprintf(words + n, sizeof(words) - n, " %.200s", s->command[i]);
    snprintf(text, sizeof(text), "Use: gdb -x THIS-FILE --args%s", s->n_command ? words : " PROG ARG...");
    write_comment(out, text);
    write_comment(out, "then: run. Each step prints its values as they are before its statement.");
}

char *etch_render_gdb(const Etch__Sketch *sketch, size_t *size)
{
    struct etch_render_model model;
    struct etch_text out = {0};

    if (etch_render_model_make(&model, sketch, false))
        return NULL;
    write_head(&out, sketch);
    etch_text_string(&out, "set pagination off\nset breakpoint pending on\npython\n");
    etch_text_string(&out, support);
    for (size_t i = 0; i < model.n_steps; i++)
        write_line(&out, &model, i);
    etch_text_string(&out, "end\n");
    etch_text_char(&out, '\0');
    etch_render_model_release(&model);
    if (out.failed) {
        free(out.v);
        return NULL;
    }
    *size = out.n - 1;
    return out.v;
}
