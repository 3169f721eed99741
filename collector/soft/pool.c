/* SPDX-License-Identifier: MIT */
/* The software recorder's runtime at a module's start and end: the only part that calls the kernel. All memory is made
 * and backed before anything is published. Without memory nothing is recorded, and the program goes on. This file runs
 * inside the recorded program and is linked without libc and without any library of etch. The file therefore reads the
 * ELF header of its own module by itself instead of using binary/. */
#include "collector/soft/budget.h"
#include "collector/soft/death.h"
#include "collector/soft/folder_space.h"
#include "collector/soft/thread.h"

#include <asm/statfs.h>
#include <elf.h>
#include <fcntl.h>
#include <linux/auxvec.h>
#include <linux/prctl.h>
#include <linux/resource.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* NOLINTBEGIN(clang-analyzer-core*): the kernel writes what looks unwritten */

#define PAGE 4096
#define ALLOTMENT (4u << 20) /* bytes of a process, unless the environment sets the number of rings */
#define LEAST_SLOTS 8u
#define MOST_SLOTS 4096u
#define FOLDER_MB 256u
#define EMPTIES 64u /* files of no bytes that are left in a folder */
#define ROBUST 0x90 /* a robust mutex that processes share, as libc has it in `kind` */

_Static_assert(sizeof(struct etch_soft_pool) % PAGE == 0, "rings begin at a page");

extern unsigned long getauxval(unsigned long kind) __attribute__((weak));
extern int pthread_mutex_unlock(void *mutex) __attribute__((weak));
extern int on_exit(void (*function)(int status, void *argument), void *argument) __attribute__((weak));
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *module)
    __attribute__((weak));
extern void *__dso_handle __attribute__((weak, visibility("hidden")));
extern const uint8_t __ehdr_start[] __attribute__((weak, visibility("hidden")));

/* All modules use this module's recorder. */
static bool started_here;

/* ---- Words ---- */

static uint64_t number_of(const char *text, uint64_t otherwise)
{
    uint64_t n = 0;

    for (; text && *text >= '0' && *text <= '9' && n < 1u << 24; text++)
        n = n * 10 + (uint64_t)(*text - '0');
    return n ? n : otherwise;
}

static char *append_number(char *at, uint64_t number)
{
    char digits[24];
    int n = 0;

    do
        digits[n++] = (char)('0' + number % 10);
    while (number /= 10);
    while (n > 0)
        *at++ = digits[--n];
    return at;
}

static void say(const char *text)
{
    call3(__NR_write, 2, (long)text, (long)length(text));
}

/* Standard error belongs to the program: the runtime writes there only if the environment asks for it. */
static void complain(char *const *environment, const char *why)
{
    const char *asked = etch_soft_variable(environment, ETCH_SOFT_LOG_VARIABLE);

    if (!asked || !*asked)
        return;
    say("etch: nothing is recorded: " ETCH_SOFT_VARIABLE "=");
    say(etch_soft_variable(environment, ETCH_SOFT_VARIABLE));
    say(why);
}

/* ---- How much ---- */

static uint64_t ring_size(const struct etch_soft_recorder *s)
{
    return (1 + (uint64_t)s->chunks) * ETCH_SOFT_CHUNK;
}

static uint64_t pool_size(const struct etch_soft_recorder *s)
{
    return sizeof(struct etch_soft_pool) + s->slots * ring_size(s);
}

static void fit(struct etch_soft_recorder *s, uint64_t limit)
{
    uint64_t n = limit > sizeof(struct etch_soft_pool) ? (limit - sizeof(struct etch_soft_pool)) / ring_size(s) : 0;

    if (n < s->slots)
        s->slots = (uint32_t)n;
}

/* The kernel sends a signal if a file grows beyond this limit. */
static uint64_t file_limit(void)
{
    struct rlimit64 limit;

    return call6(__NR_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit, 0, 0) == 0 ? limit.rlim_cur : UINT64_MAX;
}

/* Half of the free bytes: the rest belongs to the program. */
static uint64_t half_of_free(int fd)
{
    struct statfs64 fs;

    if (call3(__NR_fstatfs, fd, (long)&fs, 0) != 0 || fs.f_blocks == 0)
        return UINT64_MAX;
    return (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize / 2;
}

static void plan(struct etch_soft_recorder *s, struct etch_soft_folder *f, char *const *environment)
{
    uint64_t bound = number_of(etch_soft_variable(environment, ETCH_SOFT_MB_VARIABLE), FOLDER_MB) << 20, n;
    uint64_t limit = file_limit(), half;

    etch_soft_folder_read(f);
    half = half_of_free(f->fd);
    n = number_of(etch_soft_variable(environment, ETCH_SOFT_KB_VARIABLE), 64) / (ETCH_SOFT_CHUNK >> 10);
    s->chunks = n < 4 ? 4 : n > 1u << 20 ? 1u << 20 : (uint32_t)n;
    n = ALLOTMENT / ring_size(s);
    n = number_of(etch_soft_variable(environment, ETCH_SOFT_THREADS_VARIABLE), n < LEAST_SLOTS ? LEAST_SLOTS : n);
    s->slots = n > MOST_SLOTS ? MOST_SLOTS : (uint32_t)n;
    limit = half < limit ? half : limit;
    fit(s, limit);
    if (!s->slots) { /* one small ring is better than none */
        s->chunks = 4;
        s->slots = 1;
        fit(s, limit);
    }
    if (s->slots)
        fit(s, etch_soft_folder_left(f, bound, pool_size(s)));
}

/* ---- The pool ---- */

static int create_file(const struct etch_soft_recorder *s, const struct etch_soft_folder *f, char name[64])
{
    struct {
        int64_t s, ns;
    } now = {0};
    char *at;

    call3(__NR_clock_gettime, 0, (long)&now, 0);
    at = append_number(name, s->pid);
    *at++ = '-';
    at = append_number(at, (uint64_t)now.s * 1000000000u + (uint64_t)now.ns);
    put(at, ETCH_SOFT_SUFFIX, sizeof(ETCH_SOFT_SUFFIX));
    return (int)call6(__NR_openat, f->fd, (long)name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600, 0, 0);
}

static bool back(struct etch_soft_recorder *s, int fd)
{
    for (int i = 0; s->slots && i < 100; i++) {
        long status = call6(__NR_fallocate, fd, 0, 0, (long)pool_size(s), 0, 0);

        if (status == 0)
            return true;
        if (status != -4) /* EINTR */
            s->slots /= 2;
    }
    return false;
}

static struct etch_soft_pool *map(const struct etch_soft_recorder *s, int fd)
{
    long at = call6(__NR_mmap, etch_soft_place ? etch_soft_place() : 0, (long)pool_size(s), PROT_READ | PROT_WRITE,
                    MAP_SHARED, fd, 0);

    return at < 0 && at > -PAGE ? NULL : (struct etch_soft_pool *)at;
}

/* Without room, an empty file stays and reports the lack of room. */
static struct etch_soft_pool *create_pool(struct etch_soft_recorder *s, const struct etch_soft_folder *f)
{
    struct etch_soft_pool *pool = NULL;
    char name[64];
    int fd = create_file(s, f, name);

    if (fd < 0)
        return NULL;
    if (back(s, fd))
        pool = map(s, fd);
    if (!pool && f->empties < EMPTIES)
        call3(__NR_ftruncate, fd, 0, 0);
    else if (!pool)
        call3(__NR_unlinkat, f->fd, (long)name, 0);
    call3(__NR_close, fd, 0, 0);
    return pool;
}

/* ---- What a thread will need ---- */

static struct etch_soft_ring *ring_at(const struct etch_soft_recorder *s, const struct etch_soft_pool *pool, uint32_t i)
{
    return (struct etch_soft_ring *)((uintptr_t)pool + sizeof(*pool) + i * ring_size(s));
}

/* The lock is tried: libc's mutexes may be others than this file knows. */
static bool try_lock(struct etch_soft_ring *ring)
{
    uint32_t *words = (uint32_t *)ring->lock;
    bool right;

    if (!pthread_mutex_trylock || !pthread_mutex_unlock || pthread_mutex_trylock(ring->lock) != 0)
        return false;
    right = words[0] == (uint32_t)call3(__NR_gettid, 0, 0, 0);
    return pthread_mutex_unlock(ring->lock) == 0 && right && words[0] == 0;
}

static void make_locks(struct etch_soft_recorder *s, struct etch_soft_pool *pool)
{
    for (uint32_t i = 0; i < s->slots; i++) {
        uint32_t *words = (uint32_t *)ring_at(s, pool, i)->lock;

        words[3] = ETCH_SOFT_LOCK_MARK;
        words[4] = ROBUST;
    }
    s->robust = try_lock(ring_at(s, pool, 0));
    if (s->robust)
        return;
    for (uint32_t i = 0; i < s->slots; i++)
        *(uint32_t *)ring_at(s, pool, i)->lock = 0;
}

/* A page that the kernel empties in every child process, however that is made. */
static uint32_t *make_here(struct etch_soft_pool *pool)
{
    long at = (long)__atomic_exchange_n(&pool->spare_page, 0, __ATOMIC_ACQUIRE);

    if (!at)
        at = call6(__NR_mmap, etch_soft_place ? etch_soft_place() : 0, PAGE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at < 0 && at > -PAGE)
        return NULL;
    if (call3(__NR_madvise, at, PAGE, MADV_WIPEONFORK) != 0) {
        call3(__NR_munmap, at, PAGE, 0);
        return NULL;
    }
    *(uint32_t *)at = 1;
    return (uint32_t *)at;
}

/* ---- A library that was unloaded, and comes again ---- */

/* True if this module is the program: the kernel passed the address of the program's headers. */
static bool is_program(void)
{
    return !getauxval ||
           (uintptr_t)__ehdr_start + ((const Elf64_Ehdr *)(const void *)__ehdr_start)->e_phoff == getauxval(AT_PHDR);
}

static bool is_our_pool(void *context, const char *line, size_t n)
{
    struct etch_soft_recorder *s = context;
    const struct etch_soft_pool *pool;
    uint64_t at = 0;
    size_t i;

    for (i = 0; i < n && line[i] != '-'; i++)
        at = at * 16 + (uint64_t)(line[i] <= '9' ? line[i] - '0' : line[i] - 'a' + 10);
    while (i < n && line[i] != ' ')
        i++;
    if (i + 15 > n || !is_same(line + i, " rw-s 00000000 ", 15) || !ends_in(line, n, ETCH_SOFT_SUFFIX "\n"))
        return false;
    pool = (const struct etch_soft_pool *)at;
    if (pool->magic != ETCH_SOFT_MAGIC || pool->version != ETCH_SOFT_VERSION || pool->pid != s->pid)
        return false;
    s->pool = (struct etch_soft_pool *)at;
    return true;
}

static bool adopt(struct etch_soft_recorder *s)
{
    if (is_program())
        return false;
    etch_soft_each_mapping(is_our_pool, s);
    if (!s->pool)
        return false;
    s->chunks = s->pool->chunks;
    s->slots = s->pool->slots;
    s->robust = s->pool->robust;
    __atomic_fetch_add(&s->pool->begun, 1, __ATOMIC_RELAXED);
    return s->adopted = true;
}

/* ---- Beginning ---- */

/* A program with raised rights must not take the folder to write to from its environment. */
static bool is_secure(char *const *environment)
{
    const unsigned long *word;

    if (getauxval)
        return getauxval(AT_SECURE);
    while (*environment)
        environment++;
    for (word = (const unsigned long *)(environment + 1); word[0] != AT_NULL; word += 2)
        if (word[0] == AT_SECURE)
            return word[1];
    return false;
}

static void ask_for_time(void)
{
    int how = 0;

    if (call3(__NR_prctl, PR_GET_TSC, (long)&how, 0) == 0 && how == PR_TSC_SIGSEGV)
        etch_soft_quiet = 1;
}

static void publish(struct etch_soft_recorder *s, struct etch_soft_pool *pool)
{
    pool->version = ETCH_SOFT_VERSION;
    pool->pid = s->pid;
    pool->chunks = s->chunks;
    pool->slots = s->slots;
    pool->robust = s->robust;
    pool->begun = 1;
    pool->untimed = etch_soft_quiet;
    pool->budget.permille = s->permille;
    etch_soft_note_maps(pool);
    *(volatile uint64_t *)&pool->magic = ETCH_SOFT_MAGIC;
    __atomic_store_n(&s->pool, pool, __ATOMIC_RELEASE); /* other threads run already if etch asked for the pool */
}

/* What a constructor is given. */
struct call {
    int argc;
    char *const *argv;
    char *const *environment;
};

static void open_pool(struct etch_soft_recorder *s, const struct call *with, const char *path)
{
    struct etch_soft_pool *pool;
    struct etch_soft_folder folder;

    folder.uid = (uint32_t)call3(__NR_geteuid, 0, 0, 0);
    folder.pressed = false;
    folder.removed = 0;
    folder.fd = (int)call6(__NR_openat, AT_FDCWD, (long)path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, 0, 0);
    if (folder.fd < 0) {
        complain(with->environment, " is not a folder that can be opened\n");
        return;
    }
    plan(s, &folder, with->environment);
    pool = create_pool(s, &folder);
    call3(__NR_close, folder.fd, 0, 0);
    if (!pool) {
        complain(with->environment, s->slots ? " cannot be written to\n" : " has no room\n");
        return;
    }
    pool->removed = folder.removed;
    make_locks(s, pool);
    etch_soft_note_process(pool, with->argc, with->argv);
    publish(s, pool);
}

/* Status 0 is a good end; of another the user will want to know more. */
static void note_exit(int status, void *unused)
{
    struct etch_soft_pool *pool = etch_soft_recorder.pool;
    uint32_t ended = ETCH_SOFT_ENDED | ((uint32_t)status & 0xff), cpu;
    uint64_t now = stamp(&cpu);

    (void)unused;
    if (!pool || is_copy(&etch_soft_recorder))
        return;
    if (etch_soft_ring) {
        etch_soft_ring->end_tsc = now;
        etch_soft_ring->ended = ended;
    }
    if (etch_soft_recorder.pid == pool->pid) {
        pool->end_tsc = now;
        pool->ended = ended;
    }
    if (status == 0)
        __atomic_fetch_add(&pool->well, 1, __ATOMIC_RELAXED);
}

static bool wants_signals(char *const *environment)
{
    const char *wish = etch_soft_variable(environment, ETCH_SOFT_SIGNALS_VARIABLE);

    return !(wish && wish[0] == '0' && !wish[1]);
}

/* libc forgets the handler of a library that is unloaded. The kernel does not: only a program notes its death. */
static void watch_end(struct etch_soft_recorder *s, const struct call *with)
{
    if (!is_program())
        return;
    if (on_exit)
        on_exit(note_exit, NULL);
    if (wants_signals(with->environment))
        s->pool->signals = etch_soft_watch_signals((uintptr_t)with->argv);
}

static void start(struct etch_soft_recorder *s, const struct call *with)
{
    const char *path = etch_soft_variable(with->environment, ETCH_SOFT_VARIABLE);

    s->started = started_here = true;
    s->permille = ETCH_SOFT_UNBOUNDED;
    if (__register_atfork) /* always: etch may ask for a pool later */
        __register_atfork(NULL, NULL, etch_soft_forked, &__dso_handle ? __dso_handle : NULL);
    if (!path || !*path)
        return;
    s->pid = (uint32_t)call3(__NR_getpid, 0, 0, 0);
    s->permille = etch_soft_read_budget(etch_soft_variable(with->environment, ETCH_SOFT_BUDGET_VARIABLE));
    ask_for_time();
    if (!adopt(s))
        open_pool(s, with, path);
    if (!s->pool)
        return;
    s->here = make_here(s->pool);
    watch_end(s, with);
}

/* etch sees the end of the process itself. */
void etch_soft_open_late(void)
{
    struct etch_soft_recorder *s = &etch_soft_recorder;
    char *const environment[] = {s->request.kb, s->request.threads, NULL};
    const struct call with = {0, NULL, environment};

    s->pid = (uint32_t)call3(__NR_getpid, 0, 0, 0);
    ask_for_time();
    open_pool(s, &with, s->request.folder);
    if (s->pool)
        s->here = make_here(s->pool);
    s->request.state = s->pool ? ETCH_SOFT_REQUEST_DONE : ETCH_SOFT_REQUEST_FAILED;
}

/* Once for each module that has a recorder. */
__attribute__((constructor(101))) static void begin_module(int argc, char **argv, char **environment)
{
    struct etch_soft_recorder *s = &etch_soft_recorder;
    struct call with = {argc, argv, environment};

    etch_soft_open_door(is_secure(environment));
    if (is_secure(environment))
        return;
    if (etch_soft_settings && etch_soft_settings())
        with.environment = environment = etch_soft_settings();
    if (!s->started)
        start(s, &with);
    else if (s->pool)
        etch_soft_note_maps(s->pool);
    etch_soft_on = s->pool || etch_soft_variable(environment, ETCH_SOFT_ON_VARIABLE);
    if (etch_soft_on)
        etch_soft_light(environment);
    if (etch_soft_settings) /* a lab build has no plain copies: an earlier constructor ran recorded code */
        etch_soft_cur = NULL;
}

/* ---- End ---- */

/* The library is unloaded, or the process ends while other threads still run. Memory that the threads use stays. The
 * next recorder of this process goes on with the pool. */
__attribute__((destructor(101))) static void end_module(void)
{
    struct etch_soft_recorder *s = &etch_soft_recorder;
    struct etch_soft_pool *pool = s->pool;

    if (!started_here || !pool || is_program())
        return;
    for (uint32_t i = 0; i < s->slots; i++)
        if (ring_at(s, pool, i)->recorder == (uintptr_t)s && ring_at(s, pool, i)->pid == s->pid)
            ring_at(s, pool, i)->state = ETCH_SOFT_UNLOADED;
    if (s->pid == pool->pid)
        __atomic_store_n(&pool->spare_page, (uintptr_t)s->here, __ATOMIC_RELEASE);
    __atomic_fetch_add(&pool->well, 1, __ATOMIC_RELAXED);
}

/* NOLINTEND(clang-analyzer-core*) */
