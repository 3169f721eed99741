// SPDX-License-Identifier: MIT
// A tag's length is kept in 16 bits with a sign: a long one turns negative, passes the check for room, and is copied.
#include "../corpus.h"

enum { TAGS = 3, PARTS = 3, PART_MOST = 17000, FILE_ROOM = 140000 };

struct text {
    size_t used, room;
    char *bytes;
};
struct tag {
    char name[8];
    short length;
    char *value;
    struct tag *next;
};
struct file {
    unsigned char *bytes;
    int used, room;
    unsigned tags;
};

// Texts that grow.
static void text_append(struct text *t, char letter, size_t n)
{
    if (t->used + n > t->room) {
        t->room = (t->used + n) * 2;
        t->bytes = realloc(t->bytes, t->room);
    }
    memset(t->bytes + t->used, letter, n);
    t->used += n;                                        //@grow
}

static struct text *text_read(unsigned parts)
{
    struct text *t = calloc(1, sizeof(*t));

    for (unsigned i = 0; i < parts; i++)
        text_append(t, (char)('a' + draw(26)), 1 + draw(PART_MOST)); //@input
    return t;
}

static void text_free(struct text *t)
{
    free(t->bytes);
    free(t);
}

// Tags.
static int tag_fill(struct tag *tag, const char *name, const struct text *t)
{
#ifdef FIXED
    if (t->used > 0x7fff)
        return -1;
#endif
    snprintf(tag->name, sizeof(tag->name), "%s", name);
    tag->length = (short)t->used;                        //@cut
    tag->value = malloc(t->used);
    memcpy(tag->value, t->bytes, t->used);
    return 0;
}

static struct tag *tag_add(struct tag *list, const char *name, unsigned parts)
{
    struct text *t = text_read(parts);                   //@text
    struct tag *tag = calloc(1, sizeof(*tag));

    tag->next = list;
    if (tag_fill(tag, name, t) == 0) {                   //@fill
        list = tag;
    } else {
        free(tag);
    }
    text_free(t);
    return list;
}

static int tag_write(const struct tag *tag, struct file *f)
{
    if (tag->length > f->room - f->used)                 //@room
        return -1;
    memcpy(f->bytes + f->used, tag->value, tag->length); //@copy
    f->used += tag->length;
    f->tags++;
    return 0;
}

static unsigned file_sum(const struct file *f)
{
    unsigned a = 1, b = 0;

    for (int i = 0; i < f->used; i += 16) {
        a = (a + f->bytes[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

int main(void)
{
    static const char *const names[TAGS] = {"title", "notes", "lyrics"};
    struct file file = {malloc(FILE_ROOM), 0, FILE_ROOM, 0};
    struct tag *list = NULL;

    for (unsigned i = 0; i < TAGS; i++)
        list = tag_add(list, names[i], i + 1);           //@add
    for (struct tag *tag = list; tag; tag = tag->next)
        if (tag_write(tag, &file))                       //@call
            break;
    printf("%u tags, %d bytes, %08x\n", file.tags, file.used, file_sum(&file));
    while (list) {
        struct tag *next = list->next;

        free(list->value);
        free(list);
        list = next;
    }
    free(file.bytes);
    return 0;
}
