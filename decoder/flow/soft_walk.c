/* SPDX-License-Identifier: MIT */
/* See soft_walk.h. Breadth first: between two marks lie a few blocks at most. */
#include "decoder/flow/soft_walk.h"

#include <stdlib.h>
#include <string.h>

#define LOOK_MAX 4096u /* blocks of one search */

struct key {
    struct etch_soft_position from;
    uint64_t goal_at;
    uint32_t function;
    enum etch_soft_goal goal;
};

struct entry {
    struct key key;
    struct etch_soft_way *way; /* NULL: free */
};

/* A block that the search came to. */
struct look {
    uint64_t start, low; /* low: from where marks count */
    bool jumped;         /* a mark at the start may be that of the end of the code before */
    unsigned lenient;    /* so many marks may be passed from here on, where a jump leads */
    const struct etch_block *block;
    size_t from; /* the look before, plus one */
};

struct etch_soft_walks {
    const struct etch_soft_map *map;
    struct etch_block_view *view;
    struct entry *entries;
    size_t capacity, used;
    ETCH_ARRAY(struct look) looks;
};

struct etch_soft_walks *etch_soft_walks_new(const struct etch_soft_map *map, struct etch_blocks *blocks)
{
    struct etch_soft_walks *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    w->map = map;
    w->view = etch_block_view_of(blocks, map->pid, ETCH_EXEC_64, 0, etch_blocks_changes(blocks, map->pid));
    w->capacity = 1024;
    w->entries = calloc(w->capacity, sizeof(*w->entries));
    if (w->view && w->entries)
        return w;
    etch_soft_walks_free(w);
    return NULL;
}

void etch_soft_walks_free(struct etch_soft_walks *w)
{
    if (!w)
        return;
    for (size_t i = 0; w->entries && i < w->capacity; i++)
        if (w->entries[i].way) {
            free(w->entries[i].way->blocks);
            free(w->entries[i].way);
        }
    free(w->entries);
    etch_array_free(&w->looks);
    free(w);
}

struct etch_block_view *etch_soft_walks_view(struct etch_soft_walks *w)
{
    return w->view;
}

struct etch_soft_position etch_soft_position_at(const struct etch_soft_walks *w, uint64_t ip)
{
    return (struct etch_soft_position){ip, ip, etch_soft_map_mark_at(w->map, ip)};
}

/* ---- Searching ---- */

struct search {
    struct etch_soft_walks *w;
    const struct key *key;
    const struct etch_soft_place *places; /* of the goal's node */
    size_t n_places;
    size_t found;     /* the number of the look at the goal, plus 1 */
    uint64_t at;      /* where it did */
    size_t next;      /* the mark behind that of the goal */
    unsigned reached; /* how often */
    unsigned lenient; /* of the first look */
};

static bool is_goal_node(const struct search *s, const struct etch_soft_place *p)
{
    return s->key->goal <= ETCH_SOFT_TO_CALL && p->function == s->key->function && p->node == s->key->goal_at;
}

static bool add_look(struct search *s, uint64_t start, uint64_t low, size_t from, bool jumped)
{
    struct look look = {.start = start, .low = low, .from = from, .jumped = jumped};
    const char *why;

    look.lenient = from ? s->w->looks.v[from - 1].lenient : s->lenient;
    for (size_t i = 1; i < s->w->looks.n; i++) /* a loop may lead to where the walk began */
        if (s->w->looks.v[i].start == start && s->w->looks.v[i].jumped >= jumped &&
            s->w->looks.v[i].lenient >= look.lenient)
            return true;
    if (s->w->looks.n == LOOK_MAX)
        return true;
    look.block = etch_block_at(s->w->view, start, &why);
    return !look.block || etch_array_push(&s->w->looks, look);
}

/* Does the goal's mark, or another that bars the way, lie in the look's block? Of several marks at one place the goal's
 * is the one that counts. */
enum sight { CLEAR, GOAL, BARRED };

static enum sight see_marks(struct search *s, struct look *look, bool first, uint64_t *at)
{
    const struct etch_soft_map *map = s->w->map;
    size_t i = first ? s->key->from.next : etch_soft_map_mark_at(map, look->low);
    uint64_t bar = UINT64_MAX;
    bool passed = false;

    if (s->key->goal == ETCH_SOFT_TO_IP)
        return CLEAR;
    for (; i < map->marks.n && map->marks.v[i].address < look->block->end; i++) {
        const struct etch_soft_place *p = &map->marks.v[i];

        if (p->address > bar)
            break;
        if (is_goal_node(s, p)) {
            *at = p->address;
            s->next = i + 1;
            return GOAL;
        }
        if (p->address == look->low && (first || (look->jumped && look->lenient))) {
            passed = !first;
            continue; /* where the walk began, or perhaps the end of other code */
        }
        bar = p->address;
    }
    look->lenient -= passed;
    return bar == UINT64_MAX ? CLEAR : BARRED;
}

static bool is_call(const struct etch_block *b)
{
    return b->branch == ETCH_BRANCH_CALL || b->branch == ETCH_BRANCH_CALL_INDIRECT;
}

static bool leaves_function(const struct search *s, const struct etch_block *b)
{
    uint64_t in = s->w->map->functions.v[s->key->function].address;

    return b->branch == ETCH_BRANCH_RETURN || (b->branch == ETCH_BRANCH_JUMP && b->target != in &&
                                               (etch_soft_map_function(s->w->map, b->target) != UINT32_MAX ||
                                                etch_soft_map_is_stub(s->w->map, b->target)));
}

static bool ends_there(struct search *s, struct look *look, bool first, uint64_t *at, bool *barred)
{
    enum sight sight = see_marks(s, look, first, at);
    const struct etch_block *b = look->block;

    *barred = sight == BARRED;
    switch (s->key->goal) {
    case ETCH_SOFT_TO_NODE:
    case ETCH_SOFT_TO_CALL:
        return sight == GOAL;
    case ETCH_SOFT_TO_OUTSIDE:
        *at = b->end;
        return sight == CLEAR && is_call(b);
    case ETCH_SOFT_TO_RETURN:
        *at = b->end;
        return sight == CLEAR && (leaves_function(s, b) || b->branch == ETCH_BRANCH_JUMP_INDIRECT);
    case ETCH_SOFT_TO_IP:
        *at = s->key->goal_at;
        return *at >= look->low && *at < b->end;
    }
    return false;
}

static bool go_on(struct search *s, size_t at)
{
    const struct etch_block *b = s->w->looks.v[at].block;
    bool whole = true;

    switch (b->branch) {
    case ETCH_BRANCH_CONDITIONAL:
        whole = add_look(s, b->end, b->end, at + 1, false);
        return whole && add_look(s, b->target, b->target, at + 1, true);
    case ETCH_BRANCH_JUMP:
        return add_look(s, b->target, b->target, at + 1, true);
    case ETCH_BRANCH_JUMP_INDIRECT:
        for (size_t i = 0; i < s->n_places && whole; i++) {
            uint64_t begin = etch_soft_map_begin(s->w->map, s->places[i].address);

            whole = add_look(s, begin, begin, at + 1, true);
        }
        return whole;
    case ETCH_BRANCH_RETURN:
        return true;
    default:
        return add_look(s, b->end, b->end, at + 1, false);
    }
}

static bool look_around(struct search *s)
{
    const struct key *k = s->key;

    s->w->looks.n = 0;
    if (k->goal <= ETCH_SOFT_TO_CALL)
        s->places = etch_soft_map_places(s->w->map, k->function, (uint32_t)k->goal_at, &s->n_places);
    if (!add_look(s, k->from.from, k->from.now, 0, false))
        return false;
    for (size_t i = 0; i < s->w->looks.n; i++) {
        uint64_t at = 0;
        bool barred;

        if (ends_there(s, &s->w->looks.v[i], i == 0, &at, &barred)) {
            if (!s->reached++) {
                s->found = i + 1;
                s->at = at;
            }
            if (k->goal != ETCH_SOFT_TO_IP || s->reached > 1)
                return true;
            continue;
        }
        if (!barred && !go_on(s, i))
            return false;
    }
    return true;
}

/* ---- Ways ---- */

/* For TO_CALL the way ends behind its last call. */
static void cut_behind_call(const struct etch_soft_walks *w, struct etch_soft_way *way)
{
    while (way->n && !is_call(way->blocks[way->n - 1]))
        way->n--;
    way->found = way->n > 0;
    if (way->found)
        way->end = etch_soft_position_at(w, way->blocks[way->n - 1]->end);
}

static bool lay_out(const struct search *s, struct etch_soft_way *way)
{
    size_t n = 0, last = s->found - 1;
    bool whole = s->key->goal == ETCH_SOFT_TO_RETURN ||
                 s->key->goal == ETCH_SOFT_TO_OUTSIDE; /* the last block is passed as well */

    for (size_t i = s->found; i; i = s->w->looks.v[i - 1].from)
        n++;
    way->blocks = calloc(n, sizeof(*way->blocks));
    if (!way->blocks)
        return false;
    way->n = whole ? n : n - 1;
    for (size_t i = s->found; i; i = s->w->looks.v[i - 1].from)
        way->blocks[--n] = s->w->looks.v[i - 1].block;
    way->found = true;
    way->unsure = s->reached > 1;
    way->end = (struct etch_soft_position){whole ? s->at : s->w->looks.v[last].start, s->at, s->next};
    if (s->key->goal > ETCH_SOFT_TO_CALL)
        way->end.next = etch_soft_map_mark_at(s->w->map, s->at);
    if (s->key->goal == ETCH_SOFT_TO_CALL)
        cut_behind_call(s->w, way);
    return true;
}

/* Code that is the same in two nodes may be there once, behind the mark of one. So where no way leads past no mark, it
 * is the one past the fewest. */
static struct etch_soft_way *find_way(struct etch_soft_walks *w, const struct key *key)
{
    static const unsigned lenient[] = {0, 1, 2, 3, LOOK_MAX};
    struct etch_soft_way *way = calloc(1, sizeof(*way));
    struct search s = {.w = w, .key = key};

    if (!way)
        return NULL;
    way->end = key->from;
    for (size_t i = 0; i < sizeof(lenient) / sizeof(lenient[0]) && !s.found; i++) {
        s.lenient = lenient[i];
        if (!look_around(&s) || (s.found && !lay_out(&s, way))) {
            free(way);
            return NULL;
        }
    }
    return way;
}

/* ---- Kept ---- */

static bool same(const struct key *a, const struct key *b)
{
    return a->from.from == b->from.from && a->from.now == b->from.now && a->from.next == b->from.next &&
           a->goal_at == b->goal_at && a->function == b->function && a->goal == b->goal;
}

static struct entry *slot(struct entry *entries, size_t capacity, const struct key *key)
{
    uint64_t h = (key->from.from * 31 + key->from.now * 7 + key->from.next) * 0x9e3779b97f4a7c15u;
    size_t at;

    h = (h ^ key->goal_at ^ (uint64_t)key->goal << 32) * 0xff51afd7ed558ccdu;
    at = (size_t)(h >> 20) & (capacity - 1);
    while (entries[at].way && !same(&entries[at].key, key))
        at = (at + 1) & (capacity - 1);
    return &entries[at];
}

static bool grow(struct etch_soft_walks *w)
{
    struct entry *bigger;

    if (w->used * 2 < w->capacity)
        return true;
    bigger = calloc(w->capacity * 2, sizeof(*bigger));
    if (!bigger)
        return false;
    for (size_t i = 0; i < w->capacity; i++)
        if (w->entries[i].way)
            *slot(bigger, w->capacity * 2, &w->entries[i].key) = w->entries[i];
    free(w->entries);
    w->entries = bigger;
    w->capacity *= 2;
    return true;
}

const struct etch_soft_way *etch_soft_walk(struct etch_soft_walks *w, struct etch_soft_position from,
                                           enum etch_soft_goal goal, uint32_t function, uint64_t goal_at)
{
    struct key key = {from, goal_at, function, goal};
    struct entry *entry;

    if (!grow(w))
        return NULL;
    entry = slot(w->entries, w->capacity, &key);
    if (!entry->way) {
        entry->way = find_way(w, &key);
        entry->key = key;
        w->used += entry->way != NULL;
    }
    return entry->way;
}

bool etch_soft_next_node(struct etch_soft_walks *w, uint64_t ip, uint32_t *function, uint32_t *node)
{
    const char *why;

    for (unsigned hops = 0; hops < 8; hops++) {
        const struct etch_block *b = etch_block_at(w->view, ip, &why);
        size_t at = etch_soft_map_mark_at(w->map, ip);

        if (!b)
            return false;
        if (at < w->map->marks.n && w->map->marks.v[at].address < b->end) {
            *function = w->map->marks.v[at].function;
            *node = w->map->marks.v[at].node;
            return true;
        }
        if (b->branch == ETCH_BRANCH_JUMP)
            ip = b->target;
        else if (b->branch == ETCH_BRANCH_NONE || is_call(b))
            ip = b->end;
        else
            return false;
    }
    return false;
}
