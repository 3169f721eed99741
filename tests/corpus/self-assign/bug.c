// SPDX-License-Identifier: MIT
// A view drops its theme before it takes the new one; when both are the same one, that was the last reference, and it is freed.
#include "../corpus.h"

enum { CACHE = 8 };

struct palette {
    unsigned ink, paper;
};
struct theme {
    const struct palette *palette;
    char name[12];
    unsigned refs;
};
struct view {
    struct theme *theme;
    unsigned width, height;
};
static const struct palette day = {0x000000, 0xffffff};
static const struct palette night = {0xd0d0d0, 0x101010};
static struct theme *cache[CACHE]; // the themes in use; no references of its own
static unsigned made;

static struct theme *theme_new(const char *name)
{
    struct theme *t = malloc(sizeof(*t));

    t->palette = strchr(name, 'k') ? &night : &day;
    snprintf(t->name, sizeof(t->name), "%s", name);
    t->refs = 0;
    made++;
    return t;
}

static struct theme *theme_get(const char *name)
{
    unsigned empty = 0;

    for (unsigned i = 0; i < CACHE; i++) {
        if (!cache[i])
            empty = i;
        else if (strcmp(cache[i]->name, name) == 0)   //@same
            return cache[i];                          //@cached
    }
    cache[empty] = theme_new(name);
    return cache[empty];
}

static void theme_ref(struct theme *t)
{
    t->refs++;
}

__attribute__((noinline)) static void theme_unref(struct theme *t)
{
    t->refs--;                                        //@dec
    if (t->refs > 0)                                  //@last
        return;
    for (unsigned i = 0; i < CACHE; i++)
        if (cache[i] == t)
            cache[i] = NULL;
    free(t);                                          //@free
}

static void view_set_theme(struct view *v, struct theme *t)
{
#ifdef FIXED
    theme_ref(t);
    theme_unref(v->theme);
    v->theme = t;
#else
    theme_unref(v->theme);                            //@drop
    v->theme = t;                                     //@assign
    theme_ref(t);
#endif
}

__attribute__((noinline)) static unsigned view_paint(const struct view *v)
{
    unsigned ink = v->theme->palette->ink;            //@use
    unsigned sum = 0;

    for (unsigned y = 0; y < v->height; y++)
        for (unsigned x = 0; x < v->width; x++)
            sum = sum * 5 + (x == y ? ink : v->theme->palette->paper);
    return sum;
}

int main(void)
{
    static const char *const names[] = {"plain", "dark", "solar", "ink", "paper", "black", "sepia", "contrast"};
    struct view view = {NULL, 16, 9};
    unsigned sum = 0;

    view.theme = theme_get("plain");
    theme_ref(view.theme);
    for (int i = 0; i < 3; i++) {
        const char *name = names[draw(8)];            //@input
        struct theme *t = theme_get(name);            //@get
        view_set_theme(&view, t);                     //@set
        sum ^= view_paint(&view);                     //@paint
    }
    printf("%08x, %u themes made\n", sum, made);
    theme_unref(view.theme);
    return 0;
}
