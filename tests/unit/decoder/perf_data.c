/* SPDX-License-Identifier: MIT */
#include "decoder/recording/perf_data.h"
#include "decoder/perf_data_write.h"
#include "decoder/recording/perf_overlap.h"
#include "decoder/recording/perf_recording.h"
#include "tests/unit/perf_bytes.h"
#include "tests/unit/recording_release.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>
#include <zstd.h>

static struct perf_bytes bytes; /* large; one at a time */
static const uint8_t psb[16] = {2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82};

static int load(struct etch_recording *r, struct etch_error *err)
{
    struct etch_perf_source source = {.read = pb_read, .context = &bytes, .size = bytes.n};

    memset(r, 0, sizeof(*r));
    err->what[0] = '\0';
    return etch_recording_load_perf_source(r, &source, "test", err);
}

/* sched_switch of thread 20 to thread 21, as the kernel lays it out. */
static void put_sched_switch(struct perf_bytes *b, uint64_t time)
{
    uint8_t raw[68] = {0};

    raw[24] = 20;
    raw[56] = 21;
    pb_begin(b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL);
    pb_u64(b, PB_TRACEPOINT_ID);
    pb_u64(b, 0);
    pb_u32(b, 20);
    pb_u32(b, 20);
    pb_u64(b, time);
    pb_u64(b, 1);
    pb_u64(b, 1);
    pb_u32(b, sizeof(raw));
    pb_bytes(b, raw, sizeof(raw));
    pb_end(b);
}

/* Every kind of record that the importer knows. */
static void make_all(struct perf_bytes *b, bool pipe)
{
    pb_start(b, pipe);
    pb_features(b);
    pb_auxtrace_info(b, false);
    pb_comm(b, 10, 100, false, "shell");
    pb_mmap2(b, 10, 0x1000, 0x3000, 110, "/bin/shell");
    pb_task(b, PERF_RECORD_FORK, 20, 10, 20, 10, 120);
    pb_words(b, PERF_RECORD_ITRACE_START, 0, (uint64_t[]){(uint64_t)20 << 32 | 20}, 1, 20, 125);
    pb_comm(b, 20, 130, true, "program");
    pb_mmap2(b, 20, 0x1000, 0x1000, 140, "/bin/program");
    pb_task(b, PERF_RECORD_FORK, 20, 20, 21, 20, 150);
    pb_mmap2(b, 10, 0x2000, 0x1000, 160, "/lib/late.so");
    pb_words(b, PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT, (uint64_t[]){0}, 1, 20, 170);
    pb_words(b, PERF_RECORD_SWITCH_CPU_WIDE, 0, (uint64_t[]){0}, 1, 20, 180);
    pb_words(b, PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT, (uint64_t[]){0},
             0, 20, 190);
    put_sched_switch(b, 195);
    pb_words(b, PERF_RECORD_AUX, 0, (uint64_t[]){0, 20, PERF_AUX_FLAG_TRUNCATED | PERF_AUX_FLAG_COLLISION}, 3, 20, 200);
    pb_words(b, PERF_RECORD_AUX, 0, (uint64_t[]){20, 4, PERF_AUX_FLAG_PARTIAL}, 3, 20, 205);
    pb_words(b, PERF_RECORD_LOST, 0, (uint64_t[]){PB_DUMMY_ID, 7}, 2, 20, 210);
    pb_words(b, PERF_RECORD_LOST_SAMPLES, 0, (uint64_t[]){3}, 1, 20, 220);
    pb_words(b, PERF_RECORD_AUX_OUTPUT_HW_ID, 0, (uint64_t[]){1}, 1, 20, 230);
    pb_begin(b, PERF_USER_FINISHED_ROUND, 0);
    pb_end(b);
    pb_auxtrace(b, 0, 1, 20, psb, sizeof(psb));
    pb_auxtrace(b, 16, 1, 20, "\2\43\0\0\0\0\0\0", 8);
    pb_auxtrace(b, 40, 1, 20, psb, sizeof(psb));
    pb_auxtrace(b, 0, UINT32_MAX, 21, psb, sizeof(psb));
    pb_task(b, PERF_RECORD_EXIT, 20, 10, 21, 21, 300);
    pb_finish(b);
}

static const Etch__Image *image_at(const struct etch_recording *r, uint32_t pid, uint64_t start, uint64_t mapped)
{
    for (size_t i = 0; i < r->images.n; i++)
        if (r->images.v[i]->pid == pid && r->images.v[i]->start == start && r->images.v[i]->mapped_tsc == mapped)
            return r->images.v[i];
    return NULL;
}

static void check_images(const struct etch_recording *r)
{
    const Etch__Image *i = image_at(r, 10, 0x1000, 220);

    assert_non_null(i);
    assert_int_equal(i->unmapped_tsc, 320);
    assert_int_equal(i->size, 0x3000);
    i = image_at(r, 20, 0x1000, 240); /* inherited, until the exec */
    assert_non_null(i);
    assert_string_equal(i->path, "/bin/shell");
    assert_int_equal(i->unmapped_tsc, 260);
    i = image_at(r, 20, 0x1000, 280);
    assert_non_null(i);
    assert_string_equal(i->path, "/bin/program");
    assert_int_equal(i->unmapped_tsc, 0);
    i = image_at(r, 10, 0x2000, 320);
    assert_non_null(i);
    assert_string_equal(i->path, "/lib/late.so");
    i = image_at(r, 10, 0x3000, 320); /* what stands out behind it */
    assert_non_null(i);
    assert_int_equal(i->file_offset, 0x2000);
    assert_string_equal(i->path, "/bin/shell");
    assert_int_equal(r->images.n, 6);
}

static void check_switches(const struct etch_recording *r)
{
    static const struct {
        uint64_t tsc;
        bool in, preempted;
        uint32_t tid;
    } want[] = {{250, true, false, 20}, {340, false, false, 20}, {360, true, false, 20},
                {380, false, true, 20}, {390, false, false, 20}, {390, true, false, 21}};

    assert_int_equal(r->switches.n, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(r->switches.v[i].tsc, want[i].tsc);
        assert_int_equal(r->switches.v[i].in, want[i].in);
        assert_int_equal(r->switches.v[i].preempted, want[i].preempted);
        assert_int_equal(r->switches.v[i].tid, want[i].tid);
        assert_int_equal(r->switches.v[i].pid, 20);
        assert_int_equal(r->switches.v[i].cpu, 1);
    }
}

static void check_losses(const struct etch_recording *r)
{
    static const struct {
        Etch__LossCause cause;
        uint64_t offset, events;
    } want[] = {{ETCH__LOSS_CAUSE__LOSS_AUX_TRUNCATED, 20, 1},
                {ETCH__LOSS_CAUSE__LOSS_AUX_COLLISION, 20, 1},
                {ETCH__LOSS_CAUSE__LOSS_AUX_PARTIAL, 25, 1}, /* behind the cut */
                {ETCH__LOSS_CAUSE__LOSS_SIDEBAND, 0, 7},
                {ETCH__LOSS_CAUSE__LOSS_SIDEBAND, 0, 3}};

    assert_int_equal(r->losses.n, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(r->losses.v[i]->cause, want[i].cause);
        assert_int_equal(r->losses.v[i]->offset, want[i].offset);
        assert_int_equal(r->losses.v[i]->events, want[i].events);
    }
}

static void check_streams(const struct etch_recording *r)
{
    const struct etch_stream *s = &r->streams.v[0];
    uint8_t back[16];

    assert_int_equal(r->streams.n, 2);
    assert_int_equal(s->about->of_case, ETCH__STREAM__OF_CPU);
    assert_int_equal(s->about->cpu, 1);
    assert_int_equal(s->about->pid, 20);
    assert_int_equal(s->pieces.n, 4);
    assert_int_equal(s->pieces.v[2].offset, 21);
    assert_int_equal(s->pieces.v[3].offset, 41);
    assert_int_equal(r->read(s, &s->pieces.v[3], 2, back, sizeof(back)), 14);
    assert_memory_equal(back, psb + 2, 14);
    assert_int_equal(s->about->pt->model, 94);
    assert_int_equal(s->about->pt->mtc_freq, 3);
    assert_int_equal(s->about->pt->nom_freq, 32);
    assert_int_equal(s->about->pt->cpuid_15_ebx, 266);
    assert_int_equal(s->about->pt->cpuid_15_eax, 2);
    assert_int_equal(r->streams.v[1].about->of_case, ETCH__STREAM__OF_TID);
    assert_int_equal(r->streams.v[1].about->tid, 21);
    assert_int_equal(r->streams.v[1].about->pid, 20);
}

static void check_all(const struct etch_recording *r)
{
    assert_int_equal(r->damaged, 0);
    assert_false(r->cut);
    check_images(r);
    check_switches(r);
    check_losses(r);
    check_streams(r);
    assert_int_equal(r->threads.n, 3);
    assert_string_equal(r->threads.v[2]->name, "program");
    assert_int_equal(r->threads.v[2]->end_tsc, 600);
    assert_int_equal(r->program->pid, 20);
    assert_string_equal(r->program->exe, "/bin/program");
}

static void load_file_layout(void **state)
{
    struct etch_recording r;
    struct etch_error err;

    (void)state;
    make_all(&bytes, false);
    assert_int_equal(load(&r, &err), 0);
    check_all(&r);
    recording_release(&r);
}

static void load_pipe_layout(void **state)
{
    struct etch_recording r;
    struct etch_error err;

    (void)state;
    make_all(&bytes, true);
    assert_int_equal(load(&r, &err), 0);
    check_all(&r);
    recording_release(&r);
}

static void load_cut_anywhere(void **state)
{
    (void)state;
    for (int pipe = 0; pipe < 2; pipe++) {
        size_t all;

        make_all(&bytes, pipe);
        all = bytes.n;
        for (size_t n = 0; n < all; n++) {
            struct etch_recording r;
            struct etch_error err;

            bytes.n = n;
            if (load(&r, &err) < 0)
                assert_true(err.what[0]);
            else if (!pipe)
                assert_true(r.cut || r.damaged || n > all - 300); /* the features' own padding */
            recording_release(&r);
        }
    }
}

/* Every byte of a small file, turned over: whatever comes out, nothing is read that is not there (ASan's part). */
static void load_each_byte_wrong(void **state)
{
    size_t n;

    (void)state;
    make_all(&bytes, false);
    n = bytes.n;
    for (size_t i = 0; i < n; i++) {
        static const uint8_t flips[] = {0xff, 0x80, 0x01};

        for (size_t k = 0; k < sizeof(flips); k++) {
            struct etch_recording r;
            struct etch_error err;

            bytes.v[i] ^= flips[k];
            if (load(&r, &err) < 0)
                assert_true(err.what[0]);
            recording_release(&r);
            bytes.v[i] ^= flips[k];
        }
    }
}

static void assert_refused(const char *because)
{
    struct etch_recording r;
    struct etch_error err;

    assert_int_equal(load(&r, &err), -1);
    if (!strstr(err.what, because))
        fail_msg("\"%s\" does not say \"%s\"", err.what, because);
    recording_release(&r);
}

static void refuse_foreign(void **state)
{
    uint64_t swapped = PERF_FILE_MAGIC_SWAPPED;

    (void)state;
    make_all(&bytes, false);
    memcpy(bytes.v, &swapped, 8);
    assert_refused("big-endian");
    memcpy(bytes.v, "PERFFILE", 8);
    assert_refused("not a perf.data");
    bytes.n = 3;
    assert_refused("not a perf.data");
}

static void refuse_without_pt(void **state)
{
    (void)state;
    pb_start(&bytes, false);
    pb_comm(&bytes, 10, 100, false, "shell");
    pb_finish(&bytes);
    assert_refused("without Intel PT");
    pb_start(&bytes, false);
    pb_auxtrace_info(&bytes, false);
    pb_finish(&bytes);
    assert_refused("no AUX data");
    pb_start(&bytes, false);
    pb_begin(&bytes, PERF_USER_AUXTRACE_INFO, 0);
    pb_u64(&bytes, 3);
    pb_end(&bytes);
    pb_finish(&bytes);
    assert_refused("not Intel PT");
}

static void pass_over_hostile_sizes(void **state)
{
    struct etch_recording r;
    struct etch_error err;

    (void)state;
    pb_start(&bytes, true);
    pb_auxtrace_info(&bytes, false);
    pb_auxtrace(&bytes, UINT64_MAX - 3, 0, 1, psb, 16); /* offset + size beyond 64 bits */
    pb_mmap2(&bytes, 1, UINT64_MAX - 10, 100, 5, "/x");
    pb_words(&bytes, PERF_RECORD_AUX, 0, (uint64_t[]){UINT64_MAX, UINT64_MAX, 1}, 3, 1, 6);
    pb_auxtrace(&bytes, 0, 0, 1, psb, 16);
    memset(bytes.v + bytes.n - 16 - 40, 0xff, 8); /* its size: the rest of the file and far beyond */
    assert_int_equal(load(&r, &err), 0);
    assert_true(r.cut);
    assert_int_equal(r.damaged, 2);
    assert_int_equal(r.streams.v[0].pieces.n, 1);
    assert_int_equal(r.streams.v[0].pieces.v[0].size, 16);
    recording_release(&r);
}

/* perf -z: the records of the pipe in one zstd stream, cut where it falls, also within a record. */
static void load_compressed(void **state)
{
    static struct perf_bytes plain;
    static uint8_t packed[1 << 16];
    ZSTD_CStream *zstd = ZSTD_createCStream();
    struct etch_recording r;
    struct etch_error err;
    size_t from, n;

    (void)state;
    pb_start(&plain, true);
    from = plain.n;
    pb_comm(&plain, 10, 100, false, "shell");
    pb_mmap2(&plain, 10, 0x1000, 0x3000, 110, "/bin/shell");
    pb_mmap2(&plain, 10, 0x9000, 0x3000, 120, "/lib/other");
    pb_start(&bytes, true);
    pb_auxtrace_info(&bytes, false);
    for (; from < plain.n; from += n) {
        ZSTD_inBuffer in = {plain.v + from, n = plain.n - from < 50 ? plain.n - from : 50, 0};
        ZSTD_outBuffer out = {packed, sizeof(packed), 0};

        ZSTD_compressStream2(zstd, &out, &in, ZSTD_e_flush);
        pb_begin(&bytes, PERF_USER_COMPRESSED, 0);
        pb_bytes(&bytes, packed, out.pos);
        pb_end(&bytes);
    }
    ZSTD_freeCStream(zstd);
    pb_auxtrace(&bytes, 0, 0, 10, psb, 16);
    assert_int_equal(load(&r, &err), 0);
    assert_int_equal(r.damaged, 0);
    assert_int_equal(r.images.n, 2);
    assert_string_equal(r.images.v[1]->path, "/lib/other");
    assert_string_equal(r.threads.v[0]->name, "shell");
    recording_release(&r);
}

/* Three snapshots of one ring: the second begins within the first, the third is all new. */
static void join_snapshots(void **state)
{
    uint8_t ring[400];
    struct etch_recording r;
    struct etch_error err;
    const struct etch_stream *s;

    (void)state;
    for (size_t i = 0; i < sizeof(ring); i++)
        ring[i] = (uint8_t)(i * 7 + i / 256);
    memcpy(ring + 40, psb, 16);
    memcpy(ring + 120, psb, 16);
    memcpy(ring + 300, psb, 16);
    pb_start(&bytes, true);
    pb_auxtrace_info(&bytes, true);
    pb_auxtrace(&bytes, 0, 1, 20, ring, 160);
    pb_auxtrace(&bytes, 8, 1, 20, ring + 100, 100);
    pb_auxtrace(&bytes, 0, 1, 20, ring + 250, 150);
    assert_int_equal(load(&r, &err), 0);
    s = &r.streams.v[0];
    assert_true(s->about->snapshot);
    assert_int_equal(s->pieces.n, 3);
    assert_int_equal(s->pieces.v[1].offset, 160);
    assert_int_equal(s->pieces.v[1].size, 40);
    assert_int_equal(s->pieces.v[2].offset, 201);
    assert_int_equal(s->pieces.v[2].size, 150);
    recording_release(&r);
}

/* perf writes pieces in multiples of eight bytes and counts offsets in true ones. */
static void join_padded(void **state)
{
    uint8_t first[24] = {0}, second[16] = "behind", again[16] = "behindthe end";
    struct etch_recording r;
    struct etch_error err;
    const struct etch_stream *s;

    (void)state;
    memcpy(first, psb, 16);
    memcpy(first + 16, "\2\43\1", 3);
    pb_start(&bytes, true);
    pb_auxtrace_info(&bytes, false);
    pb_auxtrace(&bytes, 0, 1, 20, first, 24);
    pb_auxtrace(&bytes, 19, 1, 20, second, 16);
    pb_auxtrace(&bytes, 19, 1, 20, again, 16);
    assert_int_equal(load(&r, &err), 0);
    s = &r.streams.v[0];
    assert_int_equal(s->pieces.n, 2); /* the third has nothing new */
    assert_int_equal(s->pieces.v[0].size, 19);
    assert_int_equal(s->pieces.v[1].offset, 19);
    assert_int_equal(s->pieces.v[1].size, 16);
    assert_memory_equal(bytes.v + s->pieces.v[1].where, second, 16);
    recording_release(&r);
}

static void convert_times(void **state)
{
    const struct etch_perf_time_conv conv = {31, 672039594, 0xfffffff000000000ull};
    const struct etch_perf_time_conv none = {0, 0, 0}, wide = {64, 1, 0};

    (void)state;
    for (uint64_t tsc = 1; tsc < (uint64_t)1 << 55; tsc = tsc * 3 + 1) {
        uint64_t back = etch_perf_time_to_tsc(&conv, etch_perf_tsc_to_time(&conv, tsc));

        assert_in_range(tsc - back, 0, 4); /* a nanosecond is some ticks */
    }
    assert_int_equal(etch_perf_time_to_tsc(&none, 5), 0);
    assert_int_equal(etch_perf_tsc_to_time(&wide, 5), 0);
}

static int append(void *context, const void *from, size_t n)
{
    struct perf_bytes *b = context;

    if (n > sizeof(b->v) - b->n)
        return -ENOSPC;
    pb_bytes(b, from, n);
    return 0;
}

/* What is written comes back: threads, code, streams with their holes, switches and losses. */
static void write_and_load(void **state)
{
    static struct perf_bytes written;
    struct etch_perf_sink sink = {.write = append, .context = &written};
    struct etch_perf_write_options options = {0};
    struct etch_recording r, back;
    struct etch_error err;

    (void)state;
    make_all(&bytes, false);
    assert_int_equal(load(&r, &err), 0);
    written.n = 0;
    assert_int_equal(etch_perf_data_write(&r, &options, &sink, &err), 0);
    recording_release(&r);
    bytes = written;
    assert_int_equal(load(&back, &err), 0);
    assert_int_equal(back.damaged, 0);
    assert_false(back.cut);
    assert_int_equal(back.streams.n, 2);
    assert_int_equal(back.streams.v[0].pieces.n, 3); /* what follows without a hole is one buffer */
    assert_int_equal(back.streams.v[0].pieces.v[1].offset, 21);
    assert_int_equal(back.streams.v[0].pieces.v[2].offset, 41);
    assert_int_equal(back.threads.n, 3);
    assert_int_equal(back.streams.v[0].about->pt->model, 94);
    recording_release(&back);
}

static void assert_piece(const struct etch_recording *r, size_t at, uint64_t offset, uint64_t size)
{
    assert_true(at < r->streams.v[0].pieces.n);
    assert_int_equal(r->streams.v[0].pieces.v[at].offset, offset);
    assert_int_equal(r->streams.v[0].pieces.v[at].size, size);
}

static void check_cuts(const struct etch_recording *r)
{
    static const uint64_t offsets[] = {16, 16, 41};

    assert_int_equal(r->streams.v[0].pieces.n, 4);
    assert_piece(r, 0, 0, 16);
    assert_piece(r, 1, 17, 8);
    assert_piece(r, 2, 25, 16);
    assert_piece(r, 3, 42, 0);
    assert_int_equal(r->losses.n, 4);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(r->losses.v[i]->offset, offsets[i]);
}

/* A full ring: what perf wrote later stands behind a hole, at the end too. It is told again while it stays full, and of
 * a CPU that left no bytes. */
static void cut_streams(void **state)
{
    static struct perf_bytes written;
    struct etch_perf_sink sink = {.write = append, .context = &written};
    struct etch_perf_write_options options = {0};
    struct etch_recording r, back;
    struct etch_error err;
    uint8_t late[8];

    (void)state;
    pb_start(&bytes, true);
    pb_auxtrace_info(&bytes, false);
    pb_words(&bytes, PERF_RECORD_AUX, 0, (uint64_t[]){0, 16, PERF_AUX_FLAG_TRUNCATED}, 3, 20, 200);
    pb_words(&bytes, PERF_RECORD_AUX, 0, (uint64_t[]){16, 0, PERF_AUX_FLAG_TRUNCATED}, 3, 20, 201);
    pb_words(&bytes, PERF_RECORD_AUX, 0, (uint64_t[]){16, 24, PERF_AUX_FLAG_TRUNCATED}, 3, 20, 210);
    pb_begin(&bytes, PERF_RECORD_AUX, 0);
    pb_bytes(&bytes, (uint64_t[]){16, 8, PERF_AUX_FLAG_TRUNCATED}, 24);
    pb_end_kernel(&bytes, 20, 20, 220, 2);
    pb_auxtrace(&bytes, 0, 1, 20, "\2\202\2\202\2\202\2\202\2\202\2\202\2\202\2\202later...", 24);
    pb_auxtrace(&bytes, 24, 1, 20, psb, sizeof(psb));
    pb_finish(&bytes);
    assert_int_equal(load(&r, &err), 0);
    check_cuts(&r);
    assert_int_equal(r.read(&r.streams.v[0], &r.streams.v[0].pieces.v[1], 0, late, 8), 8);
    assert_memory_equal(late, "later...", 8);
    written.n = 0;
    assert_int_equal(etch_perf_data_write(&r, &options, &sink, &err), 0);
    recording_release(&r);
    bytes = written;
    assert_int_equal(load(&back, &err), 0);
    assert_int_equal(back.streams.v[0].pieces.n, 3);
    assert_piece(&back, 0, 0, 16);
    assert_piece(&back, 1, 17, 24);
    assert_piece(&back, 2, 42, 0);
    recording_release(&back);
}

static void fail_on_full_disk(void **state)
{
    static struct perf_bytes full;
    struct etch_perf_sink sink = {.write = append, .context = &full};
    struct etch_perf_write_options options = {0};
    struct etch_recording r;
    struct etch_error err;

    (void)state;
    make_all(&bytes, false);
    assert_int_equal(load(&r, &err), 0);
    full.n = sizeof(full.v) - 700;
    assert_int_equal(etch_perf_data_write(&r, &options, &sink, &err), -1);
    assert_non_null(strstr(err.what, "No space left"));
    recording_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(load_file_layout),
        cmocka_unit_test(load_pipe_layout),
        cmocka_unit_test(load_cut_anywhere),
        cmocka_unit_test(load_each_byte_wrong),
        cmocka_unit_test(refuse_foreign),
        cmocka_unit_test(refuse_without_pt),
        cmocka_unit_test(pass_over_hostile_sizes),
        cmocka_unit_test(load_compressed),
        cmocka_unit_test(join_snapshots),
        cmocka_unit_test(join_padded),
        cmocka_unit_test(convert_times),
        cmocka_unit_test(write_and_load),
        cmocka_unit_test(cut_streams),
        cmocka_unit_test(fail_on_full_disk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
