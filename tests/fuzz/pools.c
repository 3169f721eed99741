/* SPDX-License-Identifier: MIT */
/* Files of rings as a program left them, damaged. An input is the first words of the head, the text of the mappings and
 * the words of the process (each behind its size, two bytes), a module, a death with the first bytes of its stack, then
 * the rings; what lies between is zero. All processes in the file are listed, and a bundle of each is made. */
#include "collector/ring_process.h"
#include "proto/soft_layout.h"
#include "tests/fuzz/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define HEAD offsetof(struct etch_soft_pool, words_reserved)
#define DEATH (offsetof(struct etch_soft_death, stack) + 512)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *data;
    size_t size;
};

static void take(struct input *in, void *to, size_t size)
{
    size = size < in->size ? size : in->size;
    memcpy(to, in->data, size);
    in->data += size;
    in->size -= size;
}

static void take_text(struct input *in, void *to, size_t max)
{
    uint8_t size[2] = {0};
    size_t n;

    take(in, size, sizeof(size));
    n = size[0] | (size_t)size[1] << 8;
    take(in, to, n < max ? n : max);
}

static char folder[] = "/tmp/etch-fuzz-pools-XXXXXX";
static char path[sizeof(folder) + 32];

static void clean(void)
{
    unlink(path);
    rmdir(folder);
}

static void open_folder(void)
{
    if (path[0])
        return;
    if (!mkdtemp(folder))
        abort();
    snprintf(path, sizeof(path), "%s/1%s", folder, ETCH_SOFT_SUFFIX);
    atexit(clean);
}

static void write_file(const struct etch_soft_pool *pool, const struct input *rings)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0 || write(fd, pool, sizeof(*pool)) < 0 || write(fd, rings->data, rings->size) < 0)
        abort();
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct etch_soft_pool pool;
    struct input in = {data, size};
    struct etch_ring_bundle bundle = {.folder = folder, .output = "/dev/null"};
    struct etch_ring_processes all;
    struct etch_soft_summary summary;
    struct etch_error err;

    if (size < HEAD)
        return -1;
    open_folder();
    memset(&pool, 0, sizeof(pool));
    take(&in, &pool, HEAD);
    pool.magic = ETCH_SOFT_MAGIC;
    pool.version = ETCH_SOFT_VERSION;
    take_text(&in, pool.maps, sizeof(pool.maps));
    take_text(&in, pool.words, sizeof(pool.words));
    take(&in, &pool.modules[0], sizeof(pool.modules[0]));
    take(&in, &pool.deaths[0], DEATH);
    write_file(&pool, &in);
    if (etch_ring_processes_read(folder, &all, &err) < 0)
        abort();
    for (size_t i = 0; i < all.list.n && i < 3; i++) {
        bundle.family = i == 0;
        (void)etch_ring_process_bundle(&all.list.v[i], &bundle, &summary, &err);
    }
    etch_ring_processes_release(&all);
    return 0;
}
