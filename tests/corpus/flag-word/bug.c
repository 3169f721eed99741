// SPDX-License-Identifier: MIT
// Two flags of a page lie in one word, each guarded by another lock: clearing the one undoes the other, just set.
#include "../corpus.h"

enum { PAGES = 4, PAGE_BYTES = 48 };
enum { DIRTY = 1, REFERENCED = 2, PINNED = 4 };

struct page {
    pthread_mutex_t lock;
    unsigned number;
    unsigned flags;
    unsigned age;
    char *bytes;
    struct page *next;
};
struct cache {
    pthread_mutex_t list_lock;
    struct page *list;
    unsigned sweeps;
};
struct disk {
    char blocks[PAGES][PAGE_BYTES];
    unsigned writes;
};
static struct cache cache = {PTHREAD_MUTEX_INITIALIZER, NULL, 0};
static struct disk disk;

static void cache_fill(struct cache *c)
{
    for (unsigned i = 0; i < PAGES; i++) {
        struct page *p = calloc(1, sizeof(*p));

        pthread_mutex_init(&p->lock, NULL);
        p->number = i;
        p->flags = i == 0 ? PINNED | REFERENCED : REFERENCED;
        p->bytes = calloc(1, PAGE_BYTES);
        p->next = c->list;
        c->list = p;
    }
}

static struct page *cache_find(struct cache *c, unsigned number)
{
    struct page *p;

    pthread_mutex_lock(&c->list_lock);
    for (p = c->list; p && p->number != number; p = p->next)
        ;
    pthread_mutex_unlock(&c->list_lock);
    return p;
}

// Ageing: guarded by the lock of the list.
static unsigned next_age(const struct page *p, unsigned flags)
{
    unsigned age = flags & REFERENCED ? 0 : p->age + 1;

    window(200);
    return flags & PINNED ? 0 : age;
}

static void page_look(struct page *p)
{
#ifdef FIXED
    unsigned flags = __atomic_load_n(&p->flags, __ATOMIC_SEQ_CST);
#else
    unsigned flags = p->flags;      //@read
#endif

    p->age = next_age(p, flags);
#ifdef FIXED
    __atomic_fetch_and(&p->flags, ~REFERENCED, __ATOMIC_SEQ_CST);
#else
    p->flags = flags & ~REFERENCED; //@write
#endif
}

static void *ager(void *arg)
{
    struct cache *c = arg;

    for (int i = 0; i < 2; i++) {
        window(2500);
        pthread_mutex_lock(&c->list_lock);
        for (struct page *p = c->list; p; p = p->next)
            page_look(p);
        c->sweeps++;
        pthread_mutex_unlock(&c->list_lock);
    }
    return NULL;
}

// Writing: guarded by the lock of the page.
static void page_touch(struct page *p, unsigned flags)
{
#ifdef FIXED
    __atomic_fetch_or(&p->flags, flags | REFERENCED, __ATOMIC_SEQ_CST);
#else
    p->flags |= flags | REFERENCED; //@dirty
#endif
}

static void page_write(struct page *p, const char *text)
{
    pthread_mutex_lock(&p->lock);
    snprintf(p->bytes, PAGE_BYTES, "%s, page %u", text, p->number);
    page_touch(p, DIRTY);           //@touch
    pthread_mutex_unlock(&p->lock);
}

static void page_flush(struct page *p)
{
    if (p->flags & DIRTY) {         //@test
        memcpy(disk.blocks[p->number], p->bytes, PAGE_BYTES);
        disk.writes++;
        p->flags &= ~DIRTY;
    }
}

static void cache_flush(struct cache *c)
{
    for (struct page *p = c->list; p; p = p->next) {
        page_flush(p);
        CHECK(memcmp(disk.blocks[p->number], p->bytes, PAGE_BYTES) == 0); //@check
    }
}

int main(void)
{
    static const char *const texts[] = {"header", "index", "rows", "free list"};
    struct page *pages[PAGES];
    pthread_t t;

    cache_fill(&cache);
    for (unsigned i = 0; i < PAGES; i++)
        pages[i] = cache_find(&cache, i);
    pthread_create(&t, NULL, ager, &cache);
    for (unsigned i = 0; i < PAGES; i++) {
        window(1200);
        page_write(pages[i], texts[i]);
    }
    pthread_join(t, NULL);
    cache_flush(&cache);
    printf("%u writes, %u sweeps\n", disk.writes, cache.sweeps);
    return 0;
}
