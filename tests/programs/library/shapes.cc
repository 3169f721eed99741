/* SPDX-License-Identifier: MIT */
// The library that the program is linked with.
#include "shapes.h"
int shapes_made;
static int total = 9;

shape *shapes_make(int sides)
{
    shape *s = new shape;
    s->sides = sides;
    s->lengths = sides ? new int[sides] : nullptr; //@null
    shapes_made++;
    return s;
}

void shapes_draw(shape *s)
{
    s->lengths[0] = shapes_made; //@inside
}

int shapes_count(int (*narrow)(int))
{
    total = narrow(total); //@narrowed
    return total;          //@total
}
