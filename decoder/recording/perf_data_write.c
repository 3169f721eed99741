/* SPDX-License-Identifier: MIT */
/* The hard part is what perf does with it: it decodes up to the time of each side-band record by the trace's own,
 * sparse stamps. A mapping that nothing else overlaps is therefore there from the beginning; only one that takes
 * another's place (exec, dlclose and dlopen) comes at its time. */
#include "decoder/perf_data_write.h"

#include "base/output.h"
#include "decoder/recording/perf_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- What the streams hold ---- */

static const uint8_t psb[16] = {2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82};

/* The length of a packet that may stand within a PSB group; 0 for one that may not. */
static size_t group_packet_size(const uint8_t *p)
{
    static const uint8_t ip_bytes[8] = {0, 2, 4, 6, 6, 0, 8, 0};

    if (p[0] == 0x00)
        return 1;
    if (p[0] == 0x19)
        return 8;
    if (p[0] == 0x99 || p[0] == 0x59)
        return 2;
    if ((p[0] & 0x1f) == 0x1d)
        return 1u + ip_bytes[p[0] >> 5];
    if (p[0] != 0x02)
        return 0;
    return p[1] == 0x73 || p[1] == 0xc8 ? 7 : p[1] == 0x03 ? 4 : p[1] == 0x43 ? 8 : p[1] == 0xc3 ? 11 : 0;
}

/* The time that a PSB group carries; 0 where it carries none. */
static uint64_t group_tsc(const uint8_t *p, const uint8_t *end)
{
    while (end - p >= 12) {
        size_t n = group_packet_size(p);

        if (p[0] == 0x19)
            return perf_u64(p) >> 8;
        if (n == 0)
            return 0;
        p += n;
    }
    return 0;
}

/* Looks for the time in the stream's first PSB group: 1 with *tsc set, 0 where it has none, -errno. A stream without
 * any PSB decodes to nothing: what its time is does not matter. */
static int find_first_tsc(const struct etch_perf_writer *w, const struct etch_stream *stream, uint8_t *buffer,
                          uint64_t *tsc)
{
    for (size_t i = 0; i < stream->pieces.n; i++) {
        const struct etch_piece *piece = &stream->pieces.v[i];
        uint64_t at = 0;

        while (piece->size - at > sizeof(psb)) {
            ssize_t n = w->recording->read(stream, piece, at, buffer, COPY_CHUNK);
            const uint8_t *hit;

            if (n < 0)
                return (int)n;
            hit = n > 0 ? memmem(buffer, (size_t)n, psb, sizeof(psb)) : NULL;
            if (hit && (hit + 128 <= buffer + n || at + (uint64_t)n >= piece->size || hit == buffer))
                return (*tsc = group_tsc(hit + sizeof(psb), buffer + n)) != 0;
            if (n <= (ssize_t)sizeof(psb))
                break;
            at += hit ? (uint64_t)(hit - buffer) : (uint64_t)n - (sizeof(psb) - 1);
        }
    }
    return 1;
}

static int look_at_streams(struct etch_perf_writer *w)
{
    uint8_t *buffer = malloc(COPY_CHUNK);

    if (!buffer)
        return etch_perf_writer_no_memory(w);
    w->timed = true;
    for (size_t i = 0; i < w->recording->streams.n; i++) {
        const struct etch_stream *stream = &w->recording->streams.v[i];
        uint64_t tsc = 0;
        int status = find_first_tsc(w, stream, buffer, &tsc);

        if (status < 0 || !etch_array_push(&w->references, tsc)) {
            free(buffer);
            return status < 0 ? etch_error_set_errno(w->err, -status, "cannot read the control flow")
                              : etch_perf_writer_no_memory(w);
        }
        w->timed = w->timed && status;
        w->per_cpu = w->per_cpu || stream->about->of_case == ETCH__STREAM__OF_CPU;
    }
    free(buffer);
    return 0;
}

/* Without the kernel's own conversion perf's nanoseconds are TSC ticks. */
static void choose_clock(struct etch_perf_writer *w)
{
    w->conv = (struct etch_perf_time_conv){.shift = 0, .mult = 1, .zero = 0};
    for (size_t i = 0; i < w->recording->clocks.n; i++) {
        const Etch__PerfClock *p = w->recording->clocks.v[i]->perf_clock;

        if (p && p->offered && p->time_mult && p->time_shift < 64) {
            w->conv = (struct etch_perf_time_conv){p->time_shift, p->time_mult, p->time_zero};
            return;
        }
    }
}

/* ---- perf's own records ---- */

static int put_auxtrace_info(struct etch_perf_writer *w)
{
    const Etch__PtConfig *pt = etch_perf_writer_pt_config(w);
    uint64_t words[PERF_PT_WORDS] = {
        [PERF_PT_PMU_TYPE] = PT_PMU_TYPE,
        [PERF_PT_TIME_SHIFT] = w->conv.shift,
        [PERF_PT_TIME_MULT] = w->conv.mult,
        [PERF_PT_TIME_ZERO] = w->conv.zero,
        [PERF_PT_CAP_USER_TIME_ZERO] = w->timed,
        [PERF_PT_TSC_BIT] = CONFIG_TSC,
        [PERF_PT_NORETCOMP_BIT] = CONFIG_NORETCOMP,
        [PERF_PT_HAVE_SCHED_SWITCH] = w->per_cpu && w->recording->switches.n ? 3 : 0,
        [PERF_PT_PER_CPU_MMAPS] = w->per_cpu,
        [PERF_PT_MTC_BIT] = CONFIG_MTC,
        [PERF_PT_MTC_FREQ_BITS] = (uint64_t)0xf << CONFIG_MTC_FREQ_SHIFT,
        [PERF_PT_TSC_CTC_N] = pt->cpuid_15_ebx,
        [PERF_PT_TSC_CTC_D] = pt->cpuid_15_eax,
        [PERF_PT_CYC_BIT] = CONFIG_CYC,
        [PERF_PT_MAX_NONTURBO_RATIO] = pt->nom_freq,
    };

    if (!etch_perf_writer_begin(w, PERF_USER_AUXTRACE_INFO, 0))
        return etch_perf_writer_no_memory(w);
    etch_perf_writer_add_u32(w, PERF_AUXTRACE_INTEL_PT);
    etch_perf_writer_add_u32(w, 0);
    etch_perf_writer_add_bytes(w, words, sizeof(words));
    return etch_perf_writer_end(w);
}

static int put_time_conv(struct etch_perf_writer *w)
{
    if (!w->timed)
        return 0;
    if (!etch_perf_writer_begin(w, PERF_USER_TIME_CONV, 0))
        return etch_perf_writer_no_memory(w);
    etch_perf_writer_add_u64(w, w->conv.shift);
    etch_perf_writer_add_u64(w, w->conv.mult);
    etch_perf_writer_add_u64(w, w->conv.zero);
    return etch_perf_writer_end(w);
}

static int copy_bytes(struct etch_perf_writer *w, const struct etch_stream *stream, const struct etch_piece *piece,
                      uint64_t from, uint64_t size)
{
    uint8_t *buffer;

    if (!w->sink) {
        w->at += size;
        return 0;
    }
    buffer = malloc(COPY_CHUNK);
    if (!buffer)
        return etch_perf_writer_no_memory(w);
    for (uint64_t done = 0; done < size;) {
        size_t want = size - done < COPY_CHUNK ? (size_t)(size - done) : COPY_CHUNK;
        ssize_t n = w->recording->read(stream, piece, from + done, buffer, want);

        if (n <= 0) {
            free(buffer);
            return etch_error_set_errno(w->err, n < 0 ? (int)-n : EIO, "cannot read the control flow");
        }
        if (etch_perf_writer_put(w, buffer, (size_t)n) < 0) {
            free(buffer);
            return -1;
        }
        done += (uint64_t)n;
    }
    free(buffer);
    return 0;
}

/* `n` pieces that follow each other without a hole, as one buffer: perf loses its way where a buffer ends within a
 * packet. */
static int put_auxtrace(struct etch_perf_writer *w, const struct etch_stream *stream, const struct etch_piece *piece,
                        size_t n, uint32_t queue)
{
    uint64_t size = piece[n - 1].offset + piece[n - 1].size - piece->offset;
    bool by_cpu = stream->about->of_case == ETCH__STREAM__OF_CPU;

    if (!w->sink && !etch_array_push(&w->index, ((struct etch_perf_index_entry){w->at, PERF_AUXTRACE_RECORD_SIZE})))
        return etch_perf_writer_no_memory(w);
    if (!etch_perf_writer_begin(w, PERF_USER_AUXTRACE, 0))
        return etch_perf_writer_no_memory(w);
    etch_perf_writer_add_u64(w, size);
    etch_perf_writer_add_u64(w, piece->offset);
    etch_perf_writer_add_u64(w, w->references.v[stream - w->recording->streams.v]);
    etch_perf_writer_add_u32(w, queue);
    etch_perf_writer_add_u32(w, by_cpu ? UINT32_MAX : stream->about->tid);
    etch_perf_writer_add_u32(w, by_cpu ? stream->about->cpu : UINT32_MAX);
    etch_perf_writer_add_u32(w, 0);
    if (etch_perf_writer_end(w) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (copy_bytes(w, stream, &piece[i], 0, piece[i].size) < 0)
            return -1;
    return 0;
}

/* perf takes the buffers of a queue for one sequence: behind a hole a new queue begins, which starts at its first PSB.
 */
static int put_streams(struct etch_perf_writer *w)
{
    uint32_t queue = 0;

    for (size_t i = 0; i < w->recording->streams.n; i++) {
        const struct etch_stream *stream = &w->recording->streams.v[i];
        size_t n;

        for (size_t k = 0; k < stream->pieces.n; k += n) {
            const struct etch_piece *piece = &stream->pieces.v[k];

            for (n = 1; k + n < stream->pieces.n && piece[n].offset == piece[n - 1].offset + piece[n - 1].size;)
                n++;
            queue += k > 0;
            if (piece->size && put_auxtrace(w, stream, piece, n, queue) < 0)
                return -1;
        }
        queue++;
    }
    return 0;
}

static int put_records(struct etch_perf_writer *w)
{
    if (put_time_conv(w) < 0 || put_auxtrace_info(w) < 0)
        return -1;
    for (size_t i = 0; i < w->items.n; i++)
        if (etch_perf_sideband_put(w, &w->items.v[i]) < 0)
            return -1;
    return put_streams(w);
}

/* ---- Writing ---- */

static int prepare(struct etch_perf_writer *w)
{
    const char *path = w->recording->path ? w->recording->path : "";
    const char *slash = strrchr(path, '/');

    w->beside = slash ? strndup(path, (size_t)(slash - path) + (slash == path)) : strdup(".");
    if (!w->beside)
        return etch_perf_writer_no_memory(w);
    choose_clock(w);
    if (w->recording->streams.n == 0)
        return etch_error_set(w->err, "there is no control flow to write as perf.data");
    for (size_t i = 0; i < w->recording->streams.n; i++)
        if (w->recording->streams.v[i].about->source == ETCH__SOURCE__SOURCE_SOFT)
            return etch_error_set(w->err,
                                  "the software recorder's control flow is not Intel PT: perf cannot decode it");
    return look_at_streams(w) < 0 || etch_perf_sideband_paths(w) < 0 ? -1 : etch_perf_sideband_order(w);
}

/* Once for the sizes, which perf wants in front, and once for the bytes. */
static int write_all(struct etch_perf_writer *w, const struct etch_perf_sink *sink)
{
    uint64_t data_size;

    w->at = DATA_START;
    if (put_records(w) < 0)
        return -1;
    data_size = w->at - DATA_START;
    w->at = 0;
    w->sink = sink;
    return etch_perf_header_put(w, data_size) < 0 || put_records(w) < 0 || etch_perf_features_put(w) < 0 ? -1 : 0;
}

int etch_perf_data_write(const struct etch_recording *recording, const struct etch_perf_write_options *options,
                         const struct etch_perf_sink *sink, struct etch_error *err)
{
    struct etch_perf_writer w = {.recording = recording, .options = options, .err = err};
    int status;

    err->what[0] = '\0';
    status = prepare(&w);
    if (status == 0)
        status = write_all(&w, sink);
    for (size_t i = 0; i < w.paths.n; i++)
        free(w.paths.v[i]);
    etch_array_free(&w.paths);
    etch_array_free(&w.items);
    etch_array_free(&w.index);
    etch_array_free(&w.references);
    etch_array_free(&w.record);
    free(w.beside);
    return status;
}

static int write_stdio(void *context, const void *bytes, size_t size)
{
    return fwrite(bytes, 1, size, context) == size ? 0 : -errno;
}

int etch_perf_data_write_file(const struct etch_recording *recording, const char *sysroot, const char *path,
                              struct etch_error *err)
{
    struct etch_perf_write_options options = {.sysroot = sysroot};
    struct etch_perf_sink sink = {.write = write_stdio};
    char *folder = NULL;
    struct etch_output *out;
    int status = -1;

    if (etch_output_report(&out, path, err) < 0)
        return -1;
    sink.context = etch_output_stream(out);
    if (!sink.context || asprintf(&folder, "%s.code", path) < 0) {
        folder = NULL;
        etch_error_set_errno(err, ENOMEM, "cannot write %s", path);
    } else {
        options.code_folder = folder;
        status = etch_perf_data_write(recording, &options, &sink, err);
    }
    if (status == 0)
        status = etch_output_finish(out, err);
    else
        etch_output_discard(out);
    free(folder);
    return status;
}
