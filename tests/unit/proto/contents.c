/* SPDX-License-Identifier: MIT */
#include "proto/contents.h"
#include "tests/sample/sample.h"
#include "tests/unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void read_counts_everything(void **state)
{
    char path[] = P_tmpdir "/etch-test-XXXXXX";
    struct etch_bundle_reader *reader;
    struct etch_contents c;
    struct etch_error err;

    (void)state;
    close(mkstemp(path));
    assert_int_equal(etch_sample_make(path, &err), 0);
    assert_int_equal(etch_bundle_open(&reader, path, &err), 0);
    assert_int_equal(etch_contents_read(&c, reader, &err), 0);
    assert_int_equal(c.ending, ETCH_BUNDLE_END);
    assert_int_equal(c.records, ETCH_SAMPLE_RECORDS);
    assert_string_equal(c.host->kernel, "6.1.0-sample");
    assert_string_equal(c.program->argv[2], "in.bz2");
    assert_int_equal(c.failure->signal, 11);
    assert_int_equal(c.outcome->how_case, ETCH__OUTCOME__HOW_SIGNAL);
    assert_int_equal(c.images.total, 2);
    assert_int_equal(c.threads.total, 2);
    assert_int_equal(c.clocks.total, 2);
    assert_int_equal(c.streams.total, 1);
    assert_int_equal(c.watches.total, 1);
    assert_int_equal(c.flow_bytes, 1000);
    assert_int_equal(c.flows.n, 1);
    assert_int_equal(c.flows.v[0].holes, 0);
    assert_int_equal(c.losses[ETCH__LOSS_CAUSE__LOSS_RING_WRAPPED], 1);
    assert_int_equal(c.accesses, 2);
    assert_int_equal(c.reads, 1);
    assert_int_equal(c.writes, 1);
    assert_int_equal(c.values_unknown, 1); /* the write's value is zero, and known */
    assert_int_equal(c.syncs, 1);
    assert_int_equal(c.switches, 1);
    assert_int_equal(c.kinds[ETCH__RECORD__BODY_IMAGE].records, 2);
    etch_contents_release(&c);
    etch_bundle_reader_free(reader);
    unlink(path);
}

static void read_sees_holes(void **state)
{
    char path[] = P_tmpdir "/etch-test-XXXXXX";
    struct etch_bundle_writer *writer;
    struct etch_bundle_reader *reader;
    struct etch_contents c;
    struct etch_error err;

    (void)state;
    close(mkstemp(path));
    assert_int_equal(etch_bundle_create(&writer, path, &err), 0);
    assert_int_equal(etch_bundle_write_flow(writer, 1, 0, "abcd", 4, &err), 0);
    assert_int_equal(etch_bundle_write_flow(writer, 2, 0, "x", 1, &err), 0);
    assert_int_equal(etch_bundle_write_flow(writer, 1, 4, "efgh", 4, &err), 0);
    assert_int_equal(etch_bundle_write_flow(writer, 1, 9, "ijkl", 4, &err), 0);
    etch_bundle_writer_free(writer);
    assert_int_equal(etch_bundle_open(&reader, path, &err), 0);
    assert_int_equal(etch_contents_read(&c, reader, &err), 0);
    assert_int_equal(c.ending, ETCH_BUNDLE_CUT);
    assert_int_equal(c.flows.n, 2);
    assert_int_equal(c.flows.v[0].holes, 1);
    assert_int_equal(c.flows.v[0].bytes, 12);
    assert_int_equal(c.flows.v[1].holes, 0);
    etch_contents_release(&c);
    etch_bundle_reader_free(reader);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(read_counts_everything), cmocka_unit_test(read_sees_holes)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
