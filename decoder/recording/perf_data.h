/* SPDX-License-Identifier: MIT */
/* Reads a perf.data, file or pipe layout, record by record: bytes in through a callback, decoded records out to a
 * visitor. Trusts no byte: what does not fit its own length is counted as damaged and passed over; a file that ends
 * early is read up to there. AUX data is never read here, only pointed at. */
#ifndef ETCH_DECODER_RECORDING_PERF_DATA_H
#define ETCH_DECODER_RECORDING_PERF_DATA_H

#include "base/array.h"
#include "base/error.h"
#include "decoder/recording/perf_format.h"

#include <stdbool.h>
#include <sys/types.h>

/* Where the bytes are: reads up to `size` at `offset`; returns how many, 0 beyond the end, -errno. */
struct etch_perf_source {
    ssize_t (*read)(void *context, void *buffer, size_t size, uint64_t offset);
    void *context;
    uint64_t size; /* of the whole file */
};

struct etch_perf_attr {
    uint32_t type;
    uint64_t config;
    uint64_t sample_type;
    uint64_t read_format;
    uint64_t flags; /* the bit field of perf_event_attr */
    bool sample_id_all;
    char name[64]; /* "" where the file does not say */
    ETCH_ARRAY(uint64_t) ids;
};

struct etch_perf_build_id {
    uint8_t id[PERF_BUILD_ID_BYTES];
    uint8_t size;
    char *path;
};

/* What a file says of itself beside its records. Strings are NULL where it does not say. */
struct etch_perf_file {
    bool pipe;
    bool cut;         /* ends inside a record, or perf never finished its header */
    uint64_t damaged; /* records that contradict their own size */
    ETCH_ARRAY(struct etch_perf_attr) attrs;
    ETCH_ARRAY(struct etch_perf_build_id) build_ids;
    char *hostname, *osrelease, *arch, *cpudesc, *cpuid;
    ETCH_ARRAY(char *) cmdline; /* perf's own */
    uint32_t cpus;
};

/* Of the process, thread and CPU that a record is about, as far as its event sampled them. */
struct etch_perf_sample_id {
    bool has_tid, has_time, has_cpu;
    uint32_t pid, tid, cpu;
    uint64_t time, id; /* perf's clock, ns */
};

struct etch_perf_mmap {
    uint32_t pid, tid;
    uint64_t start, size, offset;
    uint32_t prot;
    const char *path;
    const uint8_t *build_id; /* NULL: none */
    uint8_t build_id_size;
};

struct etch_perf_task {
    uint32_t pid, ppid, tid, ptid;
    uint64_t time;
};

struct etch_perf_auxtrace {
    uint64_t size, offset, reference;
    uint32_t idx, tid, cpu; /* UINT32_MAX: none */
    uint64_t where;         /* of the first byte, in the file */
};

struct etch_perf_auxtrace_info {
    uint32_t type;
    size_t n; /* words that are there, at most PERF_PT_WORDS; the rest is 0 */
    uint64_t words[PERF_PT_WORDS];
    const char *filter; /* "" where there is none */
};

struct etch_perf_time_conv {
    uint64_t shift, mult, zero;
};

struct etch_perf_record {
    uint32_t type;
    uint16_t misc;
    uint16_t size;
    uint64_t where;                    /* in the file; of the COMPRESSED record for what was inside one */
    const struct etch_perf_attr *attr; /* NULL for perf's own records */
    struct etch_perf_sample_id sample;
    const uint8_t *body; /* size - 8 bytes */
    union {
        struct etch_perf_mmap mmap; /* MMAP, MMAP2 */
        struct {
            uint32_t pid, tid;
            const char *name;
        } comm;
        struct etch_perf_task task; /* FORK, EXIT */
        struct {
            uint64_t offset, size, flags;
        } aux;
        struct {
            uint32_t pid, tid;
        } itrace, other; /* other: SWITCH_CPU_WIDE, whom it went to or came from */
        struct {
            uint64_t id, count;
        } lost; /* LOST, LOST_SAMPLES */
        struct {
            const uint8_t *bytes;
            uint32_t size;
        } raw; /* SAMPLE of a tracepoint; size 0 for other samples */
        struct etch_perf_auxtrace auxtrace;
        struct etch_perf_auxtrace_info auxtrace_info;
        struct etch_perf_time_conv time_conv;
        uint64_t hw_id;
    };
};

/* Valid until it returns; other than 0 ends the reading, which returns it. */
typedef int etch_perf_visitor(void *context, const struct etch_perf_file *file, const struct etch_perf_record *record);

/* Reads all of `source`; `file` is filled (release it also after an error). `name` is for messages. Returns 0 also
 * where the file is cut or damaged; what the visitor returned; -1 with `err` set where it is no perf.data that can be
 * read. */
int etch_perf_data_read(const struct etch_perf_source *source, const char *name, struct etch_perf_file *file,
                        etch_perf_visitor *visit, void *context, struct etch_error *err);

void etch_perf_file_release(struct etch_perf_file *file);

/* Fills the parts of `record` behind its header from `body`. Returns 0, or -1 where it contradicts its own size. */
int etch_perf_record_decode(const struct etch_perf_file *file, struct etch_perf_record *record);

/* perf's clock to TSC ticks, as the kernel's mmap page defines it; 0 where mult is 0. */
uint64_t etch_perf_time_to_tsc(const struct etch_perf_time_conv *conv, uint64_t ns);
uint64_t etch_perf_tsc_to_time(const struct etch_perf_time_conv *conv, uint64_t tsc);

#endif
