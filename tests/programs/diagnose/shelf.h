/* SPDX-License-Identifier: MIT */
/* A variable that one file defines and another one uses. */
#ifndef SHELF_H
#define SHELF_H

struct shelf {
    int room;
    struct {
        char *title;
        int pages;
    } top;
};

extern struct shelf shelf;

#endif
