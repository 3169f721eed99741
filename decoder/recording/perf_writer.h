/* SPDX-License-Identifier: MIT */
/* Private to the export for perf: the state of a perf.data in the making, and its parts. */
#ifndef ETCH_DECODER_RECORDING_PERF_WRITER_H
#define ETCH_DECODER_RECORDING_PERF_WRITER_H

#include "base/array.h"
#include "decoder/perf_data_write.h"
#include "decoder/recording/perf_data.h"

#include <linux/perf_event.h>

#define ATTR_SIZE PERF_ATTR_SIZE_VER5
#define ATTRS 2u
#define DATA_START (PERF_FILE_HEADER_SIZE + ATTRS * 8 + ATTRS * (ATTR_SIZE + 16u))
#define PT_ID 1u
#define DUMMY_ID 2u
#define PT_PMU_TYPE 8u /* any that is not one of the kernel's fixed ones */
#define COPY_CHUNK (1u << 18)
#define STRING_ALIGN 64u

enum {
    CONFIG_CYC = 1 << 1,
    CONFIG_MTC = 1 << 9,
    CONFIG_TSC = 1 << 10,
    CONFIG_NORETCOMP = 1 << 11,
    CONFIG_BRANCH = 1 << 13
};
#define CONFIG_MTC_FREQ_SHIFT 14

enum attr_flag {
    ATTR_INHERIT = 1 << 1,
    ATTR_EXCLUDE_KERNEL = 1 << 5,
    ATTR_EXCLUDE_HV = 1 << 6,
    ATTR_MMAP = 1 << 8,
    ATTR_COMM = 1 << 9,
    ATTR_TASK = 1 << 13,
    ATTR_SAMPLE_ID_ALL = 1 << 18,
    ATTR_MMAP2 = 1 << 23,
    ATTR_COMM_EXEC = 1 << 24,
    ATTR_CONTEXT_SWITCH = 1 << 26,
};

#define SAMPLE_TYPE                                                                                                    \
    ((uint64_t)(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER))

enum item_kind { ITEM_FORK, ITEM_COMM, ITEM_IMAGE, ITEM_SWITCH, ITEM_AUX, ITEM_EXIT };

/* One record of the side-band. */
struct etch_perf_item {
    uint64_t time; /* perf's; 0: before all */
    enum item_kind kind;
    size_t index; /* in the recording's list */
};

struct etch_perf_index_entry {
    uint64_t offset, size;
};

struct etch_perf_writer {
    const struct etch_recording *recording;
    const struct etch_perf_write_options *options;
    const struct etch_perf_sink *sink; /* NULL while only sizes are taken */
    struct etch_error *err;
    uint64_t at;
    struct etch_perf_time_conv conv;
    bool timed;   /* every stream has TSC packets */
    bool per_cpu; /* streams are CPUs' */
    bool kernel;  /* there is kernel code */
    char *beside;
    ETCH_ARRAY(struct etch_perf_item) items;
    ETCH_ARRAY(struct etch_perf_index_entry) index;
    ETCH_ARRAY(char *) paths;        /* of each image, on this machine */
    ETCH_ARRAY(uint64_t) references; /* of each stream: a time near its first, without which perf takes no TSC packet */
    ETCH_ARRAY(uint8_t) record;
};

int etch_perf_writer_no_memory(struct etch_perf_writer *w);

/* perf's time of a TSC; 0 stays 0. */
uint64_t etch_perf_writer_time(const struct etch_perf_writer *w, uint64_t tsc);

const Etch__PtConfig *etch_perf_writer_pt_config(const struct etch_perf_writer *w);

/* ---- perf_writer.c: bytes and records ---- */

int etch_perf_writer_put(struct etch_perf_writer *w, const void *bytes, size_t size);
void etch_perf_writer_add_bytes(struct etch_perf_writer *w, const void *bytes, size_t size);
void etch_perf_writer_add_u32(struct etch_perf_writer *w, uint32_t value);
void etch_perf_writer_add_u64(struct etch_perf_writer *w, uint64_t value);
void etch_perf_writer_add_text(struct etch_perf_writer *w, const char *text, size_t align);
bool etch_perf_writer_begin(struct etch_perf_writer *w, uint32_t type, uint16_t misc);
int etch_perf_writer_end(struct etch_perf_writer *w);
int etch_perf_writer_end_kernel(struct etch_perf_writer *w, uint32_t pid, uint32_t tid, uint64_t time, uint32_t cpu,
                                uint64_t id);

/* ---- perf_sideband.c: mappings, threads, switches, losses in the order that perf wants ---- */

int etch_perf_sideband_paths(struct etch_perf_writer *w);
int etch_perf_sideband_order(struct etch_perf_writer *w);
int etch_perf_sideband_put(struct etch_perf_writer *w, const struct etch_perf_item *item);

/* ---- perf_header.c ---- */

int etch_perf_header_put(struct etch_perf_writer *w, uint64_t data_size);
int etch_perf_features_put(struct etch_perf_writer *w);

#endif
