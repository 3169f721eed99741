/* SPDX-License-Identifier: MIT */
/* From the records of a perf.data to a recording: streams of AUX data, mappings with the times at which they came and
 * went, threads, switches, losses. Records of different CPUs are not in order in the file: the side-band is gathered,
 * sorted by time and then applied. */
#include "decoder/recording/perf_recording.h"

#include "decoder/recording/perf_loader.h"
#include "decoder/recording/recording_fill.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int etch_perf_loader_no_memory(struct etch_perf_loader *l)
{
    return etch_error_set(l->err, "cannot read %s: out of memory", l->name);
}

uint64_t etch_perf_loader_tsc(const struct etch_perf_loader *l, uint64_t ns)
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

static bool fill_event(struct etch_perf_event *e, const struct etch_perf_record *r)
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

static int gather_event(struct etch_perf_loader *l, const struct etch_perf_record *r)
{
    struct etch_perf_event e = {
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
        return etch_perf_loader_no_memory(l);
    }
    return 0;
}

static int gather_info(struct etch_perf_loader *l, const struct etch_perf_auxtrace_info *info)
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
    struct etch_perf_loader *l = context;

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
        return etch_array_push(&l->auxtraces, r->auxtrace) ? 0 : etch_perf_loader_no_memory(l);
    default:
        return wanted(r) ? gather_event(l, r) : 0;
    }
}

/* ---- The machine ---- */

static int add_host(struct etch_perf_loader *l)
{
    Etch__Host *host = malloc(sizeof(*host));
    char vendor[16] = "";

    if (!host)
        return etch_perf_loader_no_memory(l);
    etch__host__init(host);
    l->recording->host = host;
    host->cpus = l->file.cpus;
    if (l->file.cpuid && sscanf(l->file.cpuid, "%15[^,],%u,%u,%u", vendor, &host->cpu_family, &host->cpu_model_number,
                                &host->cpu_stepping) != 4)
        vendor[0] = '\0';
    if (!etch_message_set_string(&host->kernel, l->file.osrelease) ||
        !etch_message_set_string(&host->arch, l->file.arch) || !etch_message_set_string(&host->cpu_vendor, vendor) ||
        !etch_message_set_string(&host->cpu_model, l->file.cpudesc))
        return etch_perf_loader_no_memory(l);
    return 0;
}

static int add_clock(struct etch_perf_loader *l)
{
    Etch__Clock *clock;
    Etch__PerfClock *p;

    if (!l->has_conv)
        return 0;
    clock = etch_recording_add_clock(l->recording);
    p = clock ? malloc(sizeof(*p)) : NULL;
    if (!p)
        return etch_perf_loader_no_memory(l);
    etch__perf_clock__init(p);
    clock->perf_clock = p;
    p->offered = true;
    p->time_shift = (uint32_t)l->conv.shift;
    p->time_mult = (uint32_t)l->conv.mult;
    p->time_zero = l->conv.zero;
    p->ns_zero = l->first_ns;
    p->tsc_zero = etch_perf_loader_tsc(l, l->first_ns);
    p->tsc_per_ns = (double)(l->conv.shift < 63 ? 1ull << l->conv.shift : 0) / (double)l->conv.mult;
    p->error_cycles = 1;
    return 0;
}

/* ---- Loading ---- */

static int check_trace(struct etch_perf_loader *l)
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
    struct etch_perf_loader *l = stream->recording->loader;

    if (skip >= piece->size)
        return 0;
    if (size > piece->size - skip)
        size = (size_t)(piece->size - skip);
    return l->source.read(l->source.context, buffer, size, piece->where + skip);
}

static void release_events(struct etch_perf_loader *l)
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
    struct etch_perf_loader *l = recording->loader;

    if (!l)
        return;
    release_events(l);
    etch_perf_file_release(&l->file);
    if (l->fd >= 0)
        close(l->fd);
    free(l);
    recording->loader = NULL;
}

static struct etch_perf_loader *new_loader(struct etch_recording *recording, const char *name, struct etch_error *err)
{
    struct etch_perf_loader *l = calloc(1, sizeof(*l));

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

static int load(struct etch_perf_loader *l)
{
    struct etch_recording *recording = l->recording;
    int status = etch_perf_data_read(&l->source, l->name, &l->file, gather, l, l->err);

    if (status == 0)
        status = etch_perf_streams_build(l);
    if (status == 0)
        status = check_trace(l);
    if (status == 0)
        status = etch_perf_events_apply(l);
    if (status == 0)
        status = add_host(l);
    if (status == 0)
        status = add_clock(l);
    if (status == 0 && !recording->path && !(recording->path = strdup(l->name)))
        status = etch_perf_loader_no_memory(l);
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
    struct etch_perf_loader *l = new_loader(recording, name, err);

    if (!l)
        return -1;
    l->source = *source;
    return load(l);
}

static ssize_t read_fd(void *context, void *buffer, size_t size, uint64_t offset)
{
    const struct etch_perf_loader *l = context;
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
static int spool(struct etch_perf_loader *l)
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
    struct etch_perf_loader *l = new_loader(recording, path, err);
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
