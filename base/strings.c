/* SPDX-License-Identifier: MIT */
/* Interned strings and a pointer map, both open-addressed; see strings.h. */
#include "base/strings.h"

#include <string.h>

static uint64_t hash_text(const char *text)
{
    uint64_t h = 14695981039346656037u;

    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return h ^ (h >> 29);
}

static bool grow_strings(struct etch_strings *s)
{
    size_t n = s->n_slots ? s->n_slots * 2 : 256;
    uint32_t *slots = malloc(n * sizeof(*slots));

    if (!slots)
        return false;
    memset(slots, 0xff, n * sizeof(*slots));
    for (size_t i = 0; i < s->all.n; i++) {
        size_t k = (size_t)hash_text(s->all.v[i]) & (n - 1);

        while (slots[k] != ETCH_NONE)
            k = (k + 1) & (n - 1);
        slots[k] = (uint32_t)i;
    }
    free(s->slots);
    s->slots = slots;
    s->n_slots = n;
    return true;
}

uint32_t etch_strings_find(const struct etch_strings *s, const char *text)
{
    if (!s->n_slots)
        return ETCH_NONE;
    for (size_t k = (size_t)hash_text(text) & (s->n_slots - 1);; k = (k + 1) & (s->n_slots - 1))
        if (s->slots[k] == ETCH_NONE || strcmp(s->all.v[s->slots[k]], text) == 0)
            return s->slots[k];
}

uint32_t etch_strings_add(struct etch_strings *s, const char *text)
{
    uint32_t found = etch_strings_find(s, text);
    char *copy;
    size_t k;

    if (found != ETCH_NONE)
        return found;
    if ((s->all.n + 1) * 2 > s->n_slots && !grow_strings(s))
        return ETCH_NONE;
    copy = strdup(text);
    if (!copy || !etch_array_push(&s->all, copy)) {
        free(copy);
        return ETCH_NONE;
    }
    k = (size_t)hash_text(text) & (s->n_slots - 1);
    while (s->slots[k] != ETCH_NONE)
        k = (k + 1) & (s->n_slots - 1);
    s->slots[k] = (uint32_t)(s->all.n - 1);
    return s->slots[k];
}

void etch_strings_release(struct etch_strings *s)
{
    for (size_t i = 0; i < s->all.n; i++)
        free(s->all.v[i]);
    etch_array_free(&s->all);
    free(s->slots);
    memset(s, 0, sizeof(*s));
}

static size_t slot_of(const struct etch_pointers *map, const void *key)
{
    uint64_t h = (uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15u;
    size_t k = (size_t)(h >> 20) & (map->n_slots - 1);

    while (map->keys[k] && map->keys[k] != key)
        k = (k + 1) & (map->n_slots - 1);
    return k;
}

static bool grow_pointers(struct etch_pointers *map)
{
    struct etch_pointers bigger = {.n = map->n, .n_slots = map->n_slots ? map->n_slots * 2 : 1024};

    bigger.keys = calloc(bigger.n_slots, sizeof(*bigger.keys));
    bigger.values = malloc(bigger.n_slots * sizeof(*bigger.values));
    if (!bigger.keys || !bigger.values) {
        etch_pointers_release(&bigger);
        return false;
    }
    for (size_t i = 0; i < map->n_slots; i++) {
        if (map->keys[i]) {
            size_t k = slot_of(&bigger, map->keys[i]);

            bigger.keys[k] = map->keys[i];
            bigger.values[k] = map->values[i];
        }
    }
    etch_pointers_release(map);
    *map = bigger;
    return true;
}

bool etch_pointers_set(struct etch_pointers *map, const void *key, uint32_t value)
{
    size_t k;

    if ((map->n + 1) * 2 > map->n_slots && !grow_pointers(map))
        return false;
    k = slot_of(map, key);
    map->n += map->keys[k] == NULL;
    map->keys[k] = key;
    map->values[k] = value;
    return true;
}

uint32_t etch_pointers_get(const struct etch_pointers *map, const void *key)
{
    size_t k;

    if (!map->n_slots || !key)
        return ETCH_NONE;
    k = slot_of(map, key);
    return map->keys[k] ? map->values[k] : ETCH_NONE;
}

void etch_pointers_release(struct etch_pointers *map)
{
    free((void *)map->keys);
    free(map->values);
    memset(map, 0, sizeof(*map));
}
