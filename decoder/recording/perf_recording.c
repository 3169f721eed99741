/* SPDX-License-Identifier: MIT */
/* From the records of a perf.data to a recording: streams of AUX data, mappings with the times at which they came and
 * went, threads, switches, losses. Records of different CPUs are not in order in the file: the side-band is gathered,
 * sorted by time and then applied. */
#include "decoder/recording/perf_recording.h"
#include "decoder/recording/cuts.h"
#include "decoder/recording/perf_overlap.h"
#include "decoder/recording/recording_fill.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define IMAGES_MAX (1u << 22)

/* A record of the side-band, kept until all are there. */
struct event {
    uint64_t time;
    size_t order; /* in the file, for those of equal time */
    uint32_t type;
    uint16_t misc;
    struct etch_perf_sample_id sample;
    union {
        struct etch_perf_mmap mmap; /* path is `name` */
        struct etch_perf_task task;
        struct {
            uint32_t pid, tid;
        } pair;
        struct {
            uint64_t offset, size, flags;
        } aux;
        uint64_t lost;
    };
    char *name;
    uint8_t build_id[PERF_BUILD_ID_BYTES];
};

/* A snapshot's bytes in the file, with those that the one before it had too. */
struct copy {
    uint64_t where, size;
};

/* What a process has mapped now, while the events are applied: indices of the recording's images. */
struct process {
    uint32_t pid;
    ETCH_ARRAY(size_t) live;
};

struct loader {
    struct etch_recording *recording;
    struct etch_perf_source source;
    struct etch_perf_file file;
    const char *name;
    struct etch_error *err;
    int fd; /* -1 where the source is the caller's */
    bool has_info, has_conv;
    struct etch_perf_auxtrace_info info;
    uint32_t filters;
    struct etch_perf_time_conv conv;
    ETCH_ARRAY(struct event) events;
    ETCH_ARRAY(struct etch_perf_auxtrace) auxtraces;
    ETCH_ARRAY(struct copy) copies; /* by stream id: the last snapshot's */
    ETCH_ARRAY(struct process) processes;
    size_t last_process; /* the one that was asked for last */
    uint64_t first_ns;
};

static int no_memory(struct loader *l)
{
    return etch_error_set(l->err, "cannot read %s: out of memory", l->name);
}

static uint64_t to_tsc(const struct loader *l, uint64_t ns)
{
    return l->has_conv && ns ? etch_perf_time_to_tsc(&l->conv, ns) : 0;
}

/* ---- Gathering ---- */

/* The kernel's sched_switch: prev_pid and next_pid have stood at these places since the tracepoint exists. */
enum { SCHED_SWITCH_PREV = 24, SCHED_SWITCH_NEXT = 56, SCHED_SWITCH_SIZE = 64 };

static bool is_sched_switch(const struct etch_perf_record *r)
{
    return r->type == PERF_RECORD_SAMPLE && r->attr && r->attr->type == PERF_TYPE_TRACEPOINT &&
           strstr(r->attr->name, "sched_switch") && r->raw.size >= SCHED_SWITCH_SIZE;
}

static bool wanted(const struct etch_perf_record *r)
{
    switch (r->type) {
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
    case PERF_RECORD_COMM:
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
    case PERF_RECORD_AUX:
    case PERF_RECORD_ITRACE_START:
    case PERF_RECORD_LOST:
    case PERF_RECORD_LOST_SAMPLES:
    case PERF_RECORD_SWITCH:
    case PERF_RECORD_SWITCH_CPU_WIDE:
        return true;
    default:
        return is_sched_switch(r);
    }
}

static bool fill_event(struct event *e, const struct etch_perf_record *r)
{
    const char *name = NULL;

    switch (r->type) {
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        e->mmap = r->mmap;
        if (r->mmap.build_id)
            memcpy(e->build_id, r->mmap.build_id, r->mmap.build_id_size);
        e->mmap.path = NULL;
        e->mmap.build_id = NULL;
        name = r->mmap.path;
        break;
    case PERF_RECORD_COMM:
        e->pair.pid = r->comm.pid;
        e->pair.tid = r->comm.tid;
        name = r->comm.name;
        break;
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        e->task = r->task;
        break;
    case PERF_RECORD_AUX:
        e->aux.offset = r->aux.offset;
        e->aux.size = r->aux.size;
        e->aux.flags = r->aux.flags;
        break;
    case PERF_RECORD_LOST:
    case PERF_RECORD_LOST_SAMPLES:
        e->lost = r->lost.count;
        break;
    case PERF_RECORD_SAMPLE:
        e->pair.pid = perf_u32(r->raw.bytes + SCHED_SWITCH_PREV);
        e->pair.tid = perf_u32(r->raw.bytes + SCHED_SWITCH_NEXT);
        break;
    default: /* a switch's other side is not needed: it has a record of its own */
        e->pair.pid = r->other.pid;
        e->pair.tid = r->other.tid;
        break;
    }
    e->name = name ? strdup(name) : NULL;
    return !name || e->name;
}

static int gather_event(struct loader *l, const struct etch_perf_record *r)
{
    struct event e = {
        .time = r->sample.has_time ? r->sample.time : 0,
        .order = l->events.n,
        .type = r->type,
        .misc = r->misc,
        .sample = r->sample,
    };

    /* The kernel's own stamp of a fork or an exit is there even without sample ids. */
    if ((r->type == PERF_RECORD_FORK || r->type == PERF_RECORD_EXIT) && !e.time)
        e.time = r->task.time;
    if (e.time && (!l->first_ns || e.time < l->first_ns))
        l->first_ns = e.time;
    if (!fill_event(&e, r) || !etch_array_push(&l->events, e)) {
        free(e.name);
        return no_memory(l);
    }
    return 0;
}

static int gather_info(struct loader *l, const struct etch_perf_auxtrace_info *info)
{
    const uint64_t *w = info->words;

    if (info->type != PERF_AUXTRACE_INTEL_PT) {
        etch_error_set(l->err, "%s holds an instruction trace that is not Intel PT (type %u)", l->name, info->type);
        return -1;
    }
    l->has_info = true;
    l->info = *info;
    l->info.filter = NULL;
    for (const char *p = info->filter; *p; p++)
        l->filters += p == info->filter || *p == ',';
    if (w[PERF_PT_CAP_USER_TIME_ZERO] && w[PERF_PT_TIME_MULT]) {
        l->conv = (struct etch_perf_time_conv){w[PERF_PT_TIME_SHIFT], w[PERF_PT_TIME_MULT], w[PERF_PT_TIME_ZERO]};
        l->has_conv = l->conv.shift < 64;
    }
    return 0;
}

static int gather(void *context, const struct etch_perf_file *file, const struct etch_perf_record *r)
{
    struct loader *l = context;

    (void)file;
    switch (r->type) {
    case PERF_USER_AUXTRACE_INFO:
        return gather_info(l, &r->auxtrace_info);
    case PERF_USER_TIME_CONV:
        if (!l->has_conv && r->time_conv.mult && r->time_conv.shift < 64) {
            l->conv = r->time_conv;
            l->has_conv = true;
        }
        return 0;
    case PERF_USER_AUXTRACE:
        return etch_array_push(&l->auxtraces, r->auxtrace) ? 0 : no_memory(l);
    default:
        return wanted(r) ? gather_event(l, r) : 0;
    }
}

/* ---- Streams ---- */

static const struct etch_perf_attr *pt_attr(const struct loader *l)
{
    for (size_t i = 0; i < l->file.attrs.n; i++)
        if (l->file.attrs.v[i].type == l->info.words[PERF_PT_PMU_TYPE])
            return &l->file.attrs.v[i];
    return NULL;
}

static bool fill_pt_config(const struct loader *l, Etch__PtConfig *pt)
{
    const struct etch_perf_attr *attr = pt_attr(l);
    const uint64_t *w = l->info.words;
    char vendor[16] = "";
    unsigned family = 0, model = 0, stepping = 0;

    if (l->file.cpuid && sscanf(l->file.cpuid, "%15[^,],%u,%u,%u", vendor, &family, &model, &stepping) == 4) {
        pt->family = family;
        pt->model = model;
        pt->stepping = stepping;
        if (!etch_message_set_string(&pt->vendor, vendor))
            return false;
    }
    pt->nom_freq = (uint32_t)w[PERF_PT_MAX_NONTURBO_RATIO];
    pt->cpuid_15_ebx = (uint32_t)w[PERF_PT_TSC_CTC_N];
    pt->cpuid_15_eax = (uint32_t)w[PERF_PT_TSC_CTC_D];
    pt->filters = l->filters;
    if (attr && w[PERF_PT_MTC_FREQ_BITS])
        pt->mtc_freq =
            (uint32_t)((attr->config & w[PERF_PT_MTC_FREQ_BITS]) >> __builtin_ctzll(w[PERF_PT_MTC_FREQ_BITS]));
    pt->no_ret_compression = attr && attr->config & w[PERF_PT_NORETCOMP_BIT];
    return true;
}

static struct etch_stream *find_stream(struct etch_recording *recording, bool by_cpu, uint32_t number)
{
    for (size_t i = 0; i < recording->streams.n; i++) {
        const Etch__Stream *s = recording->streams.v[i].about;

        if (by_cpu ? s->of_case == ETCH__STREAM__OF_CPU && s->cpu == number
                   : s->of_case == ETCH__STREAM__OF_TID && s->tid == number)
            return &recording->streams.v[i];
    }
    return NULL;
}

static struct etch_stream *stream_of(struct loader *l, const struct etch_perf_auxtrace *a)
{
    bool by_cpu = a->cpu != UINT32_MAX;
    struct etch_stream *stream = find_stream(l->recording, by_cpu, by_cpu ? a->cpu : a->tid);
    Etch__Stream *about;

    if (stream)
        return stream;
    stream = etch_recording_add_stream(l->recording, &about);
    if (!stream)
        return NULL;
    about->of_case = by_cpu ? ETCH__STREAM__OF_CPU : ETCH__STREAM__OF_TID;
    if (by_cpu)
        about->cpu = a->cpu;
    else
        about->tid = a->tid;
    about->snapshot = l->info.words[PERF_PT_SNAPSHOT_MODE] != 0;
    about->pt = malloc(sizeof(*about->pt));
    if (!about->pt)
        return NULL;
    etch__pt_config__init(about->pt);
    return fill_pt_config(l, about->pt) ? stream : NULL;
}

/* Where the next bytes of a snapshot belong: behind the last ones where the copies overlap, behind a hole of unknown
 * size (shown as one byte) where they do not. perf's own offsets count within the ring and say nothing here. */
static int place_snapshot(struct loader *l, struct etch_stream *stream, struct etch_piece *piece)
{
    struct copy now = {piece->where, piece->size}, *last = NULL;
    int64_t overlap;

    while (l->copies.n <= stream->about->id)
        if (!etch_array_push(&l->copies, (struct copy){0}))
            return no_memory(l);
    last = &l->copies.v[stream->about->id];
    overlap = last->size ? etch_perf_overlap(&l->source, last->where, last->size, now.where, now.size) : 0;
    if (overlap < 0)
        return etch_error_set_errno(l->err, (int)-overlap, "cannot read %s", l->name);
    *last = now;
    piece->where += (uint64_t)overlap;
    piece->size -= (uint64_t)overlap;
    piece->offset = 0;
    if (stream->pieces.n) {
        const struct etch_piece *before = &stream->pieces.v[stream->pieces.n - 1];

        piece->offset = before->offset + before->size + (overlap ? 0 : 1);
    }
    return 0;
}

enum { PERF_ALIGNMENT = 8 };

/* perf fills up each piece with zeros to a multiple of eight bytes, and does not count them in the offset of the next:
 * such a tail gives way. Other bytes that are there already are not taken twice. */
static void place_full(struct etch_stream *stream, struct etch_piece *piece)
{
    struct etch_piece *before = stream->pieces.n ? &stream->pieces.v[stream->pieces.n - 1] : NULL;
    uint64_t again;

    if (!before || piece->offset >= before->offset + before->size)
        return;
    again = before->offset + before->size - piece->offset;
    if (again < PERF_ALIGNMENT && again < before->size) {
        before->size -= again;
        return;
    }
    if (again > piece->size)
        again = piece->size;
    piece->offset += again;
    piece->where += again;
    piece->size -= again;
}

static int add_piece(struct loader *l, const struct etch_perf_auxtrace *a)
{
    struct etch_stream *stream = stream_of(l, a);
    struct etch_piece piece = {.offset = a->offset, .size = a->size, .where = a->where};

    if (!stream)
        return no_memory(l);
    if (piece.where > l->source.size)
        return 0;
    if (piece.size > l->source.size - piece.where) {
        piece.size = l->source.size - piece.where; /* the file is cut here */
        l->file.cut = true;
    }
    if (piece.offset > UINT64_MAX - piece.size)
        return l->recording->damaged++, 0;
    if (stream->about->snapshot) {
        if (place_snapshot(l, stream, &piece) < 0)
            return -1;
    } else {
        place_full(stream, &piece);
    }
    if (piece.size == 0)
        return 0;
    return etch_array_push(&stream->pieces, piece) ? 0 : no_memory(l);
}

static int compare_auxtraces(const void *a, const void *b)
{
    const struct etch_perf_auxtrace *x = a, *y = b;

    return (x->where > y->where) - (x->where < y->where);
}

static int build_streams(struct loader *l)
{
    if (l->auxtraces.n)
        qsort(l->auxtraces.v, l->auxtraces.n, sizeof(*l->auxtraces.v), compare_auxtraces);
    for (size_t i = 0; i < l->auxtraces.n; i++)
        if (add_piece(l, &l->auxtraces.v[i]) < 0)
            return -1;
    return 0;
}

/* ---- Mappings ---- */

static struct process *process_of(struct loader *l, uint32_t pid)
{
    if (l->last_process < l->processes.n && l->processes.v[l->last_process].pid == pid)
        return &l->processes.v[l->last_process];
    for (l->last_process = 0; l->last_process < l->processes.n; l->last_process++)
        if (l->processes.v[l->last_process].pid == pid)
            return &l->processes.v[l->last_process];
    return etch_array_push(&l->processes, (struct process){.pid = pid}) ? &l->processes.v[l->last_process] : NULL;
}

static bool add_image(struct loader *l, const Etch__Image *like, uint64_t start, uint64_t size, uint64_t tsc)
{
    struct process *process = process_of(l, like->pid);
    Etch__Image *image;

    /* A file made to hurt could fork its mappings without end. */
    if (!process || l->recording->images.n >= IMAGES_MAX)
        return false;
    image = etch_recording_add_image(l->recording);
    if (!image || !etch_array_push(&process->live, l->recording->images.n - 1))
        return false;
    image->pid = like->pid;
    image->start = start;
    image->size = size;
    image->file_offset = like->file_offset + (start - like->start);
    image->prot = like->prot;
    image->mapped_tsc = tsc;
    return etch_message_set_string(&image->path, like->path) &&
           etch_message_set_bytes(&image->build_id, like->build_id.data, like->build_id.len);
}

/* Takes the process's k-th live image away. Without a time it cannot be told from what replaced it: it goes altogether.
 */
static void unmap(struct loader *l, struct process *process, size_t k, uint64_t tsc)
{
    Etch__Image *image = l->recording->images.v[process->live.v[k]];

    if (tsc)
        image->unmapped_tsc = tsc;
    else
        image->size = 0;
    process->live.v[k] = process->live.v[--process->live.n];
}

/* [start, start + size) of a process is about to be something else: what stands out on either side stays. */
static bool make_room(struct loader *l, uint32_t pid, uint64_t start, uint64_t size, uint64_t tsc)
{
    struct process *process = process_of(l, pid);

    if (!process)
        return false;
    for (size_t k = process->live.n; k-- > 0;) {
        Etch__Image old = *l->recording->images.v[process->live.v[k]];

        if (old.start >= start + size || start >= old.start + old.size)
            continue;
        unmap(l, process, k, tsc);
        if (old.start < start && !add_image(l, &old, old.start, start - old.start, tsc))
            return false;
        if (start + size < old.start + old.size &&
            !add_image(l, &old, start + size, old.start + old.size - (start + size), tsc))
            return false;
    }
    return true;
}

static bool build_id_of(const struct loader *l, const char *path, ProtobufCBinaryData *id)
{
    for (size_t i = 0; i < l->file.build_ids.n; i++)
        if (strcmp(l->file.build_ids.v[i].path, path) == 0)
            return etch_message_set_bytes(id, l->file.build_ids.v[i].id, l->file.build_ids.v[i].size);
    return true;
}

static bool apply_mmap(struct loader *l, const struct event *e)
{
    uint64_t tsc = to_tsc(l, e->time);
    Etch__Image image = ETCH__IMAGE__INIT;
    bool ok;

    if (e->mmap.size == 0)
        return true;
    image.pid = e->mmap.pid;
    image.start = e->mmap.start;
    image.file_offset = e->mmap.offset;
    image.prot = e->mmap.prot;
    image.path = e->name;
    ok = make_room(l, image.pid, image.start, e->mmap.size, tsc) &&
         (e->mmap.build_id_size ? etch_message_set_bytes(&image.build_id, e->build_id, e->mmap.build_id_size)
                                : build_id_of(l, e->name, &image.build_id)) &&
         add_image(l, &image, image.start, e->mmap.size, tsc);
    free(image.build_id.data);
    return ok;
}

/* A new program, or a new process of an old number: of the old one nothing stays mapped. */
static bool unmap_all(struct loader *l, uint32_t pid, uint64_t tsc)
{
    struct process *process = process_of(l, pid);

    while (process && process->live.n > 0)
        unmap(l, process, process->live.n - 1, tsc);
    return process != NULL;
}

static bool inherit_images(struct loader *l, uint32_t parent, uint32_t child, uint64_t tsc)
{
    size_t n = unmap_all(l, child, tsc) && process_of(l, parent) ? process_of(l, parent)->live.n : 0;

    for (size_t k = 0; k < n; k++) {
        Etch__Image image = *l->recording->images.v[process_of(l, parent)->live.v[k]];

        image.pid = child;
        if (!add_image(l, &image, image.start, image.size, tsc))
            return false;
    }
    return true;
}

/* Images that were taken away without a time. */
static void drop_empty_images(struct etch_recording *recording)
{
    size_t n = 0;

    for (size_t i = 0; i < recording->images.n; i++) {
        if (recording->images.v[i]->size)
            recording->images.v[n++] = recording->images.v[i];
        else
            etch__image__free_unpacked(recording->images.v[i], NULL);
    }
    recording->images.n = n;
}

/* ---- Threads, switches, losses ---- */

/* The newest thread of that number, which is the one that lives. */
static Etch__Thread *find_thread(struct etch_recording *recording, uint32_t tid)
{
    for (size_t i = recording->threads.n; i-- > 0;)
        if (recording->threads.v[i]->tid == tid)
            return recording->threads.v[i];
    return NULL;
}

static Etch__Thread *thread_of(struct loader *l, uint32_t pid, uint32_t tid)
{
    Etch__Thread *thread = find_thread(l->recording, tid);

    if (thread && thread->pid == pid && !thread->end_tsc)
        return thread;
    thread = etch_recording_add_thread(l->recording);
    if (thread) {
        thread->pid = pid;
        thread->tid = tid;
    }
    return thread;
}

static bool apply_program(struct loader *l, const struct event *e)
{
    Etch__Program *program = l->recording->program;

    if (program)
        return true;
    program = malloc(sizeof(*program));
    if (!program)
        return false;
    etch__program__init(program);
    l->recording->program = program;
    program->source = ETCH__SOURCE__SOURCE_PT;
    program->pid = e->pair.pid;
    program->start_tsc = to_tsc(l, e->time);
    return true;
}

/* The program's own file is the first that its exec maps. */
static bool apply_exe(struct loader *l, const struct event *e)
{
    Etch__Program *program = l->recording->program;

    if (!program || program->pid != e->mmap.pid || program->exe[0] || e->name[0] != '/' || e->name[1] == '/')
        return true;
    return etch_message_set_string(&program->exe, e->name);
}

static bool apply_comm(struct loader *l, const struct event *e)
{
    Etch__Thread *thread = thread_of(l, e->pair.pid, e->pair.tid);

    if (!thread || !etch_message_set_string(&thread->name, e->name))
        return false;
    if (!(e->misc & PERF_RECORD_MISC_COMM_EXEC))
        return true;
    return unmap_all(l, e->pair.pid, to_tsc(l, e->time)) && apply_program(l, e);
}

static bool apply_fork(struct loader *l, const struct event *e)
{
    const Etch__Thread *parent = find_thread(l->recording, e->task.ptid);
    const char *name = parent ? parent->name : "";
    Etch__Thread *thread = thread_of(l, e->task.pid, e->task.tid);
    uint64_t tsc = to_tsc(l, e->time);

    if (!thread || !etch_message_set_string(&thread->name, name))
        return false;
    thread->parent_pid = e->task.ppid;
    thread->parent_tid = e->task.ptid;
    thread->start_tsc = tsc;
    return e->task.pid == e->task.ppid || inherit_images(l, e->task.ppid, e->task.pid, tsc);
}

static bool apply_exit(struct loader *l, const struct event *e)
{
    Etch__Thread *thread = find_thread(l->recording, e->task.tid);

    if (thread)
        thread->end_tsc = to_tsc(l, e->time);
    return true;
}

static bool add_switch(struct loader *l, const struct event *e, bool in, uint32_t pid, uint32_t tid)
{
    Etch__Switch s = ETCH__SWITCH__INIT;

    if (!e->sample.has_cpu)
        return true;
    s.cpu = e->sample.cpu;
    s.perf_ns = e->time;
    s.tsc = to_tsc(l, e->time);
    s.in = in;
    s.pid = pid;
    s.tid = tid;
    s.preempted = !in && e->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
    return etch_array_push(&l->recording->switches, s);
}

static bool apply_sched_switch(struct loader *l, const struct event *e)
{
    const Etch__Thread *from = find_thread(l->recording, e->pair.pid), *to = find_thread(l->recording, e->pair.tid);

    return add_switch(l, e, false, from ? from->pid : 0, e->pair.pid) &&
           add_switch(l, e, true, to ? to->pid : 0, e->pair.tid);
}

static Etch__Loss *add_loss(struct loader *l, const struct event *e, Etch__LossCause cause)
{
    Etch__Loss *loss = etch_recording_add_loss(l->recording);

    if (!loss)
        return NULL;
    loss->cause = cause;
    loss->events = 1;
    loss->tsc = to_tsc(l, e->time);
    loss->cpu = e->sample.has_cpu ? e->sample.cpu : 0;
    loss->tid = e->sample.has_tid ? e->sample.tid : 0;
    return loss;
}

static bool apply_lost(struct loader *l, const struct event *e)
{
    Etch__Loss *loss = add_loss(l, e, ETCH__LOSS_CAUSE__LOSS_SIDEBAND);

    if (!loss)
        return false;
    loss->events = e->lost;
    return e->type != PERF_RECORD_LOST_SAMPLES || etch_message_set_string(&loss->detail, "samples");
}

/* An AUX record says which bytes came, and what went wrong at their end. */
static bool apply_aux(struct loader *l, const struct event *e)
{
    static const struct {
        uint64_t flag;
        Etch__LossCause cause;
    } causes[] = {{PERF_AUX_FLAG_TRUNCATED, ETCH__LOSS_CAUSE__LOSS_AUX_TRUNCATED},
                  {PERF_AUX_FLAG_PARTIAL, ETCH__LOSS_CAUSE__LOSS_AUX_PARTIAL},
                  {PERF_AUX_FLAG_COLLISION, ETCH__LOSS_CAUSE__LOSS_AUX_COLLISION}};
    const struct etch_stream *stream = e->sample.has_cpu ? find_stream(l->recording, true, e->sample.cpu) : NULL;

    if (!stream && e->sample.has_tid)
        stream = find_stream(l->recording, false, e->sample.tid);
    for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
        Etch__Loss *loss;

        if (!(e->aux.flags & causes[i].flag))
            continue;
        loss = add_loss(l, e, causes[i].cause);
        if (!loss)
            return false;
        loss->offset = e->aux.offset + e->aux.size;
        loss->stream = stream ? stream->about->id : UINT32_MAX;
        if (!stream && !etch_message_set_string(&loss->detail, "of a stream that is not in the file"))
            return false;
    }
    return true;
}

static bool apply(struct loader *l, const struct event *e)
{
    switch (e->type) {
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        return apply_mmap(l, e) && apply_exe(l, e);
    case PERF_RECORD_COMM:
        return apply_comm(l, e);
    case PERF_RECORD_FORK:
        return apply_fork(l, e);
    case PERF_RECORD_EXIT:
        return apply_exit(l, e);
    case PERF_RECORD_SWITCH:
    case PERF_RECORD_SWITCH_CPU_WIDE:
        return !e->sample.has_tid ||
               add_switch(l, e, !(e->misc & PERF_RECORD_MISC_SWITCH_OUT), e->sample.pid, e->sample.tid);
    case PERF_RECORD_ITRACE_START:
        return add_switch(l, e, true, e->pair.pid, e->pair.tid);
    case PERF_RECORD_SAMPLE:
        return apply_sched_switch(l, e);
    case PERF_RECORD_AUX:
        return apply_aux(l, e);
    default:
        return apply_lost(l, e);
    }
}

static int compare_events(const void *a, const void *b)
{
    const struct event *x = a, *y = b;

    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* For a thread's stream, and for a CPU's that followed one process. */
static void name_processes(struct loader *l)
{
    for (size_t i = 0; i < l->auxtraces.n; i++) {
        const struct etch_perf_auxtrace *a = &l->auxtraces.v[i];
        bool by_cpu = a->cpu != UINT32_MAX;
        struct etch_stream *stream = find_stream(l->recording, by_cpu, by_cpu ? a->cpu : a->tid);
        const Etch__Thread *thread = find_thread(l->recording, a->tid);

        if (stream && thread)
            ((Etch__Stream *)(uintptr_t)stream->about)->pid = thread->pid;
    }
}

static int apply_events(struct loader *l)
{
    if (l->events.n)
        qsort(l->events.v, l->events.n, sizeof(*l->events.v), compare_events);
    for (size_t i = 0; i < l->events.n; i++)
        if (!apply(l, &l->events.v[i]))
            return no_memory(l);
    if (!etch_cuts_open(l->recording) || !etch_cuts_end(l->recording))
        return no_memory(l);
    drop_empty_images(l->recording);
    name_processes(l);
    etch_recording_fill_end(l->recording);
    return 0;
}

/* ---- The machine ---- */

static int add_host(struct loader *l)
{
    Etch__Host *host = malloc(sizeof(*host));
    char vendor[16] = "";

    if (!host)
        return no_memory(l);
    etch__host__init(host);
    l->recording->host = host;
    host->cpus = l->file.cpus;
    if (l->file.cpuid && sscanf(l->file.cpuid, "%15[^,],%u,%u,%u", vendor, &host->cpu_family, &host->cpu_model_number,
                                &host->cpu_stepping) != 4)
        vendor[0] = '\0';
    if (!etch_message_set_string(&host->kernel, l->file.osrelease) ||
        !etch_message_set_string(&host->arch, l->file.arch) || !etch_message_set_string(&host->cpu_vendor, vendor) ||
        !etch_message_set_string(&host->cpu_model, l->file.cpudesc))
        return no_memory(l);
    return 0;
}

static int add_clock(struct loader *l)
{
    Etch__Clock *clock;
    Etch__PerfClock *p;

    if (!l->has_conv)
        return 0;
    clock = etch_recording_add_clock(l->recording);
    p = clock ? malloc(sizeof(*p)) : NULL;
    if (!p)
        return no_memory(l);
    etch__perf_clock__init(p);
    clock->perf_clock = p;
    p->offered = true;
    p->time_shift = (uint32_t)l->conv.shift;
    p->time_mult = (uint32_t)l->conv.mult;
    p->time_zero = l->conv.zero;
    p->ns_zero = l->first_ns;
    p->tsc_zero = to_tsc(l, l->first_ns);
    p->tsc_per_ns = (double)(l->conv.shift < 63 ? 1ull << l->conv.shift : 0) / (double)l->conv.mult;
    p->error_cycles = 1;
    return 0;
}

/* ---- Loading ---- */

static int check_trace(struct loader *l)
{
    if (l->has_info && l->recording->streams.n)
        return 0;
    if (!l->has_info) {
        etch_error_set(l->err, "%s was recorded without Intel PT", l->name);
        return etch_error_advise(l->err, "perf record -e intel_pt//u");
    }
    for (size_t i = 0; i < l->file.attrs.n; i++)
        if (l->file.attrs.v[i].sample_type & PERF_SAMPLE_AUX)
            return etch_error_set(
                l->err, "%s has its Intel PT data inside samples (--aux-sample), which etch cannot read", l->name);
    etch_error_set(l->err, "%s has no AUX data: %s", l->name,
                   l->file.cut ? "it was cut before the first" : "nothing was traced");
    return -1;
}

static ssize_t read_piece(const struct etch_stream *stream, const struct etch_piece *piece, uint64_t skip, void *buffer,
                          size_t size)
{
    struct loader *l = stream->recording->loader;

    if (skip >= piece->size)
        return 0;
    if (size > piece->size - skip)
        size = (size_t)(piece->size - skip);
    return l->source.read(l->source.context, buffer, size, piece->where + skip);
}

static void release_events(struct loader *l)
{
    for (size_t i = 0; i < l->events.n; i++)
        free(l->events.v[i].name);
    etch_array_free(&l->events);
    etch_array_free(&l->auxtraces);
    etch_array_free(&l->copies);
    for (size_t i = 0; i < l->processes.n; i++)
        etch_array_free(&l->processes.v[i].live);
    etch_array_free(&l->processes);
}

static void close_perf(struct etch_recording *recording)
{
    struct loader *l = recording->loader;

    if (!l)
        return;
    release_events(l);
    etch_perf_file_release(&l->file);
    if (l->fd >= 0)
        close(l->fd);
    free(l);
    recording->loader = NULL;
}

static struct loader *new_loader(struct etch_recording *recording, const char *name, struct etch_error *err)
{
    struct loader *l = calloc(1, sizeof(*l));

    if (!l) {
        etch_error_set(err, "cannot read %s: out of memory", name);
        return NULL;
    }
    l->recording = recording;
    l->name = name;
    l->err = err;
    l->fd = -1;
    recording->loader = l;
    recording->close = close_perf;
    recording->read = read_piece;
    recording->source = ETCH__SOURCE__SOURCE_PT;
    return l;
}

static int load(struct loader *l)
{
    struct etch_recording *recording = l->recording;
    int status = etch_perf_data_read(&l->source, l->name, &l->file, gather, l, l->err);

    if (status == 0)
        status = build_streams(l);
    if (status == 0)
        status = check_trace(l);
    if (status == 0)
        status = apply_events(l);
    if (status == 0)
        status = add_host(l);
    if (status == 0)
        status = add_clock(l);
    if (status == 0 && !recording->path && !(recording->path = strdup(l->name)))
        status = no_memory(l);
    recording->cut = l->file.cut;
    recording->damaged += l->file.damaged;
    release_events(l);
    l->name = NULL;
    l->err = NULL;
    return status;
}

int etch_recording_load_perf_source(struct etch_recording *recording, const struct etch_perf_source *source,
                                    const char *name, struct etch_error *err)
{
    struct loader *l = new_loader(recording, name, err);

    if (!l)
        return -1;
    l->source = *source;
    return load(l);
}

static ssize_t read_fd(void *context, void *buffer, size_t size, uint64_t offset)
{
    const struct loader *l = context;
    ssize_t n;

    do
        n = pread(l->fd, buffer, size, (off_t)offset);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

static int open_spool(struct etch_error *err)
{
    const char *folder = getenv("TMPDIR");
    char path[4096];
    int fd;

    folder = folder && *folder ? folder : "/var/tmp";
    fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    snprintf(path, sizeof(path), "%s/etch-XXXXXX", folder);
    fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return etch_error_set_errno(err, errno, "cannot make a temporary file in %s", folder);
    unlink(path);
    return fd;
}

static int spool_all(int from, int to, const char *name, struct etch_error *err)
{
    static const size_t chunk = 1 << 16;
    char *buffer = malloc(chunk);
    ssize_t n = 0;

    if (!buffer)
        return etch_error_set(err, "cannot read %s: out of memory", name);
    while ((n = read(from, buffer, chunk)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        for (ssize_t done = 0; done < n;) {
            ssize_t put = write(to, buffer + done, (size_t)(n - done));

            if (put < 0) {
                free(buffer);
                return etch_error_set_errno(err, errno, "cannot keep %s in a temporary file", name);
            }
            done += put;
        }
    }
    free(buffer);
    return n < 0 ? etch_error_set_errno(err, errno, "cannot read %s", name) : 0;
}

/* A pipe cannot be read twice: its bytes go to a file without a name first. */
static int spool(struct loader *l)
{
    int fd = open_spool(l->err);

    if (fd < 0)
        return -1;
    if (spool_all(l->fd, fd, l->name, l->err) < 0) {
        close(fd);
        return -1;
    }
    close(l->fd);
    l->fd = fd;
    return 0;
}

int etch_recording_load_perf(struct etch_recording *recording, const char *path, struct etch_error *err)
{
    bool standard_input = strcmp(path, "-") == 0;
    struct loader *l = new_loader(recording, path, err);
    struct stat st;

    if (!l)
        return -1;
    l->fd = standard_input ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (l->fd < 0 || fstat(l->fd, &st) < 0)
        return etch_error_set_errno(err, errno, "cannot open %s", path);
    if (S_ISDIR(st.st_mode)) {
        etch_error_set(err, "%s is a folder", path);
        return etch_error_advise(err, "record without --threads, or name the file");
    }
    if (!S_ISREG(st.st_mode) && (spool(l) < 0 || fstat(l->fd, &st) < 0))
        return -1;
    l->source = (struct etch_perf_source){.read = read_fd, .context = l, .size = (uint64_t)st.st_size};
    return load(l);
}
