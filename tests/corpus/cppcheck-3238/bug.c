// SPDX-License-Identifier: MIT
// Cppcheck 3238: the link of a bracket is followed without looking; an unclosed bracket has none.
#include "../corpus.h"

struct token {
    char kind;
    struct token *next, *link;
};

static struct token tokens[6];

static void link_brackets(unsigned n)
{
    struct token *open = NULL;

    for (unsigned i = 0; i < n; i++) {
        if (tokens[i].kind == '(')
            open = &tokens[i];                          //@open
        if (tokens[i].kind == ')' && open) {            //@close
            open->link = &tokens[i];                    //@link
            open = NULL;
        }
    }
}

static int check(const struct token *tok)
{
    const struct token *end = tok->link;                //@follow
#ifdef FIXED
    if (!end)
        return 0;
#endif
    return end->kind == ')';                            //@use
}

int main(void)
{
    static const char *const inputs[] = {"f(a);", "f(a;", "(bc)d", "x(y)"};
    const char *text = inputs[draw(4)];                 //@input
    unsigned n = (unsigned)strlen(text);                //@size
    const struct token *start = NULL;

    for (unsigned i = 0; i < n; i++)
        tokens[i].kind = text[i];                       //@fill
    link_brackets(n);                                   //@links
    for (unsigned i = 0; i < n && !start; i++)
        if (tokens[i].kind == '(')
            start = &tokens[i];                         //@begin
    return start ? check(start) > 1 : 0;
}
