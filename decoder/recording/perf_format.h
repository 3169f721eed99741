/* SPDX-License-Identifier: MIT */
/* The numbers of the perf.data format that etch reads and writes: kernel record types and sample bits come from
 * <linux/perf_event.h>, the rest is perf's own and documented in its perf.data-file-format. */
#ifndef ETCH_DECODER_RECORDING_PERF_FORMAT_H
#define ETCH_DECODER_RECORDING_PERF_FORMAT_H

#include <stdint.h>
#include <string.h>

#define PERF_FILE_MAGIC 0x32454c4946524550ull         /* "PERFILE2" */
#define PERF_FILE_MAGIC_SWAPPED 0x50455246494c4532ull /* the same from a big-endian machine */
#define PERF_FILE_HEADER_SIZE 104u
#define PERF_PIPE_HEADER_SIZE 16u

/* Records that the perf tool makes, not the kernel. */
enum {
    PERF_USER_HEADER_ATTR = 64,
    PERF_USER_TRACING_DATA = 66,
    PERF_USER_BUILD_ID = 67,
    PERF_USER_FINISHED_ROUND = 68,
    PERF_USER_AUXTRACE_INFO = 70,
    PERF_USER_AUXTRACE = 71,
    PERF_USER_AUXTRACE_ERROR = 72,
    PERF_USER_EVENT_UPDATE = 78,
    PERF_USER_TIME_CONV = 79,
    PERF_USER_FEATURE = 80,
    PERF_USER_COMPRESSED = 81,
    PERF_USER_COMPRESSED2 = 83,
};

/* Feature sections, by bit. */
enum {
    PERF_FEATURE_BUILD_ID = 2,
    PERF_FEATURE_HOSTNAME = 3,
    PERF_FEATURE_OSRELEASE = 4,
    PERF_FEATURE_ARCH = 6,
    PERF_FEATURE_NRCPUS = 7,
    PERF_FEATURE_CPUDESC = 8,
    PERF_FEATURE_CPUID = 9,
    PERF_FEATURE_CMDLINE = 11,
    PERF_FEATURE_EVENT_DESC = 12,
    PERF_FEATURE_AUXTRACE = 18,
    PERF_FEATURE_DIR_FORMAT = 24,
};

/* The words of an Intel PT AUXTRACE_INFO, behind its type. */
enum {
    PERF_PT_PMU_TYPE,
    PERF_PT_TIME_SHIFT,
    PERF_PT_TIME_MULT,
    PERF_PT_TIME_ZERO,
    PERF_PT_CAP_USER_TIME_ZERO,
    PERF_PT_TSC_BIT,
    PERF_PT_NORETCOMP_BIT,
    PERF_PT_HAVE_SCHED_SWITCH,
    PERF_PT_SNAPSHOT_MODE,
    PERF_PT_PER_CPU_MMAPS,
    PERF_PT_MTC_BIT,
    PERF_PT_MTC_FREQ_BITS,
    PERF_PT_TSC_CTC_N,
    PERF_PT_TSC_CTC_D,
    PERF_PT_CYC_BIT,
    PERF_PT_MAX_NONTURBO_RATIO,
    PERF_PT_FILTER_STR_LEN,
    PERF_PT_WORDS,
};

#define PERF_AUXTRACE_INTEL_PT 1u
#define PERF_AUXTRACE_RECORD_SIZE 48u
#define PERF_BUILD_ID_BYTES 20u
#define PERF_BUILD_ID_SIZE_KNOWN (1u << 15) /* misc of a build-id entry: its length is in byte 20 */

static inline uint16_t perf_u16(const uint8_t *p)
{
    uint16_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

static inline uint32_t perf_u32(const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

static inline uint64_t perf_u64(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

#endif
