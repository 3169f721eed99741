/* SPDX-License-Identifier: MIT */
/* Preloaded: makes one call fail, to see what the program says then. FAIL_MEMORY=N fails the N-th allocation,
 * FAIL_WRITE=N the N-th call that brings bytes to a file; 0 only counts. FAIL_ERRNO is the cause of the latter (28: no
 * space). FAIL_COUNT names a file that gets the two counts at the end. Only the program itself is meant, of the name in
 * FAIL_PROGRAM: its children run as they are. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static atomic_long allocations, writes;
static long fail_memory, fail_write;
static int fail_errno = ENOSPC;
static pid_t owner;

static long number_of(const char *name)
{
    const char *text = getenv(name);

    return text ? atol(text) : 0;
}

__attribute__((constructor)) static void begin(void)
{
    const char *program = getenv("FAIL_PROGRAM"), *slash;
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    self[n > 0 ? n : 0] = '\0';
    slash = strrchr(self, '/');
    if (!program || !slash || strcmp(program, slash + 1) != 0)
        return;
    fail_memory = number_of("FAIL_MEMORY");
    fail_write = number_of("FAIL_WRITE");
    if (number_of("FAIL_ERRNO"))
        fail_errno = (int)number_of("FAIL_ERRNO");
    owner = getpid();
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("FAIL_COUNT");
    char text[64];
    int fd, n;

    if (!path || !owner || syscall(SYS_getpid) != owner)
        return;
    fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    n = snprintf(text, sizeof(text), "%ld %ld\n", atomic_load(&allocations), atomic_load(&writes));
    syscall(SYS_write, fd, text, n);
    syscall(SYS_close, fd);
}

static bool is_owner(void)
{
    return owner && syscall(SYS_getpid) == owner;
}

/* libdw reads through NULL when it has no memory for its table of abbreviations: what it allocates itself is spared. */
static bool is_spared(const void *caller)
{
    Dl_info about;

    return dladdr(caller, &about) && about.dli_fname && strstr(about.dli_fname, "libdw");
}

static bool memory_fails(const void *caller)
{
    if (!is_owner() || is_spared(caller) || atomic_fetch_add(&allocations, 1) + 1 != fail_memory)
        return false;
    errno = ENOMEM;
    return true;
}

static bool write_fails(void)
{
    if (!is_owner() || atomic_fetch_add(&writes, 1) + 1 != fail_write)
        return false;
    errno = fail_errno;
    return true;
}

/* ---- Memory ---- */

void *malloc(size_t size)
{
    return memory_fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return memory_fails(__builtin_return_address(0)) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    return memory_fails(__builtin_return_address(0)) ? NULL : __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memory_fails(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, size);
}

void *memalign(size_t alignment, size_t size)
{
    return memory_fails(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    void *made = memory_fails(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, size);

    if (!made)
        return ENOMEM;
    *memory = made;
    return 0;
}

/* ---- Files. What says something on standard error is left alone: that is what is asked for. ---- */

ssize_t write(int fd, const void *bytes, size_t size)
{
    return fd != 2 && write_fails() ? -1 : syscall(SYS_write, fd, bytes, size);
}

ssize_t writev(int fd, const struct iovec *pieces, int n)
{
    return fd != 2 && write_fails() ? -1 : syscall(SYS_writev, fd, pieces, n);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off_t at)
{
    return write_fails() ? -1 : syscall(SYS_pwrite64, fd, bytes, size, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at)
{
    return pwrite64(fd, bytes, size, at);
}

int fsync(int fd)
{
    return write_fails() ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    return write_fails() ? -1 : (int)syscall(SYS_fdatasync, fd);
}

int ftruncate(int fd, off_t size)
{
    return write_fails() ? -1 : (int)syscall(SYS_ftruncate, fd, size);
}

int rename(const char *from, const char *to)
{
    return write_fails() ? -1 : (int)syscall(SYS_rename, from, to);
}

/* The C library's own streams write by themselves; a stream's end and its flushing can be made to fail here. */
int fflush(FILE *stream)
{
    static int (*next)(FILE *);

    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "fflush");
    if (stream && stream != stderr && write_fails())
        return EOF;
    return next(stream);
}

int fclose(FILE *stream)
{
    static int (*next)(FILE *);
    bool writes_to = (fcntl(fileno(stream), F_GETFL) & O_ACCMODE) != O_RDONLY;

    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "fclose");
    if (!writes_to || !write_fails())
        return next(stream);
    next(stream);
    errno = fail_errno;
    return EOF;
}

/* A descriptor that was written to is closed all the same when its close fails. */
int close(int fd)
{
    int flags = (int)syscall(SYS_fcntl, fd, F_GETFL);
    bool fails = flags >= 0 && (flags & O_ACCMODE) == O_WRONLY && write_fails();

    if (fails) {
        syscall(SYS_close, fd);
        errno = fail_errno;
        return -1;
    }
    return (int)syscall(SYS_close, fd);
}
