/* SPDX-License-Identifier: MIT */
// A program with a library of its own, and with one that it loads by itself. What fails is in a library, or was caused there.
#include "shapes.h"
#include <cstdio>
#include <cstring>
#include <dlfcn.h>

static int limit;

static int narrow(int x)
{
    return x > limit ? limit : x; //@narrow
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (std::strcmp(what, "inside") == 0) {
        shape *s = shapes_make(0); //@make
        shapes_draw(s);            //@draw
    }
    if (std::strcmp(what, "value") == 0) {
        limit = 3; //@limit
        int n = shapes_count(narrow); //@count
        int *volatile p = n < 4 ? nullptr : &n;  //@pick
        *p = 1; //@value
    }
    if (std::strcmp(what, "loaded") == 0) {
        void *plugin = dlopen("./libplugin.so", RTLD_NOW);
        int (*start)(int) = (int (*)(int))dlsym(plugin, "plugin_start");
        return start(argc - 2); //@start
    }
    std::puts("nothing failed");
    return 0;
}
