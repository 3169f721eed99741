/* SPDX-License-Identifier: MIT */
/* See code.h. */
#include "decoder/code.h"
#include "binary/code_file.h"
#include "binary/find_binary.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct etch_code_space {
    uint32_t pid;
    ETCH_ARRAY(struct etch_code_section) sections;
    ETCH_ARRAY(uint64_t) changes; /* times, sorted, of those mappings that share an address with another */
};

struct etch_code {
    ETCH_ARRAY(struct etch_code_file) files;
    ETCH_ARRAY(struct etch_code_space *) spaces;
    struct etch_code_space empty;
    char *beside; /* the recording's folder */
    const char *sysroot;
};

static const char no_mapping[] = "no mapping is known there";
static const char no_file[] = "the file that was mapped there is not at hand";
static const char other_build[] = "the file that was mapped there is now another build";
static const char beyond_file[] = "the mapping goes beyond its file";
static const char two_mappings[] = "two mappings had this address, and the time does not tell which";

static const struct etch_code_file *file_at(struct etch_code *code, const char *path)
{
    struct etch_code_file file;

    for (size_t i = 0; i < code->files.n; i++)
        if (strcmp(code->files.v[i].path, path) == 0)
            return &code->files.v[i];
    if (!etch_code_file_open(&file, path))
        return NULL;
    if (!etch_array_push(&code->files, file)) {
        etch_code_file_close(&file);
        return NULL;
    }
    return &code->files.v[code->files.n - 1];
}

static const char *why_not(enum etch_binary_verdict verdict)
{
    return verdict == ETCH_BINARY_OTHER ? other_build : no_file;
}

/* False where memory is short: a file that is not at hand is something else. */
static bool find_file(struct etch_code *code, struct etch_code_section *section)
{
    const struct etch_binary_places places = {.sysroot = code->sysroot, .beside = code->beside};
    const Etch__Image *image = section->image;
    const struct etch_code_file *file;
    char path[PATH_MAX];

    section->missing = why_not(etch_find_binary(image, &places, path));
    errno = 0;
    file = path[0] ? file_at(code, path) : NULL;
    if (!file)
        return errno != ENOMEM;
    section->missing = beyond_file;
    if (image->file_offset >= file->size)
        return true;
    section->bytes = file->bytes + image->file_offset;
    section->size = file->size - image->file_offset;
    section->size = section->size < image->size ? section->size : image->size;
    section->file = file->bytes;
    section->file_size = file->size;
    section->missing = NULL;
    return true;
}

const struct etch_code_section *etch_code_space_sections(const struct etch_code_space *space, size_t *n)
{
    *n = space->sections.n;
    return space->sections.v;
}

static struct etch_code_space *space_for(struct etch_code *code, uint32_t pid)
{
    struct etch_code_space *space;

    for (size_t i = 0; i < code->spaces.n; i++)
        if (code->spaces.v[i]->pid == pid)
            return code->spaces.v[i];
    space = calloc(1, sizeof(*space));
    if (!space)
        return NULL;
    space->pid = pid;
    if (!etch_array_push(&code->spaces, space)) {
        free(space);
        return NULL;
    }
    return space;
}

static bool is_code(const Etch__Image *image)
{
    return image->size > 0 && image->start + image->size > image->start && (image->prot == 0 || image->prot & 4);
}

static bool add_section(struct etch_code *code, const Etch__Image *image)
{
    struct etch_code_section section = {.image = image, .start = image->start, .end = image->start + image->size};
    struct etch_code_space *space = space_for(code, image->pid);

    if (!space)
        return false;
    if (image->code.len) {
        section.bytes = image->code.data;
        section.size = image->code.len < image->size ? image->code.len : image->size;
    } else if (!find_file(code, &section)) {
        return false;
    }
    return etch_array_push(&space->sections, section);
}

static int compare_times(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static bool overlap(const struct etch_code_section *a, const struct etch_code_section *b)
{
    return a->start < b->end && b->start < a->end;
}

/* The times at which an address of this space came to mean something else. */
static bool find_changes(struct etch_code_space *space)
{
    size_t n = 0;

    for (size_t i = 0; i < space->sections.n; i++) {
        bool shared = false;

        for (size_t k = 0; k < space->sections.n && !shared; k++)
            shared = k != i && overlap(&space->sections.v[i], &space->sections.v[k]);
        if (!shared)
            continue;
        if (space->sections.v[i].image->mapped_tsc &&
            !etch_array_push(&space->changes, space->sections.v[i].image->mapped_tsc))
            return false;
        if (space->sections.v[i].image->unmapped_tsc &&
            !etch_array_push(&space->changes, space->sections.v[i].image->unmapped_tsc))
            return false;
    }
    if (space->changes.n == 0)
        return true;
    qsort(space->changes.v, space->changes.n, sizeof(space->changes.v[0]), compare_times);
    for (size_t i = 0; i < space->changes.n; i++)
        if (i == 0 || space->changes.v[i] != space->changes.v[n - 1])
            space->changes.v[n++] = space->changes.v[i];
    space->changes.n = n;
    return true;
}

static bool build(struct etch_code *code, const struct etch_recording *recording)
{
    for (size_t i = 0; i < recording->images.n; i++)
        if (is_code(recording->images.v[i]) && !add_section(code, recording->images.v[i]))
            return false;
    for (size_t i = 0; i < code->spaces.n; i++)
        if (!find_changes(code->spaces.v[i]))
            return false;
    return true;
}

/* The folder of the recording; the recording itself may be a folder. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    struct stat st;

    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return strdup(path);
    return slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
}

int etch_code_open(struct etch_code **code, const struct etch_recording *recording, const char *sysroot,
                   struct etch_error *err)
{
    struct etch_code *c = calloc(1, sizeof(*c));

    if (!c)
        return etch_error_set_errno(err, ENOMEM, "cannot decode %s", recording->path);
    c->beside = folder_of(recording->path);
    c->sysroot = sysroot;
    if (!c->beside || !build(c, recording)) {
        etch_code_free(c);
        return etch_error_set_errno(err, ENOMEM, "cannot decode %s", recording->path);
    }
    *code = c;
    return 0;
}

void etch_code_free(struct etch_code *code)
{
    if (!code)
        return;
    for (size_t i = 0; i < code->files.n; i++)
        etch_code_file_close(&code->files.v[i]);
    for (size_t i = 0; i < code->spaces.n; i++) {
        etch_array_free(&code->spaces.v[i]->sections);
        etch_array_free(&code->spaces.v[i]->changes);
        free(code->spaces.v[i]);
    }
    free(code->beside);
    etch_array_free(&code->files);
    etch_array_free(&code->spaces);
    free(code);
}

const struct etch_code_space *etch_code_space_of(const struct etch_code *code, uint32_t pid)
{
    for (size_t i = 0; i < code->spaces.n; i++)
        if (code->spaces.v[i]->pid == pid)
            return code->spaces.v[i];
    return &code->empty;
}

size_t etch_code_space_changes(const struct etch_code_space *space)
{
    return space->changes.n;
}

size_t etch_code_space_age(const struct etch_code_space *space, uint64_t tsc)
{
    size_t lo = 0, hi = space->changes.n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (space->changes.v[mid] <= tsc)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Did the mapping exist in some of the ages? */
static bool was_there(const struct etch_code_space *space, const struct etch_code_section *s, size_t lo, size_t hi)
{
    if (s->image->mapped_tsc && etch_code_space_age(space, s->image->mapped_tsc) > hi)
        return false;
    return !s->image->unmapped_tsc || etch_code_space_age(space, s->image->unmapped_tsc) > lo;
}

static uint64_t bytes_at(const struct etch_code_section *s, uint64_t ip)
{
    return s->bytes && ip - s->start < s->size ? s->size - (ip - s->start) : 0;
}

/* Do both sections have the same bytes from `ip` to the nearer end: the same memory, or overlapping copies of generated
 * code? */
static bool same_bytes(const struct etch_code_section *a, const struct etch_code_section *b, uint64_t ip)
{
    uint64_t n = bytes_at(a, ip) < bytes_at(b, ip) ? bytes_at(a, ip) : bytes_at(b, ip);
    const uint8_t *x, *y;

    if (n == 0)
        return false;
    x = a->bytes + (ip - a->start);
    y = b->bytes + (ip - b->start);
    return x == y || memcmp(x, y, (size_t)n) == 0;
}

/* Chooses between two possible mappings. The later mapping wins if it certainly existed, because it replaced the
 * other. */
static const struct etch_code_section *choose(const struct etch_code_space *space, const struct etch_code_section *a,
                                              const struct etch_code_section *b, uint64_t ip, size_t lo)
{
    const struct etch_code_section *later = a->image->mapped_tsc > b->image->mapped_tsc ? a : b;

    if (same_bytes(a, b, ip) && a->image->mapped_tsc == b->image->mapped_tsc)
        return bytes_at(a, ip) < bytes_at(b, ip) ? b : a;
    if (same_bytes(a, b, ip))
        return later;
    if (a->image->mapped_tsc == b->image->mapped_tsc)
        return NULL;
    return etch_code_space_age(space, later->image->mapped_tsc) <= lo ? later : NULL;
}

const struct etch_code_section *etch_code_find(const struct etch_code_space *space, uint64_t ip, size_t lo, size_t hi,
                                               const char **why)
{
    const struct etch_code_section *found = NULL;

    for (size_t i = 0; i < space->sections.n; i++) {
        const struct etch_code_section *s = &space->sections.v[i];

        if (ip < s->start || ip >= s->end || (space->changes.n && !was_there(space, s, lo, hi)))
            continue;
        found = found ? choose(space, found, s, ip, lo) : s;
        if (!found) {
            *why = two_mappings;
            return NULL;
        }
    }
    if (!found)
        *why = no_mapping;
    else if (found->missing)
        *why = found->missing;
    else if (ip - found->start >= found->size)
        *why = beyond_file;
    else
        return found;
    return NULL;
}
