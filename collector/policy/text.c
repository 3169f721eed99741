/* SPDX-License-Identifier: MIT */
/* Policies on command lines, messages and paths; see policy.h. */
#include "collector/policy.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Words ---- */

/* Characters that end a word within an argument: `sh -c 'mysql --password=x'`, a query of a URL, a quoted name in a
 * message. */
static bool ends_word(char c)
{
    return c == '\0' || isspace((unsigned char)c) || strchr("\"'`;&,()<>", c) != NULL;
}

struct writer {
    const struct etch_policy *policy;
    enum etch_policy_kind kind;
    struct etch_policy_words *words;
    uint64_t *hidden;
    char *out;
    size_t n;
};

static void put(struct writer *w, const char *text, size_t n)
{
    memcpy(w->out + w->n, text, n);
    w->n += n;
}

/* `out` has room for the mask: three bytes are reserved for every byte of the text. Even an empty word is followed by a
 * byte. */
static void put_masked(struct writer *w)
{
    put(w, ETCH_POLICY_MASKED, strlen(ETCH_POLICY_MASKED));
    ++*w->hidden;
}

/* Without the dashes of an option, and with no more than fits. */
static void set_name(char name[128], const char *from, size_t n)
{
    while (n && (*from == '-' || *from == '?')) {
        from++;
        n--;
    }
    n = n < 127 ? n : 127;
    memcpy(name, from, n);
    name[n] = '\0';
}

/* A text that was masked before is no secret any more, and does not count again. */
static bool is_hidden(const char *text, size_t n)
{
    return (n == strlen(ETCH_POLICY_MASKED) && memcmp(text, ETCH_POLICY_MASKED, n) == 0) ||
           (n == strlen(ETCH_POLICY_DENIED) && memcmp(text, ETCH_POLICY_DENIED, n) == 0);
}

static enum etch_policy_action decide(const struct writer *w, const char *name, const char *from, size_t n)
{
    enum etch_policy_action action = ETCH_POLICY_ALLOW;
    char *text;

    if (is_hidden(from, n))
        return action;
    text = strndup(from, n);
    action = text ? etch_policy_decide(w->policy, w->kind, name, "text", text) : ETCH_POLICY_MASK;
    free(text);
    return action;
}

/* The length of a name before '=' or ": "; 0: the word has no name. `rest`: the secret goes on after blanks. */
static size_t name_length(const char *word, size_t n, bool *rest)
{
    for (size_t i = 1; i < n; i++) {
        if (word[i] == '=')
            return word[i + 1] == '=' ? 0 : i; /* a comparison, in an assertion's words */
        if (word[i] == ':' && word[i + 1] != '/') {
            *rest = i + 1 == n;
            return i;
        }
        if (!isalnum((unsigned char)word[i]) && !strchr("-_.?[]", word[i]))
            return 0;
    }
    return 0;
}

/* Writes scheme://user:password@host without the password. False: the word has no password, or the password may be
 * shown. */
static bool put_url(struct writer *w, const char *word, size_t n)
{
    const char *end = word + n, *user = memmem(word, n, "://", 3), *at, *colon;

    at = user ? memchr(user + 3, '@', (size_t)(end - user - 3)) : NULL;
    colon = at ? memchr(user + 3, ':', (size_t)(at - user - 3)) : NULL;
    if (!colon || decide(w, "url-password", colon + 1, (size_t)(at - colon - 1)) == ETCH_POLICY_ALLOW)
        return false;
    put(w, word, (size_t)(colon + 1 - word));
    put_masked(w);
    put(w, at, (size_t)(end - at));
    return true;
}

/* Takes a word of `n` bytes. Returns the number of bytes taken. The number is larger than `n` if the rest of the text
 * is the secret. */
static size_t take_word(struct writer *w, const char *word, size_t n)
{
    struct etch_policy_words given = *w->words;
    bool rest = false, option = word[0] == '-' && n > 1;
    size_t length = name_length(word, n, &rest);
    char name[128] = "";

    w->words->name[0] = '\0';
    if (length) {
        set_name(name, word, length);
        if (decide(w, name, word + length + 1, n - length - 1) != ETCH_POLICY_ALLOW) {
            put(w, word, length + 1);
            put_masked(w);
            return rest ? strlen(word) : n;
        }
    } else if ((given.name[0] && !option && decide(w, given.name, word, n) != ETCH_POLICY_ALLOW) ||
               decide(w, NULL, word, n) != ETCH_POLICY_ALLOW) {
        put_masked(w);
        return n;
    }
    if (!length && option)
        set_name(w->words->name, word, n);
    if (!put_url(w, word, n))
        put(w, word, n);
    return n;
}

static void take_words(struct writer *w, const char *text)
{
    while (*text) {
        size_t n = 0;

        while (!ends_word(text[n]))
            n++;
        if (n)
            text += take_word(w, text, n);
        else
            put(w, text++, 1);
    }
}

/* The decision of a rule for the whole text. For name=value only a denial counts here; the words decide the rest. */
static enum etch_policy_action decide_all(const struct writer *w, const char *text)
{
    enum etch_policy_action action = etch_policy_decide(w->policy, w->kind, NULL, "text", text);
    bool rest;
    size_t length = name_length(text, strlen(text), &rest);
    char name[128];

    if (length) {
        set_name(name, text, length);
        action = etch_policy_decide(w->policy, w->kind, name, "text", text + length + 1);
        return action == ETCH_POLICY_DENY ? action : ETCH_POLICY_ALLOW;
    }
    if (w->words->name[0] && text[0] != '-') {
        enum etch_policy_action named = etch_policy_decide(w->policy, w->kind, w->words->name, "text", text);

        action = named > action ? named : action;
    }
    return action;
}

char *etch_policy_text(const struct etch_policy *policy, enum etch_policy_kind kind, const char *text,
                       struct etch_policy_words *words, uint64_t *hidden)
{
    struct etch_policy_words alone = {""};
    struct writer w = {policy, kind, words ? words : &alone, hidden, NULL, 0};
    enum etch_policy_action action = is_hidden(text, strlen(text)) ? ETCH_POLICY_ALLOW : decide_all(&w, text);

    if (action != ETCH_POLICY_ALLOW) {
        w.words->name[0] = '\0';
        ++*hidden;
        return strdup(action == ETCH_POLICY_DENY ? ETCH_POLICY_DENIED : ETCH_POLICY_MASKED);
    }
    w.out = malloc(strlen(text) * 4 + 8);
    if (!w.out)
        return NULL;
    take_words(&w, text);
    w.out[w.n] = '\0';
    return w.out;
}

/* ---- Paths ---- */

/* Finds the start and the end of the user's name after "/home/"; 0: no name. */
static size_t home_name(const char *path, size_t *end)
{
    const char *home = strstr(path, "/home/");
    size_t at = home ? (size_t)(home - path) + 6 : 0;

    if (!home || !path[at] || path[at] == '/')
        return 0;
    *end = at + strcspn(path + at, "/");
    return at;
}

char *etch_policy_path(const struct etch_policy *policy, const char *path, uint64_t *hidden)
{
    enum etch_policy_action action = etch_policy_decide(policy, ETCH_POLICY_PATH, path, "text", path);
    const char *last = strrchr(path, '/');
    size_t size = strlen(path) + 16, end = 0, at = home_name(path, &end);
    char *out;

    if (action == ETCH_POLICY_ALLOW || (action == ETCH_POLICY_MASK && !at) || !path[0])
        return strdup(path);
    out = malloc(size);
    if (out && action == ETCH_POLICY_DENY)
        snprintf(out, size, "%s%s", ETCH_POLICY_DENIED, last ? last : "");
    else if (out)
        snprintf(out, size, "%.*s%s%s", (int)at, path, ETCH_POLICY_MASKED, path + end);
    ++*hidden;
    return out;
}
