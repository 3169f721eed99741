/* SPDX-License-Identifier: MIT */
/* See wait_site.h. */
#include "report/wait_site.h"

#include "base/path.h"
#include "report/sync_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void etch_wait_site_thread(struct etch_measure *m, uint32_t tid)
{
    m->next_sync = m->of_thread.n = 0;
    for (size_t i = 0; i < m->recording->syncs.n; i++)
        if (m->recording->syncs.v[i].tid == tid && !etch_array_push(&m->of_thread, (uint32_t)i))
            m->failed = true;
}

/* The operation that the thread made between these ticks; NULL: none was recorded. */
static const char *operation(struct etch_measure *m, uint64_t from, uint64_t to)
{
    const char *name = NULL;

    for (; m->next_sync < m->of_thread.n; m->next_sync++) {
        const Etch__Sync *sync = &m->recording->syncs.v[m->of_thread.v[m->next_sync]];

        if (sync->tsc > to)
            break;
        if (sync->tsc >= from)
            name = etch_sync_name(sync->op);
    }
    return name;
}

static char *place_of(struct etch_measure *m, const struct etch_measure_site *where)
{
    struct etch_location location = {0};
    char text[600];

    etch_symbols_find(m->symbols, where->image, where->address, &location);
    if (location.frame.file && location.frame.line)
        snprintf(text, sizeof(text), "%.500s:%" PRIu32, etch_path_name(location.frame.file), location.frame.line);
    else
        snprintf(text, sizeof(text), "%.500s+0x%" PRIx64,
                 location.module && location.module[0] ? etch_path_name(location.module) : "?", location.module_offset);
    return strdup(text);
}

static bool is_wait(const struct etch_profile_wait *wait, const struct etch_profile_wait *w)
{
    return wait->function == w->function && strcmp(wait->place, w->place) == 0 &&
           (wait->what ? w->what && strcmp(wait->what, w->what) == 0 : !w->what);
}

/* The wait's number in the profile, made if need be. Takes the texts. */
static uint32_t wait_number(struct etch_profile *profile, struct etch_profile_wait *wait)
{
    for (uint32_t i = 0; i < profile->waits.n; i++)
        if (is_wait(&profile->waits.v[i], wait)) {
            free(wait->place);
            free(wait->what);
            return i;
        }
    if (!etch_array_push(&profile->waits, *wait)) {
        free(wait->place);
        free(wait->what);
        return ETCH_FUNCTION_NONE;
    }
    return (uint32_t)profile->waits.n - 1;
}

static bool is_site(const struct etch_measure_site *a, const struct etch_measure_site *b)
{
    return a->image == b->image && a->address == b->address && a->function == b->function && a->what == b->what;
}

/* The number of the wait at the site, made if need be. */
static uint32_t number_at(struct etch_measure *m, struct etch_measure_site *site)
{
    uint64_t key[4] = {(uintptr_t)site->image, site->address, site->function, (uintptr_t)site->what};
    uint64_t hash = etch_hash(ETCH_HASH_START, key, sizeof(key));
    struct etch_profile_wait wait = {.function = site->function};
    size_t probe = 0;
    uint32_t i;

    while ((i = etch_index_next(&m->by_site, hash, &probe)) != ETCH_INDEX_NONE)
        if (is_site(&m->sites.v[i], site))
            return m->sites.v[i].wait;
    wait.place = place_of(m, site);
    wait.what = site->what ? strdup(site->what) : NULL;
    if (!wait.place || (site->what && !wait.what)) {
        free(wait.place);
        free(wait.what);
        return ETCH_FUNCTION_NONE;
    }
    site->wait = wait_number(m->profile, &wait);
    if (site->wait == ETCH_FUNCTION_NONE || !etch_array_push(&m->sites, *site) ||
        !etch_index_add(&m->by_site, hash, (uint32_t)m->sites.n - 1))
        return ETCH_FUNCTION_NONE;
    return site->wait;
}

void etch_wait_site_add(struct etch_measure *m, const struct etch_measure_site *where, uint32_t function, uint64_t from,
                        uint64_t to)
{
    struct etch_measure_site site = {where->image, where->address, operation(m, from, to), function, 0};
    uint32_t number = number_at(m, &site);
    struct etch_profile_wait *wait;

    if (number == ETCH_FUNCTION_NONE) {
        m->failed = true;
        return;
    }
    wait = &m->profile->waits.v[number];
    wait->count++;
    wait->ticks += to - from;
    wait->longest = to - from > wait->longest ? to - from : wait->longest;
    if (m->on_wait)
        m->on_wait(m->watcher, number, to - from);
}
