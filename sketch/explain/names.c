/* SPDX-License-Identifier: MIT */
/* Numbers for places and variables, the same in all runs; see run.h. */
#include "sketch/run.h"

#include <stdlib.h>
#include <string.h>

void etch_names_release(struct etch_names *names)
{
    for (size_t i = 0; i < names->places.n; i++) {
        free(names->places.v[i].file);
        free(names->places.v[i].function);
    }
    for (size_t i = 0; i < names->variables.n; i++)
        free(names->variables.v[i]);
    for (size_t i = 0; i < names->locations.n; i++)
        free(names->locations.v[i]);
    etch_array_free(&names->locations);
    etch_array_free(&names->places);
    etch_array_free(&names->variables);
    etch_index_release(&names->by_place);
    etch_index_release(&names->by_variable);
}

static uint64_t hash_place(const char *file, uint32_t line, const char *function)
{
    uint64_t hash = etch_hash(ETCH_HASH_START, file, strlen(file) + 1);

    hash = etch_hash(hash, function, strlen(function) + 1);
    return etch_hash(hash, &line, sizeof(line));
}

uint32_t etch_names_find_place(const struct etch_names *names, const char *file, uint32_t line, const char *function)
{
    uint64_t hash = hash_place(file, line, function);
    size_t probe = 0;
    uint32_t i;

    while ((i = etch_index_next(&names->by_place, hash, &probe)) != ETCH_INDEX_NONE)
        if (names->places.v[i].line == line && strcmp(names->places.v[i].file, file) == 0 &&
            strcmp(names->places.v[i].function, function) == 0)
            return i;
    return ETCH_NOWHERE;
}

uint32_t etch_names_place(struct etch_names *names, const char *file, uint32_t line, const char *function)
{
    struct etch_line_place place = {.line = line, .distance = UINT32_MAX};
    uint32_t number = etch_names_find_place(names, file, line, function);

    if (number != ETCH_NOWHERE)
        return number;
    number = (uint32_t)names->places.n;
    place.file = strdup(file);
    place.function = strdup(function);
    if (place.file && place.function && etch_array_reserve(&names->places, names->places.n + 1) &&
        etch_index_add(&names->by_place, hash_place(file, line, function), number)) {
        names->places.v[names->places.n++] = place;
        return number;
    }
    free(place.file);
    free(place.function);
    return ETCH_NOWHERE;
}

uint32_t etch_names_variable(struct etch_names *names, const char *name)
{
    uint64_t hash = etch_hash(ETCH_HASH_START, name, strlen(name));
    size_t probe = 0;
    uint32_t i;
    char *copy;

    while ((i = etch_index_next(&names->by_variable, hash, &probe)) != ETCH_INDEX_NONE)
        if (strcmp(names->variables.v[i], name) == 0)
            return i;
    copy = strdup(name);
    if (copy && etch_array_reserve(&names->variables, names->variables.n + 1) &&
        etch_index_add(&names->by_variable, hash, (uint32_t)names->variables.n)) {
        names->variables.v[names->variables.n++] = copy;
        return (uint32_t)(names->variables.n - 1);
    }
    free(copy);
    return ETCH_NOWHERE;
}

int etch_names_locate(struct etch_names *names, uint32_t variable, const char *location)
{
    char **known;

    while (names->locations.n <= variable)
        if (!etch_array_push(&names->locations, NULL))
            return -1;
    known = &names->locations.v[variable];
    if (*known && strcmp(*known, location) != 0)
        (*known)[0] = '\0';
    if (!*known)
        *known = strdup(location);
    return *known ? 0 : -1;
}

static bool carries_data(const Etch__Statement *s)
{
    for (size_t i = 0; i < s->n_roles; i++)
        if (s->roles[i] == ETCH__STATEMENT_ROLE__ROLE_DATA || s->roles[i] == ETCH__STATEMENT_ROLE__ROLE_MEMORY ||
            s->roles[i] == ETCH__STATEMENT_ROLE__ROLE_ARGUMENT || s->roles[i] == ETCH__STATEMENT_ROLE__ROLE_RETURN)
            return true;
    return false;
}

int etch_names_slice(struct etch_names *names, const Etch__Slice *slice)
{
    names->slice = slice;
    for (size_t i = 0; i < slice->n_statements; i++) {
        const Etch__Statement *s = slice->statements[i];
        uint32_t number = etch_names_place(names, s->place->file, s->place->line, s->place->function);
        struct etch_line_place *place;

        if (number == ETCH_NOWHERE)
            return -1;
        place = &names->places.v[number];
        place->branches |= s->branch;
        if (!place->statement || s->distance < place->distance) {
            place->statement = (uint32_t)i + 1;
            place->distance = s->distance;
            place->decides = !carries_data(s) && s->distance;
        }
    }
    return 0;
}

/* ---- Data dependences ---- */

static bool is_at(const struct etch_names *names, const Etch__Statement *s, uint32_t place)
{
    const struct etch_line_place *p = &names->places.v[place];

    return p->line == s->place->line && strcmp(p->file, s->place->file) == 0 &&
           strcmp(p->function, s->place->function) == 0;
}

/* Statements are numbered from the failure on, and each was brought in by nearer ones: one pass from far to near. */
bool etch_names_feeds(const struct etch_names *names, uint32_t from, uint32_t to)
{
    const Etch__Slice *slice = names->slice;
    bool *reached = slice ? calloc(slice->n_statements + 1, sizeof(*reached)) : NULL, found = false;
    bool more = reached != NULL;

    for (size_t i = 0; reached && i < slice->n_statements; i++)
        reached[i] = is_at(names, slice->statements[i], from);
    while (more && !found) {
        more = false;
        for (size_t i = slice->n_statements; i-- > 0 && !found;) {
            const Etch__Statement *s = slice->statements[i];

            if (!reached[i] || !carries_data(s))
                continue;
            for (size_t k = 0; k < s->n_because && !found; k++) {
                uint32_t nearer = s->because[k];

                if (nearer >= slice->n_statements || reached[nearer])
                    continue;
                reached[nearer] = more = true;
                found = is_at(names, slice->statements[nearer], to);
            }
        }
    }
    free(reached);
    return found;
}

/* ---- One variable for all names of the same memory ---- */

/* The better name is a name that the source has. Among such names the shorter is better. */
static bool is_better_name(const struct etch_names *names, uint32_t a, uint32_t b)
{
    const char *x = names->variables.v[a], *y = names->variables.v[b];
    int made_x = strpbrk(x, "#(@") != NULL, made_y = strpbrk(y, "#(@") != NULL;

    if (made_x != made_y)
        return made_x < made_y;
    if (strlen(x) != strlen(y))
        return strlen(x) < strlen(y);
    return strcmp(x, y) < 0;
}

static uint32_t root_of(uint32_t *leads, uint32_t v)
{
    while (leads[v] != v)
        v = leads[v] = leads[leads[v]];
    return v;
}

static void unite(const struct etch_names *names, uint32_t *leads, uint32_t a, uint32_t b)
{
    a = root_of(leads, a);
    b = root_of(leads, b);
    if (a == b)
        return;
    if (is_better_name(names, a, b))
        leads[b] = a;
    else
        leads[a] = b;
}

/* An element may be any, also one beyond the end: its name says nothing of the memory. */
static bool is_one_place(const struct etch_names *names, uint32_t variable)
{
    size_t length = variable < names->variables.n ? strlen(names->variables.v[variable]) : 0;

    return length && names->variables.v[variable][length - 1] != ']';
}

/* Elements of one array have as many names as there are expressions for the index. */
static void unite_elements(const struct etch_names *names, uint32_t *leads)
{
    for (uint32_t i = 0; i < names->locations.n && i < names->variables.n; i++) {
        const char *here = names->locations.v[i];

        for (uint32_t k = 0; here && here[0] && !is_one_place(names, i) && k < i; k++)
            if (names->locations.v[k] && strcmp(names->locations.v[k], here) == 0 && !is_one_place(names, k))
                unite(names, leads, i, k);
    }
}

static void unite_run(const struct etch_names *names, uint32_t *leads, const struct etch_run *run)
{
    for (size_t i = 0; i < run->accesses.n; i++) {
        const struct etch_run_access *a = &run->accesses.v[i];

        if (a->object == ETCH_NOWHERE || a->watch == ETCH_NOWHERE)
            continue;
        if (is_one_place(names, a->operand) && is_one_place(names, a->watch))
            unite(names, leads, a->operand, a->watch);
        for (size_t k = 0; k < i; k++)
            if (run->accesses.v[k].object == a->object && run->accesses.v[k].watch != ETCH_NOWHERE) {
                unite(names, leads, a->watch, run->accesses.v[k].watch);
                break;
            }
    }
}

static int rename_run(struct etch_run *run, uint32_t *leads)
{
    for (size_t i = 0; i < run->accesses.n; i++) {
        struct etch_run_access *a = &run->accesses.v[i];

        a->variable = a->watch != ETCH_NOWHERE ? a->watch : a->operand;
        a->variable = a->variable == ETCH_NOWHERE ? ETCH_NOWHERE : root_of(leads, a->variable);
    }
    run->null_variable = run->null_operand == ETCH_NOWHERE ? ETCH_NOWHERE : root_of(leads, run->null_operand);
    run->watched.n = run->sited.n = 0;
    for (size_t i = 0; i < run->watched_operands.n; i++)
        if (!etch_array_push(&run->watched, root_of(leads, run->watched_operands.v[i])))
            return -1;
    for (size_t i = 0; i < run->sited_operands.n; i++)
        if (!etch_array_push(&run->sited, root_of(leads, run->sited_operands.v[i])))
            return -1;
    return etch_run_index(run);
}

static bool list_accesses_at(struct etch_comparison_points *list, const struct etch_run *run, const bool *places,
                             size_t n)
{
    list->n = 0;
    for (uint32_t k = 0; k < run->accesses.n; k++)
        if (run->accesses.v[k].place < n && places[run->accesses.v[k].place] && !etch_array_push(list, k))
            return false;
    return true;
}

/* ---- The first symptom ---- */

#define PASSING_ENOUGH 3u /* passing runs without a statement, before the statement counts as only of failing runs */

/* True if every failing run executed a statement, and no passing run did. */
static bool is_failing_own(const struct etch_run *const *runs, size_t n, uint32_t place)
{
    unsigned without = 0;

    for (size_t i = 0; i < n; i++) {
        bool ran = etch_run_visited(runs[i], place) != NULL;

        if (!runs[i]->flow || runs[i]->lost)
            continue;
        if (ran != runs[i]->failing || etch_run_fails_at(runs[i], place))
            return false;
        without += !ran;
    }
    return without >= PASSING_ENOUGH;
}

/* The statement that is furthest from the failure, among the statements that only failing runs executed. */
static uint32_t find_notice(const struct etch_names *names, const struct etch_run *const *runs, size_t n)
{
    uint32_t found = ETCH_NOWHERE;

    for (uint32_t place = 0; place < names->places.n; place++)
        if (names->places.v[place].statement &&
            (found == ETCH_NOWHERE || names->places.v[place].distance > names->places.v[found].distance) &&
            is_failing_own(runs, n, place))
            found = place;
    return found;
}

/* The branches that decide whether a statement runs. */
static void mark_deciders(const struct etch_names *names, uint32_t place, bool *deciders)
{
    const Etch__Slice *slice = names->slice;

    for (size_t i = 0; i < slice->n_statements; i++) {
        const Etch__Statement *s = slice->statements[i];
        bool control = false, asked = false;

        for (size_t k = 0; k < s->n_roles; k++)
            control |= s->roles[k] == ETCH__STATEMENT_ROLE__ROLE_CONTROL;
        for (size_t k = 0; k < s->n_because; k++)
            asked |= s->because[k] < slice->n_statements && is_at(names, slice->statements[s->because[k]], place);
        for (uint32_t k = 0; s->branch && control && asked && k < names->places.n; k++)
            deciders[k] |= is_at(names, s, k);
    }
}

/* How many accesses a failing run had made when it first came to a place. */
static uint32_t count_until(const struct etch_run *run, uint32_t place)
{
    for (uint32_t i = 0; i < run->accesses.n; i++)
        if (run->accesses.v[i].place == place)
            return i;
    return UINT32_MAX;
}

static int list_chances(const struct etch_names *names, struct etch_run *const *runs, size_t n)
{
    bool *fails = calloc(names->places.n + 1, sizeof(*fails)), *deciders = calloc(names->places.n + 1, sizeof(*fails));
    bool good = fails && deciders;
    uint32_t notice = good && names->slice ? find_notice(names, (const struct etch_run *const *)runs, n) : ETCH_NOWHERE;

    for (uint32_t place = 0; good && place < names->places.n; place++)
        for (size_t i = 0; i < n; i++)
            fails[place] |= etch_run_fails_at(runs[i], place);
    if (good && notice != ETCH_NOWHERE)
        mark_deciders(names, notice, deciders);
    for (size_t i = 0; good && i < n; i++) {
        struct etch_run *run = runs[i];

        run->comparison_points.n = run->early_comparison_points.n = 0;
        run->first_symptom = run->failing && notice != ETCH_NOWHERE ? count_until(run, notice) : UINT32_MAX;
        if (!run->failing)
            good = list_accesses_at(&run->comparison_points, run, fails, names->places.n) &&
                   list_accesses_at(&run->early_comparison_points, run, deciders, names->places.n);
    }
    free(fails);
    free(deciders);
    return good ? 0 : -1;
}

/* A new run may bring two names of a variable together, or show the first symptom of the others: then a run's facts are
 * others.
 */
static void check_facts(struct etch_run *run)
{
    uint64_t key = etch_hash(ETCH_HASH_START, &run->first_symptom, sizeof(run->first_symptom));

    for (size_t i = 0; i < run->accesses.n; i++)
        key = etch_hash(key, &run->accesses.v[i].variable, sizeof(run->accesses.v[i].variable));
    key = etch_hash(key, &run->comparison_points.n, sizeof(run->comparison_points.n));
    key = etch_hash(key, run->comparison_points.v, run->comparison_points.n * sizeof(*run->comparison_points.v));
    key = etch_hash(key, run->early_comparison_points.v,
                    run->early_comparison_points.n * sizeof(*run->early_comparison_points.v));
    if (key != run->facts_key)
        etch_run_forget_facts(run);
    run->facts_key = key;
}

int etch_runs_unify(const struct etch_names *names, struct etch_run *const *runs, size_t n)
{
    uint32_t *leads = malloc((names->variables.n + 1) * sizeof(*leads));
    int status = leads ? 0 : -1;

    for (uint32_t i = 0; leads && i < names->variables.n; i++)
        leads[i] = i;
    if (leads)
        unite_elements(names, leads);
    for (size_t i = 0; leads && i < n; i++)
        unite_run(names, leads, runs[i]);
    for (size_t i = 0; status == 0 && i < n; i++)
        status = rename_run(runs[i], leads);
    free(leads);
    if (status == 0)
        status = list_chances(names, runs, n);
    for (size_t i = 0; i < n; i++)
        check_facts(runs[i]);
    return status;
}
