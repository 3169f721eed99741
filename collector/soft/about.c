/* SPDX-License-Identifier: MIT */
/* The software recorder's runtime: notes at the start which process this is. The notes are as the kernel has them. The
 * pool belongs to its user alone. The policy hides secrets when a bundle is made of the pool. */
#include "collector/soft/chunk.h"

#include <linux/fcntl.h>
#include <linux/prctl.h>

/* False: no room for the whole word. */
static bool note_word(struct etch_soft_pool *pool, const char *word, size_t n)
{
    uint32_t at = pool->words_size;

    if (n >= sizeof(pool->words) - at)
        return false;
    put(pool->words + at, word, n);
    pool->words[at + n] = '\0';
    pool->words_size = at + (uint32_t)n + 1;
    return true;
}

/* An empty word if the path is too long or not known. */
static void note_paths(struct etch_soft_pool *pool)
{
    char path[1024];
    long n = call6(__NR_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)path, sizeof(path), 0, 0);

    note_word(pool, path, n > 0 && n < (long)sizeof(path) ? (size_t)n : 0);
    n = call3(__NR_getcwd, (long)path, sizeof(path), 0);
    note_word(pool, path, n > 1 ? (size_t)n - 1 : 0); /* the kernel counts the 0 */
}

/* "pid:[4026531836]" */
static uint32_t pid_namespace(void)
{
    char text[32] = {0};
    long n = call6(__NR_readlinkat, AT_FDCWD, (long)"/proc/self/ns/pid", (long)text, sizeof(text), 0, 0);
    uint64_t inode = 0;

    for (long i = 5; i < n && text[i] >= '0' && text[i] <= '9'; i++)
        inode = inode * 10 + (uint64_t)(text[i] - '0');
    return (uint32_t)inode;
}

static void note_start(struct etch_soft_pool *pool)
{
    struct {
        int64_t s, ns;
    } now = {0};
    uint32_t cpu;

    call3(__NR_clock_gettime, 0, (long)&now, 0);
    pool->start_unix_ns = (uint64_t)now.s * 1000000000u + (uint64_t)now.ns;
    pool->start_tsc = stamp(&cpu);
}

void etch_soft_note_process(struct etch_soft_pool *pool, int argc, char *const *argv)
{
    note_start(pool);
    pool->pid_namespace = pid_namespace();
    call3(__NR_prctl, PR_GET_NAME, (long)pool->name, 0);
    note_paths(pool);
    for (int i = 0; i < argc && argv && argv[i]; i++)
        if (pool->words_cut || !note_word(pool, argv[i], length(argv[i])))
            pool->words_cut++;
}
