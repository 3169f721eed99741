/* SPDX-License-Identifier: MIT */
/* Plan files, as etch record takes them: the frames' checksums are set right, so that what is in them is reached. */
#include "base/crc32c.h"
#include "collector/session/place.h"
#include "collector/session/plan_file.h"
#include "proto/frame.h"
#include "tests/fuzz/file.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int take(void *context, const Etch__Plan *plan, struct etch_error *err)
{
    uint64_t registers[24] = {0}, *sum = context;
    struct etch_place_operand operand;

    for (size_t i = 0; i < plan->n_track; i++)
        *sum += plan->track[i]->start;
    for (size_t i = 0; i < plan->n_sets; i++)
        for (size_t k = 0; k < plan->sets[i]->n_watches; k++) {
            const Etch__PlanWatch *watch = plan->sets[i]->watches[k];

            if (etch_place_operand_parse(&operand, watch->site_operand, err) == 0)
                *sum += etch_place_operand_address(&operand, registers);
            *sum += strlen(watch->name);
        }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct etch_frame_header header = {.kind = ETCH__RECORD__BODY_PLAN};
    uint8_t *file = calloc(1, ETCH_FILE_HEADER_SIZE + ETCH_FRAME_HEADER_SIZE + size);
    uint64_t sum = 0;
    struct etch_error err;
    char path[64];
    int fd;

    if (!file)
        return 0;
    etch_file_header_encode(file);
    header.length = header.raw_length = (uint32_t)size;
    header.payload_crc = etch_crc32c(0, data, size);
    etch_frame_header_encode(&header, file + ETCH_FILE_HEADER_SIZE);
    memcpy(file + ETCH_FILE_HEADER_SIZE + ETCH_FRAME_HEADER_SIZE, data, size);
    fd = fuzz_file(file, ETCH_FILE_HEADER_SIZE + ETCH_FRAME_HEADER_SIZE + size, path);
    free(file);
    etch_plan_file_visit(path, take, &sum, &err);
    close(fd);
    return 0;
}
