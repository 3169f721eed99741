/* SPDX-License-Identifier: MIT */
/* Rules and their decisions; see policy.h. */
#include "collector/policy.h"

#include "base/array.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

struct rule {
    enum etch_policy_action action;
    enum etch_policy_kind kind;
    bool any_kind, standard;
    char *name, *type, *text; /* selectors; NULL: not asked for */
};

struct etch_policy {
    char *source;
    ETCH_ARRAY(struct rule) rules;
};

static const char *const actions[] = {"allow", "mask", "deny"};
static const char *const kinds[ETCH_POLICY_KINDS] = {"argument", "value", "message", "path", "memory", "stack"};

/* Names of arguments, and of words in a message, whose value is a secret more often than not; forms of well-known
 * tokens; text in memory; memory that is no code. */
static const char standard_rules[] = "mask argument name=*passw*\n"
                                     "mask argument name=*passphrase*\n"
                                     "mask argument name=*pwd*\n"
                                     "mask argument name=*secret*\n"
                                     "mask argument name=*token*\n"
                                     "mask argument name=*credential*\n"
                                     "mask argument name=*authorization*\n"
                                     "mask argument name=auth\n"
                                     "mask argument name=*[-_]auth\n"
                                     "mask argument name=*cookie*\n"
                                     "mask argument name=*session*id*\n"
                                     "mask argument name=key\n"
                                     "mask argument name=*[-_]key\n"
                                     "mask argument name=*apikey*\n"
                                     "mask argument name=*signature*\n"
                                     "mask argument name=url-password\n"
                                     "mask argument text=gh[pousr]_*\n"
                                     "mask argument text=github_pat_*\n"
                                     "mask argument text=glpat-*\n"
                                     "mask argument text=xox[abeprs]-*\n"
                                     "mask argument text=sk-????????????????*\n"
                                     "mask argument text=AKIA????????????????\n"
                                     "mask argument text=eyJ*.eyJ*\n"
                                     "mask argument text=*-----BEGIN*\n"
                                     "mask value type=text\n"
                                     "deny memory name=\\[stack*\n"
                                     "deny memory name=\\[heap*\n";

/* ---- Parsing ---- */

struct line {
    const char *at, *end;
    const char *policy;
    unsigned number;
};

static int wrong(const struct line *l, struct etch_error *err, const char *why, const char *word)
{
    char shown[40];
    size_t n = 0;

    for (; *word && n < sizeof(shown) - 1; word++)
        shown[n++] = (char)(isprint((unsigned char)*word) ? *word : '?');
    shown[n] = '\0';
    etch_error_set(err, "policy %s, line %u: %s '%s'", l->policy, l->number, why, shown);
    return etch_error_advise(err, "allow|mask|deny argument|value|message|path|memory|stack|all [name=GLOB] "
                                  "[type=text|pointer|number] [text=GLOB]; docs/policy.md");
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Takes the next word, without its quotes. The word is empty at the end of the line. False: a quote has no end, or no
 * memory. */
static bool take_word(struct line *l, char **word)
{
    size_t n = 0;
    bool quoted = false;

    while (l->at < l->end && is_blank(*l->at))
        l->at++;
    *word = malloc((size_t)(l->end - l->at) + 1);
    if (!*word)
        return false;
    for (; l->at < l->end && (quoted || (!is_blank(*l->at) && !(n == 0 && *l->at == '#'))); l->at++) {
        if (*l->at == '"')
            quoted = !quoted;
        else
            (*word)[n++] = *l->at;
    }
    if (n == 0 && l->at < l->end && *l->at == '#')
        l->at = l->end;
    (*word)[n] = '\0';
    return !quoted;
}

static int index_of(const char *const *list, size_t n, const char *word)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], word) == 0)
            return (int)i;
    return -1;
}

static void release_rule(struct rule *r)
{
    free(r->name);
    free(r->type);
    free(r->text);
}

static bool is_type(const char *word)
{
    return strcmp(word, "text") == 0 || strcmp(word, "pointer") == 0 || strcmp(word, "number") == 0;
}

static int take_selector(struct line *l, struct rule *r, const char *word, struct etch_error *err)
{
    const char *value = strchr(word, '=');
    size_t n = value ? (size_t)(value - word) : 0;
    char **to = n != 4                         ? NULL
                : memcmp(word, "name", 4) == 0 ? &r->name
                : memcmp(word, "type", 4) == 0 ? &r->type
                : memcmp(word, "text", 4) == 0 ? &r->text
                                               : NULL;

    if (!to)
        return wrong(l, err, "no such selector:", word);
    if (*to)
        return wrong(l, err, "given twice:", word);
    if (!value[1] || (to == &r->type && !is_type(value + 1)))
        return wrong(l, err, "nothing can fit", word);
    *to = strdup(value + 1);
    return *to ? 0 : etch_error_set_errno(err, ENOMEM, "cannot read a policy");
}

static int take_head(struct line *l, struct rule *r, const char *action, const char *kind, struct etch_error *err)
{
    int a = index_of(actions, sizeof(actions) / sizeof(actions[0]), action);
    int k = index_of(kinds, ETCH_POLICY_KINDS, kind);

    r->any_kind = strcmp(kind, "all") == 0;
    if (a < 0)
        return wrong(l, err, "no such action:", action);
    if (k < 0 && !r->any_kind)
        return wrong(l, err, "no such kind:", kind);
    r->action = (enum etch_policy_action)a;
    r->kind = r->any_kind ? ETCH_POLICY_KINDS : (enum etch_policy_kind)k;
    return 0;
}

/* Returns 1 if the line has a rule, 0 if the line is empty, -1 with `err` set. */
static int take_line(struct line *l, struct rule *r, struct etch_error *err)
{
    char *words[8] = {0};
    size_t n = 0;
    int status = 0;

    memset(r, 0, sizeof(*r));
    if (memchr(l->at, '\0', (size_t)(l->end - l->at)))
        return wrong(l, err, "a byte that is no text", "");
    while (status == 0 && n < 8) {
        if (!take_word(l, &words[n]))
            status = words[n] ? wrong(l, err, "a quote without its end:", words[n])
                              : etch_error_set_errno(err, ENOMEM, "cannot read a policy");
        else if (!words[n++][0])
            break;
    }
    n = n && words[n - 1] && !words[n - 1][0] ? n - 1 : n;
    if (status == 0 && n == 8)
        status = wrong(l, err, "too many words:", words[7]);
    if (status == 0 && n)
        status = take_head(l, r, words[0], n > 1 ? words[1] : "", err);
    for (size_t i = 2; status == 0 && i < n; i++)
        status = take_selector(l, r, words[i], err);
    for (size_t i = 0; i < 8; i++)
        free(words[i]);
    if (status < 0)
        release_rule(r);
    return status < 0 ? -1 : n > 0;
}

static int add_rules(struct etch_policy *p, const char *text, size_t size, bool standard, struct etch_error *err)
{
    struct line l = {.policy = p->source};
    const char *next = text;

    while (next < text + size) {
        const char *end = memchr(next, '\n', (size_t)(text + size - next));
        struct rule r;
        int status;

        l.at = next;
        l.end = end ? end : text + size;
        l.number++;
        next = l.end + 1;
        status = take_line(&l, &r, err);
        if (status < 0)
            return -1;
        r.standard = standard;
        if (status > 0 && (p->rules.n == ETCH_POLICY_RULES_MAX || !etch_array_push(&p->rules, r))) {
            release_rule(&r);
            return etch_error_set(err, "policy %s: too many rules", p->source);
        }
    }
    return 0;
}

int etch_policy_parse(struct etch_policy **policy, const char *text, size_t size, const char *name,
                      struct etch_error *err)
{
    struct etch_policy *p = calloc(1, sizeof(*p));

    if (p)
        p->source = strdup(name);
    if (!p || !p->source) {
        etch_policy_free(p);
        return etch_error_set_errno(err, ENOMEM, "cannot read a policy");
    }
    if (size > ETCH_POLICY_SIZE_MAX)
        etch_error_set(err, "policy %s: more than %u bytes", name, ETCH_POLICY_SIZE_MAX);
    if (size > ETCH_POLICY_SIZE_MAX || add_rules(p, text, size, false, err) < 0 ||
        add_rules(p, standard_rules, sizeof(standard_rules) - 1, true, err) < 0) {
        etch_policy_free(p);
        return -1;
    }
    *policy = p;
    return 0;
}

int etch_policy_standard(struct etch_policy **policy, struct etch_error *err)
{
    return etch_policy_parse(policy, "", 0, "built-in", err);
}

int etch_policy_add(struct etch_policy *p, const char *line, struct etch_error *err)
{
    size_t n = p->rules.n;
    struct rule last;

    if (add_rules(p, line, strlen(line), false, err) < 0)
        return -1;
    if (p->rules.n == n)
        return 0;
    last = p->rules.v[n];
    memmove(p->rules.v + 1, p->rules.v, n * sizeof(last));
    p->rules.v[0] = last;
    return 0;
}

void etch_policy_free(struct etch_policy *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->rules.n; i++)
        release_rule(&p->rules.v[i]);
    etch_array_free(&p->rules);
    free(p->source);
    free(p);
}

const char *etch_policy_name(const struct etch_policy *p)
{
    return p->source;
}

/* ---- Deciding ---- */

static bool fits(const char *pattern, const char *text)
{
    return !pattern || (text && fnmatch(pattern, text, FNM_CASEFOLD) == 0);
}

/* The built-in rules for arguments are for the words of messages too. */
static bool is_for(const struct rule *r, enum etch_policy_kind kind)
{
    return r->any_kind || r->kind == kind ||
           (r->standard && r->kind == ETCH_POLICY_ARGUMENT && kind == ETCH_POLICY_MESSAGE);
}

enum etch_policy_action etch_policy_decide(const struct etch_policy *p, enum etch_policy_kind kind, const char *name,
                                           const char *type, const char *text)
{
    for (size_t i = 0; i < p->rules.n; i++) {
        const struct rule *r = &p->rules.v[i];

        if (is_for(r, kind) && fits(r->name, name) && (!r->type || (type && strcmp(r->type, type) == 0)) &&
            fits(r->text, text))
            return r->action;
    }
    return ETCH_POLICY_ALLOW;
}

bool etch_policy_speaks_of(const struct etch_policy *p, enum etch_policy_kind kind)
{
    for (size_t i = 0; i < p->rules.n; i++)
        if (!p->rules.v[i].standard && is_for(&p->rules.v[i], kind))
            return true;
    return false;
}

const char *etch_policy_type(uint64_t word)
{
    unsigned n = 0, top = (unsigned)(word >> 40 & 0xff);
    bool address = word >= 0x10000 && word < (uint64_t)1 << 47;

    while (n < 8 && (word >> 8 * n & 0xff) >= 0x20 && (word >> 8 * n & 0xff) < 0x7f)
        n++;
    /* Six characters of which the last is U, V or ~ are as well an address of a program or of a library. */
    if (n >= 5 && (n == 8 || word >> 8 * n == 0) && !(n == 6 && (top == 0x55 || top == 0x56 || top == 0x7e)))
        return "text";
    return address ? "pointer" : "number";
}

bool etch_policy_names_values(const struct etch_policy *policy)
{
    for (size_t i = 0; i < policy->rules.n; i++) {
        const struct rule *r = &policy->rules.v[i];

        if ((r->any_kind || r->kind == ETCH_POLICY_VALUE) && r->name && r->action != ETCH_POLICY_ALLOW)
            return true;
    }
    return false;
}
