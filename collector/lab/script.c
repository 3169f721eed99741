/* SPDX-License-Identifier: MIT */
/* See lab_script.h. */
#include "collector/lab_script.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Reading ---- */

struct token {
    const char *at;
    size_t n;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Takes the next word, or a text in backquotes without them. `n` is 0 at the end. */
static struct token next(const char **at, const char *end, bool *quoted)
{
    struct token t;

    while (*at < end && is_blank(**at))
        ++*at;
    *quoted = *at < end && **at == '`';
    *at += *quoted;
    t.at = *at;
    while (*at < end && (*quoted ? **at != '`' : !is_blank(**at)))
        ++*at;
    t.n = (size_t)(*at - t.at);
    *at += *quoted && *at < end;
    return t;
}

static bool is_word(struct token t, const char *word)
{
    return t.n == strlen(word) && memcmp(t.at, word, t.n) == 0;
}

static bool copy(char *to, size_t size, struct token t)
{
    if (t.n >= size || memchr(t.at, '\0', t.n))
        return false;
    memcpy(to, t.at, t.n);
    to[t.n] = '\0';
    return true;
}

/* A number from 1 on, at the begin of the token, which loses it. */
static bool take_number(struct token *t, uint32_t *number)
{
    uint64_t n = 0;
    size_t i = 0;

    for (; i < t->n && t->at[i] >= '0' && t->at[i] <= '9' && n <= UINT32_MAX; i++)
        n = n * 10 + (uint64_t)(t->at[i] - '0');
    *number = (uint32_t)n;
    t->at += i;
    t->n -= i;
    return i > 0 && n > 0 && n <= UINT32_MAX;
}

static bool take_thread(struct token t, struct etch_lab_named *m)
{
    if (t.n > 1 && *t.at == 'T') {
        t.at++;
        t.n--;
        return take_number(&t, &m->number) && t.n == 0 && m->number <= ETCH_LAB_THREADS;
    }
    if (t.n < 4 || memcmp(t.at, "main", 4) != 0)
        return false;
    t.at += 4;
    t.n -= 4;
    while (t.n && *t.at == '.' && m->thread.depth < ETCH_LAB_GENERATIONS) {
        t.at++;
        t.n--;
        if (!take_number(&t, &m->thread.ordinals[m->thread.depth++]))
            return false;
    }
    return t.n == 0;
}

static bool take_place(struct token t, struct etch_lab_named *m)
{
    struct token number = t;
    size_t colon = t.n;

    while (colon > 0 && t.at[colon - 1] != ':')
        colon--;
    if (colon < 2)
        return false;
    number.at += colon;
    number.n -= colon;
    m->visit = 1;
    return copy(m->file, sizeof(m->file), (struct token){t.at, colon - 1}) && take_number(&number, &m->line) &&
           number.n == 0;
}

static bool is_relation(struct token t)
{
    return is_word(t, "after") || is_word(t, "before");
}

/* What may stand behind a place. */
static bool take_detail(struct token t, bool quoted, struct etch_lab_named *m)
{
    if (quoted)
        return copy(m->text, sizeof(m->text), t);
    if (is_word(t, "(read)"))
        m->kind = ETCH_LAB_READS;
    else if (is_word(t, "(write)"))
        m->kind = ETCH_LAB_WRITES;
    else if (t.n && *t.at == '#') {
        t.at++;
        t.n--;
        return take_number(&t, &m->visit) && t.n == 0;
    } else
        return copy(m->function, sizeof(m->function), t);
    return true;
}

/* Reads a moment. `end` gets the word behind it. */
static bool take_moment(const char **at, const char *stop, struct etch_lab_named *m, struct token *end)
{
    bool quoted, good;
    struct token t = next(at, stop, &quoted);

    memset(m, 0, sizeof(*m));
    m->what = ETCH_LAB_AT_PLACE;
    good = !quoted && take_thread(t, m);
    t = next(at, stop, &quoted);
    if (is_word(t, "begin") || is_word(t, "end")) {
        m->what = *t.at == 'b' ? ETCH_LAB_AT_BEGIN : ETCH_LAB_AT_END;
        *end = next(at, stop, &quoted);
        return good && !quoted;
    }
    good = good && !quoted && take_place(t, m);
    while (good && ((*end = next(at, stop, &quoted)).n || quoted) && (quoted || !is_relation(*end)))
        good = take_detail(*end, quoted, m);
    return good;
}

int etch_lab_named_parse(struct etch_lab_named *named, const char *text, bool *any_thread, struct etch_error *err)
{
    const char *at = text, *stop = text + strlen(text);
    struct etch_lab_named ignored = {0};
    char whole[1024], *visit;
    struct token rest = {0}, first;
    bool quoted;

    first = next(&at, stop, &quoted);
    *any_thread = !take_thread(first, &ignored);
    snprintf(whole, sizeof(whole), "%s%s", *any_thread ? "main " : "", text);
    visit = strrchr(whole, '#'); /* FILE:LINE#VISIT is short for FILE:LINE #VISIT */
    if (visit && visit > whole && visit[-1] >= '0' && visit[-1] <= '9' && strlen(whole) + 2 < sizeof(whole)) {
        memmove(visit + 1, visit, strlen(visit) + 1);
        *visit = ' ';
    }
    at = whole;
    if (strlen(text) + 8 < sizeof(whole) && take_moment(&at, whole + strlen(whole), named, &rest) && !rest.n &&
        named->what == ETCH_LAB_AT_PLACE)
        return 0;
    etch_error_set(err, "'%s' names no access or call", text);
    return etch_error_advise(err, "for example: queue.c:18, 'main.1 queue.c:18#3' or 'T2 queue.c:18 (write)'");
}

static bool take_order(const char *at, const char *stop, struct etch_lab_constraint *c)
{
    struct etch_lab_named left, right;
    struct token relation = {0}, rest = {0};

    if (!take_moment(&at, stop, &left, &relation) || !is_relation(relation) || !take_moment(&at, stop, &right, &rest) ||
        rest.n)
        return false;
    c->then = is_word(relation, "after") ? left : right;
    c->first = is_word(relation, "after") ? right : left;
    return c->then.what != ETCH_LAB_AT_END; /* the end of a thread cannot be held back */
}

static int not_understood(struct etch_error *err, unsigned line)
{
    etch_error_set(err, "line %u of the script is not understood", line);
    return etch_error_advise(err, "an order is, for example: main.1 queue.c:18 #3 after main queue.c:39 (write)");
}

int etch_lab_script_parse(struct etch_lab_script *script, const char *text, size_t size, struct etch_error *err)
{
    const char *at = text, *end = text + size;

    memset(script, 0, sizeof(*script));
    for (unsigned line = 1; at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        struct etch_lab_constraint c;

        stop = stop ? stop : end;
        while (at < stop && is_blank(*at))
            at++;
        if (at < stop && *at != '#') {
            if (!take_order(at, stop, &c))
                return not_understood(err, line);
            if (script->orders.n == ETCH_LAB_MOST_RULES)
                return etch_error_set(err, "the script has more than %u orders", ETCH_LAB_MOST_RULES);
            if (!etch_array_push(&script->orders, c))
                return etch_error_no_memory(err);
        }
        at = stop < end ? stop + 1 : end;
    }
    return 0;
}

void etch_lab_script_release(struct etch_lab_script *script)
{
    etch_array_free(&script->orders);
}

/* ---- Writing ---- */

struct output {
    char *text;
    size_t n, size;
};

__attribute__((format(printf, 2, 3))) static void print(struct output *o, const char *format, ...)
{
    va_list list;
    int n;

    va_start(list, format);
    n = vsnprintf(o->text + o->n, o->size - o->n, format, list);
    va_end(list);
    o->n = n > 0 && (size_t)n < o->size - o->n ? o->n + (size_t)n : o->size - 1;
}

static void print_thread(struct output *o, const struct etch_lab_named *m)
{
    if (m->number)
        print(o, "T%u", m->number);
    else
        print(o, "main");
    for (uint32_t i = 0; !m->number && i < m->thread.depth; i++)
        print(o, ".%u", m->thread.ordinals[i]);
}

static void print_named(struct output *o, const struct etch_lab_named *m, bool brief)
{
    static const char *const kinds[] = {"", " (read)", " (write)"};

    print_thread(o, m);
    if (m->what != ETCH_LAB_AT_PLACE) {
        print(o, m->what == ETCH_LAB_AT_BEGIN ? " begin" : " end");
        return;
    }
    print(o, " %s:%u%s%s%s", m->file, m->line, *m->function ? " " : "", m->function, kinds[m->kind % 3]);
    if (m->visit > 1)
        print(o, " #%u", m->visit);
    if (!brief && *m->text)
        print(o, " `%s`", m->text);
}

void etch_lab_named_print(const struct etch_lab_named *named, bool brief, char *text, size_t size)
{
    struct output o = {text, 0, size};

    print_named(&o, named, brief);
}

void etch_lab_constraint_print(const struct etch_lab_constraint *c, bool brief, char *text, size_t size)
{
    struct output o = {text, 0, size};

    print_named(&o, &c->then, brief);
    print(&o, " after ");
    print_named(&o, &c->first, brief);
}
