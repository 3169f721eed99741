// SPDX-License-Identifier: MIT
// Cppcheck 2782: a preprocessor condition that ends early; the token behind the last one is NULL and is used.
#include "../corpus.h"

struct token {
    const char *text;
    struct token *next;
};

static struct token *tokenize(const char **words, unsigned n)
{
    struct token *first = NULL, **last = &first;

    for (unsigned i = 0; i < n; i++) {
        *last = calloc(1, sizeof(struct token));            //@append
        (*last)->text = words[i];
        last = &(*last)->next;                              //@advance
    }
    return first;                                           //@list
}

static int simplify(struct token *tok)
{
    while (tok && tok->text[0] != '(')                      //@seek
        tok = tok->next;                                    //@next
    if (!tok)
        return 0;
    tok = tok->next;                                        //@after
#ifdef FIXED
    if (!tok)
        return 0;
#endif
    return tok->text[0] == ')';                             //@use
}

int main(void)
{
    const char *words[] = {"if", "defined", "(", "A", ")"};
    unsigned n = 2 + draw(4);                               //@input
    struct token *list = tokenize(words, n);                //@tokenize

    return simplify(list) > 1;                              //@simplify
}
