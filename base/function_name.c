/* SPDX-License-Identifier: MIT */
/* Names of functions; see function_name.h. */
#include "base/function_name.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANGLED_MAX 16384u /* Real names are shorter. The demangler's work may grow faster than its input. */
#define SHORT_MAX 48u      /* a short name that is longer loses its outer scopes */

/* ---- The whole name ---- */

static bool is_mangled(const char *linkage)
{
    return strncmp(linkage, "_Z", 2) == 0 || strncmp(linkage, "_R", 2) == 0;
}

/* A clone ("f.resume", "f.cold", "f.llvm.123") is the function that it was made from. */
static char *demangle(const char *linkage)
{
    const char *clone = strncmp(linkage, "_Z", 2) == 0 ? strchr(linkage, '.') : NULL;
    char *own, *shown;

    if (strnlen(linkage, MANGLED_MAX) >= MANGLED_MAX)
        return NULL;
    own = clone ? strndup(linkage, (size_t)(clone - linkage)) : strdup(linkage);
    shown = own ? cplus_demangle(own, DMGL_AUTO | DMGL_PARAMS | DMGL_ANSI) : NULL;
    free(own);
    return shown;
}

/* The start of the lambda's name that ends at `end`: "$_0", "{lambda(int)#1}". NULL: no lambda's name ends there. */
static const char *lambda_start(const char *whole, const char *end)
{
    const char *at = end;
    int depth = 0;

    if (end > whole && end[-1] == '}') {
        while (at > whole) {
            at--;
            depth += *at == '}' ? 1 : *at == '{' ? -1 : 0;
            if (depth == 0)
                break;
        }
        return strncmp(at, "{lambda", 7) == 0 ? at : NULL;
    }
    while (at > whole && isdigit((unsigned char)at[-1]))
        at--;
    return at < end && at - whole >= 2 && at[-1] == '_' && at[-2] == '$' ? at - 2 : NULL;
}

/* The last "::operator()" is the body of the lambda, if there is one before it. */
static char *place_lambda(char *whole, uint32_t line)
{
    const char *body = NULL, *start;
    char *placed;

    for (const char *at = whole; (at = strstr(at, "::operator()(")); at++)
        body = at;
    start = body && line ? lambda_start(whole, body) : NULL;
    if (!start)
        return whole;
    if (asprintf(&placed, "%.*s{lambda:%u}%s", (int)(start - whole), whole, line, body) < 0)
        placed = NULL;
    free(whole);
    return placed;
}

char *etch_function_name(const char *linkage, const char *name, uint32_t line)
{
    bool named = name && name[0];
    char *whole = linkage && is_mangled(linkage) ? demangle(linkage) : NULL;

    if (whole)
        return place_lambda(whole, line);
    /* Clang's name for the code that initialises a global variable. */
    if (named && line && strncmp(name, "__cxx_global_var_init", 21) == 0)
        return asprintf(&whole, "{static init:%u}", line) < 0 ? NULL : whole;
    /* An asm label renames a function for the linker; the source's name is the one that people know. */
    if (named)
        return strdup(name);
    return linkage && linkage[0] ? strdup(linkage) : NULL;
}

/* ---- The short name ---- */

struct shortening {
    char *text;
    size_t n, size;
};

static void put(struct shortening *s, const char *from, size_t n)
{
    for (size_t i = 0; i < n && s->n + 1 < s->size; i++)
        s->text[s->n++] = from[i];
}

/* Behind the bracket that closes the one at `at`; the end of the text where none does. */
static const char *skip_brackets(const char *at)
{
    int angles = 0, others = 0;

    for (; *at; at++) {
        if (strchr("([{", *at))
            others++;
        else if (strchr(")]}", *at))
            others--;
        else if (*at == '<' && others == 0)
            angles++;
        else if (*at == '>' && others == 0 && at[-1] != '-')
            angles--;
        if (angles == 0 && others <= 0)
            return at + 1;
    }
    return at;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* The length of "operator+", "operator()", "operator new", "operator bool" at `at`; 0: no operator's name begins there.
 */
static size_t operator_length(const char *whole, const char *at)
{
    const char *end = at + 8;

    if (strncmp(at, "operator", 8) != 0 || (at > whole && is_word(at[-1])) || is_word(*end))
        return 0;
    if (strncmp(end, "()", 2) == 0 || strncmp(end, "[]", 2) == 0)
        return 10;
    if (*end == '"' || *end == ' ') { /* a literal, a conversion, new: up to the parameters */
        while (*end && *end != '(')
            end = *end == '<' ? skip_brackets(end) : end + 1;
        return (size_t)(end - at);
    }
    while (*end && strchr("<>=!+-*/%^&|~,", *end))
        end++;
    /* "operator<<int>": the last bracket opens the arguments of a template. */
    if (end - at > 9 && end[-1] == '<' && *end != '(')
        end--;
    return (size_t)(end - at);
}

static const char *const unsaid[] = {"(anonymous namespace)::", "__cxx11::", "__1::", "[abi:cxx11]"};

static size_t unsaid_length(const char *at)
{
    for (size_t i = 0; i < sizeof(unsaid) / sizeof(unsaid[0]); i++)
        if (strncmp(at, unsaid[i], strlen(unsaid[i])) == 0)
            return strlen(unsaid[i]);
    return 0;
}

/* "{lambda(int)#1}" and "$_0" are "{lambda}"; "{lambda:34}" keeps its line. */
static const char *put_lambda(struct shortening *s, const char *at)
{
    const char *end = *at == '{' ? skip_brackets(at) : at + 2;
    bool lambda = *at == '$' || strncmp(at, "{lambda", 7) == 0;

    while (*at == '$' && isdigit((unsigned char)*end))
        end++;
    if (lambda && strncmp(at, "{lambda:", 8) != 0)
        put(s, "{lambda}", 8);
    else
        put(s, at, (size_t)(end - at));
    return lambda && strncmp(end, "::operator()", 12) == 0 ? end + 12 : end;
}

/* One piece of the whole name. Returns where the next one begins; NULL: the name is complete. */
static const char *take(struct shortening *s, const char *whole, const char *at)
{
    size_t length = operator_length(whole, at);

    if (length) {
        put(s, at, length);
        return at + length + (strncmp(at + length, " <", 2) == 0); /* "operator< <int>" */
    }
    if ((length = unsaid_length(at)))
        return at + length;
    if (*at == '{' || strncmp(at, "$_", 2) == 0)
        return put_lambda(s, at);
    if (*at == '<')
        return skip_brackets(at);
    if (*at == '(') { /* parameters: of an enclosing function, or the last ones */
        const char *end = skip_brackets(at);

        while (strncmp(end, " const", 6) == 0 || strncmp(end, " volatile", 9) == 0)
            end += end[1] == 'c' ? 6 : 9;
        return strncmp(end, "::", 2) == 0 ? end : NULL;
    }
    if (*at == ' ') { /* the text so far is the function's return type */
        s->n = 0;
        return at + 1;
    }
    put(s, at, 1);
    return at + 1;
}

/* Keeps the innermost two scopes of a long name. */
static void drop_scopes(struct shortening *s)
{
    size_t scopes = 0;

    for (size_t i = s->n; s->n > SHORT_MAX && i-- > 2;) {
        if (strncmp(s->text + i - 2, "::", 2) != 0 || ++scopes < 2)
            continue;
        memmove(s->text, s->text + i, s->n - i);
        s->n -= i;
        return;
    }
}

const char *etch_function_short(const char *whole, char *text, size_t size)
{
    struct shortening s = {.text = text, .size = size};
    bool plain = true;

    if (!size)
        return "";
    for (const char *at = whole; *at && plain; at++)
        plain = is_word(*at) || *at == ':' || *at == '~';
    if (plain)
        put(&s, whole, strlen(whole));
    for (const char *at = plain ? NULL : whole; at && *at;)
        at = take(&s, whole, at);
    if (!plain)
        drop_scopes(&s);
    if (s.n == 0)
        put(&s, whole, strlen(whole));
    text[s.n] = '\0';
    return text;
}

bool etch_symbol_is(const char *linkage, const char *wanted)
{
    char *whole, brief[256];
    bool is;

    if (strcmp(linkage, wanted) == 0)
        return true;
    whole = is_mangled(linkage) ? demangle(linkage) : NULL;
    is = whole && (strcmp(whole, wanted) == 0 || strcmp(etch_function_short(whole, brief, sizeof(brief)), wanted) == 0);
    free(whole);
    return is;
}

/* ---- Whose code it is ---- */

bool etch_file_is_system(const char *path)
{
    static const char *const folders[] = {"/usr/include/", "/usr/lib/", "/usr/local/include/", "/usr/lib64/"};

    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        if (strncmp(path, folders[i], strlen(folders[i])) == 0)
            return true;
    return strstr(path, "/include/c++/") != NULL;
}
