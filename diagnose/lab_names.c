/* SPDX-License-Identifier: MIT */
/* See lab_names.h. */
#include "diagnose/lab_names.h"

#include "base/function_name.h"
#include "base/path.h"
#include "binary/symbols.h"
#include "diagnose/source_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define START UINT64_C(0x10000000) /* of the program, for lookups: any place does */
#define LEARNING 3u                /* runs that learn which instructions share memory, before orders are enforced */
#define CHECKS 3u                  /* runs in which a script must give the same failure */

/* Code of one line of the program's own source, as the line table has it. */
struct stretch {
    struct etch_lab_range range;
    const char *file, *function; /* of the symbols */
    uint32_t line;               /* 0: foreign */
};

struct etch_lab_names {
    struct etch_symbols *symbols;
    struct etch_source_text *source;
    Etch__Image image;
    ETCH_ARRAY(struct stretch) stretches; /* by address */
};

/* ---- The line table ---- */

static struct stretch stretch_at(struct etch_lab_names *n, uint64_t address)
{
    struct etch_location at = {0};
    struct stretch s = {{address - START, 0}, NULL, NULL, 0};

    etch_symbols_find(n->symbols, &n->image, address, &at);
    /* Code begins at a page. A part of the file that is no code may end before the next page of code. */
    s.range.to = (s.range.from | 4095) + 1;
    if (at.until > address && (at.source != ETCH_LOCATION_NOTHING || at.until - START < s.range.to))
        s.range.to = at.until - START;
    for (const struct etch_frame *f = &at.frame; f && !s.line; f = f->caller)
        if (f->file && f->line && !etch_file_is_system(f->file)) {
            s.file = f->file;
            s.function = f->function;
            s.line = f->line;
        }
    return s;
}

static bool is_same_line(const struct stretch *a, const struct stretch *b)
{
    return a->line == b->line && (!a->line || strcmp(a->file, b->file) == 0) && a->function == b->function;
}

/* Code without a line of the user's between two pieces of one line is a part of that line: a jump of the compiler's, or
 * inlined code of a header. */
static bool closes_gap(const struct etch_lab_names *n, const struct stretch *s)
{
    size_t k = n->stretches.n;

    return k > 1 && s->line && !n->stretches.v[k - 1].line && is_same_line(&n->stretches.v[k - 2], s);
}

static bool read_lines(struct etch_lab_names *n)
{
    for (uint64_t at = START; at < START + n->image.size;) {
        struct stretch s = stretch_at(n, at);
        struct stretch *last;

        n->stretches.n -= closes_gap(n, &s);
        last = n->stretches.n ? &n->stretches.v[n->stretches.n - 1] : NULL;
        if (last && is_same_line(last, &s))
            last->range.to = s.range.to;
        else if (!etch_array_push(&n->stretches, s))
            return false;
        at = START + s.range.to;
    }
    return true;
}

struct etch_lab_names *etch_lab_names_new(const char *twin, const char *program, struct etch_error *err)
{
    struct etch_lab_names *n = calloc(1, sizeof(*n));
    struct etch_symbols_options options = {0};
    struct stat st;

    if (!n || stat(twin, &st) < 0) {
        free(n);
        etch_error_set(err, "cannot read the line table of %s", twin);
        return NULL;
    }
    n->symbols = etch_symbols_new(&options);
    n->source = etch_source_text_new(program, NULL, NULL);
    etch__image__init(&n->image);
    n->image.path = (char *)twin;
    n->image.start = START;
    n->image.size = (uint64_t)st.st_size;
    n->image.prot = 5;
    if (n->symbols && n->source && read_lines(n))
        return n;
    etch_lab_names_free(n);
    etch_error_no_memory(err);
    return NULL;
}

void etch_lab_names_free(struct etch_lab_names *n)
{
    if (!n)
        return;
    etch_symbols_free(n->symbols);
    etch_source_text_free(n->source);
    etch_array_free(&n->stretches);
    free(n);
}

static const struct stretch *stretch_of(const struct etch_lab_names *n, uint64_t offset)
{
    size_t from = 0, to = n->stretches.n;

    while (from < to) {
        size_t middle = (from + to) / 2;
        const struct stretch *s = &n->stretches.v[middle];

        if (offset >= s->range.from && offset < s->range.to)
            return s;
        if (offset < s->range.from)
            to = middle;
        else
            from = middle + 1;
    }
    return NULL;
}

/* ---- Names to code ---- */

/* Where the code of a line ends: at a comment, or at a backquote. */
static size_t code_size(const char *text)
{
    char quote = '\0';
    size_t n = 0;

    for (; text[n] && !strchr("`\r\n", text[n]); n++) {
        if (quote)
            quote = text[n] == quote && text[n - 1] != '\\' ? '\0' : quote;
        else if (text[n] == '"' || text[n] == '\'')
            quote = text[n];
        else if (text[n] == '/' && (text[n + 1] == '/' || text[n + 1] == '*'))
            break;
    }
    return n;
}

/* The code of a line, without the blanks around it. */
static void trim(char *to, size_t size, const char *text)
{
    size_t n;

    while (*text == ' ' || *text == '\t')
        text++;
    n = code_size(text);
    while (n && (text[n - 1] == ' ' || text[n - 1] == '\t'))
        n--;
    snprintf(to, size, "%.*s", (int)n, text);
}

static bool has_text(struct etch_lab_names *n, const char *file, uint32_t line, const char *text)
{
    const char *full = etch_source_text_line(n->source, file, line);
    char found[sizeof(((struct etch_lab_named *)0)->text)];

    if (!full)
        return false;
    trim(found, sizeof(found), full);
    return strcmp(found, text) == 0;
}

/* `name` is the file, or its last parts. */
static bool is_file(const char *file, const char *name)
{
    size_t n = strlen(file), k = strlen(name);

    return n >= k && strcmp(file + n - k, name) == 0 && (n == k || file[n - k - 1] == '/');
}

static uint32_t distance(uint32_t a, uint32_t b)
{
    return a < b ? b - a : a - b;
}

/* Finds the line that a moment names: the line of its text that is nearest to its number. Without a text, or without
 * the source, the number counts. */
static int find_line(struct etch_lab_names *n, const struct etch_lab_named *m, uint32_t *line, struct etch_error *err)
{
    uint32_t best = 0, below = 0, above = 0;
    bool readable = false, exact = false;

    for (size_t i = 0; i < n->stretches.n; i++) {
        const struct stretch *s = &n->stretches.v[i];

        if (!s->line || !is_file(s->file, m->file))
            continue;
        exact |= s->line == m->line;
        below = s->line < m->line && s->line > below ? s->line : below;
        above = s->line > m->line && (!above || s->line < above) ? s->line : above;
        readable |= m->text[0] && etch_source_text_line(n->source, s->file, s->line);
        if (m->text[0] && has_text(n, s->file, s->line, m->text) &&
            (!best || distance(s->line, m->line) < distance(best, m->line)))
            best = s->line;
    }
    *line = readable ? best : exact ? m->line : 0;
    if (*line)
        return 0;
    if (!below && !above && !exact)
        return etch_error_set(err, "the program has no code of %s", m->file);
    if (readable)
        return etch_error_set(err, "%s:%u: the line `%s` is no code of the program any more", m->file, m->line,
                              m->text);
    etch_error_set(err, "%s:%u: this line has no code", m->file, m->line);
    return below && above ? etch_error_advise(err, "the nearest lines with code are %u and %u", below, above)
                          : etch_error_advise(err, "the nearest line with code is %u", below ? below : above);
}

static int add_place(struct etch_lab_names *n, struct etch_lab_lines *l, const struct etch_lab_named *m,
                     uint32_t *place, struct etch_error *err)
{
    struct etch_lab_place p = {.first = l->n_ranges, .kind = m->kind};
    uint32_t line;

    if (find_line(n, m, &line, err) < 0)
        return -1;
    for (size_t i = 0; i < n->stretches.n; i++) {
        const struct stretch *s = &n->stretches.v[i];

        if (s->line != line || !is_file(s->file, m->file))
            continue;
        if (l->n_ranges == ETCH_LAB_RANGES)
            return etch_error_set(err, "the lines of the orders have more than %u pieces of code", ETCH_LAB_RANGES);
        l->ranges[l->n_ranges++] = s->range;
        p.n++;
    }
    for (uint32_t i = 0; i < l->n_places; i++)
        if (l->places[i].kind == p.kind && l->places[i].n == p.n &&
            memcmp(&l->ranges[l->places[i].first], &l->ranges[p.first], p.n * sizeof(l->ranges[0])) == 0) {
            l->n_ranges = p.first;
            *place = i;
            return 0;
        }
    if (l->n_places == ETCH_LAB_PLACES)
        return etch_error_set(err, "the orders name more than %u lines", ETCH_LAB_PLACES);
    *place = l->n_places;
    l->places[l->n_places++] = p;
    return 0;
}

static int add_name(struct etch_lab_lines *l, const struct etch_lab_name *name, uint32_t *index, struct etch_error *err)
{
    for (*index = 1; *index <= l->n_names; ++*index)
        if (memcmp(&l->names[*index - 1], name, sizeof(*name)) == 0)
            return 0;
    if (l->n_names == ETCH_LAB_NAMES)
        return etch_error_set(err, "the orders name more than %u threads", ETCH_LAB_NAMES);
    l->names[l->n_names++] = *name;
    return 0;
}

static int resolve(struct etch_lab_names *n, struct etch_lab_lines *l, const struct etch_lab_named *named,
                   struct etch_lab_moment *m, struct etch_error *err)
{
    *m = (struct etch_lab_moment){.what = named->what, .visit = named->visit};
    if (named->number)
        m->thread = named->number - 1;
    else if (add_name(l, &named->thread, &m->name, err) < 0)
        return -1;
    return named->what == ETCH_LAB_AT_PLACE ? add_place(n, l, named, &m->place, err) : 0;
}

static void list_foreign(const struct etch_lab_names *n, struct etch_lab_lines *l)
{
    for (size_t i = 0; i < n->stretches.n && l->n_foreign < ETCH_LAB_RANGES; i++)
        if (!n->stretches.v[i].line)
            l->foreign[l->n_foreign++] = n->stretches.v[i].range;
}

int etch_lab_names_resolve(struct etch_lab_names *names, const struct etch_lab_script *script,
                           struct etch_lab_enforced *orders, struct etch_error *err)
{
    memset(orders, 0, sizeof(*orders));
    orders->rules = calloc(script->orders.n + 1, sizeof(*orders->rules));
    orders->lines = calloc(1, sizeof(*orders->lines));
    if (!orders->rules || !orders->lines)
        return etch_error_no_memory(err);
    list_foreign(names, orders->lines);
    for (size_t i = 0; i < script->orders.n; i++) {
        const struct etch_lab_constraint *c = &script->orders.v[i];
        struct etch_lab_rule *r = &orders->rules[orders->n++];

        if (resolve(names, orders->lines, &c->first, &r->first, err) < 0 ||
            resolve(names, orders->lines, &c->then, &r->then, err) < 0)
            return -1;
    }
    return 0;
}

int etch_lab_names_halt(struct etch_lab_names *names, const struct etch_lab_named *named, bool any_thread,
                        struct etch_lab_enforced *orders, struct etch_lab_debugger *debugger, struct etch_error *err)
{
    if (!orders->lines) {
        orders->lines = calloc(1, sizeof(*orders->lines));
        if (!orders->lines)
            return etch_error_no_memory(err);
        list_foreign(names, orders->lines);
    }
    debugger->n_ruled = orders->lines->n_places;
    debugger->is_moment = true;
    debugger->any_thread = any_thread;
    return resolve(names, orders->lines, named, &debugger->moment, err);
}

void etch_lab_enforced_release(struct etch_lab_enforced *orders)
{
    free(orders->rules);
    free(orders->lines);
    memset(orders, 0, sizeof(*orders));
}

/* ---- Enforcing ---- */

static void set_input(struct etch_lab_request *r, const struct etch_lab_schedule *s)
{
    r->asked = s->asked;
    r->feed = s->answers ? s->journal.v : NULL;
    r->feed_size = s->journal.n * sizeof(uint64_t);
}

/* Runs that learn which instructions share memory, whatever their outcome. */
static int learn(uint64_t *sites, const struct etch_lab_request *like, struct etch_error *err)
{
    struct etch_lab_request request = *like;

    request.silent = true;
    request.debugger = NULL;
    request.sites = sites;
    for (uint32_t i = 0; i < LEARNING; i++) {
        struct etch_lab_result r;

        request.spec = (struct etch_lab_spec){.kind = i ? ETCH_LAB_RANDOM : ETCH_LAB_QUEUE, .seed = i, .depth = 1};
        if (etch_lab_run(&r, &request, err) < 0)
            return -1;
        memcpy(sites, r.shared->learnt, ETCH_LAB_SITES * sizeof(*sites));
        etch_lab_result_release(&r);
    }
    return 0;
}

int etch_lab_enforce(struct etch_lab_result *result, const struct etch_lab_enforced *orders,
                     const struct etch_lab_schedule *schedule, const struct etch_lab_request *like,
                     struct etch_error *err)
{
    struct etch_lab_request request = *like;
    uint64_t *sites = calloc(ETCH_LAB_SITES, sizeof(*sites));
    int status = -1;

    set_input(&request, schedule);
    request.repeat = NULL;
    if (!sites)
        return etch_error_no_memory(err);
    if (learn(sites, &request, err) == 0) {
        request.sites = sites;
        request.spec = (struct etch_lab_spec){.kind = ETCH_LAB_STAY, .depth = 1};
        request.rules = orders->rules;
        request.n_rules = orders->n;
        request.lines = orders->lines;
        status = etch_lab_run(result, &request, err);
    }
    free(sites);
    return status;
}

/* ---- Schedules to names ---- */

struct naming {
    struct etch_lab_names *names;
    const struct etch_lab_schedule *schedule;
    struct etch_lab_request request; /* repeats the schedule */
    struct etch_lab_event *events;
    uint32_t n_events;
    struct etch_lab_thread *threads;
    uint32_t n_threads;
    uint64_t base;
};

static int run_again(struct naming *w, const struct etch_lab_lines *lines, struct etch_error *err)
{
    struct etch_lab_result r;
    bool good;

    w->request.lines = lines;
    if (etch_lab_run(&r, &w->request, err) < 0)
        return -1;
    good = r.end == w->schedule->end && r.number == w->schedule->number;
    free(w->events);
    free(w->threads);
    w->n_events = r.shared->n_events;
    w->n_threads = r.shared->threads;
    w->base = r.shared->base;
    w->events = calloc(w->n_events + 1, sizeof(*w->events));
    w->threads = calloc(w->n_threads + 1, sizeof(*w->threads));
    if (w->events && w->threads) {
        memcpy(w->events, r.shared->events, w->n_events * sizeof(*w->events));
        memcpy(w->threads, r.shared->thread, w->n_threads * sizeof(*w->threads));
    }
    etch_lab_result_release(&r);
    if (!w->events || !w->threads)
        return etch_error_no_memory(err);
    return good ? 0 : etch_error_set(err, "the schedule does not give the same failure again");
}

bool etch_lab_name_thread(const struct etch_lab_thread *threads, uint32_t n, uint32_t thread,
                          struct etch_lab_name *name)
{
    uint32_t depth = 0;

    memset(name, 0, sizeof(*name));
    for (uint32_t t = thread; t; t = threads[t].creator)
        if (++depth > ETCH_LAB_GENERATIONS || t >= n)
            return false;
    name->depth = depth;
    for (uint32_t t = thread; t; t = threads[t].creator)
        name->ordinals[--depth] = threads[t].ordinal;
    return true;
}

bool etch_lab_names_line(struct etch_lab_names *n, uint64_t base, const struct etch_lab_event *e,
                         struct etch_lab_named *m)
{
    const struct stretch *s = stretch_of(n, e->site - 1 - base);
    const char *text, *file;
    char brief[256];

    for (uint32_t i = 0; i < ETCH_LAB_CALLERS && e->callers[i] && (!s || !s->line); i++)
        s = stretch_of(n, e->callers[i] - 1 - base);
    if (!s || !s->line)
        return false;
    file = etch_path_name(s->file);
    if (strlen(file) >= sizeof(m->file) || strpbrk(file, " \t\r\n`"))
        return false;
    snprintf(m->file, sizeof(m->file), "%s", file);
    m->line = s->line;
    m->kind = e->write ? ETCH_LAB_WRITES : ETCH_LAB_READS;
    if (s->function)
        snprintf(m->function, sizeof(m->function), "%s", etch_function_short(s->function, brief, sizeof(brief)));
    if (strpbrk(m->function, " \t`#(") || strcmp(m->function, "after") == 0 || strcmp(m->function, "before") == 0)
        m->function[0] = '\0';
    text = etch_source_text_line(n->source, s->file, s->line);
    if (text)
        trim(m->text, sizeof(m->text), text);
    return true;
}

/* The last event of that number: the events before it were of a thread without others. */
static const struct etch_lab_event *event_at(const struct naming *w, uint64_t point)
{
    uint32_t from = 0, to = w->n_events;

    while (from < to) {
        uint32_t middle = (from + to) / 2;

        if (w->events[middle].point <= point)
            from = middle + 1;
        else
            to = middle;
    }
    return from && w->events[from - 1].point == point ? &w->events[from - 1] : NULL;
}

/* The moment of a point. False if it has no name: a thread goes on after a wait. */
static bool name_point(const struct naming *w, uint32_t thread, uint64_t point, bool first, struct etch_lab_named *m)
{
    const struct etch_lab_event *e = event_at(w, point);

    memset(m, 0, sizeof(*m));
    if (!etch_lab_name_thread(w->threads, w->n_threads, thread, &m->thread))
        return false;
    if (first) {
        m->what = ETCH_LAB_AT_BEGIN;
        return true;
    }
    m->what = ETCH_LAB_AT_PLACE;
    m->visit = e && e->arrival ? e->arrival : 1;
    return e && e->thread == thread && etch_lab_names_line(w->names, w->base, e, m);
}

/* The segment begins with the begin of a thread. Main's first point is a call. */
static bool is_first_of(const struct etch_lab_schedule *s, size_t segment)
{
    if (s->segments.v[segment].thread == 0)
        return false;
    for (size_t i = 0; i < segment; i++)
        if (s->segments.v[i].thread == s->segments.v[segment].thread)
            return false;
    return true;
}

/* A thread that goes on after a wait is at no new access or call. */
static bool is_nameable(const struct etch_lab_event *e, bool counted)
{
    return e && (counted ? e->arrival != 0 : !e->resumed);
}

/* The last moment of a segment that has a name. */
static bool name_last(const struct naming *w, size_t segment, uint64_t begin, bool counted, struct etch_lab_named *m)
{
    const struct etch_lab_segment *s = &w->schedule->segments.v[segment];

    for (uint32_t i = s->count; i-- > 0;) {
        bool first = i == 0 && is_first_of(w->schedule, segment);
        const struct etch_lab_event *e = event_at(w, begin + i);

        if ((first || is_nameable(e, counted)) && name_point(w, s->thread, begin + i, first, m))
            return true;
    }
    return false;
}

/* One order for each switch. `counted`: the visits of the lines are known. */
static int name_switches(struct naming *w, bool counted, struct etch_lab_script *script, struct etch_error *err)
{
    const struct etch_lab_schedule *s = w->schedule;
    uint64_t begin = 0, before = 0;

    script->orders.n = 0;
    for (size_t i = 0; i < s->segments.n; before = begin, begin += s->segments.v[i++].count) {
        const struct etch_lab_event *e = event_at(w, begin);
        bool first = is_first_of(s, i);
        struct etch_lab_constraint c;

        if (i == 0 || (!first && !is_nameable(e, counted)) ||
            !name_point(w, s->segments.v[i].thread, begin, first, &c.then) ||
            !name_last(w, i - 1, before, counted, &c.first))
            continue;
        if (script->orders.n == ETCH_LAB_MOST_RULES)
            return etch_error_set(err, "the schedule has more than %u switches", ETCH_LAB_MOST_RULES);
        if (!etch_array_push(&script->orders, c))
            return etch_error_no_memory(err);
    }
    return 0;
}

/* The script must give the same failure. */
static int check(const struct naming *w, const struct etch_lab_enforced *orders, const struct etch_lab_request *like,
                 struct etch_error *err)
{
    for (uint32_t i = 0; i < CHECKS; i++) {
        struct etch_lab_result r;
        bool good;

        if (etch_lab_enforce(&r, orders, w->schedule, like, err) < 0)
            return -1;
        good = r.end == w->schedule->end && r.number == w->schedule->number;
        etch_lab_result_release(&r);
        if (!good)
            return etch_error_set(err, "the orders of its %u switches alone do not give the same failure", orders->n);
    }
    return 0;
}

int etch_lab_names_of(struct etch_lab_names *names, const struct etch_lab_schedule *schedule,
                      const struct etch_lab_request *like, struct etch_lab_script *script, struct etch_error *err)
{
    struct naming w = {.names = names, .schedule = schedule, .request = *like};
    struct etch_lab_enforced orders = {0};
    int status = -1;

    memset(script, 0, sizeof(*script));
    set_input(&w.request, schedule);
    w.request.spec = schedule->spec;
    w.request.sites = schedule->sites;
    w.request.expected = NULL;
    w.request.repeat = schedule->segments.v;
    w.request.n_repeat = (uint32_t)schedule->segments.n;
    if (run_again(&w, NULL, err) == 0 && name_switches(&w, false, script, err) == 0 &&
        etch_lab_names_resolve(names, script, &orders, err) == 0 && run_again(&w, orders.lines, err) == 0 &&
        name_switches(&w, true, script, err) == 0) {
        etch_lab_enforced_release(&orders);
        status = etch_lab_names_resolve(names, script, &orders, err) < 0 ? -1 : check(&w, &orders, like, err);
    }
    etch_lab_enforced_release(&orders);
    free(w.events);
    free(w.threads);
    return status;
}
