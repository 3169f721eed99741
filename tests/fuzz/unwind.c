/* SPDX-License-Identifier: MIT */
/* Copied stacks and registers of a failed thread, and the unwind tables of a damaged file. An input is the size of the
 * file (two bytes), the file, 24 registers of eight bytes, the stack. */
#include "decoder/unwind.h"
#include "binary/symbols.h"
#include "decoder/recording.h"
#include "tests/fuzz/file.h"

#include <string.h>

#define START 0x400000u
#define STACK 0x7ffc00000000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void unwind(const char *path, size_t file_size, const uint8_t *data, size_t size)
{
    struct etch_symbols_options options = {0};
    struct etch_symbols *symbols = etch_symbols_new(&options);
    struct etch_recording recording = {0};
    Etch__Image image = ETCH__IMAGE__INIT, *images[] = {&image};
    Etch__Failure failure = ETCH__FAILURE__INIT;
    Etch__ThreadState state = ETCH__THREAD_STATE__INIT, *states[] = {&state};
    uint64_t registers[ETCH_UNWIND_REGISTERS];

    memcpy(registers, data, sizeof(registers));
    image.path = (char *)(uintptr_t)path;
    image.start = START;
    image.size = file_size;
    image.prot = 5;
    state.tid = 1;
    state.n_registers = ETCH_UNWIND_REGISTERS;
    state.registers = registers;
    state.stack_start = STACK;
    state.stack.data = (uint8_t *)(uintptr_t)data + sizeof(registers);
    state.stack.len = size - sizeof(registers);
    failure.n_threads = 1;
    failure.threads = states;
    recording.images.v = images;
    recording.images.n = 1;
    recording.failure = &failure;
    if (symbols)
        etch_unwind_failure(&recording, symbols);
    free(state.frames);
    etch_symbols_free(symbols);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t file = size > 2 ? data[0] | (size_t)data[1] << 8 : 0;
    char path[64];
    int fd;

    if (size < 2 + file || size - 2 - file <= ETCH_UNWIND_REGISTERS * 8)
        return -1;
    fd = fuzz_file(data + 2, file, path);
    unwind(path, file, data + 2 + file, size - 2 - file);
    close(fd);
    return 0;
}
