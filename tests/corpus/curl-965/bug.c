// SPDX-License-Identifier: MIT
// Curl 965: a URL glob with unbalanced braces, "{}{", leaves the current pattern NULL, and its length is taken.
#include "../corpus.h"

struct urlglob {
    const char *current;
    int patterns;
};

static void parse(struct urlglob *urls, const char *text)
{
    int open = 0;

    urls->current = text;                                     //@start
    for (const char *p = text; *p; p++) {
        if (*p == '{')                                        //@brace
            open++;                                           //@open
        if (*p == '}')
            open--;
    }
    if (open != 0)                                            //@unbalanced
        urls->current = NULL;                                 //@null
}

static size_t next_url(struct urlglob *urls)
{
#ifdef FIXED
    if (!urls->current)
        return 0;
#endif
    return strlen(urls->current);                             //@length
}

int main(void)
{
    static const char *const inputs[] = {"a{b}c", "{}{", "plain", "{x}{y}"};
    struct urlglob urls = {0};
    const char *url = inputs[draw(4)];                        //@input

    parse(&urls, url);                                        //@parse
    return next_url(&urls) > 100;
}
