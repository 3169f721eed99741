/* SPDX-License-Identifier: MIT */
/* Reads lines and uses shelf.c's variable; a line "drop" makes the next use of it fail. Prints a lot. */
#include "shelf.h"
#include "turn.h"

#include <stdio.h>
#include <string.h>

int main(void)
{
    char line[80];
    int n = 0;

    while (fgets(line, sizeof(line), stdin)) {
        if (strcmp(line, "drop\n") == 0 && turn() % 2)
            shelf.top.title = NULL; //@drop
        n += shelf.top.title[0]; //@use
        for (int i = 0; i < 2000; i++)
            printf("%d %s", i, line);
    }
    return n ? 0 : 2; /* no line at all is a failure too, of another kind */
}
