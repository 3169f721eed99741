/* SPDX-License-Identifier: MIT */
/* Bundles of a program's runs, through everything that reads bundles: recording, run, slice, predictors, sketch, all
 * pictures. The mutator changes what is in the records and sets the checksums right: other changes end at the
 * checksums. */
#include "tests/damage/input.h"
#include "tests/damage/readers.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t one_size, const uint8_t *other, size_t other_size,
                                 uint8_t *out, size_t max_size, unsigned seed);

static struct readers *readers;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    readers = readers_new();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct readers_result result = {0};
    struct input input;

    if (!input_split(&input, data, size) || input.program[0] != '/')
        return -1;
    readers_take(readers, &input, &result);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    struct damage damage = {seed};

    return input_damage(&damage, data, size, max_size);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t one_size, const uint8_t *other, size_t other_size,
                                 uint8_t *out, size_t max_size, unsigned seed)
{
    struct damage damage = {seed};

    return input_cross(&damage, one, one_size, other, other_size, out, max_size);
}
