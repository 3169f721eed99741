/* SPDX-License-Identifier: MIT */
/* The bundle against everything that can happen to a file: cut at every byte, every byte flipped, lengths that lie. */
#include "proto/bundle.h"
#include "base/crc32c.h"
#include "proto/frame.h"
#include "tests/sample/sample.h"
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

struct bytes {
    uint8_t *data;
    size_t size;
    size_t at;
};

static ssize_t read_bytes(void *context, void *buffer, size_t size)
{
    struct bytes *b = context;
    size_t n = b->size - b->at < size ? b->size - b->at : size;

    if (n > 4096) /* short reads are the rule, not the exception */
        n = 4096;
    memcpy(buffer, b->data + b->at, n);
    b->at += n;
    return (ssize_t)n;
}

static struct bytes sample;

static void temp_path(char path[64])
{
    int fd;

    strcpy(path, P_tmpdir "/etch-test-XXXXXX");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
}

static int make_sample(void **state)
{
    char path[64];
    struct etch_error err;
    struct stat st;
    int fd;

    (void)state;
    temp_path(path);
    if (etch_sample_make(path, &err) < 0)
        return -1;
    fd = open(path, O_RDONLY);
    fstat(fd, &st);
    sample.size = (size_t)st.st_size;
    sample.data = malloc(sample.size);
    if (read(fd, sample.data, sample.size) != st.st_size)
        return -1;
    close(fd);
    unlink(path);
    return 0;
}

static int free_sample(void **state)
{
    (void)state;
    free(sample.data);
    return 0;
}

struct tally {
    uint64_t whole, damaged, unpacked;
    enum etch_bundle_event ending;
    struct etch_bundle_item last_damage;
};

static struct tally read_all(uint8_t *data, size_t size)
{
    struct bytes source = {data, size, 0};
    struct etch_bundle_reader *reader;
    struct etch_bundle_item item;
    struct etch_error err;
    struct tally t = {0};

    assert_int_equal(etch_bundle_open_source(&reader, read_bytes, &source, "bytes", &err), 0);
    for (;;) {
        t.ending = etch_bundle_next(reader, &item, &err);
        if (t.ending == ETCH_BUNDLE_RECORD) {
            t.whole++;
            t.unpacked += item.record != NULL;
        } else if (t.ending == ETCH_BUNDLE_DAMAGED) {
            t.damaged++;
            t.last_damage = item;
        } else {
            break;
        }
    }
    assert_int_equal(etch_bundle_next(reader, &item, &err), t.ending);
    etch_bundle_reader_free(reader);
    return t;
}

static void read_whole(void **state)
{
    struct tally t = read_all(sample.data, sample.size);

    (void)state;
    assert_int_equal(t.ending, ETCH_BUNDLE_END);
    assert_int_equal(t.whole, ETCH_SAMPLE_RECORDS);
    assert_int_equal(t.unpacked, ETCH_SAMPLE_RECORDS);
    assert_int_equal(t.damaged, 0);
}

/* Where each frame of the sample ends, by walking the headers. */
static uint64_t records_before(size_t size)
{
    size_t at = ETCH_FILE_HEADER_SIZE;
    uint64_t n = 0;

    for (;;) {
        struct etch_frame_header header;

        if (at + ETCH_FRAME_HEADER_SIZE > size)
            return n;
        assert_int_equal(etch_frame_header_decode(sample.data + at, &header), 0);
        at += ETCH_FRAME_HEADER_SIZE + header.length;
        if (at > size)
            return n;
        n++;
    }
}

static void read_cut_at_every_byte(void **state)
{
    (void)state;
    for (size_t size = 0; size < sample.size; size++) {
        uint8_t *copy = malloc(size ? size : 1); /* exactly that much, so that ASan sees one byte too far */
        struct tally t;

        memcpy(copy, sample.data, size);
        t = read_all(copy, size);
        assert_int_equal(t.ending, ETCH_BUNDLE_CUT);
        assert_int_equal(t.whole, records_before(size));
        assert_int_equal(t.damaged, 0);
        free(copy);
    }
}

static void read_every_byte_flipped(void **state)
{
    uint8_t *copy = malloc(sample.size);

    (void)state;
    for (size_t i = ETCH_FILE_HEADER_SIZE; i < sample.size; i++) {
        struct tally t;

        memcpy(copy, sample.data, sample.size);
        copy[i] ^= 0x5a;
        t = read_all(copy, sample.size);
        /* One record is lost, no more: the reader finds the next one. The end record lost reads as a cut. */
        assert_true(t.damaged == 1 || (t.damaged == 0 && t.ending == ETCH_BUNDLE_CUT));
        assert_true(t.whole >= ETCH_SAMPLE_RECORDS - 1);
        assert_true(t.whole < ETCH_SAMPLE_RECORDS || t.ending == ETCH_BUNDLE_CUT);
    }
    free(copy);
}

static void read_damage_names_the_record(void **state)
{
    uint8_t *copy = malloc(sample.size);
    size_t at = ETCH_FILE_HEADER_SIZE;
    struct etch_frame_header header;
    struct tally t;

    (void)state;
    memcpy(copy, sample.data, sample.size);
    etch_frame_header_decode(copy + at, &header);
    at += ETCH_FRAME_HEADER_SIZE + header.length; /* the second record: program */
    copy[at + ETCH_FRAME_HEADER_SIZE + 2] ^= 1;
    t = read_all(copy, sample.size);
    assert_int_equal(t.ending, ETCH_BUNDLE_END);
    assert_int_equal(t.last_damage.index, 1);
    assert_int_equal(t.last_damage.offset, at);
    assert_int_equal(t.last_damage.kind, ETCH__RECORD__BODY_PROGRAM);
    assert_string_equal(t.last_damage.damage, "its checksum does not match");
    free(copy);
}

/* The sample's bytes with one more frame behind its first record. */
static uint8_t *with_frame(const struct etch_frame_header *header, const void *payload, size_t size, size_t *total)
{
    struct etch_frame_header first;
    size_t at = ETCH_FILE_HEADER_SIZE;
    uint8_t *copy = malloc(sample.size + ETCH_FRAME_HEADER_SIZE + size);

    etch_frame_header_decode(sample.data + at, &first);
    at += ETCH_FRAME_HEADER_SIZE + first.length;
    memcpy(copy, sample.data, at);
    etch_frame_header_encode(header, copy + at);
    memcpy(copy + at + ETCH_FRAME_HEADER_SIZE, payload, size);
    memcpy(copy + at + ETCH_FRAME_HEADER_SIZE + size, sample.data + at, sample.size - at);
    *total = sample.size + ETCH_FRAME_HEADER_SIZE + size;
    return copy;
}

static void expect_damage(struct etch_frame_header header, const void *payload, size_t size, uint64_t damaged)
{
    size_t total;
    uint8_t *copy;
    struct tally t;

    header.payload_crc = etch_crc32c(0, payload, size);
    copy = with_frame(&header, payload, size, &total);
    t = read_all(copy, total);
    assert_int_equal(t.damaged, damaged);
    free(copy);
}

static void read_lengths_that_lie(void **state)
{
    static const uint8_t junk[64] = {0x28, 0xb5, 0x2f, 0xfd, 0x60, 0xff, 0xff, 0xff, 0xff};

    (void)state;
    /* Compressed bytes that claim to unpack to 16 MiB, and do not. */
    expect_damage((struct etch_frame_header){.kind = 7, .flags = 1, .length = 64, .raw_length = ETCH_RECORD_MAX}, junk,
                  sizeof(junk), 1);
    /* Two lengths of one plain record that differ. */
    expect_damage((struct etch_frame_header){.kind = 1, .length = 64, .raw_length = 1 << 20}, junk, sizeof(junk), 1);
    /* A length beyond the limit: the header is not believed, the next frame is found. */
    expect_damage((struct etch_frame_header){.kind = 1, .length = 0xfffffff0, .raw_length = 64}, junk, sizeof(junk), 1);
    /* A length that swallows the frames behind it: the payload's sum is wrong or the file ends inside. */
    {
        struct etch_frame_header header = {.kind = 1, .length = 10000000, .raw_length = 10000000};
        size_t total;
        uint8_t *copy = with_frame(&header, junk, sizeof(junk), &total);
        struct tally t = read_all(copy, total);

        assert_int_equal(t.whole, 1);
        assert_int_equal(t.ending, ETCH_BUNDLE_CUT);
        free(copy);
    }
}

static void read_submessage_bomb(void **state)
{
    /* accesses { accesses {} accesses {} ... }: two bytes each in the file, a hundred in memory. */
    size_t inner = (size_t)8 << 20, size;
    uint8_t *raw = malloc(inner + 16);
    struct etch_frame_header header = {.kind = ETCH__RECORD__BODY_ACCESSES};
    uint8_t *p = raw;

    (void)state;
    *p++ = (ETCH__RECORD__BODY_ACCESSES << 3) | 2;
    for (size_t v = inner; v; v >>= 7)
        *p++ = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
    for (size_t i = 0; i < inner; i += 2) {
        *p++ = 0x0a;
        *p++ = 0x00;
    }
    size = (size_t)(p - raw);
    header.length = header.raw_length = (uint32_t)size;
    expect_damage(header, raw, size, 1);
    free(raw);
}

static void read_unknown_kind_is_skipped(void **state)
{
    struct etch_frame_header header = {.kind = 900, .length = 5, .raw_length = 5};
    size_t total;
    uint8_t *copy;
    struct tally t;

    (void)state;
    header.payload_crc = etch_crc32c(0, "later", 5);
    copy = with_frame(&header, "later", 5, &total);
    t = read_all(copy, total);
    assert_int_equal(t.damaged, 1); /* the end record's count no longer fits: someone inserted a frame */
    assert_int_equal(t.whole, ETCH_SAMPLE_RECORDS + 1);
    assert_int_equal(t.unpacked, ETCH_SAMPLE_RECORDS);
    free(copy);
}

static void read_unknown_field_is_skipped(void **state)
{
    /* host { kernel: "k", field 1000: 1 }, then record field 900. */
    static const uint8_t raw[] = {0x0a, 0x06, 0x0a, 0x01, 'k', 0xc0, 0x3e, 0x01, 0xa0, 0x38, 0x07};
    struct etch_frame_header header = {
        .kind = ETCH__RECORD__BODY_HOST, .length = sizeof(raw), .raw_length = sizeof(raw)};
    struct etch_bundle_reader *reader;
    struct etch_bundle_item item;
    struct etch_error err;
    struct bytes source = {0};
    size_t total;

    (void)state;
    header.payload_crc = etch_crc32c(0, raw, sizeof(raw));
    source.data = with_frame(&header, raw, sizeof(raw), &total);
    source.size = total;
    assert_int_equal(etch_bundle_open_source(&reader, read_bytes, &source, "bytes", &err), 0);
    assert_int_equal(etch_bundle_next(reader, &item, &err), ETCH_BUNDLE_RECORD);
    assert_int_equal(etch_bundle_next(reader, &item, &err), ETCH_BUNDLE_RECORD);
    assert_string_equal(item.record->host->kernel, "k");
    etch_bundle_reader_free(reader);
    free(source.data);
}

static void read_end_of_a_later_packing(void **state)
{
    uint8_t *copy = malloc(sample.size + ETCH_FRAME_HEADER_SIZE + 1);
    struct etch_frame_header header = {.kind = ETCH__RECORD__BODY_END,
                                       .flags = 2,
                                       .length = 1,
                                       .raw_length = 1,
                                       .payload_crc = etch_crc32c(0, "?", 1)};
    size_t at = ETCH_FILE_HEADER_SIZE, last = at;
    struct tally t;

    (void)state;
    memcpy(copy, sample.data, sample.size);
    while (at < sample.size) {
        struct etch_frame_header each;

        last = at;
        assert_int_equal(etch_frame_header_decode(copy + at, &each), 0);
        at += ETCH_FRAME_HEADER_SIZE + each.length;
    }
    etch_frame_header_encode(&header, copy + last);
    copy[last + ETCH_FRAME_HEADER_SIZE] = '?';
    t = read_all(copy, last + ETCH_FRAME_HEADER_SIZE + 1);
    assert_int_equal(t.ending, ETCH_BUNDLE_END);
    assert_int_equal(t.whole, ETCH_SAMPLE_RECORDS);
    assert_int_equal(t.damaged, 0);
    free(copy);
}

static void read_bytes_behind_the_end(void **state)
{
    uint8_t *copy = malloc(sample.size + 3);
    struct tally t;

    (void)state;
    memcpy(copy, sample.data, sample.size);
    memcpy(copy + sample.size, "abc", 3);
    t = read_all(copy, sample.size + 3);
    assert_int_equal(t.ending, ETCH_BUNDLE_END);
    assert_int_equal(t.damaged, 1);
    assert_int_equal(t.whole, ETCH_SAMPLE_RECORDS);
    free(copy);
}

static void open_refuses_other_files(void **state)
{
    struct bytes future = {malloc(sample.size), sample.size, 0};
    struct bytes elf = {(uint8_t[]){0x7f, 'E', 'L', 'F', 2, 1, 1, 0}, 8, 0};
    struct etch_bundle_reader *reader;
    struct etch_error err;

    (void)state;
    memcpy(future.data, sample.data, sample.size);
    future.data[8] = 9;
    assert_int_equal(etch_bundle_open_source(&reader, read_bytes, &future, "run.etch", &err), -1);
    assert_string_equal(err.what, "run.etch has format 9, and this etch reads up to 1");
    assert_true(err.advice[0]);
    assert_int_equal(etch_bundle_open_source(&reader, read_bytes, &elf, "a.out", &err), -1);
    assert_string_equal(err.what, "a.out is not an etch file");
    assert_int_equal(etch_bundle_open(&reader, "/nonexistent/file", &err), -1);
    assert_non_null(strstr(err.what, "No such file"));
    free(future.data);
}

static ssize_t failing_read(void *context, void *buffer, size_t size)
{
    struct bytes *b = context;

    return b->at >= 100 ? -EIO : read_bytes(context, buffer, size < 100 ? size : 100);
}

static void read_error_is_no_cut(void **state)
{
    struct bytes source = {sample.data, sample.size, 0};
    struct etch_bundle_reader *reader;
    struct etch_bundle_item item;
    struct etch_error err;
    enum etch_bundle_event event;

    (void)state;
    assert_int_equal(etch_bundle_open_source(&reader, failing_read, &source, "disk", &err), 0);
    while ((event = etch_bundle_next(reader, &item, &err)) == ETCH_BUNDLE_RECORD)
        ;
    assert_int_equal(event, ETCH_BUNDLE_FAILED);
    assert_string_equal(err.what, "cannot read disk: Input/output error");
    etch_bundle_reader_free(reader);
}

static void want_unpacks_only_those(void **state)
{
    static const Etch__Record__BodyCase kinds[] = {ETCH__RECORD__BODY_FAILURE};
    struct bytes source = {sample.data, sample.size, 0};
    struct etch_bundle_reader *reader;
    struct etch_bundle_item item;
    struct etch_error err;
    int unpacked = 0, records = 0;

    (void)state;
    assert_int_equal(etch_bundle_open_source(&reader, read_bytes, &source, "bytes", &err), 0);
    etch_bundle_want(reader, kinds, 1);
    while (etch_bundle_next(reader, &item, &err) == ETCH_BUNDLE_RECORD) {
        records++;
        if (item.record) {
            unpacked++;
            assert_int_equal(item.record->failure->signal, 11);
        }
    }
    assert_int_equal(item.event, ETCH_BUNDLE_END);
    assert_int_equal(unpacked, 1);
    assert_int_equal(records, ETCH_SAMPLE_RECORDS);
    etch_bundle_reader_free(reader);
}

static void flow_is_cut_into_chunks(void **state)
{
    size_t size = 3 * ETCH_CHUNK_SIZE + 12345, got = 0;
    uint8_t *data = malloc(size);
    struct etch_bundle_writer *writer;
    struct etch_bundle_reader *reader;
    struct etch_bundle_item item;
    struct etch_error err;
    char path[64];

    (void)state;
    for (size_t i = 0; i < size; i++)
        data[i] = (uint8_t)(i * 2654435761u >> 13);
    temp_path(path);
    assert_int_equal(etch_bundle_create(&writer, path, &err), 0);
    assert_int_equal(etch_bundle_write_flow(writer, 3, 1000, data, size, &err), 0);
    assert_int_equal(etch_bundle_finish(writer, &err), 0);
    etch_bundle_writer_free(writer);
    assert_int_equal(etch_bundle_open(&reader, path, &err), 0);
    while (etch_bundle_next(reader, &item, &err) == ETCH_BUNDLE_RECORD) {
        const Etch__Flow *flow = item.record->flow;

        assert_int_equal(flow->stream, 3);
        assert_int_equal(flow->offset, 1000 + got);
        assert_memory_equal(flow->data.data, data + got, flow->data.len);
        got += flow->data.len;
    }
    assert_int_equal(item.event, ETCH_BUNDLE_END);
    assert_int_equal(got, size);
    etch_bundle_reader_free(reader);
    unlink(path);
    free(data);
}

static void write_too_large_is_refused(void **state)
{
    struct etch_bundle_writer *writer;
    Etch__Flow flow = ETCH__FLOW__INIT;
    Etch__Record record = ETCH__RECORD__INIT;
    struct etch_error err;
    char path[64];

    (void)state;
    flow.data.len = ETCH_RECORD_MAX + 1u;
    flow.data.data = calloc(1, flow.data.len);
    record.body_case = ETCH__RECORD__BODY_FLOW;
    record.flow = &flow;
    temp_path(path);
    assert_int_equal(etch_bundle_create(&writer, path, &err), 0);
    assert_int_equal(etch_bundle_write(writer, &record, &err), -1);
    assert_non_null(strstr(err.what, "beyond the format's limit"));
    flow.data.len = 10; /* the writer goes on */
    assert_int_equal(etch_bundle_write(writer, &record, &err), 0);
    assert_int_equal(etch_bundle_finish(writer, &err), 0);
    etch_bundle_writer_free(writer);
    unlink(path);
    free(flow.data.data);
}

static void write_to_a_full_disk(void **state)
{
    struct etch_bundle_writer *writer;
    struct etch_error err;
    int fd = open("/dev/full", O_WRONLY);

    (void)state;
    if (fd < 0)
        skip();
    assert_int_equal(etch_bundle_create_fd(&writer, fd, "out.etch", &err), -1);
    assert_string_equal(err.what, "cannot write out.etch: No space left on device");
    assert_true(err.advice[0]);
}

/* The disk fills up in mid-file: what was written stays readable, and the error stays. */
static void write_beyond_the_quota(void **state)
{
    struct rlimit old, small;
    struct etch_bundle_writer *writer;
    struct etch_bundle_reader *reader;
    struct etch_bundle_item item;
    struct etch_error err;
    uint8_t noise[8192];
    char path[64];
    uint64_t written = 0, seen = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(noise); i++)
        noise[i] = (uint8_t)(rand() >> 7);
    temp_path(path);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    small = (struct rlimit){100000, old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    assert_int_equal(etch_bundle_create(&writer, path, &err), 0);
    while (written < 100 && etch_bundle_write_flow(writer, 1, written, noise, sizeof(noise), &err) == 0)
        written++;
    setrlimit(RLIMIT_FSIZE, &old);
    assert_in_range(written, 10, 13);
    assert_non_null(strstr(err.what, "File too large"));
    assert_int_equal(etch_bundle_write_flow(writer, 1, 0, noise, 10, &err), -1);
    assert_int_equal(etch_bundle_finish(writer, &err), -1);
    etch_bundle_writer_free(writer);
    assert_int_equal(etch_bundle_open(&reader, path, &err), 0);
    while (etch_bundle_next(reader, &item, &err) == ETCH_BUNDLE_RECORD)
        seen++;
    assert_int_equal(item.event, ETCH_BUNDLE_CUT);
    assert_int_equal(seen, written);
    etch_bundle_reader_free(reader);
    unlink(path);
}

static void kind_names(void **state)
{
    (void)state;
    assert_string_equal(etch_record_kind_name(ETCH__RECORD__BODY_FLOW), "flow");
    assert_string_equal(etch_record_kind_name(ETCH__RECORD__BODY_END), "end");
    assert_null(etch_record_kind_name(0));
    assert_null(etch_record_kind_name(900));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_whole),
        cmocka_unit_test(read_cut_at_every_byte),
        cmocka_unit_test(read_every_byte_flipped),
        cmocka_unit_test(read_damage_names_the_record),
        cmocka_unit_test(read_lengths_that_lie),
        cmocka_unit_test(read_submessage_bomb),
        cmocka_unit_test(read_unknown_kind_is_skipped),
        cmocka_unit_test(read_unknown_field_is_skipped),
        cmocka_unit_test(read_end_of_a_later_packing),
        cmocka_unit_test(read_bytes_behind_the_end),
        cmocka_unit_test(read_error_is_no_cut),
        cmocka_unit_test(open_refuses_other_files),
        cmocka_unit_test(want_unpacks_only_those),
        cmocka_unit_test(flow_is_cut_into_chunks),
        cmocka_unit_test(write_too_large_is_refused),
        cmocka_unit_test(write_to_a_full_disk),
        cmocka_unit_test(write_beyond_the_quota),
        cmocka_unit_test(kind_names),
    };

    return cmocka_run_group_tests(tests, make_sample, free_sample);
}
