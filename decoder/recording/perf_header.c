/* SPDX-License-Identifier: MIT */
/* The header of an exported perf.data and its features. */
#include "decoder/recording/perf_writer.h"

#include <string.h>

static void add_attr(struct etch_perf_writer *w, uint32_t type, uint64_t config, uint64_t flags, uint64_t ids)
{
    static const uint8_t rest[ATTR_SIZE - 48];

    etch_perf_writer_add_u32(w, type);
    etch_perf_writer_add_u32(w, ATTR_SIZE);
    etch_perf_writer_add_u64(w, config);
    etch_perf_writer_add_u64(w, 1); /* sample_period */
    etch_perf_writer_add_u64(w, SAMPLE_TYPE);
    etch_perf_writer_add_u64(w, PERF_FORMAT_ID);
    etch_perf_writer_add_u64(w, flags | ATTR_INHERIT | ATTR_SAMPLE_ID_ALL |
                                    (w->kernel ? 0 : ATTR_EXCLUDE_KERNEL | ATTR_EXCLUDE_HV));
    etch_perf_writer_add_bytes(w, rest, sizeof(rest));
    etch_perf_writer_add_u64(w, ids);
    etch_perf_writer_add_u64(w, 8);
}

static uint64_t pt_event_config(const struct etch_perf_writer *w)
{
    const Etch__PtConfig *pt = etch_perf_writer_pt_config(w);
    uint64_t config = CONFIG_BRANCH | (w->timed ? CONFIG_TSC : 0) | (pt->no_ret_compression ? CONFIG_NORETCOMP : 0);

    if (w->timed && pt->cpuid_15_eax && pt->cpuid_15_ebx)
        config |= CONFIG_MTC | (uint64_t)(pt->mtc_freq & 0xf) << CONFIG_MTC_FREQ_SHIFT;
    return config;
}

static const unsigned features[] = {PERF_FEATURE_HOSTNAME, PERF_FEATURE_OSRELEASE, PERF_FEATURE_ARCH,
                                    PERF_FEATURE_NRCPUS,   PERF_FEATURE_CPUID,     PERF_FEATURE_AUXTRACE};
enum { FEATURES = sizeof(features) / sizeof(features[0]) };

int etch_perf_header_put(struct etch_perf_writer *w, uint64_t data_size)
{
    uint64_t bits[4] = {0};

    if (!etch_perf_writer_begin(w, 0, 0))
        return etch_perf_writer_no_memory(w);
    for (size_t i = 0; i < FEATURES; i++)
        bits[features[i] / 64] |= (uint64_t)1 << features[i] % 64;
    w->record.n = 0;
    etch_perf_writer_add_u64(w, PERF_FILE_MAGIC);
    etch_perf_writer_add_u64(w, PERF_FILE_HEADER_SIZE);
    etch_perf_writer_add_u64(w, ATTR_SIZE + 16);
    etch_perf_writer_add_u64(w, PERF_FILE_HEADER_SIZE + ATTRS * 8);
    etch_perf_writer_add_u64(w, ATTRS * (ATTR_SIZE + 16));
    etch_perf_writer_add_u64(w, DATA_START);
    etch_perf_writer_add_u64(w, data_size);
    etch_perf_writer_add_u64(w, 0);
    etch_perf_writer_add_u64(w, 0);
    etch_perf_writer_add_bytes(w, bits, sizeof(bits));
    etch_perf_writer_add_u64(w, PT_ID);
    etch_perf_writer_add_u64(w, DUMMY_ID);
    add_attr(w, PT_PMU_TYPE, pt_event_config(w), 0, PERF_FILE_HEADER_SIZE);
    add_attr(w, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY,
             ATTR_MMAP | ATTR_COMM | ATTR_TASK | ATTR_MMAP2 | ATTR_COMM_EXEC | ATTR_CONTEXT_SWITCH,
             PERF_FILE_HEADER_SIZE + 8);
    return etch_perf_writer_put(w, w->record.v, w->record.n);
}

static void add_string(struct etch_perf_writer *w, const char *text)
{
    char cut[256];

    snprintf(cut, sizeof(cut), "%s", text);
    etch_perf_writer_add_u32(w, (uint32_t)((strlen(cut) / STRING_ALIGN + 1) * STRING_ALIGN));
    etch_perf_writer_add_text(w, cut, STRING_ALIGN);
}

static uint32_t count_cpus(const struct etch_perf_writer *w)
{
    uint32_t n = w->recording->host && w->recording->host->cpus ? w->recording->host->cpus : 1;

    for (size_t i = 0; i < w->recording->streams.n; i++) {
        const Etch__Stream *s = w->recording->streams.v[i].about;

        if (s->of_case == ETCH__STREAM__OF_CPU && s->cpu >= n && s->cpu < 65536)
            n = s->cpu + 1;
    }
    return n;
}

/* Makes a small feature in `record`. perf decodes PT wherever it runs, but wants to know that an Intel x86-64 wrote it.
 */
static void make_feature(struct etch_perf_writer *w, unsigned feature)
{
    const Etch__Host *host = w->recording->host;
    const Etch__PtConfig *pt = etch_perf_writer_pt_config(w);
    char cpuid[64];

    w->record.n = 0;
    switch (feature) {
    case PERF_FEATURE_HOSTNAME:
        add_string(w, "etch");
        break;
    case PERF_FEATURE_OSRELEASE:
        add_string(w, host ? host->kernel : "");
        break;
    case PERF_FEATURE_ARCH:
        add_string(w, "x86_64");
        break;
    case PERF_FEATURE_NRCPUS:
        etch_perf_writer_add_u32(w, count_cpus(w));
        etch_perf_writer_add_u32(w, count_cpus(w));
        break;
    case PERF_FEATURE_CPUID:
        snprintf(cpuid, sizeof(cpuid), "GenuineIntel,%u,%u,%u", pt->family, pt->model, pt->stepping);
        add_string(w, cpuid);
        break;
    default:
        etch_perf_writer_add_u64(w, w->index.n);
        break;
    }
}

static uint64_t feature_size(const struct etch_perf_writer *w, unsigned feature)
{
    return w->record.n + (feature == PERF_FEATURE_AUXTRACE ? w->index.n * sizeof(struct etch_perf_index_entry) : 0);
}

int etch_perf_features_put(struct etch_perf_writer *w)
{
    uint64_t sections[FEATURES][2], at = w->at + sizeof(sections);

    for (size_t i = 0; i < FEATURES; i++) {
        make_feature(w, features[i]);
        sections[i][0] = at;
        sections[i][1] = feature_size(w, features[i]);
        at += sections[i][1];
    }
    if (etch_perf_writer_put(w, sections, sizeof(sections)) < 0)
        return -1;
    for (size_t i = 0; i < FEATURES; i++) {
        make_feature(w, features[i]);
        if (etch_perf_writer_put(w, w->record.v, w->record.n) < 0)
            return -1;
    }
    return w->index.n ? etch_perf_writer_put(w, w->index.v, w->index.n * sizeof(*w->index.v)) : 0;
}
