/* SPDX-License-Identifier: MIT */
/* The sample bundle; see sample.h. */
#include "tests/sample/sample.h"

#include <string.h>

#define N(array) (sizeof(array) / sizeof((array)[0]))

static uint8_t build_id[20] = {0xe7, 0xc4, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18};

struct sample {
    struct etch_bundle_writer *writer;
    struct etch_error *err;
    int status;
};

static void put(struct sample *s, Etch__Record__BodyCase kind, void *message)
{
    Etch__Record record = ETCH__RECORD__INIT;

    record.body_case = kind;
    record.host = message; /* the union's members are all pointers to a message */
    if (s->status == 0)
        s->status = etch_bundle_write(s->writer, &record, s->err);
}

static void put_host(struct sample *s)
{
    Etch__Host host = ETCH__HOST__INIT;

    host.kernel = "6.1.0-sample";
    host.arch = "x86_64";
    host.cpu_vendor = "GenuineIntel";
    host.cpu_model = "Sample CPU @ 2.00GHz";
    host.cpu_family = 6;
    host.cpu_model_number = 94;
    host.cpu_stepping = 3;
    host.cpus = 2;
    host.boot_id = "00000000-1111-2222-3333-444444444444";
    host.clocksource = "tsc";
    host.tsc_hz = 2000000000;
    host.page_size = 4096;
    put(s, ETCH__RECORD__BODY_HOST, &host);
}

static void put_program(struct sample *s)
{
    Etch__Program program = ETCH__PROGRAM__INIT;
    char *argv[] = {"./pbzip", "-d", "in.bz2"};

    program.etch_version = "0.1.0";
    program.argv = argv;
    program.n_argv = N(argv);
    program.exe = "/home/user/pbzip";
    program.build_id = (ProtobufCBinaryData){sizeof(build_id), build_id};
    program.cwd = "/home/user";
    program.pid = 4242;
    program.start_unix_ns = 1700000000ull * 1000000000;
    program.start_tsc = 1000000;
    program.source = ETCH__SOURCE__SOURCE_VPT;
    put(s, ETCH__RECORD__BODY_PROGRAM, &program);
}

static void put_images(struct sample *s)
{
    Etch__Image image = ETCH__IMAGE__INIT;
    Etch__Image vdso = ETCH__IMAGE__INIT;
    uint8_t code[] = {0x90, 0xc3};

    image.pid = vdso.pid = 4242;
    image.start = 0x555555555000;
    image.size = 0x3000;
    image.file_offset = 0x1000;
    image.path = "/home/user/pbzip";
    image.build_id = (ProtobufCBinaryData){sizeof(build_id), build_id};
    image.prot = vdso.prot = 5;
    put(s, ETCH__RECORD__BODY_IMAGE, &image);
    vdso.start = 0x7ffff7fc1000;
    vdso.size = 0x2000;
    vdso.path = "[vdso]";
    vdso.code = (ProtobufCBinaryData){sizeof(code), code};
    put(s, ETCH__RECORD__BODY_IMAGE, &vdso);
}

static void put_threads(struct sample *s)
{
    Etch__Thread leader = ETCH__THREAD__INIT;
    Etch__Thread consumer = ETCH__THREAD__INIT;

    leader.pid = consumer.pid = 4242;
    leader.tid = 4242;
    leader.name = "pbzip";
    leader.start_tsc = 1000000;
    put(s, ETCH__RECORD__BODY_THREAD, &leader);
    consumer.tid = 4243;
    consumer.name = "consumer";
    consumer.parent_tid = 4242;
    consumer.start_tsc = 1100000;
    consumer.start_routine = 0x555555555200;
    put(s, ETCH__RECORD__BODY_THREAD, &consumer);
}

static void put_clock(struct sample *s, Etch__ClockPhase phase, uint64_t tsc)
{
    Etch__Clock clock = ETCH__CLOCK__INIT;
    Etch__Skew skew = ETCH__SKEW__INIT;
    Etch__PerfClock perf = ETCH__PERF_CLOCK__INIT;
    Etch__Skew *skews[] = {&skew};

    skew.cpu = 1;
    skew.lo = -110;
    skew.hi = 112;
    skew.method = ETCH__SKEW_METHOD__SKEW_BOUNDS;
    skew.confidence = 1;
    skew.rounds = 10000;
    perf.ns_zero = 1;
    perf.tsc_zero = 2;
    perf.tsc_per_ns = 2.0;
    perf.error_cycles = 90;
    clock.phase = phase;
    clock.tsc = tsc;
    clock.constant = clock.nonstop = 1;
    clock.skews = skews;
    clock.n_skews = N(skews);
    clock.perf_clock = &perf;
    put(s, ETCH__RECORD__BODY_CLOCK, &clock);
}

static void put_flow(struct sample *s)
{
    Etch__Stream stream = ETCH__STREAM__INIT;
    Etch__PtConfig pt = ETCH__PT_CONFIG__INIT;
    Etch__Loss loss = ETCH__LOSS__INIT;
    uint8_t bytes[1000];

    pt.vendor = "GenuineIntel";
    pt.family = 6;
    pt.model = 94;
    pt.stepping = 3;
    stream.id = 1;
    stream.source = ETCH__SOURCE__SOURCE_VPT;
    stream.of_case = ETCH__STREAM__OF_TID;
    stream.tid = 4243;
    stream.pid = 4242;
    stream.pt = &pt;
    stream.snapshot = 1;
    put(s, ETCH__RECORD__BODY_STREAM, &stream);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * i / 7);
    if (s->status == 0)
        s->status = etch_bundle_write_flow(s->writer, 1, 4096, bytes, sizeof(bytes), s->err);
    loss.cause = ETCH__LOSS_CAUSE__LOSS_RING_WRAPPED;
    loss.stream = 1;
    loss.bytes = 4096;
    put(s, ETCH__RECORD__BODY_LOSS, &loss);
}

static void put_accesses(struct sample *s)
{
    Etch__Watch watch = ETCH__WATCH__INIT;
    Etch__Access write = ETCH__ACCESS__INIT;
    Etch__Access read = ETCH__ACCESS__INIT;
    Etch__Access *list[] = {&write, &read};
    Etch__Accesses accesses = ETCH__ACCESSES__INIT;

    watch.id = 1;
    watch.name = "fifo->mut";
    watch.address = 0x55555555c010;
    watch.size = 8;
    watch.reads = watch.writes = 1;
    watch.initially_case = ETCH__WATCH__INITIALLY_INITIAL_VALUE;
    watch.initial_value = 0x5581c0;
    put(s, ETCH__RECORD__BODY_WATCH, &watch);
    write.tsc = 1500000;
    write.tid = 4242;
    write.ip = 0x555555555300;
    write.address = read.address = watch.address;
    write.size = read.size = 8;
    write.write = 1;
    write.known_case = ETCH__ACCESS__KNOWN_VALUE; /* a known zero is not an unknown value */
    write.watch = read.watch = 1;
    read.tsc = 1500400;
    read.cpu = 1;
    read.tid = 4243;
    read.ip = 0x555555555210;
    accesses.accesses = list;
    accesses.n_accesses = N(list);
    put(s, ETCH__RECORD__BODY_ACCESSES, &accesses);
}

static void put_syncs(struct sample *s)
{
    Etch__Sync create = ETCH__SYNC__INIT;
    Etch__Sync *list[] = {&create};
    Etch__Syncs syncs = ETCH__SYNCS__INIT;
    Etch__Switch in = ETCH__SWITCH__INIT;
    Etch__Switch *switched[] = {&in};
    Etch__Switches switches = ETCH__SWITCHES__INIT;

    create.tsc = 1090000;
    create.tid = 4242;
    create.op = ETCH__SYNC_OP__SYNC_THREAD_CREATE;
    create.other = 4243;
    syncs.syncs = list;
    syncs.n_syncs = N(list);
    put(s, ETCH__RECORD__BODY_SYNCS, &syncs);
    in.cpu = 1;
    in.tsc = 1100100;
    in.in = 1;
    in.pid = 4242;
    in.tid = 4243;
    switches.switches = switched;
    switches.n_switches = N(switched);
    put(s, ETCH__RECORD__BODY_SWITCHES, &switches);
}

static void put_end(struct sample *s)
{
    Etch__Failure failure = ETCH__FAILURE__INIT;
    Etch__ThreadState state = ETCH__THREAD_STATE__INIT;
    Etch__ThreadState *threads[] = {&state};
    Etch__Outcome outcome = ETCH__OUTCOME__INIT;
    uint64_t frames[] = {0x555555555214, 0x7ffff7c89c5c};
    uint8_t stack[256] = {1, 2, 3};

    state.tid = 4243;
    state.frames = frames;
    state.n_frames = N(frames);
    state.stack_start = 0x7ffff7bff000;
    state.stack = (ProtobufCBinaryData){sizeof(stack), stack};
    failure.kind = ETCH__FAILURE_KIND__FAILURE_SIGNAL;
    failure.signal = 11;
    failure.code = 1;
    failure.fault_address = 0x10;
    failure.pid = 4242;
    failure.tid = 4243;
    failure.ip = 0x555555555214;
    failure.threads = threads;
    failure.n_threads = N(threads);
    put(s, ETCH__RECORD__BODY_FAILURE, &failure);
    outcome.how_case = ETCH__OUTCOME__HOW_SIGNAL;
    outcome.signal = 11;
    outcome.end_unix_ns = 1700000000ull * 1000000000 + 250000000;
    outcome.end_tsc = 1600000;
    put(s, ETCH__RECORD__BODY_OUTCOME, &outcome);
}

static void put_analysis(struct sample *s)
{
    Etch__Slice slice = ETCH__SLICE__INIT;
    Etch__Plan plan = ETCH__PLAN__INIT;
    Etch__Sketch sketch = ETCH__SKETCH__INIT;

    slice.program = plan.program = sketch.program = "/home/user/pbzip";
    slice.lines = 8;
    put(s, ETCH__RECORD__BODY_SLICE, &slice);
    plan.sigma = 4;
    put(s, ETCH__RECORD__BODY_PLAN, &plan);
    sketch.failing_runs = 5;
    put(s, ETCH__RECORD__BODY_SKETCH, &sketch);
}

int etch_sample_write(struct etch_bundle_writer *writer, struct etch_error *err)
{
    struct sample s = {writer, err, 0};

    put_host(&s);
    put_program(&s);
    put_images(&s);
    put_threads(&s);
    put_clock(&s, ETCH__CLOCK_PHASE__CLOCK_BEFORE, 1000);
    put_flow(&s);
    put_accesses(&s);
    put_syncs(&s);
    put_clock(&s, ETCH__CLOCK_PHASE__CLOCK_AFTER, 2000000);
    put_end(&s);
    put_analysis(&s);
    return s.status;
}

int etch_sample_make(const char *path, struct etch_error *err)
{
    struct etch_bundle_writer *writer;
    int status;

    if (etch_bundle_create(&writer, path, err) < 0)
        return -1;
    status = etch_sample_write(writer, err);
    if (status == 0)
        status = etch_bundle_finish(writer, err);
    etch_bundle_writer_free(writer);
    return status;
}
