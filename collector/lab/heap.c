/* SPDX-License-Identifier: MIT */
/* The heap in the lab. Freed memory is kept out of use for a while, and an access to it ends the run: a use after free
 * that would pass unnoticed outside is a failure here. So are a double free and an access right behind a block. The
 * program's own allocators are not checked inside their blocks. */
#include "collector/lab/runtime.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/mman.h>

#define BLOCKS (1u << 20) /* that are known, alive or kept; a power of two */
#define KEPT_BYTES ((size_t)64 << 20)
#define KEPT_BLOCKS (1u << 18)
#define ZONE 16u /* behind each block */

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void __libc_free(void *block);

enum state { UNKNOWN, ALIVE, FREED };

struct block {
    uint64_t at;
    size_t size;
    uint64_t made, freed; /* by which instruction */
    uint32_t made_by, freed_by;
    uint32_t state;
    uint64_t made_stack[ETCH_LAB_STACK], freed_stack[ETCH_LAB_STACK];
};

static struct block *blocks; /* a hash table by address; entries stay until their address is used again */
static uint64_t *kept;       /* a ring of freed blocks */
static uint32_t kept_first, kept_n;
static size_t kept_bytes;
static uint32_t n_blocks;
static size_t largest; /* block that was ever known */
static int busy;       /* threads on their way out free memory beside the holder of the baton */

static void enter(void)
{
    while (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
        __builtin_ia32_pause();
}

static void leave(void)
{
    __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}

static bool is_checked(void)
{
    return lab && lab->heap_check;
}

static void *reserve(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return at == MAP_FAILED ? NULL : at;
}

/* The entry of an address, or a free one for it; NULL if the table is full. */
static struct block *find(uint64_t at, bool make)
{
    uint32_t i = (uint32_t)(at * UINT64_C(0x9e3779b97f4a7c15) >> 44);

    if (!blocks)
        blocks = reserve(BLOCKS * sizeof(*blocks));
    if (!kept)
        kept = reserve(KEPT_BLOCKS * sizeof(*kept));
    if (!blocks || !kept)
        return NULL;
    for (uint32_t k = 0; k < BLOCKS; k++, i = (i + 1) & (BLOCKS - 1)) {
        if (blocks[i].at == at)
            return &blocks[i];
        if (!blocks[i].at) {
            if (!make || n_blocks > BLOCKS / 4 * 3)
                return NULL;
            n_blocks++;
            blocks[i].at = at;
            return &blocks[i];
        }
    }
    return NULL;
}

/* ---- Stacks, for people ---- */

static __thread uint64_t operator_site; /* where the program called operator new or delete; 0: not there */

/* The call by which the program came to the heap. */
#define HEAP_SITE (operator_site ? operator_site : LAB_SITE)

static void note_stack(uint64_t *stack, uint64_t site)
{
    const struct etch_lab_thread *t = &lab->thread[lab_me];
    uint64_t depth = t->depth < ETCH_LAB_FRAMES ? t->depth : ETCH_LAB_FRAMES;
    uint32_t n = 0;

    memset(stack, 0, ETCH_LAB_STACK * sizeof(*stack));
    stack[n++] = site;
    while (depth > 0 && n < ETCH_LAB_STACK)
        stack[n++] = t->frames[--depth];
}

static void leave_operator(const bool *outermost)
{
    if (*outermost)
        operator_site = 0;
}

/* Operators new and delete are the C++ library's, or the program's own. Ours only remember who called them, until they
 * return or throw. */
#define OPERATOR(result, name, parameters, arguments)                                                                  \
    LAB_API __attribute__((weak)) result name parameters;                                                              \
    result name parameters                                                                                             \
    {                                                                                                                  \
        __attribute__((cleanup(leave_operator))) bool outermost = !operator_site;                                      \
        static result(*real) parameters;                                                                               \
                                                                                                                       \
        if (!real)                                                                                                     \
            *(void **)&real = lab_next(#name);                                                                         \
        if (outermost)                                                                                                 \
            operator_site = LAB_SITE;                                                                                  \
        return real arguments;                                                                                         \
    }

typedef void *pointer;
OPERATOR(pointer, _Znwm, (size_t size), (size))
OPERATOR(pointer, _Znam, (size_t size), (size))
OPERATOR(void, _ZdlPv, (void *block), (block))
OPERATOR(void, _ZdaPv, (void *block), (block))
OPERATOR(void, _ZdlPvm, (void *block, size_t size), (block, size))
OPERATOR(void, _ZdaPvm, (void *block, size_t size), (block, size))

/* ---- Blocks ---- */

static void *note_made(void *at, size_t size, uint64_t site)
{
    struct block *b;

    if (!at || !is_checked())
        return at;
    enter();
    b = find(LAB_OBJECT(at), true);
    if (b) {
        *b = (struct block){.at = b->at, .size = size, .made = site, .made_by = lab_me, .state = ALIVE};
        note_stack(b->made_stack, site);
        largest = size > largest ? size : largest;
    } else {
        lab->blocks_lost++;
    }
    leave();
    lab_heap_mark(at, size, LAB_HEAP_FINE);
    lab_forget(at, size);
    if (b)
        lab_heap_mark((char *)at + ((size + 7) & ~(size_t)7), ZONE / 2, LAB_HEAP_ZONE);
    return at;
}

/* The oldest freed blocks go back to the C library. */
static void release_oldest(void)
{
    while (kept_n && (kept_bytes > KEPT_BYTES || kept_n >= KEPT_BLOCKS)) {
        struct block *b = find(kept[kept_first], false);

        kept_first = (kept_first + 1) & (KEPT_BLOCKS - 1);
        kept_n--;
        if (!b || b->state != FREED)
            continue;
        kept_bytes -= b->size + ZONE;
        b->state = UNKNOWN;
        lab_heap_mark((void *)b->at, b->size + ZONE, LAB_HEAP_FINE);
        __libc_free((void *)b->at);
    }
}

static void report(enum etch_lab_misuse misuse, const struct block *b, uint64_t address, uint64_t site)
{
    lab->misuse = misuse;
    lab->misuse_address = address;
    lab->misuse_offset = b ? (int64_t)(address - b->at) : 0;
    lab->misuse_size = b ? b->size : 0;
    lab->misuse_made = b ? b->made : 0;
    lab->misuse_freed = b ? b->freed : 0;
    lab->misuse_made_by = b ? b->made_by : 0;
    lab->misuse_freed_by = b ? b->freed_by : 0;
    if (b) {
        memcpy(lab->misuse_made_stack, b->made_stack, sizeof(b->made_stack));
        memcpy(lab->misuse_freed_stack, b->freed_stack, sizeof(b->freed_stack));
    }
    lab->thread[lab_me].site = site;
    lab_stop(ETCH_LAB_MISUSED);
}

/* The block that holds the address, or ends right before it. */
static struct block *block_around(uint64_t address)
{
    for (uint64_t at = address & ~UINT64_C(15); at > 16 && address - at <= largest + ZONE; at -= 16) {
        struct block *b = find(at, false);

        if (b && b->state != UNKNOWN && address < b->at + b->size + ZONE)
            return b;
    }
    return NULL;
}

void lab_heap_judge(uint64_t address, uint32_t mark, uint64_t site)
{
    struct block *b;

    if (!is_checked())
        return;
    enter();
    b = block_around(address);
    leave();
    if (mark == LAB_HEAP_GONE && b && b->state == FREED)
        report(ETCH_LAB_AFTER_FREE, b, address, site);
    if (mark == LAB_HEAP_ZONE && b && b->state == ALIVE)
        report(ETCH_LAB_BEYOND, b, address, site);
}

/* ---- What the program calls ---- */

LAB_API void *malloc(size_t size);
void *malloc(size_t size)
{
    if (!is_checked() || size > SIZE_MAX - ZONE - 8)
        return __libc_malloc(size);
    return note_made(__libc_malloc(((size + 7) & ~(size_t)7) + ZONE), size, HEAP_SITE);
}

LAB_API void *calloc(size_t n, size_t size);
void *calloc(size_t n, size_t size)
{
    size_t all;

    if (!is_checked() || __builtin_mul_overflow(n, size, &all) || all > SIZE_MAX - ZONE - 8)
        return __libc_calloc(n, size);
    return note_made(__libc_calloc(1, ((all + 7) & ~(size_t)7) + ZONE), all, HEAP_SITE);
}

/* The size of a block that is alive; SIZE_MAX: none that is known. */
static size_t size_of(void *block)
{
    struct block *b;
    size_t size;

    enter();
    b = find(LAB_OBJECT(block), false);
    size = b && b->state == ALIVE ? b->size : SIZE_MAX;
    leave();
    return size;
}

/* free() got no block: ends the run if the address is inside one. */
static void check_inside(void *address, uint64_t site)
{
    struct block *b;

    enter();
    b = block_around(LAB_OBJECT(address));
    leave();
    if (b && b->state == ALIVE && LAB_OBJECT(address) < b->at + b->size)
        report(ETCH_LAB_FREED_INSIDE, b, LAB_OBJECT(address), site);
}

LAB_API void free(void *block);
void free(void *block)
{
    uint64_t site = HEAP_SITE;
    struct block *b = NULL;
    bool twice = false;
    size_t size;

    if (!block)
        return;
    if (!is_checked()) {
        __libc_free(block);
        return;
    }
    size = size_of(block);
    if (size && size != SIZE_MAX)
        lab_access_freed(block, size, site);
    enter();
    b = find(LAB_OBJECT(block), false);
    if (b && b->state == ALIVE) {
        b->state = FREED;
        b->freed = site;
        b->freed_by = lab_me;
        note_stack(b->freed_stack, site);
        kept[(kept_first + kept_n) & (KEPT_BLOCKS - 1)] = b->at;
        kept_n++;
        kept_bytes += b->size + ZONE;
        lab_heap_mark(block, b->size, LAB_HEAP_GONE);
        release_oldest();
        leave();
        return;
    }
    twice = b && b->state == FREED;
    leave();
    if (twice && lab_controlled())
        report(ETCH_LAB_FREED_TWICE, b, LAB_OBJECT(block), site);
    if (!b && lab_controlled())
        check_inside(block, site);
    if (!twice)
        __libc_free(block); /* made before the lab knew of the block */
}

LAB_API void *realloc(void *block, size_t size);
void *realloc(void *block, size_t size)
{
    size_t before = block && is_checked() ? size_of(block) : 0;
    void *moved;

    if (!is_checked() || before == SIZE_MAX)
        return __libc_realloc(block, size);
    if (block && !size) {
        free(block);
        return NULL;
    }
    moved =
        size > SIZE_MAX - ZONE - 8 ? NULL : note_made(__libc_malloc(((size + 7) & ~(size_t)7) + ZONE), size, HEAP_SITE);
    if (!moved) {
        errno = ENOMEM;
        return NULL;
    }
    if (block) {
        memcpy(moved, block, before < size ? before : size);
        free(block);
    }
    return moved;
}

static void *aligned(size_t alignment, size_t size, uint64_t site)
{
    if (!is_checked() || size > SIZE_MAX - ZONE - 8)
        return __libc_memalign(alignment, size);
    return note_made(__libc_memalign(alignment, ((size + 7) & ~(size_t)7) + ZONE), size, site);
}

LAB_API void *aligned_alloc(size_t alignment, size_t size);
void *aligned_alloc(size_t alignment, size_t size)
{
    return aligned(alignment, size, HEAP_SITE);
}

LAB_API void *memalign(size_t alignment, size_t size);
void *memalign(size_t alignment, size_t size)
{
    return aligned(alignment, size, HEAP_SITE);
}

LAB_API int posix_memalign(void **block, size_t alignment, size_t size);
int posix_memalign(void **block, size_t alignment, size_t size)
{
    void *made;

    if (alignment % sizeof(void *) || !alignment || alignment & (alignment - 1))
        return EINVAL;
    made = aligned(alignment, size, HEAP_SITE);
    if (!made)
        return ENOMEM;
    *block = made;
    return 0;
}

/* The program may use all bytes of this size. */
LAB_API size_t malloc_usable_size(void *block);
size_t malloc_usable_size(void *block)
{
    size_t size = block && is_checked() ? size_of(block) : SIZE_MAX;
    static size_t (*real)(void *);

    if (size != SIZE_MAX)
        return size;
    if (!real)
        *(void **)&real = lab_next("malloc_usable_size");
    return block && real ? real(block) : 0;
}
