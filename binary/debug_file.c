/* SPDX-License-Identifier: MIT */
/* See debug_file.h. */
#include "binary/debug_file.h"

#include <elfutils/libdwelf.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char system_debug_dir[] = "/usr/lib/debug";

struct search {
    Elf *elf; /* whose debug file is wanted */
    const char *path, *sysroot, *debug_dir;
    struct etch_elf_file *found;
};

bool etch_elf_has_contents(Elf *elf, const char *section)
{
    GElf_Shdr header;

    return elf && etch_elf_section(elf, section, &header) && header.sh_type != SHT_NOBITS && header.sh_size > 0;
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

/* Is the debug file of the same build? Without build-ids, `crc` must match. */
static bool is_same_build(const struct search *s, const struct etch_elf_file *file, const GElf_Word *crc)
{
    uint8_t wanted[ETCH_BUILD_ID_MAX], found[ETCH_BUILD_ID_MAX];
    size_t n = etch_elf_build_id(s->elf, wanted), found_size = n ? etch_elf_build_id(file->elf, found) : 0;

    if (found_size)
        return n == found_size && memcmp(wanted, found, n) == 0;
    return crc && crc32(file->fd) == *crc;
}

/* Takes `path` as the debug file if it is of the same build and has something to say. */
static bool try_debug_file(const struct search *s, const char *path, const GElf_Word *crc)
{
    struct etch_elf_file file;
    struct etch_error ignored;

    if (etch_elf_file_open(&file, path, &ignored) == 0 && is_same_build(s, &file, crc) &&
        (etch_elf_has_contents(file.elf, ".debug_info") || etch_elf_has_contents(file.elf, ".symtab"))) {
        *s->found = file;
        return true;
    }
    etch_elf_file_close(&file);
    return false;
}

static bool try_build_id(const struct search *s, const char *root, const char *below)
{
    uint8_t id[ETCH_BUILD_ID_MAX];
    char path[4096];
    size_t size = root ? etch_elf_build_id(s->elf, id) : 0;
    int n;

    if (size < 2)
        return false;
    n = snprintf(path, sizeof(path) - 200, "%s%s/.build-id/%02x/", root, below, id[0]);
    if (n < 0 || n >= (int)sizeof(path) - 200)
        return false;
    for (size_t i = 1; i < size; i++)
        n += snprintf(path + n, 3, "%02x", id[i]);
    memcpy(path + n, ".debug", sizeof(".debug"));
    return try_debug_file(s, path, NULL);
}

static bool try_link_in(const struct search *s, const char *root, const char *folder, const char *below,
                        const char *name, GElf_Word crc)
{
    char path[4096];
    int n = snprintf(path, sizeof(path), "%s%s%s/%s", root, folder, below, name);

    return n > 0 && n < (int)sizeof(path) && try_debug_file(s, path, &crc);
}

static bool try_link(const struct search *s)
{
    GElf_Word crc;
    const char *name = dwelf_elf_gnu_debuglink(s->elf, &crc);
    const char *root = s->sysroot ? s->sysroot : "";
    char copy[4096], *folder;
    bool found;

    if (!name || !name[0] || strchr(name, '/') || snprintf(copy, sizeof(copy), "%s", s->path) >= 4096)
        return false;
    folder = dirname(copy);
    found = try_link_in(s, root, folder, "", name, crc) || try_link_in(s, root, folder, "/.debug", name, crc);
    if (!found && root[0])
        found = try_link_in(s, "", folder, "", name, crc) || try_link_in(s, "", folder, "/.debug", name, crc);
    if (!found && s->debug_dir)
        found = try_link_in(s, s->debug_dir, folder, "", name, crc) || try_link_in(s, s->debug_dir, "", "", name, crc);
    return found || try_link_in(s, system_debug_dir, folder, "", name, crc);
}

/* debuginfod-find and gdb keep there what they fetched. etch itself asks no server: a reader uses no network. */
static bool try_cache(const struct search *s)
{
    const char *given = getenv("DEBUGINFOD_CACHE_PATH"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char hex[2 * ETCH_BUILD_ID_MAX + 1], path[4096];
    uint8_t id[ETCH_BUILD_ID_MAX];
    size_t size = etch_elf_build_id(s->elf, id);
    int n;

    for (size_t i = 0; i < size; i++)
        snprintf(hex + 2 * i, 3, "%02x", id[i]);
    if (size == 0)
        return false;
    if (given && given[0])
        n = snprintf(path, sizeof(path), "%s/%s/debuginfo", given, hex);
    else if (cache && cache[0])
        n = snprintf(path, sizeof(path), "%s/debuginfod_client/%s/debuginfo", cache, hex);
    else
        n = snprintf(path, sizeof(path), "%s/.cache/debuginfod_client/%s/debuginfo", home ? home : "", hex);
    return n > 0 && n < (int)sizeof(path) && try_debug_file(s, path, NULL);
}

void etch_debug_file_find(struct etch_elf_file *found, Elf *elf, const char *path, const char *sysroot,
                          const char *debug_dir)
{
    const struct search s = {.elf = elf, .path = path, .sysroot = sysroot, .debug_dir = debug_dir, .found = found};

    if (etch_elf_has_contents(elf, ".debug_info"))
        return;
    if (!try_build_id(&s, debug_dir, "") && !try_build_id(&s, sysroot, system_debug_dir) &&
        !try_build_id(&s, "", system_debug_dir) && !try_link(&s))
        try_cache(&s);
}

/* ---- A file with its debug information ---- */

static bool is_zstd(Elf *elf)
{
    enum { ZSTD = 2 }; /* ELFCOMPRESS_ZSTD, which an older elf.h does not have */
    GElf_Shdr header;
    GElf_Chdr compression;
    Elf_Scn *section = elf ? etch_elf_section(elf, ".debug_info", &header) : NULL;

    return section && (header.sh_flags & SHF_COMPRESSED) && gelf_getchdr(section, &compression) &&
           compression.ch_type == ZSTD;
}

int etch_debug_open(struct etch_debug *debug, const char *path, struct etch_error *err)
{
    Dwarf_CU *unit;

    *debug = (struct etch_debug){.separate.fd = -1};
    if (etch_elf_file_open(&debug->file, path, err) < 0)
        return -1;
    etch_debug_file_find(&debug->separate, debug->file.elf, path, NULL, NULL);
    debug->dwarf = dwarf_begin_elf(etch_debug_elf(debug), DWARF_C_READ, NULL);
    if (debug->dwarf && dwarf_get_units(debug->dwarf, NULL, &unit, NULL, NULL, NULL, NULL) == 0)
        return 0;
    if (is_zstd(etch_debug_elf(debug))) { /* small sections are not compressed, so that libdw may find those */
        etch_error_set(
            err, "the debug information of %s is compressed by zstd, which the libdw of this system cannot read", path);
        return etch_error_advise(err, "objcopy --decompress-debug-sections %s", path);
    }
    if (debug->dwarf)
        return 0;
    etch_error_set(err, "%s has no debug information", path);
    return etch_error_advise(err, "build it with etch cc, or with -g; if it was stripped, install its debug file");
}

Elf *etch_debug_elf(const struct etch_debug *debug)
{
    return debug->separate.elf ? debug->separate.elf : debug->file.elf;
}

void etch_debug_close(struct etch_debug *debug)
{
    dwarf_end(debug->dwarf);
    etch_elf_file_close(&debug->separate);
    etch_elf_file_close(&debug->file);
}
