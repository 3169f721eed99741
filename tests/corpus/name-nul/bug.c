// SPDX-License-Identifier: MIT
// A name that fills its array to the last byte gets its end behind it, in the width that lies there; then something is divided by it.
#include "../corpus.h"

struct column {
    char name[12];
    unsigned width;
    unsigned rows;
};

static void name_make(char *name, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        name[i] = (char)('a' + draw(26));
    name[n] = '\0';
}

static void column_set(struct column *c, const char *name, unsigned width)
{
    size_t n = strlen(name);                              //@length

    c->width = width;                                     //@width
#ifdef FIXED
    if (n > sizeof(c->name) - 1)
        n = sizeof(c->name) - 1;
#else
    if (n > sizeof(c->name))                              //@clamp
        n = sizeof(c->name);
#endif
    memcpy(c->name, name, n);
    c->name[n] = '\0';                                    //@end
}

static unsigned column_lines(const struct column *c, unsigned letters)
{
    return letters / c->width + 1;                        //@divide
}

static unsigned vowels(const char *text)
{
    unsigned n = 0;

    for (; *text; text++)
        n += strchr("aeiou", *text) != NULL;
    return n;
}

int main(void)
{
    static const unsigned widths[] = {8, 20, 16};
    struct column *columns = calloc(3, sizeof(*columns));
    unsigned lines = 0, found = 0;

    for (int i = 0; i < 3; i++) {
        char name[32];

        name_make(name, 3 + draw(11));                    //@input
        found += vowels(name);
        column_set(&columns[i], name, widths[i]);         //@set
        columns[i].rows = 4;
    }
    for (int i = 0; i < 3; i++)
        lines += column_lines(&columns[i], 100 + draw(100)); //@lines
    printf("%u lines, %u vowels\n", lines, found);
    free(columns);
    return 0;
}
