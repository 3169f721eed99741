/* SPDX-License-Identifier: MIT */
#pragma once
struct shape {
    int sides;
    int *lengths;
};
shape *shapes_make(int sides);
void shapes_draw(shape *s);
int shapes_count(int (*narrow)(int));
