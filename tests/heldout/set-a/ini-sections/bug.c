/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct entry {
    char key[12];
    char value[12];
};

struct section {
    char name[12];
    int count;
    struct entry entries[4];
};

struct config {
    struct section *sections;
    int count, room;
};

static void grow(struct config *c)
{
    int room = c->room ? c->room * 2 : 2;
    struct section *bigger = calloc((size_t)room, sizeof *bigger); //@bigger

    if (c->sections) {
        memcpy(bigger, c->sections, (size_t)c->count * sizeof *bigger); //@copy
        free(c->sections);
    }
    c->sections = bigger; //@switch
    c->room = room;
}

static struct section *add_section(struct config *c, const char *name)
{
    struct section *s;

    if (c->count == c->room) //@full
        grow(c); //@grow
    s = &c->sections[c->count++];
    snprintf(s->name, sizeof s->name, "%s", name);
    return s;
}

static struct section *find_section(struct config *c, const char *name)
{
    for (int i = 0; i < c->count; i++)
        if (strcmp(c->sections[i].name, name) == 0)
            return &c->sections[i]; //@found
    return NULL;
}

static const char *get(struct config *c, const char *section, const char *key)
{
    struct section *s = find_section(c, section);

    for (int i = 0; s && i < s->count; i++) //@search
        if (strcmp(s->entries[i].key, key) == 0)
            return s->entries[i].value;
    return NULL; //@missing
}

static void set(struct section *s, const char *line)
{
    struct entry *e = &s->entries[s->count];

    if (sscanf(line, "%11[a-z]=%11s", e->key, e->value) == 2)
        s->count++; //@stored
}

static void parse(struct config *c, const char *text)
{
    struct section *general = add_section(c, "general"); //@general
    struct section *current = general;
    char line[32], name[12];

    while (*text) {
        size_t length = strcspn(text, "\n");

        snprintf(line, sizeof line, "%.*s", (int)length, text);
        text += length + (text[length] == '\n');
        if (sscanf(line, "[%11[a-z]]", name) == 1)
            current = add_section(c, name); //@add
        else if (line[0] == '!')
#ifdef FIXED
            set(find_section(c, "general"), line + 1);
#else
            set(general, line + 1); //@set
#endif
        else if (isalpha((unsigned char)line[0]))
            set(current, line);
    }
}

static int number(struct config *c, const char *section, const char *key)
{
    const char *value = get(c, section, key); //@get

    return (int)strtol(value, NULL, 10); //@convert
}

int main(int argc, char **argv)
{
    static const char *const files[] = {
        "port=80\n[cache]\nsize=10\n!workers=4\n",
        "port=81\n!workers=2\n[cache]\nsize=20\n",
        "port=82\n[cache]\nsize=30\n[log]\nlevel=2\n!workers=8\n",
        "port=83\n!workers=1\n[cache]\nsize=5\n[log]\nlevel=1\n",
        "port=84\n[cache]\n!workers=6\nsize=7\n[log]\nlevel=0\n",
    };
    struct config config = {0};
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    parse(&config, files[argc > 1 ? atoi(argv[1]) % 5 : now.tv_nsec / 1000 % 5]); //@input
    printf("port %d, cache %d, workers %d\n", number(&config, "general", "port"),
           number(&config, "cache", "size"), number(&config, "general", "workers"));
    free(config.sections);
    return 0;
}
