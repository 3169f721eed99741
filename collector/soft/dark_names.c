/* SPDX-License-Identifier: MIT */
/* The functions that a program's recorder left out to keep its budget: their names, from the symbols of their entries
 * in the section etch_soft_lit. */
#include "base/function_name.h"
#include "binary/object.h"
#include "collector/soft/pool_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct naming {
    const struct etch_soft_stand_in *program;
    const struct etch_soft_pool *pool;
    struct etch_object *object; /* of the last name; its path */
    char path[600];
};

static bool find_mapping(const struct etch_soft_pool *pool, uint64_t address, char line[600], struct etch_mapping *m)
{
    for (size_t at = 0; etch_soft_next_mapping(pool, &at, line, m);)
        if (m->inode && address >= m->start && address < m->end)
            return true;
    return false;
}

static const struct etch_object *open_object(struct naming *n, const char *path)
{
    struct etch_error ignored;

    if (strcmp(n->path, path) == 0)
        return n->object;
    etch_object_free(n->object);
    n->object = NULL;
    snprintf(n->path, sizeof(n->path), "%s", path);
    if (etch_object_open(&n->object, path, &ignored) < 0)
        n->object = NULL;
    return n->object;
}

/* "f" of the symbol "f.etch.lit". */
static bool take_name(char *symbol, char *name, size_t size)
{
    size_t n = strlen(symbol), k = strlen(ETCH_SOFT_LIT_SUFFIX);
    char *whole;

    if (n <= k || strcmp(symbol + n - k, ETCH_SOFT_LIT_SUFFIX) != 0)
        return false;
    symbol[n - k] = '\0';
    whole = etch_function_name(symbol, NULL, 0);
    etch_function_short(whole ? whole : symbol, name, size);
    free(whole);
    return true;
}

/* Bytes of a name come from a file. */
static void make_printable(char *name)
{
    for (; *name; name++)
        if ((unsigned char)*name >= 0x7f || (unsigned char)*name < 0x20)
            *name = '?';
}

static void name_dark(struct naming *n, uint64_t where, char *name, size_t size)
{
    const struct etch_object *object;
    struct etch_mapping m;
    char line[600], symbol[1024];
    const char *path, *base;

    if (!find_mapping(n->pool, where, line, &m)) {
        snprintf(name, size, "0x%" PRIx64, where);
        return;
    }
    path = etch_soft_path_of(n->program, etch_soft_module_of(n->pool, &m), &m);
    object = open_object(n, path);
    if (object &&
        etch_object_variable_at(object, where - etch_object_bias(object, m.start, m.offset), symbol, sizeof(symbol)) &&
        take_name(symbol, name, size)) {
        make_printable(name);
        return;
    }
    base = strrchr(path, '/');
    snprintf(name, size, "%.60s+0x%" PRIx64, base ? base + 1 : path, where - m.start + m.offset);
    make_printable(name);
}

static size_t begin_text(const struct etch_soft_budget *budget, char text[ETCH_SOFT_DARK_TEXT])
{
    int n;

    if (budget->permille == ETCH_SOFT_UNBOUNDED || budget->permille > 1000)
        n = snprintf(text, ETCH_SOFT_DARK_TEXT, "functions not recorded, as asked for: ");
    else
        n = snprintf(text, ETCH_SOFT_DARK_TEXT,
                     "functions not recorded, over the budget of %u.%u %%: ", budget->permille / 10,
                     budget->permille % 10);
    return (size_t)n;
}

uint32_t etch_soft_dark_text(const struct etch_soft_stand_in *program, const struct etch_soft_pool *pool, uint32_t *at,
                             char text[ETCH_SOFT_DARK_TEXT])
{
    const struct etch_soft_budget *budget = &pool->budget;
    uint32_t noted = budget->n < ETCH_SOFT_DARK_MAX ? budget->n : ETCH_SOFT_DARK_MAX, first = *at;
    struct naming n = {.program = program, .pool = pool};
    size_t used = begin_text(budget, text);
    char name[256];

    for (; *at < noted; ++*at) {
        name_dark(&n, budget->dark[*at].where, name, sizeof(name));
        if (used + strlen(name) + 3 > ETCH_SOFT_DARK_TEXT)
            break;
        used += (size_t)sprintf(text + used, "%s%s", *at > first ? ", " : "", name);
    }
    etch_object_free(n.object);
    if (*at > first || *at >= budget->n)
        return *at - first;
    snprintf(text + used, ETCH_SOFT_DARK_TEXT - used, "%u more", budget->n - *at);
    *at = budget->n;
    return budget->n - first;
}
