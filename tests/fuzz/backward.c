/* SPDX-License-Identifier: MIT */
/* Values backwards over any instructions, registers and memory. An input is 24 registers of eight bytes, a byte of
 * options, and the instructions: each is a byte that says what ran before it and where it is, its size, and its
 * bytes. */
#include "decoder/backward.h"

#include <stdlib.h>
#include <string.h>

#define HEAD (ETCH_BACKWARD_REGISTERS * 8 + 1)
#define MOST 4096

struct input {
    const uint8_t *data;
    size_t size;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t read_input(void *context, uint64_t address, void *to, size_t size)
{
    const struct input *in = context;

    for (size_t i = 0; i < size; i++)
        ((uint8_t *)to)[i] = in->data[(address + i) % in->size];
    return address % 7 ? size : 0;
}

static enum etch_memory_kind kind_of(void *context, uint64_t address)
{
    (void)context;
    return (enum etch_memory_kind)(address / 4096 % 5);
}

static size_t instructions_of(const uint8_t *data, size_t size, struct etch_backward_instruction *out)
{
    uint64_t address = 0x401000;
    size_t n = 0;

    while (size > 2 && n < MOST) {
        uint8_t how = data[0], bytes = data[1] % 16;

        if (size < 2u + bytes)
            break;
        out[n++] = (struct etch_backward_instruction){.address = address,
                                                      .bytes = data + 2,
                                                      .size = bytes,
                                                      .unseen = how % 8 < 5 ? how % 8 : 0,
                                                      .into_ring = how & 32,
                                                      .incomplete = how & 64};
        address += how & 128 ? how : bytes;
        data += 2 + bytes;
        size -= 2u + bytes;
    }
    return n;
}

static void ask_all(const struct etch_backward *b, size_t n)
{
    struct etch_backward_access a;
    uint64_t value;

    for (size_t i = 0; i < etch_backward_accesses(b); i++)
        etch_backward_access(b, i, &a);
    for (size_t i = 0; i < n; i++)
        (void)etch_backward_register(b, i, (unsigned)i % 30, &value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    struct etch_backward_question q = {.read = read_input, .context = &in};
    struct etch_backward_instruction *instructions;
    struct etch_backward *b = NULL;
    struct etch_error err = {0};

    if (size <= HEAD)
        return -1;
    instructions = calloc(MOST, sizeof(*instructions));
    if (!instructions)
        return 0;
    memcpy(q.registers, data, sizeof(q.registers));
    q.masked = data[HEAD - 1] & 1 ? 0 : (uint32_t)q.registers[8];
    q.fs_base_known = data[HEAD - 1] & 2;
    q.kind = data[HEAD - 1] & 4 ? kind_of : NULL;
    q.unseen_after = (enum etch_unseen)((data[HEAD - 1] >> 4) % 5);
    q.n = instructions_of(data + HEAD, size - HEAD, instructions);
    q.instructions = instructions;
    if (etch_backward_solve(&b, &q, &err) == 0)
        ask_all(b, q.n);
    etch_backward_free(b);
    free(instructions);
    return 0;
}
