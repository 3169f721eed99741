/* SPDX-License-Identifier: MIT */
/* Damaged ELF files, through the readers of the collector and the search for binaries. */
#include "binary/find_binary.h"
#include "binary/object.h"
#include "binary/returns.h"
#include "binary/variable.h"
#include "collector/soft.h"
#include "tests/fuzz/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask_object(const struct etch_object *object)
{
    struct etch_symbol symbol;
    uint64_t offset;
    uint8_t id[64];

    etch_object_is_dynamic(object);
    etch_object_imports(object, "abort");
    etch_object_makes_call(object, 41);
    etch_object_bias(object, 0x7f0000000000, 0x1000);
    etch_object_offset(object, 0x1040, &offset);
    if (etch_object_build_id(object, id) > sizeof(id))
        __builtin_trap();
    etch_object_symbol(object, "entry", &symbol);
    etch_object_symbol(object, "table", &symbol);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct etch_binary_places places = {0};
    Etch__Image image = ETCH__IMAGE__INIT;
    struct etch_variable variable;
    struct etch_object *object;
    struct etch_error err;
    struct etch_elf elf;
    char path[64], found[PATH_MAX];
    uint64_t address, length;
    int fd = fuzz_file(data, size, path);

    if (etch_elf_read(&elf, path, &err) == 0 && elf.build_id_size > sizeof(elf.build_id))
        __builtin_trap();
    etch_elf_variable(path, "table", &address, &length, &err);
    if (etch_object_open(&object, path, &err) == 0) {
        ask_object(object);
        etch_object_free(object);
    }
    etch_soft_is_recorded(path);
    image.path = path;
    image.size = 0x10000;
    image.build_id.data = (uint8_t *)(uintptr_t)data;
    image.build_id.len = size < 20 ? size : 20;
    etch_find_binary(&image, &places, found);
    image.build_id.len = 0;
    etch_returns_value(&image, 0x1040);
    etch_variable_find(&variable, path, "table[1].next", &err);
    close(fd);
    return 0;
}
