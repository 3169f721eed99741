/* SPDX-License-Identifier: MIT */
#include "binary/find_binary.h"

#include "base/path.h"
#include "binary/elf_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* SAME, OTHER or UNCHECKED for a regular file, MISSING for anything else. */
static enum etch_binary_verdict check(const char *path, const ProtobufCBinaryData *want)
{
    enum etch_binary_verdict verdict = ETCH_BINARY_UNCHECKED;
    uint8_t id[ETCH_BUILD_ID_MAX];
    struct etch_elf_file file;
    struct etch_error ignored;
    size_t n;

    if (etch_elf_file_open(&file, path, &ignored) < 0 && file.fd < 0)
        return ETCH_BINARY_MISSING;
    n = file.elf && want->len ? etch_elf_build_id(file.elf, id) : 0;
    if (n)
        verdict = n == want->len && memcmp(id, want->data, n) == 0 ? ETCH_BINARY_SAME : ETCH_BINARY_OTHER;
    etch_elf_file_close(&file);
    return verdict;
}

/* Keeps the better of what is known and `candidate`. */
static void consider(const char *candidate, int length, const ProtobufCBinaryData *want, enum etch_binary_verdict *best,
                     char path[PATH_MAX])
{
    enum etch_binary_verdict verdict;

    if (length < 0 || length >= PATH_MAX || *best == ETCH_BINARY_SAME)
        return;
    verdict = check(candidate, want);
    if (verdict <= *best)
        return;
    *best = verdict;
    if (verdict >= ETCH_BINARY_UNCHECKED)
        memcpy(path, candidate, (size_t)length + 1);
}

/* perf keeps files as FOLDER/.build-id/ab/cdef.../elf, the vdso as .../vdso; older ones without the last part. */
static void consider_cache(const char *folder, const ProtobufCBinaryData *want, enum etch_binary_verdict *best,
                           char path[PATH_MAX])
{
    char hex[2 * 64 + 1], candidate[PATH_MAX];
    int n;

    if (want->len < 2 || want->len > 64)
        return;
    for (size_t i = 0; i < want->len; i++)
        snprintf(hex + 2 * i, 3, "%02x", want->data[i]);
    n = snprintf(candidate, sizeof(candidate), "%s/.build-id/%.2s/%s/elf", folder, hex, hex + 2);
    consider(candidate, n, want, best, path);
    n = snprintf(candidate, sizeof(candidate), "%s/.build-id/%.2s/%s/vdso", folder, hex, hex + 2);
    consider(candidate, n, want, best, path);
    n = snprintf(candidate, sizeof(candidate), "%s/.build-id/%.2s/%s", folder, hex, hex + 2);
    consider(candidate, n, want, best, path);
}

enum etch_binary_verdict etch_find_binary(const Etch__Image *image, const struct etch_binary_places *places,
                                          char path[PATH_MAX])
{
    enum etch_binary_verdict best = ETCH_BINARY_MISSING;
    const char *base = etch_path_name(image->path), *home = getenv("HOME");
    bool vdso = strcmp(image->path, "[vdso]") == 0; /* no file, but perf keeps a copy in its cache */
    char candidate[PATH_MAX];

    path[0] = '\0';
    if (!base[0] || (image->path[0] == '[' && !vdso) || strncmp(image->path, "//", 2) == 0)
        return ETCH_BINARY_MISSING;
    if (places->sysroot && !vdso)
        consider(candidate, snprintf(candidate, sizeof(candidate), "%s/%s", places->sysroot, image->path),
                 &image->build_id, &best, path);
    if (!vdso)
        consider(candidate, snprintf(candidate, sizeof(candidate), "%s", image->path), &image->build_id, &best, path);
    if (places->beside && !vdso)
        consider(candidate, snprintf(candidate, sizeof(candidate), "%s/%s", places->beside, base), &image->build_id,
                 &best, path);
    if (places->cache)
        consider_cache(places->cache, &image->build_id, &best, path);
    else if (home && snprintf(candidate, sizeof(candidate), "%s/.debug", home) < PATH_MAX)
        consider_cache(candidate, &image->build_id, &best, path);
    return best;
}
