// SPDX-License-Identifier: MIT
// Two helpers return their result in the same static buffer: when both need it, the second overwrites what the first one gave.
#include "../corpus.h"

struct volume {
    char mark;
    const char *label;
    unsigned long used;
};
static struct volume volumes[] = {{'h', "home", 0}, {'t', "tmp", 0}, {'v', "var", 0}};
static char scratch[64];
static unsigned long blocks;

static const char *expand(const char *path)
{
    if (path[0] != '~')                               //@home
        return path;
    snprintf(scratch, sizeof(scratch), "/home/ann%s", path + 1);
    return scratch;                                   //@lend
}

static const char *escape(const char *name)
{
#ifdef FIXED
    static char out[64];
#else
    char *out = scratch;                              //@reuse
#endif
    size_t n = 0;

    if (!strchr(name, ' '))                           //@space
        return name;
    for (; name[n] && n < sizeof(scratch) - 1; n++)
        out[n] = (char)(name[n] == ' ' ? '_' : name[n]); //@write
    out[n] = '\0';
    return out;
}

static struct volume *volume_of(const char *path)
{
    for (unsigned i = 0; i < 3; i++)
        if (volumes[i].mark == path[1])               //@compare
            return &volumes[i];
    return NULL;                                      //@none
}

static unsigned name_hash(const char *name)
{
    unsigned hash = 5381;

    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

static unsigned save(const char *dir, const char *name, unsigned size)
{
    const char *where = expand(dir);                  //@expand
    const char *what = escape(name);                  //@escape
    struct volume *v = volume_of(where);              //@find

    v->used += size;                                  //@use
    blocks += (size + 511) / 512;
    return name_hash(what);
}

int main(void)
{
    static const char *const dirs[] = {"/tmp", "/home/bob", "~/mail", "/var/log", "~", "/tmp/build"};
    static const char *const names[] = {"notes.txt", "my notes.txt", "core", "a.out", "old plan", "index"};
    unsigned hash = 0;

    for (unsigned i = 0; i < 2; i++) {
        const char *dir = dirs[draw(6)];              //@dir
        const char *name = names[draw(6)];            //@name
        hash ^= save(dir, name, 700 * (i + 1));       //@save
    }
    for (unsigned i = 0; i < 3; i++)
        printf("%s %lu\n", volumes[i].label, volumes[i].used);
    printf("%lu blocks, %08x\n", blocks, hash);
    return 0;
}
