/* SPDX-License-Identifier: MIT */
/* The library that LD_PRELOAD puts (or a link with it) between a program and its pthread functions. Each call goes on
 * to the real function and leaves an event in the thread's ring. An acquiring call is stamped after it returns, a
 * releasing call before it begins, so the stamps of a pair are in the order in which the pair happened. A call that
 * does not wait gets a second stamp on its other side, which bounds its duration. The library takes no lock, allocates
 * only to start a thread, and makes one system call per thread. It does nothing without ETCH_SYNC in the environment.
 */
#include "collector/sync/shim.h"

#include "collector/sync/real.h"
#include "collector/sync/writer.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The child of a fork must not write into its parent's rings. */
static void in_child(void)
{
    etch_shim_joined->memory = etch_shim_joined->mapped = NULL;
    etch_shim_ring = NULL;
}

/* Reading the time stamp counter would be a fault from now on. */
static void go_quiet(void)
{
    struct etch_sync_memory *memory = etch_shim_joined->memory;

    if (memory)
        __atomic_fetch_add(&memory->unplaced, 1, __ATOMIC_RELAXED);
    etch_shim_joined->memory = etch_shim_joined->mapped = NULL;
}

/* A program that makes the system call itself is not seen. */
EXPORT int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
EXPORT int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
    if ((option == PR_SET_TSC && a == PR_TSC_SIGSEGV) || (option == PR_SET_SECCOMP && a == SECCOMP_MODE_STRICT))
        go_quiet();
    return (int)syscall(SYS_prctl, option, a, b, c, d);
}

/* A program with the software recorder in it has a prctl of its own, which calls this hook. */
static void set_quiet_hook(void)
{
    void (**hook)(void) = dlsym(RTLD_DEFAULT, "etch_soft_quieting");

    if (hook)
        *hook = go_quiet;
}

static void join(struct etch_sync_memory *map)
{
    struct etch_shim_joined *page =
        mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page != MAP_FAILED && madvise(page, 4096, MADV_WIPEONFORK) == 0)
        etch_shim_joined = page;
    etch_shim_emulated = map->emulated;
    etch_shim_joined->mapped = map;
    etch_shim_joined->memory = map->only_throws ? NULL : map;
    set_quiet_hook();
}

/* The program sees its environment as it would without us: the first variables are taken out of the array itself,
 * which is also what main() gets as its third argument. */
static void restore_environment(void)
{
    extern char **environ;
    const char *before = getenv(ETCH_SYNC_PRELOAD_VARIABLE);
    char **to = environ;

    for (char **from = environ; *from; from++) {
        if (strncmp(*from, ETCH_SYNC_VARIABLE "=", sizeof(ETCH_SYNC_VARIABLE)) == 0 ||
            strncmp(*from, ETCH_SYNC_PRELOAD_VARIABLE "=", sizeof(ETCH_SYNC_PRELOAD_VARIABLE)) == 0)
            continue;
        if (strncmp(*from, "LD_PRELOAD=", 11) == 0) {
            if (!before)
                continue;
            memmove(*from + 11, before, strlen(before) + 1); /* the program's own value is the end of ours: shorter */
        }
        *to++ = *from;
    }
    *to = NULL;
}

static void join_memory(const char *path)
{
    struct etch_sync_memory *map;
    struct stat st;
    int fd = open(path, O_RDWR | O_CLOEXEC);

    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && (size_t)st.st_size >= sizeof(*map)) {
        map = mmap(NULL, sizeof(*map), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (map != MAP_FAILED && map->magic == ETCH_SYNC_MAGIC && map->version == ETCH_SYNC_VERSION && map->pid == 0 &&
            etch_shim_watch_ends()) {
            pthread_atfork(NULL, NULL, in_child);
            map->pid = (uint32_t)getpid();
            join(map);
        }
    }
    close(fd);
}

__attribute__((constructor(101))) static void begin(void)
{
    const char *path = secure_getenv(ETCH_SYNC_VARIABLE); /* not where the program was given rights */
    int saved = errno;

    READY();
    if (path) {
        join_memory(path);
        restore_environment();
    }
    errno = saved;
}
