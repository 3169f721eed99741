// SPDX-License-Identifier: MIT
// A text that a library reads is the first field of a struct: the address of the one is that of the other, and the field
// is written through a pointer to the struct.
#include <stdio.h>
#include <stdlib.h>

struct line {
    char text[16];
    int size;
};

static struct line line;

__attribute__((noinline)) static void append(struct line *l, char c)
{
    l->text[l->size++] = c;              //@in
}

int main(int argc, char **argv)
{
    int unused = argc * 2;

    append(&line, argv[0][0]);           //@in
    if (unused > 200)
        unused++;
    puts(line.text);                     //@fail
    return unused;
}
