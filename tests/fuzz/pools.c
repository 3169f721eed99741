/* SPDX-License-Identifier: MIT */
/* Files of rings as a program left them, damaged. An input is the head of the file (48 bytes), the size of the
 * mappings' text (two bytes), the text, then the rings; what lies between is zero. */
#include "collector/soft/pool_files.h"
#include "proto/soft_layout.h"
#include "tests/fuzz/file.h"

#include <string.h>

#define HEAD offsetof(struct etch_soft_pool, maps)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_record(void *context, Etch__Record__BodyCase kind, void *message)
{
    (void)context;
    (void)kind;
    return protobuf_c_message_check(message) ? 0 : -1;
}

static int on_flow(void *context, uint32_t stream, uint64_t offset, const void *data, size_t size)
{
    uint64_t *sum = context;

    for (size_t i = 0; i < size; i++) /* reads every byte */
        *sum += ((const uint8_t *)data)[i];
    *sum += stream + offset;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t sum = 0;
    const struct etch_soft_sink sink = {&sum, on_record, on_flow};
    struct etch_soft_summary summary = {0};
    struct etch_soft_pools pools = {.sink = &sink, .summary = &summary};
    static struct etch_soft_pool pool;
    size_t text;
    char path[64];
    int fd;

    if (size < HEAD + 2)
        return -1;
    memset(&pool, 0, sizeof(pool));
    memcpy(&pool, data, HEAD);
    pool.magic = ETCH_SOFT_MAGIC;
    pool.version = ETCH_SOFT_VERSION;
    text = data[HEAD] | (size_t)data[HEAD + 1] << 8;
    text = text < size - HEAD - 2 ? text : size - HEAD - 2;
    text = text < sizeof(pool.maps) ? text : sizeof(pool.maps);
    memcpy(pool.maps, data + HEAD + 2, text);
    fd = fuzz_file((const uint8_t *)&pool, sizeof(pool), path);
    if (write(fd, data + HEAD + 2 + text, size - HEAD - 2 - text) < 0)
        abort();
    etch_soft_pool_take(&pools, fd);
    close(fd);
    return 0;
}
