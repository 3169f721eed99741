/* SPDX-License-Identifier: MIT */
/* The software recorder's bytes from a stranger: a binary's tables, and a ring. The input is the size of the first as
 * two bytes, then both. */
#include "decoder/code.h"
#include "decoder/flow/soft_flow.h"
#include "decoder/recording.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BIAS 0x10000u

/* The file as one mapping of code, so that the walk has something to walk on. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Etch__Image image = ETCH__IMAGE__INIT;
    Etch__Image *images[] = {&image};
    struct etch_recording recording = {.path = (char *)(uintptr_t)"fuzz"};
    struct etch_soft_map *map = calloc(1, sizeof(*map));
    struct etch_step_buffer steps = {0};
    struct etch_blocks *blocks;
    struct etch_code *code;
    struct etch_error err;
    size_t file = size < 3 ? 0 : (size_t)data[0] | (size_t)data[1] << 8;

    if (!map || file == 0 || file > size - 2) {
        free(map);
        return 0;
    }
    image.pid = map->pid = 1;
    image.start = BIAS;
    image.size = file;
    image.prot = 5;
    image.code.data = (uint8_t *)(uintptr_t)(data + 2);
    image.code.len = file;
    recording.images.v = images;
    recording.images.n = 1;
    if (etch_code_open(&code, &recording, NULL, &err) == 0) {
        blocks = etch_blocks_new(code);
        if (blocks && etch_soft_map_add(map, data + 2, file, BIAS) && etch_soft_map_finish(map)) {
            uint64_t frames[2] = {BIAS + 64, BIAS + 128};
            struct etch_soft_input input = {.bytes = data + 2 + file,
                                            .size = size - 2 - file,
                                            .pid = 1,
                                            .map = map,
                                            .frames = frames,
                                            .n_frames = 2,
                                            .failed = true};

            etch_soft_decode(&input, blocks, &steps);
        }
        etch_blocks_free(blocks);
        etch_code_free(code);
    }
    etch_step_buffer_release(&steps);
    etch_soft_map_free(map);
    return 0;
}
