/* SPDX-License-Identifier: MIT */
/* Source lines, a file read once; see source_text.h. */
#include "diagnose/source_text.h"

#include "base/array.h"
#include "base/input.h"
#include "base/md5.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX (64 << 20)

struct source_file {
    char *path, *text;
    ETCH_ARRAY(char *) lines;
    enum etch_source_text_state state;
};

struct etch_source_text {
    char *program;
    struct timespec built;
    bool built_known;
    etch_source_text_checksum *checksum;
    void *context;
    ETCH_ARRAY(struct source_file) files;
};

struct etch_source_text *etch_source_text_new(const char *program, etch_source_text_checksum *checksum, void *context)
{
    struct etch_source_text *s = calloc(1, sizeof(*s));
    struct stat st;

    if (s) {
        s->program = strdup(program); /* without it its folder is no root */
        s->checksum = checksum;
        s->context = context;
    }
    if (s && stat(program, &st) == 0) {
        s->built = st.st_mtim;
        s->built_known = true;
    }
    return s;
}

void etch_source_text_free(struct etch_source_text *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->files.n; i++) {
        free(s->files.v[i].path);
        free(s->files.v[i].text);
        etch_array_free(&s->files.v[i].lines);
    }
    etch_array_free(&s->files);
    free(s->program);
    free(s);
}

static bool is_newer(const struct etch_source_text *s, const struct timespec *t)
{
    return s->built_known &&
           (t->tv_sec > s->built.tv_sec || (t->tv_sec == s->built.tv_sec && t->tv_nsec > s->built.tv_nsec));
}

/* True if the text is the text that the compiler read. False also if the checksum is not known. */
static bool is_as_compiled(const char *want, const char *text, size_t size)
{
    char got[33] = "";
    uint8_t digest[16];

    if (!want)
        return false;
    etch_md5(text, size, digest);
    for (size_t i = 0; i < sizeof(digest); i++)
        snprintf(got + 2 * i, 3, "%02x", digest[i]);
    return strcmp(got, want) == 0;
}

static enum etch_source_text_state compare(const struct etch_source_text *s, const struct source_file *f, int fd,
                                           size_t size)
{
    const char *want = s->checksum ? s->checksum(s->context, f->path) : NULL;
    struct stat st;

    if (is_as_compiled(want, f->text, size))
        return ETCH_SOURCE_AS_COMPILED;
    if (!etch_input_is_below_roots(fd, f->path, s->program)) /* a #line can name any file */
        return ETCH_SOURCE_OUTSIDE;
    if (want)
        return ETCH_SOURCE_CHANGED;
    return fstat(fd, &st) == 0 && is_newer(s, &st.st_mtim) ? ETCH_SOURCE_NEWER : ETCH_SOURCE_AS_COMPILED;
}

static void load(struct etch_source_text *s, struct source_file *f)
{
    int fd = etch_input_open(f->path);
    char *rest, *line;
    size_t size;

    f->state = ETCH_SOURCE_MISSING;
    if (fd < 0)
        return;
    f->text = etch_input_read(fd, FILE_MAX, &size);
    if (f->text)
        f->state = compare(s, f, fd, size);
    close(fd);
    if (f->state == ETCH_SOURCE_MISSING || f->state == ETCH_SOURCE_OUTSIDE)
        return;
    rest = f->text;
    while (rest && (line = strsep(&rest, "\n")))
        if (!etch_array_push(&f->lines, line))
            return;
}

/* The file, read when it is first asked for; NULL when memory is short. */
static struct source_file *find(struct etch_source_text *s, const char *file)
{
    struct source_file f = {0};
    size_t i = 0;

    while (i < s->files.n && strcmp(s->files.v[i].path, file) != 0)
        i++;
    if (i < s->files.n)
        return &s->files.v[i];
    f.path = strdup(file);
    if (!f.path || !etch_array_push(&s->files, f)) {
        free(f.path);
        return NULL;
    }
    load(s, &s->files.v[i]);
    return &s->files.v[i];
}

const char *etch_source_text_line(void *source, const char *file, uint32_t line)
{
    const struct source_file *f = find(source, file);

    return f && line && line <= f->lines.n ? f->lines.v[line - 1] : NULL;
}

enum etch_source_text_state etch_source_text_state(struct etch_source_text *s, const char *file)
{
    const struct source_file *f = find(s, file);

    return f ? f->state : ETCH_SOURCE_MISSING;
}
