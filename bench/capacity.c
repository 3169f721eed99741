/* SPDX-License-Identifier: MIT */
/* capacity FILE MB/S CPUS SECONDS RING OUTPUT: a kernel that writes the trace in FILE, over and over, at that rate into
 * the AUX ring of each CPU (of RING MiB), and the collector's own draining of those rings into the bundle OUTPUT.
 * Prints what got through, what was lost, and what it cost the collector, as a row of a table. */
#include "collector/pt.h"
#include "decoder/recording.h"

#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define CORES_MAX 64u
#define SIDE (512u << 10)
#define STROKE (64u << 10) /* bytes between two looks at the clock */

static uint8_t *trace;
static size_t trace_size;
static double rate, seconds;

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct core {
    struct etch_pt_cpu ring;
    uint8_t *data, *aux;
    uint64_t wanted, written, cuts;
};

/* An AUX record, as the kernel writes one for each half of the ring. */
static void put_record(struct core *c, uint64_t offset, uint64_t size, uint64_t flags)
{
    struct perf_event_mmap_page *page = c->ring.side.page;
    struct {
        struct perf_event_header header;
        uint64_t body[3], trailer[4];
    } r = {{PERF_RECORD_AUX, 0, sizeof(r)}, {offset, size, flags}, {0, (uint64_t)(now_s() * 1e9), 0, 0}};
    uint64_t head = page->data_head;

    for (size_t i = 0; i < sizeof(r); i += 8)
        memcpy(c->data + ((head + i) & (SIDE - 1)), (uint8_t *)&r + i, 8);
    __atomic_store_n(&page->data_head, head + sizeof(r), __ATOMIC_RELEASE);
}

static void put_bytes(struct core *c, uint64_t head, size_t n)
{
    while (n) {
        size_t at = head & (c->ring.aux.size - 1), from = head % trace_size;
        size_t part = c->ring.aux.size - at;

        part = part < n ? part : n;
        part = part < trace_size - from ? part : trace_size - from;
        memcpy(c->aux + at, trace + from, part);
        head += part;
        n -= part;
    }
}

/* What does not fit is lost, as on a CPU: tracing stops and goes on later. */
static void *produce(void *context)
{
    struct core *c = context;
    struct perf_event_mmap_page *page = c->ring.aux.page;
    double began = now_s(), now;

    while ((now = now_s()) - began < seconds) {
        uint64_t due = (uint64_t)((now - began) * rate), head = page->aux_head, room;
        size_t n = due > c->wanted ? (size_t)(due - c->wanted) : 0;

        if (n < STROKE) {
            struct timespec nap = {0, 100000};

            nanosleep(&nap, NULL);
            continue;
        }
        c->wanted += n;
        room = c->ring.aux.size - (head - __atomic_load_n(&page->aux_tail, __ATOMIC_ACQUIRE));
        if (n > room) {
            n = (size_t)room & ~(size_t)4095;
            c->cuts++;
        }
        put_bytes(c, head, n);
        put_record(c, head, n, n < room ? 0 : PERF_AUX_FLAG_TRUNCATED);
        __atomic_store_n(&page->aux_head, head + n, __ATOMIC_RELEASE);
        c->written += n;
    }
    return NULL;
}

/* ---- The collector's side ---- */

struct sink {
    struct etch_bundle_writer *bundle;
    uint64_t bytes, losses;
};

static void sink_write(void *context, Etch__Record__BodyCase kind, void *message)
{
    struct sink *s = context;
    Etch__Record record = ETCH__RECORD__INIT;
    struct etch_error err;

    record.body_case = kind;
    record.program = message;
    if (etch_bundle_write(s->bundle, &record, &err) < 0)
        abort();
}

static void sink_bytes(void *context, uint32_t stream, uint64_t offset, const void *data, size_t size, bool hurry)
{
    struct sink *s = context;
    struct etch_error err;

    s->bytes += size;
    etch_bundle_hurry(s->bundle, hurry);
    if (etch_bundle_write_flow(s->bundle, stream, offset, data, size, &err) < 0)
        abort();
}

static void sink_lost(void *context, const Etch__Loss *loss)
{
    struct sink *s = context;

    s->losses++;
    sink_write(context, ETCH__RECORD__BODY_LOSS, (void *)(uintptr_t)loss);
}

static void sink_note(void *context, const char *text)
{
    (void)context;
    (void)text;
}

static void *map(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    if (p == MAP_FAILED)
        exit(1);
    return p;
}

static void make_core(struct core *c, uint32_t cpu, size_t ring)
{
    struct perf_event_mmap_page *page = map(4096);

    c->data = map(SIDE);
    c->aux = map(ring);
    c->ring = (struct etch_pt_cpu){cpu, -1, {page, c->data, SIDE}, {page, c->aux, ring}};
}

static double cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int simulate(size_t n, size_t ring, const char *output)
{
    struct etch_record_options options = {.full = true};
    struct etch_record_summary summary = {0};
    struct sink s = {0};
    struct etch_sink sink = {&s, sink_write, sink_bytes, sink_lost, sink_note, &summary};
    static struct core cores[CORES_MAX];
    static struct etch_pt_cpu rings[CORES_MAX];
    static pthread_t threads[CORES_MAX];
    uint64_t wanted = 0, cuts = 0;
    struct etch_pt *pt;
    struct etch_error err;
    double began, used;

    if (n > CORES_MAX || etch_bundle_create(&s.bundle, output, &err) < 0)
        return 1;
    for (size_t i = 0; i < n; i++) {
        make_core(&cores[i], (uint32_t)i, ring);
        rings[i] = cores[i].ring;
    }
    if (etch_pt_open_rings(&pt, &options, &sink, rings, n, &err) < 0)
        return 1;
    used = cpu_s();
    began = now_s();
    for (size_t i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, produce, &cores[i]);
    while (now_s() - began < seconds) { /* a wake-up at half a ring, as the kernel gives one */
        bool half = false;

        for (size_t i = 0; i < n; i++)
            half |= etch_aux_ring_waiting(&rings[i].aux) >= ring / 2;
        if (!half)
            poll(NULL, 0, 1);
        etch_pt_drain(pt);
    }
    for (size_t i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    etch_pt_stop(pt);
    used = cpu_s() - used;
    for (size_t i = 0; i < n; i++) {
        wanted += cores[i].wanted;
        cuts += cores[i].cuts;
    }
    printf("| %.0f | %zu | %.0f | %.1f | %.2f | %.2f | %.2f |\n", rate / 1e6, n, (double)s.bytes / 1e6 / seconds,
           wanted ? 100.0 * (1 - (double)s.bytes / (double)wanted) : 0, used / seconds,
           s.bytes ? used / ((double)s.bytes / 1e9) : 0, (double)etch_bundle_written(s.bundle) / (double)s.bytes);
    if (cuts && !s.losses)
        fprintf(stderr, "capacity: %llu cuts and none reported\n", (unsigned long long)cuts);
    etch_pt_close(pt);
    etch_bundle_writer_free(s.bundle);
    return cuts && !s.losses;
}

/* ---- The trace to play ---- */

static int load(const char *path, struct etch_recording **recording)
{
    struct etch_error err;

    if (etch_recording_open(recording, path, &err) < 0) {
        fprintf(stderr, "capacity: %s\n", err.what);
        return -1;
    }
    trace = malloc(64u << 20);
    for (size_t i = 0; trace && i < (*recording)->streams.n && trace_size < 32u << 20; i++) {
        const struct etch_stream *stream = &(*recording)->streams.v[i];

        for (size_t k = 0; k < stream->pieces.n && trace_size < 32u << 20; k++) {
            ssize_t n = etch_stream_read(stream, stream->pieces.v[k].offset, trace + trace_size, 32u << 20);

            trace_size += n > 0 ? (size_t)n : 0;
        }
    }
    return trace_size ? 0 : -1;
}

int main(int argc, char **argv)
{
    struct etch_recording *recording;

    if (argc != 7 || load(argv[1], &recording) < 0)
        return 2;
    rate = atof(argv[2]) * 1e6;
    seconds = atof(argv[4]);
    return simulate((size_t)atoi(argv[3]), (size_t)atoi(argv[5]) << 20, argv[6]);
}
