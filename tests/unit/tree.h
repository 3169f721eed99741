/* SPDX-License-Identifier: MIT */
/* A file tree of a test's own, in place of the machine's /proc and /sys. */
#ifndef ETCH_TESTS_TREE_H
#define ETCH_TESTS_TREE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct tree {
    char root[64];
};

static inline void tree_make(struct tree *tree)
{
    strcpy(tree->root, P_tmpdir "/etch-tree-XXXXXX");
    if (!mkdtemp(tree->root))
        abort();
}

static inline void tree_file(const struct tree *tree, const char *name, const char *text)
{
    char path[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s%s", tree->root, name);
    for (char *slash = strchr(path + strlen(tree->root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
    file = fopen(path, "w");
    if (!file)
        abort();
    fputs(text, file);
    fclose(file);
}

static inline void tree_remove(const struct tree *tree)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf '%s'", tree->root);
    if (system(command) != 0)
        abort();
}

#endif
