/* SPDX-License-Identifier: MIT */
/* Source lines, a file read once; see source_text.h. */
#include "cli/source_text.h"

#include "base/array.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MAX (64 << 20)

struct source_file {
    char *path, *text;
    ETCH_ARRAY(char *) lines;
    bool changed;
};

struct source_text {
    struct timespec built;
    bool built_known;
    ETCH_ARRAY(struct source_file) files;
};

struct source_text *source_text_new(const char *program)
{
    struct source_text *s = calloc(1, sizeof(*s));
    struct stat st;

    if (s && stat(program, &st) == 0) {
        s->built = st.st_mtim;
        s->built_known = true;
    }
    return s;
}

void source_text_free(struct source_text *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->files.n; i++) {
        free(s->files.v[i].path);
        free(s->files.v[i].text);
        etch_array_free(&s->files.v[i].lines);
    }
    etch_array_free(&s->files);
    free(s);
}

static char *read_all(const char *path, off_t size)
{
    FILE *in = fopen(path, "r");
    char *text = in && size <= FILE_MAX ? malloc((size_t)size + 1) : NULL;

    if (text)
        text[fread(text, 1, (size_t)size, in)] = '\0';
    if (in)
        fclose(in);
    return text;
}

static void load(struct source_text *s, struct source_file *f)
{
    struct stat st;
    char *rest, *line;

    if (stat(f->path, &st) < 0 || !S_ISREG(st.st_mode))
        return;
    f->changed = s->built_known && (st.st_mtim.tv_sec > s->built.tv_sec ||
                                    (st.st_mtim.tv_sec == s->built.tv_sec && st.st_mtim.tv_nsec > s->built.tv_nsec));
    f->text = read_all(f->path, st.st_size);
    rest = f->text;
    while (rest && (line = strsep(&rest, "\n")))
        if (!etch_array_push(&f->lines, line))
            return;
}

const char *source_text_line(void *source, const char *file, uint32_t line)
{
    struct source_text *s = source;
    struct source_file f = {0};
    size_t i = 0;

    while (i < s->files.n && strcmp(s->files.v[i].path, file) != 0)
        i++;
    if (i == s->files.n) {
        f.path = strdup(file);
        if (!f.path || !etch_array_push(&s->files, f)) {
            free(f.path);
            return NULL;
        }
        load(s, &s->files.v[i]);
    }
    if (line == 0 || line > s->files.v[i].lines.n)
        return NULL;
    return s->files.v[i].lines.v[line - 1];
}

const char *source_text_changed(const struct source_text *s, unsigned n)
{
    for (size_t i = 0; i < s->files.n; i++)
        if (s->files.v[i].changed && n-- == 0)
            return s->files.v[i].path;
    return NULL;
}
