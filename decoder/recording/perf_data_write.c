/* SPDX-License-Identifier: MIT */
/* The hard part is what perf does with it: it decodes up to the time of each side-band record by the trace's own,
 * sparse stamps. A mapping that nothing else overlaps is therefore there from the beginning; only one that takes
 * another's place (exec, dlclose and dlopen) comes at its time. */
#include "decoder/perf_data_write.h"

#include "base/output.h"
#include "binary/find_binary.h"
#include "decoder/recording/perf_data.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

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
struct item {
    uint64_t time; /* perf's; 0: before all */
    enum item_kind kind;
    size_t index; /* in the recording's list */
};

struct index_entry {
    uint64_t offset, size;
};

struct writer {
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
    ETCH_ARRAY(struct item) items;
    ETCH_ARRAY(struct index_entry) index;
    ETCH_ARRAY(char *) paths;        /* of each image, on this machine */
    ETCH_ARRAY(uint64_t) references; /* of each stream: a time near its first, without which perf takes no TSC packet */
    ETCH_ARRAY(uint8_t) record;
};

static int no_memory(struct writer *w)
{
    return etch_error_set(w->err, "cannot write a perf.data: out of memory");
}

static uint64_t to_time(const struct writer *w, uint64_t tsc)
{
    return tsc ? etch_perf_tsc_to_time(&w->conv, tsc) : 0;
}

/* ---- Bytes ---- */

static int put(struct writer *w, const void *bytes, size_t size)
{
    int status = w->sink ? w->sink->write(w->sink->context, bytes, size) : 0;

    if (status < 0)
        return etch_error_set_errno(w->err, -status, "cannot write the perf.data");
    w->at += size;
    return 0;
}

static void add_bytes(struct writer *w, const void *bytes, size_t size)
{
    if (!etch_array_reserve(&w->record, w->record.n + size))
        return;
    memcpy(w->record.v + w->record.n, bytes, size);
    w->record.n += size;
}

static void add_u32(struct writer *w, uint32_t value)
{
    add_bytes(w, &value, sizeof(value));
}

static void add_u64(struct writer *w, uint64_t value)
{
    add_bytes(w, &value, sizeof(value));
}

/* With its end, filled up to a multiple of `align` bytes. */
static void add_text(struct writer *w, const char *text, size_t align)
{
    static const char zeroes[STRING_ALIGN];
    size_t n = strlen(text);

    add_bytes(w, text, n);
    add_bytes(w, zeroes, align - n % align);
}

/* No record that is begun here outgrows this: paths are cut, and a path so long cannot be opened anyway. */
static bool begin_record(struct writer *w, uint32_t type, uint16_t misc)
{
    w->record.n = 0;
    if (!etch_array_reserve(&w->record, 65536))
        return false;
    add_u32(w, type);
    add_u32(w, misc);
    return true;
}

static int end_record(struct writer *w)
{
    uint16_t size = (uint16_t)w->record.n;

    memcpy(w->record.v + 6, &size, sizeof(size));
    return put(w, w->record.v, w->record.n);
}

/* What the sample_id_all of our events promises behind each kernel record. */
static int end_kernel_record(struct writer *w, uint32_t pid, uint32_t tid, uint64_t time, uint32_t cpu, uint64_t id)
{
    add_u32(w, pid);
    add_u32(w, tid);
    add_u64(w, time);
    add_u64(w, cpu);
    add_u64(w, id);
    return end_record(w);
}

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
static int find_first_tsc(const struct writer *w, const struct etch_stream *stream, uint8_t *buffer, uint64_t *tsc)
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

static int look_at_streams(struct writer *w)
{
    uint8_t *buffer = malloc(COPY_CHUNK);

    if (!buffer)
        return no_memory(w);
    w->timed = true;
    for (size_t i = 0; i < w->recording->streams.n; i++) {
        const struct etch_stream *stream = &w->recording->streams.v[i];
        uint64_t tsc = 0;
        int status = find_first_tsc(w, stream, buffer, &tsc);

        if (status < 0 || !etch_array_push(&w->references, tsc)) {
            free(buffer);
            return status < 0 ? etch_error_set_errno(w->err, -status, "cannot read the control flow") : no_memory(w);
        }
        w->timed = w->timed && status;
        w->per_cpu = w->per_cpu || stream->about->of_case == ETCH__STREAM__OF_CPU;
    }
    free(buffer);
    return 0;
}

/* Without the kernel's own conversion perf's nanoseconds are TSC ticks. */
static void choose_clock(struct writer *w)
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

/* ---- Images ---- */

/* Has another mapping of the process been there before at these addresses? */
static bool takes_a_place(const struct etch_recording *r, size_t i)
{
    const Etch__Image *image = r->images.v[i];

    for (size_t k = 0; k < r->images.n; k++) {
        const Etch__Image *other = r->images.v[k];

        if (k != i && other->pid == image->pid && other->start < image->start + image->size &&
            image->start < other->start + other->size && other->mapped_tsc < image->mapped_tsc)
            return true;
    }
    return false;
}

static char *extract_code(struct writer *w, const Etch__Image *image)
{
    const char *folder = w->options->code_folder;
    char *path = NULL;

    if (mkdir(folder, 0700) < 0 && errno != EEXIST) {
        etch_error_set_errno(w->err, errno, "cannot make the folder %s", folder);
        return NULL;
    }
    if (asprintf(&path, "%s/%u-%" PRIx64, folder, image->pid, image->start) < 0) {
        no_memory(w);
        return NULL;
    }
    if (etch_output_write(path, image->code.data, image->code.len, w->err) < 0) {
        free(path);
        return NULL;
    }
    return path;
}

static int find_paths(struct writer *w)
{
    struct etch_binary_places places = {.sysroot = w->options->sysroot, .beside = w->beside};

    for (size_t i = 0; i < w->recording->images.n; i++) {
        const Etch__Image *image = w->recording->images.v[i];
        char found[PATH_MAX], *full = NULL, *path;

        w->kernel = w->kernel || image->start >> 63;
        if (image->code.len && w->options->code_folder) {
            path = extract_code(w, image);
            full = path ? realpath(path, NULL) : NULL;
        } else {
            bool there = etch_find_binary(image, &places, found) >= ETCH_BINARY_UNCHECKED;

            full = there ? realpath(found, NULL) : NULL;
            path = strdup(image->path);
        }
        if (full) {
            free(path);
            path = full;
        }
        if (!path)
            return w->err->what[0] ? -1 : no_memory(w);
        if (!etch_array_push(&w->paths, path)) {
            free(path);
            return no_memory(w);
        }
    }
    return 0;
}

/* ---- The side-band in order ---- */

static bool add_item(struct writer *w, uint64_t time, enum item_kind kind, size_t index)
{
    return etch_array_push(&w->items, ((struct item){w->timed ? time : 0, kind, index}));
}

static uint64_t process_start(const struct etch_recording *r, uint32_t pid)
{
    for (size_t i = 0; i < r->threads.n; i++)
        if (r->threads.v[i]->pid == pid && r->threads.v[i]->tid == pid && r->threads.v[i]->parent_pid &&
            r->threads.v[i]->parent_pid != pid)
            return r->threads.v[i]->start_tsc;
    return 0;
}

/* A new process is forked at its time, so that it gets what its parent had mapped; a new thread is there from the
 * beginning. */
static bool add_threads(struct writer *w)
{
    const struct etch_recording *r = w->recording;

    for (size_t i = 0; i < r->threads.n; i++) {
        const Etch__Thread *t = r->threads.v[i];
        uint64_t time = to_time(w, process_start(r, t->pid));

        if (t->parent_pid && t->parent_tid && t->tid != t->parent_tid && !add_item(w, time, ITEM_FORK, i))
            return false;
        if (!add_item(w, time, ITEM_COMM, i))
            return false;
        if (t->end_tsc && !add_item(w, UINT64_MAX - 1, ITEM_EXIT, i))
            return false;
    }
    return true;
}

static bool add_images(struct writer *w)
{
    const struct etch_recording *r = w->recording;

    for (size_t i = 0; i < r->images.n; i++) {
        const Etch__Image *image = r->images.v[i];
        uint64_t tsc = process_start(r, image->pid);

        if (!(image->prot & 4))
            continue;
        if (image->mapped_tsc > tsc && takes_a_place(r, i))
            tsc = image->mapped_tsc;
        if (!add_item(w, to_time(w, tsc), ITEM_IMAGE, i))
            return false;
    }
    return true;
}

static bool add_others(struct writer *w)
{
    const struct etch_recording *r = w->recording;

    for (size_t i = 0; w->per_cpu && i < r->switches.n; i++) {
        const Etch__Switch *s = &r->switches.v[i];

        if (!add_item(w, s->perf_ns && w->conv.mult != 1 ? s->perf_ns : to_time(w, s->tsc), ITEM_SWITCH, i))
            return false;
    }
    for (size_t i = 0; i < r->losses.n; i++) {
        Etch__LossCause cause = r->losses.v[i]->cause;

        if (cause >= ETCH__LOSS_CAUSE__LOSS_AUX_TRUNCATED && cause <= ETCH__LOSS_CAUSE__LOSS_AUX_COLLISION &&
            !add_item(w, to_time(w, r->losses.v[i]->tsc), ITEM_AUX, i))
            return false;
    }
    return true;
}

static int compare_items(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Threads end when all else is over: perf forgets a thread that has ended, and its trace may still be undecoded. */
static void end_threads_last(struct writer *w)
{
    uint64_t last = 0;

    for (size_t i = 0; i < w->items.n; i++)
        if (w->items.v[i].kind != ITEM_EXIT && w->items.v[i].time > last)
            last = w->items.v[i].time;
    for (size_t i = 0; i < w->recording->threads.n; i++)
        if (to_time(w, w->recording->threads.v[i]->end_tsc) > last)
            last = to_time(w, w->recording->threads.v[i]->end_tsc);
    for (size_t i = 0; i < w->items.n; i++)
        if (w->items.v[i].kind == ITEM_EXIT && w->timed)
            w->items.v[i].time = last + 1;
}

static int order_items(struct writer *w)
{
    if (!add_threads(w) || !add_images(w) || !add_others(w))
        return no_memory(w);
    end_threads_last(w);
    if (w->items.n)
        qsort(w->items.v, w->items.n, sizeof(*w->items.v), compare_items);
    return 0;
}

static int put_task(struct writer *w, uint32_t type, const Etch__Thread *t, uint64_t time)
{
    if (!begin_record(w, type, 0))
        return no_memory(w);
    add_u32(w, t->pid);
    add_u32(w, type == PERF_RECORD_FORK ? t->parent_pid : t->pid);
    add_u32(w, t->tid);
    add_u32(w, type == PERF_RECORD_FORK ? t->parent_tid : t->tid);
    add_u64(w, time);
    return end_kernel_record(w, t->pid, t->tid, time, UINT32_MAX, DUMMY_ID);
}

static int put_comm(struct writer *w, const Etch__Thread *t, uint64_t time)
{
    char name[16];

    snprintf(name, sizeof(name), "%s", t->name);
    if (!begin_record(w, PERF_RECORD_COMM, PERF_RECORD_MISC_USER))
        return no_memory(w);
    add_u32(w, t->pid);
    add_u32(w, t->tid);
    add_text(w, name, 8);
    return end_kernel_record(w, t->pid, t->tid, time, UINT32_MAX, DUMMY_ID);
}

static int put_image(struct writer *w, size_t i, uint64_t time)
{
    const Etch__Image *image = w->recording->images.v[i];
    bool has_id = image->build_id.len > 0 && image->build_id.len <= PERF_BUILD_ID_BYTES;
    uint8_t id[24] = {0};
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s", w->paths.v[i]);
    if (!begin_record(w, PERF_RECORD_MMAP2,
                      (uint16_t)((image->pid == UINT32_MAX ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER) |
                                 (has_id ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0))))
        return no_memory(w);
    if (has_id) {
        id[0] = (uint8_t)image->build_id.len;
        memcpy(id + 4, image->build_id.data, image->build_id.len);
    }
    add_u32(w, image->pid);
    add_u32(w, image->pid == UINT32_MAX ? 0 : image->pid);
    add_u64(w, image->start);
    add_u64(w, image->size);
    add_u64(w, image->code.len && w->options->code_folder ? 0 : image->file_offset);
    add_bytes(w, id, sizeof(id));
    add_u32(w, image->prot);
    add_u32(w, 2); /* MAP_PRIVATE */
    add_text(w, path, 8);
    return end_kernel_record(w, image->pid, image->pid, time, UINT32_MAX, DUMMY_ID);
}

/* perf takes the thread that comes from the record of the one that leaves. */
static int put_switch(struct writer *w, size_t i, uint64_t time)
{
    const Etch__Switch *s = &w->recording->switches.v[i], *next = NULL;

    if (!s->in && i + 1 < w->recording->switches.n && w->recording->switches.v[i + 1].cpu == s->cpu &&
        w->recording->switches.v[i + 1].in)
        next = &w->recording->switches.v[i + 1];
    if (!begin_record(w, PERF_RECORD_SWITCH_CPU_WIDE, s->in ? 0 : PERF_RECORD_MISC_SWITCH_OUT))
        return no_memory(w);
    add_u32(w, next ? next->pid : 0);
    add_u32(w, next ? next->tid : 0);
    return end_kernel_record(w, s->pid, s->tid, time, s->cpu, DUMMY_ID);
}

static int put_aux(struct writer *w, const Etch__Loss *loss, uint64_t time)
{
    static const uint64_t flags[] = {PERF_AUX_FLAG_TRUNCATED, PERF_AUX_FLAG_PARTIAL, PERF_AUX_FLAG_COLLISION};

    if (!begin_record(w, PERF_RECORD_AUX, 0))
        return no_memory(w);
    add_u64(w, loss->offset);
    add_u64(w, 0);
    add_u64(w, flags[loss->cause - ETCH__LOSS_CAUSE__LOSS_AUX_TRUNCATED]);
    return end_kernel_record(w, loss->tid, loss->tid, time, w->per_cpu ? loss->cpu : UINT32_MAX, PT_ID);
}

static int put_item(struct writer *w, const struct item *item)
{
    const struct etch_recording *r = w->recording;

    switch (item->kind) {
    case ITEM_FORK:
        return put_task(w, PERF_RECORD_FORK, r->threads.v[item->index], item->time);
    case ITEM_COMM:
        return put_comm(w, r->threads.v[item->index], item->time);
    case ITEM_IMAGE:
        return put_image(w, item->index, item->time);
    case ITEM_SWITCH:
        return put_switch(w, item->index, item->time);
    case ITEM_AUX:
        return put_aux(w, r->losses.v[item->index], item->time);
    case ITEM_EXIT:
        return put_task(w, PERF_RECORD_EXIT, r->threads.v[item->index], item->time);
    }
    return 0;
}

/* ---- perf's own records ---- */

static const Etch__PtConfig *pt_config(const struct writer *w)
{
    static const Etch__PtConfig unknown = ETCH__PT_CONFIG__INIT;

    return w->recording->streams.n && w->recording->streams.v[0].about->pt ? w->recording->streams.v[0].about->pt
                                                                           : &unknown;
}

static int put_auxtrace_info(struct writer *w)
{
    const Etch__PtConfig *pt = pt_config(w);
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

    if (!begin_record(w, PERF_USER_AUXTRACE_INFO, 0))
        return no_memory(w);
    add_u32(w, PERF_AUXTRACE_INTEL_PT);
    add_u32(w, 0);
    add_bytes(w, words, sizeof(words));
    return end_record(w);
}

static int put_time_conv(struct writer *w)
{
    if (!w->timed)
        return 0;
    if (!begin_record(w, PERF_USER_TIME_CONV, 0))
        return no_memory(w);
    add_u64(w, w->conv.shift);
    add_u64(w, w->conv.mult);
    add_u64(w, w->conv.zero);
    return end_record(w);
}

static int copy_bytes(struct writer *w, const struct etch_stream *stream, const struct etch_piece *piece, uint64_t from,
                      uint64_t size)
{
    uint8_t *buffer;

    if (!w->sink) {
        w->at += size;
        return 0;
    }
    buffer = malloc(COPY_CHUNK);
    if (!buffer)
        return no_memory(w);
    for (uint64_t done = 0; done < size;) {
        size_t want = size - done < COPY_CHUNK ? (size_t)(size - done) : COPY_CHUNK;
        ssize_t n = w->recording->read(stream, piece, from + done, buffer, want);

        if (n <= 0) {
            free(buffer);
            return etch_error_set_errno(w->err, n < 0 ? (int)-n : EIO, "cannot read the control flow");
        }
        if (put(w, buffer, (size_t)n) < 0) {
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
static int put_auxtrace(struct writer *w, const struct etch_stream *stream, const struct etch_piece *piece, size_t n,
                        uint32_t queue)
{
    uint64_t size = piece[n - 1].offset + piece[n - 1].size - piece->offset;
    bool by_cpu = stream->about->of_case == ETCH__STREAM__OF_CPU;

    if (!w->sink && !etch_array_push(&w->index, ((struct index_entry){w->at, PERF_AUXTRACE_RECORD_SIZE})))
        return no_memory(w);
    if (!begin_record(w, PERF_USER_AUXTRACE, 0))
        return no_memory(w);
    add_u64(w, size);
    add_u64(w, piece->offset);
    add_u64(w, w->references.v[stream - w->recording->streams.v]);
    add_u32(w, queue);
    add_u32(w, by_cpu ? UINT32_MAX : stream->about->tid);
    add_u32(w, by_cpu ? stream->about->cpu : UINT32_MAX);
    add_u32(w, 0);
    if (end_record(w) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (copy_bytes(w, stream, &piece[i], 0, piece[i].size) < 0)
            return -1;
    return 0;
}

/* perf takes the buffers of a queue for one sequence: behind a hole a new queue begins, which starts at its first PSB.
 */
static int put_streams(struct writer *w)
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

static int put_records(struct writer *w)
{
    if (put_time_conv(w) < 0 || put_auxtrace_info(w) < 0)
        return -1;
    for (size_t i = 0; i < w->items.n; i++)
        if (put_item(w, &w->items.v[i]) < 0)
            return -1;
    return put_streams(w);
}

/* ---- Header and features ---- */

static void add_attr(struct writer *w, uint32_t type, uint64_t config, uint64_t flags, uint64_t ids)
{
    static const uint8_t rest[ATTR_SIZE - 48];

    add_u32(w, type);
    add_u32(w, ATTR_SIZE);
    add_u64(w, config);
    add_u64(w, 1); /* sample_period */
    add_u64(w, SAMPLE_TYPE);
    add_u64(w, PERF_FORMAT_ID);
    add_u64(w, flags | ATTR_INHERIT | ATTR_SAMPLE_ID_ALL | (w->kernel ? 0 : ATTR_EXCLUDE_KERNEL | ATTR_EXCLUDE_HV));
    add_bytes(w, rest, sizeof(rest));
    add_u64(w, ids);
    add_u64(w, 8);
}

static uint64_t pt_event_config(const struct writer *w)
{
    const Etch__PtConfig *pt = pt_config(w);
    uint64_t config = CONFIG_BRANCH | (w->timed ? CONFIG_TSC : 0) | (pt->no_ret_compression ? CONFIG_NORETCOMP : 0);

    if (w->timed && pt->cpuid_15_eax && pt->cpuid_15_ebx)
        config |= CONFIG_MTC | (uint64_t)(pt->mtc_freq & 0xf) << CONFIG_MTC_FREQ_SHIFT;
    return config;
}

static const unsigned features[] = {PERF_FEATURE_HOSTNAME, PERF_FEATURE_OSRELEASE, PERF_FEATURE_ARCH,
                                    PERF_FEATURE_NRCPUS,   PERF_FEATURE_CPUID,     PERF_FEATURE_AUXTRACE};
enum { FEATURES = sizeof(features) / sizeof(features[0]) };

static int put_header(struct writer *w, uint64_t data_size)
{
    uint64_t bits[4] = {0};

    if (!begin_record(w, 0, 0))
        return no_memory(w);
    for (size_t i = 0; i < FEATURES; i++)
        bits[features[i] / 64] |= (uint64_t)1 << features[i] % 64;
    w->record.n = 0;
    add_u64(w, PERF_FILE_MAGIC);
    add_u64(w, PERF_FILE_HEADER_SIZE);
    add_u64(w, ATTR_SIZE + 16);
    add_u64(w, PERF_FILE_HEADER_SIZE + ATTRS * 8);
    add_u64(w, ATTRS * (ATTR_SIZE + 16));
    add_u64(w, DATA_START);
    add_u64(w, data_size);
    add_u64(w, 0);
    add_u64(w, 0);
    add_bytes(w, bits, sizeof(bits));
    add_u64(w, PT_ID);
    add_u64(w, DUMMY_ID);
    add_attr(w, PT_PMU_TYPE, pt_event_config(w), 0, PERF_FILE_HEADER_SIZE);
    add_attr(w, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY,
             ATTR_MMAP | ATTR_COMM | ATTR_TASK | ATTR_MMAP2 | ATTR_COMM_EXEC | ATTR_CONTEXT_SWITCH,
             PERF_FILE_HEADER_SIZE + 8);
    return put(w, w->record.v, w->record.n);
}

static void add_string(struct writer *w, const char *text)
{
    char cut[256];

    snprintf(cut, sizeof(cut), "%s", text);
    add_u32(w, (uint32_t)((strlen(cut) / STRING_ALIGN + 1) * STRING_ALIGN));
    add_text(w, cut, STRING_ALIGN);
}

static uint32_t count_cpus(const struct writer *w)
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
static void make_feature(struct writer *w, unsigned feature)
{
    const Etch__Host *host = w->recording->host;
    const Etch__PtConfig *pt = pt_config(w);
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
        add_u32(w, count_cpus(w));
        add_u32(w, count_cpus(w));
        break;
    case PERF_FEATURE_CPUID:
        snprintf(cpuid, sizeof(cpuid), "GenuineIntel,%u,%u,%u", pt->family, pt->model, pt->stepping);
        add_string(w, cpuid);
        break;
    default:
        add_u64(w, w->index.n);
        break;
    }
}

static uint64_t feature_size(const struct writer *w, unsigned feature)
{
    return w->record.n + (feature == PERF_FEATURE_AUXTRACE ? w->index.n * sizeof(struct index_entry) : 0);
}

static int put_features(struct writer *w)
{
    uint64_t sections[FEATURES][2], at = w->at + sizeof(sections);

    for (size_t i = 0; i < FEATURES; i++) {
        make_feature(w, features[i]);
        sections[i][0] = at;
        sections[i][1] = feature_size(w, features[i]);
        at += sections[i][1];
    }
    if (put(w, sections, sizeof(sections)) < 0)
        return -1;
    for (size_t i = 0; i < FEATURES; i++) {
        make_feature(w, features[i]);
        if (put(w, w->record.v, w->record.n) < 0)
            return -1;
    }
    return w->index.n ? put(w, w->index.v, w->index.n * sizeof(*w->index.v)) : 0;
}

/* ---- Writing ---- */

static int prepare(struct writer *w)
{
    const char *path = w->recording->path ? w->recording->path : "";
    const char *slash = strrchr(path, '/');

    w->beside = slash ? strndup(path, (size_t)(slash - path) + (slash == path)) : strdup(".");
    if (!w->beside)
        return no_memory(w);
    choose_clock(w);
    if (w->recording->streams.n == 0)
        return etch_error_set(w->err, "there is no control flow to write as perf.data");
    for (size_t i = 0; i < w->recording->streams.n; i++)
        if (w->recording->streams.v[i].about->source == ETCH__SOURCE__SOURCE_SOFT)
            return etch_error_set(w->err,
                                  "the software recorder's control flow is not Intel PT: perf cannot decode it");
    return look_at_streams(w) < 0 || find_paths(w) < 0 ? -1 : order_items(w);
}

/* Once for the sizes, which perf wants in front, and once for the bytes. */
static int write_all(struct writer *w, const struct etch_perf_sink *sink)
{
    uint64_t data_size;

    w->at = DATA_START;
    if (put_records(w) < 0)
        return -1;
    data_size = w->at - DATA_START;
    w->at = 0;
    w->sink = sink;
    return put_header(w, data_size) < 0 || put_records(w) < 0 || put_features(w) < 0 ? -1 : 0;
}

int etch_perf_data_write(const struct etch_recording *recording, const struct etch_perf_write_options *options,
                         const struct etch_perf_sink *sink, struct etch_error *err)
{
    struct writer w = {.recording = recording, .options = options, .err = err};
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
