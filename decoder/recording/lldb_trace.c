/* SPDX-License-Identifier: MIT */
/* The two forms of LLDB's Intel PT bundle: a trace per thread, or a trace per CPU with the context switches as the
 * kernel wrote them. Modules are whole files at an address: their mappings are taken from their program headers. */
#include "decoder/recording/lldb_trace.h"

#include "base/input.h"
#include "binary/object.h"
#include "decoder/recording/lldb_json.h"
#include "decoder/recording/perf_data.h"
#include "decoder/recording/recording_fill.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define JSON_MAX (64u << 20)
#define SWITCHES_MAX (1u << 30)
#define PAGE 4096u

struct loader {
    struct etch_recording *recording;
    struct etch_error *err;
    char *folder; /* names in the description are relative to it */
    const char *path;
    json_t *root;
    struct etch_perf_time_conv conv;
    ETCH_ARRAY(int) fds; /* by stream id; -1 where the file is not there */
};

static int no_memory(struct loader *l)
{
    return etch_error_set(l->err, "cannot read %s: out of memory", l->path);
}

/* ---- The description ---- */

static char *read_text(struct loader *l, const char *path, size_t limit, size_t *size)
{
    struct stat st;
    char *text = NULL;
    ssize_t n = 0;
    int fd = etch_input_open(path);

    *size = 0;
    if (fd < 0 || fstat(fd, &st) < 0) {
        etch_error_set_errno(l->err, errno, "cannot open %s", path);
    } else if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > limit) {
        etch_error_set(l->err, "%s is not a file of at most %zu bytes", path, limit);
    } else if (!(text = malloc((size_t)st.st_size + 1))) {
        no_memory(l);
    } else {
        while (*size < (size_t)st.st_size && (n = read(fd, text + *size, (size_t)st.st_size - *size)) > 0)
            *size += (size_t)n;
        if (n < 0) {
            etch_error_set_errno(l->err, errno, "cannot read %s", path);
            free(text);
            text = NULL;
        }
    }
    if (fd >= 0)
        close(fd);
    return text;
}

/* A name in the description, as a path from here; the caller frees it. */
static char *place(const struct loader *l, const char *name)
{
    char *path = NULL;

    if (name[0] == '/')
        return strdup(name);
    return asprintf(&path, "%s/%s", l->folder, name) < 0 ? NULL : path;
}

/* ---- Streams ---- */

static bool fill_pt_config(const struct loader *l, Etch__Stream *about)
{
    const json_t *cpu = json_object_get(l->root, "cpuInfo");

    about->pt = malloc(sizeof(*about->pt));
    if (!about->pt)
        return false;
    etch__pt_config__init(about->pt);
    about->pt->family = (uint32_t)etch_lldb_number(cpu, "family");
    about->pt->model = (uint32_t)etch_lldb_number(cpu, "model");
    about->pt->stepping = (uint32_t)etch_lldb_number(cpu, "stepping");
    /* LLDB has written both "GenuineIntel" and "intel". */
    return etch_message_set_string(&about->pt->vendor, strcmp(etch_lldb_string(cpu, "vendor"), "intel") == 0
                                                           ? "GenuineIntel"
                                                           : etch_lldb_string(cpu, "vendor"));
}

static int add_stream(struct loader *l, const char *name, Etch__Stream **about)
{
    struct etch_stream *stream = etch_recording_add_stream(l->recording, about);
    struct etch_piece piece = {0};
    char *path = place(l, name);
    struct stat st;
    int fd;

    if (!stream || !path || !fill_pt_config(l, *about)) {
        free(path);
        return no_memory(l);
    }
    fd = etch_input_open(path);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        etch_error_set_errno(l->err, errno, "cannot open the trace %s", path);
        if (fd >= 0)
            close(fd);
        free(path);
        return -1;
    }
    free(path);
    if (!etch_array_push(&l->fds, fd)) {
        close(fd);
        return no_memory(l);
    }
    piece.size = (uint64_t)st.st_size;
    (*about)->snapshot = true; /* LLDB reads a ring */
    if (piece.size && !etch_array_push(&stream->pieces, piece))
        return no_memory(l);
    return 0;
}

static int add_thread_stream(struct loader *l, const json_t *thread, uint32_t pid, uint32_t tid)
{
    const char *name = etch_lldb_string(thread, "iptTrace");
    Etch__Stream *about;

    if (!name[0])
        name = etch_lldb_string(thread, "traceBuffer"); /* before LLDB 15 */
    if (!name[0])
        return 0;
    if (add_stream(l, name, &about) < 0)
        return -1;
    about->of_case = ETCH__STREAM__OF_TID;
    about->tid = tid;
    about->pid = pid;
    return 0;
}

/* ---- Context switches ---- */

static int add_switch(struct loader *l, uint32_t cpu, const struct etch_perf_record *r)
{
    Etch__Switch s = ETCH__SWITCH__INIT;

    if (!r->sample.has_time || !r->sample.has_tid)
        return 0;
    s.cpu = cpu;
    s.perf_ns = r->sample.time;
    s.tsc = etch_perf_time_to_tsc(&l->conv, r->sample.time);
    s.in = !(r->misc & PERF_RECORD_MISC_SWITCH_OUT);
    s.preempted = r->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
    s.pid = r->sample.pid;
    s.tid = r->sample.tid;
    return etch_array_push(&l->recording->switches, s) ? 0 : no_memory(l);
}

static int add_lost(struct loader *l, uint32_t cpu, const struct etch_perf_record *r)
{
    Etch__Loss *loss = etch_recording_add_loss(l->recording);

    if (!loss)
        return no_memory(l);
    loss->cause = ETCH__LOSS_CAUSE__LOSS_SIDEBAND;
    loss->cpu = cpu;
    loss->events = r->lost.count;
    loss->tsc = r->sample.has_time ? etch_perf_time_to_tsc(&l->conv, r->sample.time) : 0;
    return 0;
}

/* Records as they lay in the kernel's ring, from an event that sampled thread and time. */
static int add_switches(struct loader *l, uint32_t cpu, const uint8_t *bytes, size_t n)
{
    struct etch_perf_attr attr = {.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME, .sample_id_all = true};
    struct etch_perf_file layout = {.attrs = {.v = &attr, .n = 1, .capacity = 1}};

    while (n >= 8) {
        struct etch_perf_record r = {
            .type = perf_u32(bytes), .misc = perf_u16(bytes + 4), .size = perf_u16(bytes + 6), .body = bytes + 8};
        int status = 0;

        if (r.size < 8 || r.size > n) {
            l->recording->damaged++;
            return 0;
        }
        if (etch_perf_record_decode(&layout, &r) < 0)
            l->recording->damaged++;
        else if (r.type == PERF_RECORD_SWITCH_CPU_WIDE)
            status = add_switch(l, cpu, &r);
        else if (r.type == PERF_RECORD_LOST)
            status = add_lost(l, cpu, &r);
        if (status < 0)
            return -1;
        bytes += r.size;
        n -= r.size;
    }
    return 0;
}

static int load_cpu(struct loader *l, const json_t *cpu)
{
    const char *switches = etch_lldb_string(cpu, "contextSwitchTrace");
    Etch__Stream *about;
    char *path, *text;
    size_t n;
    int status;

    if (add_stream(l, etch_lldb_string(cpu, "iptTrace"), &about) < 0)
        return -1;
    about->of_case = ETCH__STREAM__OF_CPU;
    about->cpu = (uint32_t)etch_lldb_number(cpu, "id");
    if (!switches[0])
        return 0;
    path = place(l, switches);
    text = path ? read_text(l, path, SWITCHES_MAX, &n) : NULL;
    free(path);
    if (!text)
        return -1;
    status = add_switches(l, about->cpu, (const uint8_t *)text, n);
    free(text);
    return status;
}

/* ---- Modules ---- */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* LLDB's UUID of an ELF file is its build-id with dashes. Returns the number of bytes. */
static size_t parse_uuid(const char *text, uint8_t id[64])
{
    size_t n = 0;

    while (n < 64 && *text) {
        int hi, lo;

        if (*text == '-') {
            text++;
            continue;
        }
        hi = hex_digit(text[0]);
        lo = hi < 0 ? -1 : hex_digit(text[1]);
        if (lo < 0)
            return 0;
        id[n++] = (uint8_t)(hi << 4 | lo);
        text += 2;
    }
    return n;
}

struct module {
    const char *path; /* on this machine */
    uint64_t address;
    uint8_t build_id[64];
    size_t build_id_size;
    uint32_t pid;
};

static bool add_image(struct loader *l, const struct module *m, const struct etch_segment *segment, uint64_t bias)
{
    Etch__Image *image = etch_recording_add_image(l->recording);
    uint64_t slack = segment->address % PAGE;

    if (!image)
        return false;
    image->pid = m->pid;
    image->start = bias + segment->address - slack;
    image->size = (segment->file_size + slack + PAGE - 1) / PAGE * PAGE;
    image->file_offset = segment->file_offset - slack;
    image->prot = segment->prot;
    return etch_message_set_string(&image->path, m->path) &&
           etch_message_set_bytes(&image->build_id, m->build_id, m->build_id_size);
}

static bool sane(const struct etch_segment *s)
{
    return s->file_size > 0 && s->file_size < (uint64_t)1 << 40 && s->file_offset % PAGE == s->address % PAGE &&
           s->address + s->file_size >= s->address;
}

/* The module's address is the page of its first loaded byte. Returns the number of mappings, -1 without memory. */
static int add_segments(struct loader *l, const struct module *m, const struct etch_object *object)
{
    struct etch_segment segment;
    uint64_t base = UINT64_MAX;
    int added = 0;

    for (size_t at = 0; etch_object_next_segment(object, &at, &segment);)
        if (sane(&segment) && segment.address < base)
            base = segment.address;
    base -= base % PAGE;
    for (size_t at = 0; etch_object_next_segment(object, &at, &segment);) {
        if (!sane(&segment))
            continue;
        if (!add_image(l, m, &segment, m->address - base))
            return -1;
        added++;
    }
    return added;
}

/* A module that is not there leaves a hole in the code, which the decode shows where it matters. */
static int note_missing(struct loader *l, const char *path)
{
    Etch__Loss *loss = etch_recording_add_loss(l->recording);
    char detail[512];

    snprintf(detail, sizeof(detail), "no ELF file %s", path);
    if (!loss || !etch_message_set_string(&loss->detail, detail))
        return no_memory(l);
    loss->cause = ETCH__LOSS_CAUSE__LOSS_UNMAPPED_CODE;
    loss->events = 1;
    return 0;
}

static int load_module(struct loader *l, const json_t *module, uint32_t pid)
{
    const char *file =
        etch_lldb_string(module, "file")[0] ? etch_lldb_string(module, "file") : etch_lldb_string(module, "systemPath");
    struct module m = {.address = etch_lldb_number(module, "loadAddress"), .pid = pid};
    char *path = place(l, file);
    struct etch_object *object;
    struct etch_error ignored;
    int added = 0;

    if (!path)
        return no_memory(l);
    m.path = path;
    m.build_id_size = parse_uuid(etch_lldb_string(module, "uuid"), m.build_id);
    if (etch_object_open(&object, path, &ignored) == 0)
        added = add_segments(l, &m, object);
    etch_object_free(object);
    if (added <= 0)
        added = added < 0 ? no_memory(l) : note_missing(l, path);
    free(path);
    return added < 0 ? -1 : 0;
}

/* ---- Loading ---- */

static int load_process(struct loader *l, const json_t *process)
{
    uint32_t pid = (uint32_t)etch_lldb_number(process, "pid");
    const json_t *item;
    size_t i;

    json_array_foreach(json_object_get(process, "threads"), i, item)
    {
        Etch__Thread *thread = etch_recording_add_thread(l->recording);

        if (!thread)
            return no_memory(l);
        thread->pid = pid;
        thread->tid = (uint32_t)etch_lldb_number(item, "tid");
        if (add_thread_stream(l, item, pid, thread->tid) < 0)
            return -1;
    }
    json_array_foreach(json_object_get(process, "modules"), i, item)
    {
        if (load_module(l, item, pid) < 0)
            return -1;
    }
    return 0;
}

static int load_clock(struct loader *l)
{
    const json_t *conversion = json_object_get(l->root, "tscPerfZeroConversion");
    Etch__Clock *clock;

    l->conv = (struct etch_perf_time_conv){etch_lldb_number(conversion, "timeShift"),
                                           etch_lldb_number(conversion, "timeMult"),
                                           etch_lldb_number(conversion, "timeZero")};
    if (!l->conv.mult || l->conv.shift > 63)
        return 0;
    clock = etch_recording_add_clock(l->recording);
    if (!clock || !(clock->perf_clock = malloc(sizeof(*clock->perf_clock))))
        return no_memory(l);
    etch__perf_clock__init(clock->perf_clock);
    clock->perf_clock->offered = true;
    clock->perf_clock->time_shift = (uint32_t)l->conv.shift;
    clock->perf_clock->time_mult = (uint32_t)l->conv.mult;
    clock->perf_clock->time_zero = l->conv.zero;
    clock->perf_clock->tsc_per_ns = (double)((uint64_t)1 << l->conv.shift) / (double)l->conv.mult;
    clock->perf_clock->error_cycles = 1;
    return 0;
}

/* perf_clock's two zeroes need an instant: the first switch. */
static void anchor_clock(struct loader *l)
{
    const Etch__Switch *first = NULL;

    for (size_t i = 0; i < l->recording->switches.n; i++)
        if (!first || l->recording->switches.v[i].perf_ns < first->perf_ns)
            first = &l->recording->switches.v[i];
    if (first && l->recording->clocks.n) {
        l->recording->clocks.v[0]->perf_clock->ns_zero = first->perf_ns;
        l->recording->clocks.v[0]->perf_clock->tsc_zero = first->tsc;
    }
}

static int load_host(struct loader *l)
{
    const json_t *cpu = json_object_get(l->root, "cpuInfo");
    Etch__Host *host = malloc(sizeof(*host));

    if (!host)
        return no_memory(l);
    etch__host__init(host);
    l->recording->host = host;
    host->cpu_family = (uint32_t)etch_lldb_number(cpu, "family");
    host->cpu_model_number = (uint32_t)etch_lldb_number(cpu, "model");
    host->cpu_stepping = (uint32_t)etch_lldb_number(cpu, "stepping");
    return etch_message_set_string(&host->cpu_vendor, etch_lldb_string(cpu, "vendor")) ? 0 : no_memory(l);
}

static int load_root(struct loader *l)
{
    const json_t *cpus, *item;
    size_t i;

    if (strcmp(etch_lldb_string(l->root, "type"), "intel-pt") != 0)
        return etch_error_set(l->err, "%s is not an LLDB trace of type intel-pt", l->path);
    if (load_clock(l) < 0 || load_host(l) < 0)
        return -1;
    cpus = json_object_get(l->root, "cpus");
    if (!cpus)
        cpus = json_object_get(l->root, "cores"); /* LLDB 15 */
    json_array_foreach(cpus, i, item)
    {
        if (load_cpu(l, item) < 0)
            return -1;
    }
    json_array_foreach(json_object_get(l->root, "processes"), i, item)
    {
        if (load_process(l, item) < 0)
            return -1;
    }
    if (l->recording->streams.n == 0)
        return etch_error_set(l->err, "%s names no trace", l->path);
    anchor_clock(l);
    etch_recording_fill_end(l->recording);
    return 0;
}

static ssize_t read_piece(const struct etch_stream *stream, const struct etch_piece *piece, uint64_t skip, void *buffer,
                          size_t size)
{
    const struct loader *l = stream->recording->loader;
    ssize_t n;

    if (stream->about->id >= l->fds.n || skip >= piece->size)
        return 0;
    if (size > piece->size - skip)
        size = (size_t)(piece->size - skip);
    do
        n = pread(l->fds.v[stream->about->id], buffer, size, (off_t)(piece->where + skip));
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

static void close_lldb(struct etch_recording *recording)
{
    struct loader *l = recording->loader;

    if (!l)
        return;
    for (size_t i = 0; i < l->fds.n; i++)
        close(l->fds.v[i]);
    etch_array_free(&l->fds);
    free(l->folder);
    free(l);
    recording->loader = NULL;
}

/* Splits a path into the description's file and its folder. */
static char *find_description(struct loader *l, const char *path)
{
    struct stat st;
    char *file = NULL, *slash;

    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        l->folder = strdup(path);
        return asprintf(&file, "%s/trace.json", path) < 0 ? NULL : file;
    }
    slash = strrchr(path, '/');
    l->folder = slash ? strndup(path, (size_t)(slash - path) + (slash == path)) : strdup(".");
    return strdup(path);
}

int etch_recording_load_lldb(struct etch_recording *recording, const char *path, struct etch_error *err)
{
    struct loader *l = calloc(1, sizeof(*l));
    char *file, *text = NULL;
    size_t n;
    int status = -1;

    if (!l)
        return etch_error_set(err, "cannot read %s: out of memory", path);
    l->recording = recording;
    l->err = err;
    l->path = path;
    recording->loader = l;
    recording->close = close_lldb;
    recording->read = read_piece;
    recording->source = ETCH__SOURCE__SOURCE_PT;
    file = find_description(l, path);
    if (!file || !l->folder)
        no_memory(l);
    else if ((text = read_text(l, file, JSON_MAX, &n)) && (l->root = etch_lldb_parse(l->path, text, n, l->err)))
        status = load_root(l);
    free(text);
    free(file);
    json_decref(l->root);
    l->root = NULL;
    return status;
}
