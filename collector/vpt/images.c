/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* Mapped code; see images.h. */
#include "collector/vpt/images.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct image {
    uint64_t start, end, file_offset, mapped_tsc;
    char *path;     /* NULL: no file; reported block by block, with its bytes */
    uint8_t *bytes; /* of a block without a file */
    struct image *next;
};

/* A range that something else was mapped at, until `tsc`. */
struct gone {
    uint64_t start, end, tsc;
    struct gone *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct image *images;
static struct gone *gone;
static uint64_t base, began_after;

void etch_vpt_images_begin(uint64_t guest_base, uint64_t after)
{
    base = guest_base;
    began_after = after;
}

static void report(struct etch_vpt_self *t, const struct image *i, uint64_t unmapped_tsc, const uint8_t *code)
{
    size_t path_size = i->path ? strlen(i->path) : 0;
    size_t code_size = code ? i->end - i->start : 0;
    struct etch_vpt_image *event =
        etch_vpt_event_reserve(t, (uint32_t)(sizeof(*event) + path_size + code_size), VPT_EVENT_IMAGE, i->mapped_tsc);

    if (!event)
        return;
    event->start = i->start;
    event->size = i->end - i->start;
    event->file_offset = i->file_offset;
    event->mapped_tsc = i->mapped_tsc;
    event->unmapped_tsc = unmapped_tsc;
    event->path_size = (uint32_t)path_size;
    event->code_size = (uint32_t)code_size;
    if (path_size)
        memcpy(event + 1, i->path, path_size);
    if (code_size)
        memcpy((uint8_t *)(event + 1) + path_size, code, code_size);
    etch_vpt_event_publish(t);
}

/* One line of /proc/self/maps. */
static bool parse(const char *line, struct image *i, char path[VPT_MAX_PATH])
{
    int at = 0;

    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %n", &i->start, &i->end, &i->file_offset, &at) <
            3 ||
        !at)
        return false;
    i->start -= base;
    i->end -= base;
    snprintf(path, VPT_MAX_PATH, "%s", line + at);
    path[strcspn(path, "\n")] = '\0';
    return true;
}

/* The host mapping that holds guest address `at` (or, with a path, the one of that file's byte 0). */
static bool look_up(uint64_t at, const char *of, struct image *i, char path[VPT_MAX_PATH])
{
    char line[VPT_MAX_PATH + 128];
    FILE *maps = fopen("/proc/self/maps", "re");
    bool found = false;

    while (maps && !found && fgets(line, sizeof(line), maps)) {
        if (!parse(line, i, path))
            continue;
        found = of ? i->file_offset == 0 && strcmp(path, of) == 0 : i->start <= at && at < i->end;
    }
    if (maps)
        fclose(maps);
    return found;
}

static uint64_t last_gone(uint64_t start, uint64_t end)
{
    uint64_t tsc = began_after;

    for (const struct gone *g = gone; g; g = g->next)
        if (g->start < end && start < g->end && g->tsc > tsc)
            tsc = g->tsc;
    return tsc;
}

/* An image that memory is too short to remember is reported again with the next translation there. */
static void add(struct etch_vpt_self *t, struct image image, const char *path, const uint8_t *code)
{
    struct image *i = malloc(sizeof(*i));

    image.path = (char *)(uintptr_t)path;
    image.bytes = NULL;
    report(t, &image, 0, code);
    image.path = path ? strdup(path) : NULL;
    image.bytes = code ? malloc(image.end - image.start) : NULL;
    if (!i || (path && !image.path) || (code && !image.bytes)) {
        free(image.path);
        free(image.bytes);
        free(i);
        return;
    }
    if (code)
        memcpy(image.bytes, code, image.end - image.start);
    *i = image;
    i->next = images;
    images = i;
}

static void drop(struct etch_vpt_self *t, uint64_t start, uint64_t end, uint64_t tsc)
{
    for (struct image **link = &images; *link;) {
        struct image *i = *link;
        struct image rest = *i;

        if (i->end <= start || end <= i->start) {
            link = &i->next;
            continue;
        }
        report(t, i, tsc, i->bytes);
        *link = i->next;
        if (i->path && i->start < start) {
            rest.end = start;
            rest.mapped_tsc = tsc;
            add(t, rest, i->path, NULL);
        }
        if (i->path && end < i->end) {
            rest = *i;
            rest.start = end;
            rest.file_offset += end - i->start;
            rest.mapped_tsc = tsc;
            add(t, rest, i->path, NULL);
        }
        free(i->path);
        free(i->bytes);
        free(i);
        link = &images; /* pieces were put in front */
    }
}

static const struct image *holder(uint64_t start, uint64_t end)
{
    for (const struct image *i = images; i; i = i->next)
        if (i->path && i->start <= start && end <= i->end)
            return i;
    return NULL;
}

/* True if an image without a file has these bytes in the range that both cover. */
static bool agrees(const struct image *i, uint64_t start, uint64_t end, const uint8_t *bytes)
{
    uint64_t from = i->start > start ? i->start : start, to = i->end < end ? i->end : end;

    return from >= to || !i->bytes || memcmp(i->bytes + (from - i->start), bytes + (from - start), to - from) == 0;
}

/* Code that no file holds may be written over: then what was there is gone, as of now. */
static void translated_without_file(struct etch_vpt_self *t, uint64_t start, uint64_t end, const uint8_t *bytes)
{
    struct image image = {.start = start, .end = end};
    bool same = true;

    for (const struct image *i = images; i; i = i->next) {
        same &= agrees(i, start, end, bytes);
        if (i->bytes && i->start <= start && end <= i->end && agrees(i, start, end, bytes))
            return;
    }
    image.mapped_tsc = last_gone(start, end);
    if (!same) {
        image.mapped_tsc = __rdtsc();
        t->code_changed = image.mapped_tsc;
        drop(t, start, end, image.mapped_tsc);
    }
    add(t, image, NULL, bytes);
}

void etch_vpt_images_translated(struct etch_vpt_self *t, uint64_t start, const uint8_t *bytes, uint64_t size)
{
    struct image image = {0};
    char path[VPT_MAX_PATH];

    pthread_mutex_lock(&lock);
    if (!holder(start, start + size)) {
        if (look_up(start, NULL, &image, path) && path[0] == '/') {
            image.mapped_tsc = last_gone(image.start, image.end);
            add(t, image, path, NULL);
        } else {
            translated_without_file(t, start, start + size, bytes);
        }
    }
    pthread_mutex_unlock(&lock);
}

void etch_vpt_images_unmapped(struct etch_vpt_self *t, uint64_t start, uint64_t size, uint64_t tsc)
{
    struct gone *g;
    bool any = false;

    pthread_mutex_lock(&lock);
    for (const struct image *i = images; i; i = i->next)
        any |= i->start < start + size && start < i->end;
    g = any ? malloc(sizeof(*g)) : NULL;
    if (g) {
        *g = (struct gone){start, start + size, tsc, gone};
        gone = g;
    }
    if (any)
        drop(t, start, start + size, tsc);
    pthread_mutex_unlock(&lock);
}

void etch_vpt_images_mapped(struct etch_vpt_self *t, uint64_t start, uint64_t size, uint64_t tsc)
{
    struct image image;
    char path[VPT_MAX_PATH];

    pthread_mutex_lock(&lock);
    if (look_up(start, NULL, &image, path) && path[0] == '/') {
        image.file_offset += start - image.start;
        image.start = start;
        image.end = start + size;
        image.mapped_tsc = tsc;
        add(t, image, path, NULL);
    }
    pthread_mutex_unlock(&lock);
}

void etch_vpt_images_replaced(struct etch_vpt_self *t, uint64_t tsc)
{
    pthread_mutex_lock(&lock);
    for (const struct image *i = images; i; i = i->next)
        report(t, i, tsc, i->bytes);
    pthread_mutex_unlock(&lock);
}

void etch_vpt_images_kept(struct etch_vpt_self *t, uint64_t tsc)
{
    pthread_mutex_lock(&lock);
    for (struct image *i = images; i; i = i->next) {
        i->mapped_tsc = tsc;
        report(t, i, 0, i->bytes);
    }
    pthread_mutex_unlock(&lock);
}

void etch_vpt_images_forked(struct etch_vpt_self *t)
{
    pthread_mutex_lock(&lock);
    for (struct image *i = images; i; i = i->next) {
        i->mapped_tsc = 0;
        report(t, i, 0, i->bytes);
    }
    pthread_mutex_unlock(&lock);
}

void etch_vpt_images_fork_lock(void)
{
    pthread_mutex_lock(&lock);
}

void etch_vpt_images_fork_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

uint64_t etch_vpt_images_base_of(const char *of)
{
    char path[VPT_MAX_PATH];
    struct image image;

    return look_up(0, of, &image, path) ? image.start : 0;
}
