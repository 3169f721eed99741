/* SPDX-License-Identifier: MIT */
/* The feature sections of a perf.data: who recorded what where. Bytes in, values out; no byte is trusted. */
#include "decoder/recording/perf_features.h"

#include <stdlib.h>
#include <string.h>

struct bytes {
    const uint8_t *p;
    size_t n;
};

static bool take_u32(struct bytes *b, uint32_t *value)
{
    if (b->n < 4)
        return false;
    *value = perf_u32(b->p);
    b->p += 4;
    b->n -= 4;
    return true;
}

static bool take_bytes(struct bytes *b, size_t n, const uint8_t **bytes)
{
    if (b->n < n)
        return false;
    *bytes = b->p;
    b->p += n;
    b->n -= n;
    return true;
}

/* A string with its length in front, padded with zeroes. */
static bool take_string(struct bytes *b, char **string)
{
    const uint8_t *p = NULL;
    uint32_t n;

    if (!take_u32(b, &n) || !take_bytes(b, n, &p))
        return false;
    free(*string);
    *string = strndup((const char *)p, n);
    return *string != NULL;
}

static bool take_cmdline(struct etch_perf_file *file, struct bytes b)
{
    uint32_t n;

    if (!take_u32(&b, &n))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        char *arg = NULL;

        if (!take_string(&b, &arg))
            return false;
        if (!etch_array_push(&file->cmdline, arg)) {
            free(arg);
            return false;
        }
    }
    return true;
}

static void name_attr(struct etch_perf_file *file, const struct etch_perf_attr *described, const uint8_t *first_id,
                      const char *name)
{
    for (size_t i = 0; i < file->attrs.n; i++) {
        struct etch_perf_attr *a = &file->attrs.v[i];
        bool same = first_id ? a->ids.n && a->ids.v[0] == perf_u64(first_id)
                             : a->type == described->type && a->config == described->config;

        if (same)
            snprintf(a->name, sizeof(a->name), "%s", name);
    }
}

/* nr, attr size, then for each: attr, number of ids, name, ids. */
static bool take_event_desc(struct etch_perf_file *file, struct bytes b)
{
    uint32_t n, attr_size;

    if (!take_u32(&b, &n) || !take_u32(&b, &attr_size) || attr_size < 64)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        struct etch_perf_attr attr = {0};
        const uint8_t *bytes = NULL, *ids = NULL;
        char *name = NULL;
        uint32_t n_ids;

        if (!take_bytes(&b, attr_size, &bytes) || !take_u32(&b, &n_ids) || !take_string(&b, &name))
            return false;
        attr.type = perf_u32(bytes);
        attr.config = perf_u64(bytes + 8);
        if (take_bytes(&b, (size_t)n_ids * 8, &ids))
            name_attr(file, &attr, n_ids ? ids : NULL, name);
        free(name);
        if (!ids)
            return false;
    }
    return true;
}

/* One build-id entry behind its header: pid, 20 bytes and their number, path. */
bool etch_perf_build_id_take(struct etch_perf_file *file, uint16_t misc, const uint8_t *body, size_t n)
{
    struct etch_perf_build_id entry = {0};

    if (n < 29 || !memchr(body + 28, 0, n - 28))
        return false;
    memcpy(entry.id, body + 4, PERF_BUILD_ID_BYTES);
    entry.size = misc & PERF_BUILD_ID_SIZE_KNOWN && body[24] <= PERF_BUILD_ID_BYTES ? body[24] : PERF_BUILD_ID_BYTES;
    entry.path = strdup((const char *)body + 28);
    if (entry.path && etch_array_push(&file->build_ids, entry))
        return true;
    free(entry.path);
    return false;
}

static bool take_build_ids(struct etch_perf_file *file, struct bytes b)
{
    while (b.n >= 8) {
        uint16_t size = perf_u16(b.p + 6);

        if (size < 8 || size > b.n || !etch_perf_build_id_take(file, perf_u16(b.p + 4), b.p + 8, (size_t)size - 8))
            return false;
        b.p += size;
        b.n -= size;
    }
    return true;
}

bool etch_perf_feature_wanted(uint64_t feature)
{
    return feature == PERF_FEATURE_BUILD_ID || feature == PERF_FEATURE_HOSTNAME || feature == PERF_FEATURE_OSRELEASE ||
           feature == PERF_FEATURE_ARCH || feature == PERF_FEATURE_NRCPUS || feature == PERF_FEATURE_CPUDESC ||
           feature == PERF_FEATURE_CPUID || feature == PERF_FEATURE_CMDLINE || feature == PERF_FEATURE_EVENT_DESC;
}

bool etch_perf_feature_take(struct etch_perf_file *file, uint64_t feature, const uint8_t *bytes, size_t size)
{
    struct bytes b = {bytes, size};

    switch (feature) {
    case PERF_FEATURE_BUILD_ID:
        return take_build_ids(file, b);
    case PERF_FEATURE_HOSTNAME:
        return take_string(&b, &file->hostname);
    case PERF_FEATURE_OSRELEASE:
        return take_string(&b, &file->osrelease);
    case PERF_FEATURE_ARCH:
        return take_string(&b, &file->arch);
    case PERF_FEATURE_NRCPUS:
        return take_u32(&b, &file->cpus);
    case PERF_FEATURE_CPUDESC:
        return take_string(&b, &file->cpudesc);
    case PERF_FEATURE_CPUID:
        return take_string(&b, &file->cpuid);
    case PERF_FEATURE_CMDLINE:
        return take_cmdline(file, b);
    case PERF_FEATURE_EVENT_DESC:
        return take_event_desc(file, b);
    default:
        return true;
    }
}
