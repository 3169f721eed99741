/* SPDX-License-Identifier: MIT */
/* An INI parser. A section header without its bracket gives no section, and the next key is put into it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct section {
    char name[32];
    int keys;
    long total;
};

static struct section sections[8];
static int n_sections;
static struct section *current;

static struct section *open_section(char *line)
{
    char *end = strchr(line, ']');

    if (!end || n_sections == 8)
        return NULL;
    *end = '\0';
    snprintf(sections[n_sections].name, sizeof(sections[n_sections].name), "%s", line + 1);
    return &sections[n_sections++];
}

static void add_key(char *line)
{
    char *value = strchr(line, '=');

    if (!value)
        return;
    current->keys++;
    current->total += atol(value + 1);
}

int main(int argc, char **argv)
{
    FILE *in = argc > 1 ? fopen(argv[1], "r") : stdin;
    char line[256];

    if (!in)
        return 2;
    current = &sections[n_sections++];
    while (fgets(line, sizeof(line), in)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == ';' || !line[0])
            continue;
        if (line[0] == '[')
            current = open_section(line);
        else
            add_key(line);
    }
    for (int i = 0; i < n_sections; i++)
        printf("%s %d %ld\n", sections[i].name, sections[i].keys, sections[i].total);
    return 0;
}
