/* SPDX-License-Identifier: MIT */
/* Which files belong to a module: build-ids, and the separate debug file by build-id or .gnu_debuglink. */
#include "base/input.h"
#include "binary/symbols_module.h"

#include <elfutils/libdwelf.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char system_debug_dir[] = "/usr/lib/debug";

bool module_build_id(Elf *elf, const void **id, size_t *size)
{
    ssize_t n = dwelf_elf_gnu_build_id(elf, id);

    *size = n > 0 ? (size_t)n : 0;
    return n > 0;
}

bool elf_has_contents(Elf *elf, const char *section)
{
    size_t names;
    GElf_Shdr header;

    if (elf_getshdrstrndx(elf, &names) != 0)
        return false;
    for (Elf_Scn *s = elf_nextscn(elf, NULL); s; s = elf_nextscn(elf, s)) {
        const char *name = gelf_getshdr(s, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;

        if (name && strcmp(name, section) == 0)
            return header.sh_type != SHT_NOBITS && header.sh_size > 0;
    }
    return false;
}

/* The checksum of .gnu_debuglink: CRC-32 (IEEE) of the whole debug file. */
static uint32_t crc32(int fd)
{
    static const uint32_t polynomial = 0xedb88320u;
    uint32_t crc = UINT32_MAX;
    uint8_t buffer[65536];
    ssize_t n;
    off_t at = 0;

    while ((n = pread(fd, buffer, sizeof(buffer), at)) > 0) {
        at += n;
        for (ssize_t i = 0; i < n; i++) {
            crc ^= buffer[i];
            for (int k = 0; k < 8; k++)
                crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
        }
    }
    return ~crc;
}

/* Takes `path` as the debug file if it is of the same build. Without build-ids `crc` must fit. */
static bool try_debug_file(struct etch_symbols_module *module, const char *path, const GElf_Word *crc)
{
    int fd = etch_input_open(path);
    Elf *elf = fd >= 0 ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
    const void *wanted, *found;
    size_t wanted_size, found_size;
    bool same = false;

    if (elf && elf_kind(elf) == ELF_K_ELF) {
        bool have = module_build_id(module->elf, &wanted, &wanted_size);

        if (have && module_build_id(elf, &found, &found_size))
            same = wanted_size == found_size && memcmp(wanted, found, found_size) == 0;
        else
            same = crc && crc32(fd) == *crc;
    }
    if (same && (elf_has_contents(elf, ".debug_info") || elf_has_contents(elf, ".symtab"))) {
        module->debug_fd = fd;
        module->debug_elf = elf;
        return true;
    }
    elf_end(elf);
    if (fd >= 0)
        close(fd);
    return false;
}

static bool try_build_id(struct etch_symbols_module *module, const char *root, const char *below)
{
    char path[4096];
    const void *id;
    size_t size;
    int n;

    if (!root || !module_build_id(module->elf, &id, &size) || size < 2 || size > 64)
        return false;
    n = snprintf(path, sizeof(path) - 200, "%s%s/.build-id/%02x/", root, below, ((const uint8_t *)id)[0]);
    if (n < 0 || n >= (int)sizeof(path) - 200)
        return false;
    for (size_t i = 1; i < size; i++)
        n += snprintf(path + n, 3, "%02x", ((const uint8_t *)id)[i]);
    memcpy(path + n, ".debug", sizeof(".debug"));
    return try_debug_file(module, path, NULL);
}

static bool try_link_in(struct etch_symbols_module *module, const char *root, const char *folder, const char *below,
                        const char *name, GElf_Word crc)
{
    char path[4096];
    int n = snprintf(path, sizeof(path), "%s%s%s/%s", root, folder, below, name);

    return n > 0 && n < (int)sizeof(path) && try_debug_file(module, path, &crc);
}

static bool try_link(struct etch_symbols_module *module, const struct etch_symbols_options *options)
{
    GElf_Word crc;
    const char *name = dwelf_elf_gnu_debuglink(module->elf, &crc);
    const char *root = options->sysroot ? options->sysroot : "";
    char copy[4096], *folder;
    bool found;

    if (!name || !name[0] || strchr(name, '/') || snprintf(copy, sizeof(copy), "%s", module->path) >= 4096)
        return false;
    folder = dirname(copy);
    found = try_link_in(module, root, folder, "", name, crc) || try_link_in(module, root, folder, "/.debug", name, crc);
    if (!found && root[0])
        found = try_link_in(module, "", folder, "", name, crc) || try_link_in(module, "", folder, "/.debug", name, crc);
    if (!found && options->debug_dir)
        found = try_link_in(module, options->debug_dir, folder, "", name, crc) ||
                try_link_in(module, options->debug_dir, "", "", name, crc);
    return found || try_link_in(module, system_debug_dir, folder, "", name, crc);
}

void module_open_debug(struct etch_symbols_module *module, const struct etch_symbols_options *options)
{
    if (elf_has_contents(module->elf, ".debug_info"))
        return;
    if (!try_build_id(module, options->debug_dir, "") && !try_build_id(module, options->sysroot, system_debug_dir) &&
        !try_build_id(module, "", system_debug_dir))
        try_link(module, options);
}
