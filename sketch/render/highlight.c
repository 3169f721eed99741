/* SPDX-License-Identifier: MIT */
/* See highlight.h. */
#include "sketch/render/highlight.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int by_text(const void *x, const void *y)
{
    return strcmp(x, *(const char *const *)y);
}

static bool is_keyword(const char *text, size_t size)
{
    static const char *const words[] = {
        "_Atomic",    "alignas",      "alignof",  "asm",       "auto",     "bool",      "break",
        "case",       "catch",        "char",     "class",     "co_await", "co_return", "const",
        "const_cast", "constexpr",    "continue", "decltype",  "default",  "delete",    "do",
        "double",     "dynamic_cast", "else",     "enum",      "explicit", "extern",    "false",
        "final",      "float",        "for",      "friend",    "goto",     "if",        "inline",
        "int",        "long",         "mutable",  "namespace", "new",      "noexcept",  "nullptr",
        "operator",   "override",     "private",  "protected", "public",   "register",  "reinterpret_cast",
        "restrict",   "return",       "short",    "signed",    "sizeof",   "static",    "static_cast",
        "struct",     "switch",       "template", "this",      "throw",    "true",      "try",
        "typedef",    "typename",     "union",    "unsigned",  "using",    "virtual",   "void",
        "volatile",   "while"};
    char word[24];

    if (size >= sizeof(word))
        return false;
    memcpy(word, text, size);
    word[size] = '\0';
    return bsearch(word, words, sizeof(words) / sizeof(words[0]), sizeof(words[0]), by_text) != NULL;
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Up to the quote that ends it, or to the end of the line. */
static size_t quoted(const char *text)
{
    size_t n = 1;

    while (text[n] && text[n] != text[0])
        n += text[n] == '\\' && text[n + 1] ? 2 : 1;
    return n + (text[n] != '\0');
}

static size_t block_comment(const char *text)
{
    const char *end = strstr(text + 2, "*/");

    return end ? (size_t)(end - text) + 2 : strlen(text);
}

static enum etch_highlight word(const char *text, size_t *size)
{
    size_t n = 0;

    while (is_name(text[n]))
        n++;
    *size = n;
    if (is_keyword(text, n))
        return ETCH_KEYWORD;
    return text[n] == '(' ? ETCH_CALL : ETCH_PLAIN;
}

enum etch_highlight etch_highlight_next(const char *text, size_t *size)
{
    size_t n = 0;

    *size = strlen(text);
    if (text[0] == '#')
        return ETCH_DIRECTIVE;
    if (text[0] == '/' && text[1] == '/')
        return ETCH_COMMENT;
    if (text[0] == '/' && text[1] == '*') {
        *size = block_comment(text);
        return ETCH_COMMENT;
    }
    if (text[0] == '"' || text[0] == '\'') {
        *size = quoted(text);
        return ETCH_STRING;
    }
    if (isdigit((unsigned char)text[0])) {
        while (is_name(text[n]) || text[n] == '.' || (text[n] == '\'' && is_name(text[n + 1])))
            n++;
        *size = n;
        return ETCH_NUMBER;
    }
    if (is_name(text[0]))
        return word(text, size);
    while (text[n] && !is_name(text[n]) && !strchr("#\"'", text[n]) && !(text[n] == '/' && strchr("/*", text[n + 1])))
        n++;
    *size = n ? n : text[0] != '\0';
    return ETCH_PLAIN;
}
