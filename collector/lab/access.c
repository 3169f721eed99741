/* SPDX-License-Identifier: MIT */
/* Accesses in the lab. LLVM's ThreadSanitizer pass calls these before each access that other threads can see. An access
 * is a point if its instruction has ever touched memory that two threads use. The set of these instructions is learnt
 * from run to run. A run uses only the set of earlier runs, so that the run can be repeated. */
#include "collector/lab/memory.h"
#include "collector/lab/runtime.h"

#include <string.h>
#include <sys/mman.h>

/* ---- The shadow: who touched each eight bytes last ---- */

#define PAGE_BITS 12
#define GRANULES (1u << (PAGE_BITS - 3))
#define PAGES (1u << 18) /* of the program's memory that are watched, at most: 1 GiB */
#define MANY 0xffffu
#define ACCESS_NS 5        /* of virtual time that an access takes */
#define QUIET 1000000      /* accesses of a thread without a point, before others may run */
#define FREED_LEARNT 1024u /* bytes of a freed block that are compared with the accesses of other threads */

struct granule {
    uint64_t site : 48;   /* of the last access */
    uint64_t thread : 16; /* of it, plus 1; 0: none yet */
};

struct page {
    uint64_t number;
    struct granule *granules;
    uint8_t *written; /* a bit for each */
    uint8_t *marks;   /* two bits for each: of the heap */
};

static struct page *pages; /* a hash table */
static uint8_t *arena;
static size_t arena_left;
static struct page *last_page;

static void *take(size_t size)
{
    const size_t block = (size_t)4 << 20;
    void *got;

    if (arena_left < size) {
        arena = mmap(NULL, block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (arena == MAP_FAILED) {
            arena = NULL;
            return NULL;
        }
        arena_left = block;
    }
    got = arena;
    arena += size;
    arena_left -= size;
    return got;
}

static bool have_pages(void)
{
    if (!pages) {
        void *at = mmap(NULL, PAGES * sizeof(*pages), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        pages = at == MAP_FAILED ? NULL : at;
    }
    return pages;
}

static struct page *page_of(uint64_t address, bool make)
{
    uint64_t number = (address >> PAGE_BITS) + 1;
    uint32_t at = (uint32_t)(number * UINT64_C(0x9e3779b97f4a7c15) >> 46);

    if (last_page && last_page->number == number)
        return last_page;
    if (!have_pages())
        return NULL;
    for (uint32_t i = 0; i < 64; i++, at = (at + 1) & (PAGES - 1)) {
        struct page *p = &pages[at];

        if (!p->number && make) {
            p->granules = take(GRANULES * sizeof(*p->granules) + GRANULES / 8 + GRANULES / 4);
            if (!p->granules)
                return NULL;
            p->written = (uint8_t *)(p->granules + GRANULES);
            p->marks = p->written + GRANULES / 8;
            p->number = number;
        }
        if (p->number == number)
            return last_page = p;
        if (!p->number)
            return NULL;
    }
    return NULL;
}

void lab_forget(const void *memory, size_t size)
{
    uint64_t from = LAB_OBJECT(memory) & ~UINT64_C(7), to = LAB_OBJECT(memory) + size;

    lab_memory_forget(LAB_OBJECT(memory), size);
    for (uint64_t a = from; a < to; a += 8) {
        struct page *p = page_of(a, false);

        if (p) {
            p->granules[a >> 3 & (GRANULES - 1)] = (struct granule){0};
            p->written[(a >> 3 & (GRANULES - 1)) >> 3] &= (uint8_t)~(1u << (a >> 3 & 7));
        }
    }
}

/* ---- Marks of the heap ---- */

void lab_heap_mark(const void *memory, size_t size, uint32_t mark)
{
    uint64_t from = (LAB_OBJECT(memory) + 7) & ~UINT64_C(7), to = LAB_OBJECT(memory) + size;

    for (uint64_t a = from; a < to; a += 8) {
        struct page *p = page_of(a, mark != LAB_HEAP_FINE);
        uint32_t i = (uint32_t)(a >> 3 & (GRANULES - 1)), shift = (i & 3) * 2;

        if (p)
            p->marks[i >> 2] = (uint8_t)((p->marks[i >> 2] & ~(3u << shift)) | mark << shift);
    }
}

static void check_heap(uint64_t address, uint64_t site)
{
    const struct page *p = page_of(address, false);
    uint32_t i = (uint32_t)(address >> 3 & (GRANULES - 1)), mark = p ? p->marks[i >> 2] >> (i & 3) * 2 & 3 : 0;

    if (mark != LAB_HEAP_FINE)
        lab_heap_judge(address, mark, site);
}

/* ---- Instructions that make points ---- */

static bool is_point(uint64_t site)
{
    uint32_t at = etch_lab_site_slot(lab->sites, site);

    return lab->all_points || (at < ETCH_LAB_SITES && lab->sites[at]);
}

static void learn_site(uint64_t site)
{
    uint32_t at = etch_lab_site_slot(lab->learnt, site);

    if (at < ETCH_LAB_SITES)
        lab->learnt[at] = site;
    else
        lab->sites_lost++;
}

/* Two threads use the memory and at least one of them writes to it: both instructions are of interest. */
static void learn(uint64_t address, bool write, uint64_t site)
{
    struct page *p = page_of(address, true);
    uint32_t i = (uint32_t)(address >> 3 & (GRANULES - 1));
    uint8_t bit = (uint8_t)(1u << (i & 7));
    struct granule *g = p ? &p->granules[i] : NULL;

    if (!g) {
        lab->accesses_lost++;
        return;
    }
    if (write)
        p->written[i >> 3] |= bit;
    if (g->thread && g->thread != lab_me + 1 && p->written[i >> 3] & bit) {
        if (g->thread != MANY)
            learn_site(g->site);
        g->thread = MANY;
    }
    if (g->thread == MANY) {
        learn_site(site);
        return;
    }
    g->thread = (lab_me + 1) & 0xffff;
    g->site = site & ((UINT64_C(1) << 48) - 1);
}

/* Time passes, and a thread that makes many accesses without a point may wait for others in a loop. */
static void pass_time(uint64_t site)
{
    static uint64_t quiet, points;

    quiet = lab->points == points ? quiet + 1 : 0;
    points = lab->points;
    lab->virtual_ns += ACCESS_NS;
    if (quiet >= QUIET || lab->virtual_ns >= lab_timers_next()) {
        quiet = 0;
        lab_yield(site);
    }
}

static uint32_t bytes_of(size_t size)
{
    return size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;
}

static void access_memory(const void *at, size_t size, bool write, bool called, uint64_t site)
{
    struct etch_lab_op op = {.object = LAB_OBJECT(at) & ~UINT64_C(7),
                             .write = write,
                             .interesting = true,
                             .bytes = bytes_of(size),
                             .address = LAB_OBJECT(at)};

    if (!lab_controlled())
        return;
    lab_note_settle();
    lab_flow(site);
    lab->thread[lab_me].site = site;
    pass_time(site);
    learn(LAB_OBJECT(at), write, site);
    if (size > 8)
        learn(LAB_OBJECT(at) + size - 1, write, site);
    lab_threads[lab_me].plain = !called;
    if (lab_rules_arrive(site, write) || (lab->threads > 1 && is_point(site)))
        lab_point_arrived(op, site);
    else
        lab_halt_if_due(false);
    lab_threads[lab_me].plain = false;
    if (is_point(site))
        lab_memory_plain(at, size, write);
    if (lab->recorded && is_point(site))
        lab_note_access(at, size, write, called, site);
    else if (lab->recorded)
        lab_note_aside(at, size, write, called, site);
    check_heap(LAB_OBJECT(at), site); /* after the point, at which another thread may have freed the memory */
    if (size > 8)
        check_heap(LAB_OBJECT(at) + size - 1, site);
}

void lab_access(const void *at, size_t size, bool write, uint64_t site)
{
    access_memory(at, size, write, false, site);
}

void lab_access_called(const void *at, size_t size, bool write, uint64_t site)
{
    access_memory(at, size, write, true, site);
}

void lab_access_freed(const void *block, size_t size, uint64_t site)
{
    size_t learnt = size < FREED_LEARNT ? size : FREED_LEARNT;
    struct etch_lab_op op = {.object = LAB_OBJECT(block) & ~UINT64_C(7),
                             .write = true,
                             .interesting = true,
                             .size = bytes_of(size),
                             .bytes = bytes_of(size),
                             .address = LAB_OBJECT(block)};

    if (!lab_controlled())
        return;
    lab_note_settle();
    lab_flow(site);
    lab->thread[lab_me].site = site;
    for (size_t at = 0; at < learnt; at += 8)
        learn(LAB_OBJECT(block) + at, true, site);
    if (lab->threads > 1 && is_point(site))
        lab_point(op, site);
    if (lab->recorded && is_point(site))
        lab_note_access(block, 1, true, true, site);
    check_heap(LAB_OBJECT(block), site);
}

/* ---- What the pass calls ---- */

void __tsan_init(void);
void __tsan_init(void)
{
}

/* The call stack of a thread. A longjmp leaves too many calls on it. The stack is only shown to people and decides
 * nothing. */
LAB_API void __tsan_func_entry(void *caller);
void __tsan_func_entry(void *caller)
{
    struct etch_lab_thread *t = lab ? &lab->thread[lab_me] : NULL;

    if (!t)
        return;
    lab_note_settle();
    if (lab_controlled())
        lab_flow(LAB_OBJECT(caller));
    if (t->depth < ETCH_LAB_FRAMES)
        t->frames[t->depth] = LAB_OBJECT(caller);
    t->depth++;
}

LAB_API void __tsan_func_exit(void);
void __tsan_func_exit(void)
{
    lab_note_settle();
    if (lab && lab->thread[lab_me].depth)
        lab->thread[lab_me].depth--;
}

#define ACCESS(name, size, write)                                                                                      \
    LAB_API void __tsan_##name(void *at);                                                                              \
    void __tsan_##name(void *at)                                                                                       \
    {                                                                                                                  \
        lab_access(at, size, write, LAB_SITE);                                                                         \
    }
#define ACCESSES(size)                                                                                                 \
    ACCESS(read##size, size, false)                                                                                    \
    ACCESS(write##size, size, true)                                                                                    \
    ACCESS(read_write##size, size, true)                                                                               \
    ACCESS(unaligned_read##size, size, false)                                                                          \
    ACCESS(unaligned_write##size, size, true)                                                                          \
    ACCESS(unaligned_read_write##size, size, true)                                                                     \
    ACCESS(volatile_read##size, size, false)                                                                           \
    ACCESS(volatile_write##size, size, true)                                                                           \
    ACCESS(unaligned_volatile_read##size, size, false)                                                                 \
    ACCESS(unaligned_volatile_write##size, size, true)

ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)
ACCESS(vptr_read, 8, false)

LAB_API void __tsan_vptr_update(void **at, void *value);
void __tsan_vptr_update(void **at, void *value)
{
    if (*at != value)
        lab_access(at, 8, true, LAB_SITE);
}

LAB_API void __tsan_read_range(void *at, size_t size);
void __tsan_read_range(void *at, size_t size)
{
    lab_access(at, size, false, LAB_SITE);
}

LAB_API void __tsan_write_range(void *at, size_t size);
void __tsan_write_range(void *at, size_t size)
{
    lab_access(at, size, true, LAB_SITE);
}

LAB_API void *__tsan_memcpy(void *to, const void *from, size_t size);
void *__tsan_memcpy(void *to, const void *from, size_t size)
{
    lab_access_called(from, size, false, LAB_SITE);
    lab_access_called(to, size, true, LAB_SITE);
    return memcpy(to, from, size);
}

LAB_API void *__tsan_memmove(void *to, const void *from, size_t size);
void *__tsan_memmove(void *to, const void *from, size_t size)
{
    lab_access_called(from, size, false, LAB_SITE);
    lab_access_called(to, size, true, LAB_SITE);
    return memmove(to, from, size);
}

LAB_API void *__tsan_memset(void *to, int byte, size_t size);
void *__tsan_memset(void *to, int byte, size_t size)
{
    lab_access_called(to, size, true, LAB_SITE);
    return memset(to, byte, size);
}
