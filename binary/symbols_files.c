/* SPDX-License-Identifier: MIT */
/* Which files belong to a module: build-ids, and the separate debug file by build-id or .gnu_debuglink. */
#include "binary/symbols_module.h"

#include <elfutils/libdwelf.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char system_debug_dir[] = "/usr/lib/debug";

bool etch_symbols_module_has_contents(Elf *elf, const char *section)
{
    GElf_Shdr header;

    return etch_elf_section(elf, section, &header) && header.sh_type != SHT_NOBITS && header.sh_size > 0;
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

/* Is the file of the same build as the module? Without build-ids, `crc` must match. */
static bool is_same_build(const struct etch_symbols_module *module, const struct etch_elf_file *file,
                          const GElf_Word *crc)
{
    uint8_t wanted[ETCH_BUILD_ID_MAX], found[ETCH_BUILD_ID_MAX];
    size_t n = etch_elf_build_id(module->file.elf, wanted), found_size = n ? etch_elf_build_id(file->elf, found) : 0;

    if (found_size)
        return n == found_size && memcmp(wanted, found, n) == 0;
    return crc && crc32(file->fd) == *crc;
}

/* Takes `path` as the debug file if it is of the same build and has something to say. */
static bool try_debug_file(struct etch_symbols_module *module, const char *path, const GElf_Word *crc)
{
    struct etch_elf_file file;
    struct etch_error ignored;

    if (etch_elf_file_open(&file, path, &ignored) == 0 && is_same_build(module, &file, crc) &&
        (etch_symbols_module_has_contents(file.elf, ".debug_info") ||
         etch_symbols_module_has_contents(file.elf, ".symtab"))) {
        module->debug = file;
        return true;
    }
    etch_elf_file_close(&file);
    return false;
}

static bool try_build_id(struct etch_symbols_module *module, const char *root, const char *below)
{
    uint8_t id[ETCH_BUILD_ID_MAX];
    char path[4096];
    size_t size = root ? etch_elf_build_id(module->file.elf, id) : 0;
    int n;

    if (size < 2)
        return false;
    n = snprintf(path, sizeof(path) - 200, "%s%s/.build-id/%02x/", root, below, id[0]);
    if (n < 0 || n >= (int)sizeof(path) - 200)
        return false;
    for (size_t i = 1; i < size; i++)
        n += snprintf(path + n, 3, "%02x", id[i]);
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
    const char *name = dwelf_elf_gnu_debuglink(module->file.elf, &crc);
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

void etch_symbols_module_open_debug(struct etch_symbols_module *module, const struct etch_symbols_options *options)
{
    if (etch_symbols_module_has_contents(module->file.elf, ".debug_info"))
        return;
    if (!try_build_id(module, options->debug_dir, "") && !try_build_id(module, options->sysroot, system_debug_dir) &&
        !try_build_id(module, "", system_debug_dir))
        try_link(module, options);
}
