/* SPDX-License-Identifier: MIT */
#include "decoder/recording/lldb_trace.h"
#include "tests/unit/recording_release.h"

#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = P_tmpdir "/etch-lldb-XXXXXX";

static void put(const char *name, const void *bytes, size_t size)
{
    char path[256];
    FILE *out;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    out = fopen(path, "we");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, size, out), size);
    assert_int_equal(fclose(out), 0);
}

static int load(struct etch_recording *r, const char *json, struct etch_error *err)
{
    memset(r, 0, sizeof(*r));
    err->what[0] = '\0';
    put("trace.json", json, strlen(json));
    return etch_recording_load_lldb(r, folder, err);
}

#define CPU "\"type\":\"intel-pt\",\"cpuInfo\":{\"vendor\":\"intel\",\"family\":6,\"model\":79,\"stepping\":1}"

static void load_threads(void **state)
{
    struct etch_recording r;
    struct etch_error err;
    uint8_t back[8];

    (void)state;
    put("7.trace", "0123456789", 10);
    assert_int_equal(load(&r,
                          "{" CPU
                          ",\"processes\":[{\"pid\":5,\"threads\":[{\"tid\":7,\"iptTrace\":\"7.trace\"},{\"tid\":8}],"
                          "\"modules\":[{\"file\":\"gone\",\"loadAddress\":\"0x400000\",\"uuid\":\"AB-CD\"}]}]}",
                          &err),
                     0);
    assert_int_equal(r.streams.n, 1);
    assert_int_equal(r.streams.v[0].about->tid, 7);
    assert_int_equal(r.streams.v[0].about->pid, 5);
    assert_string_equal(r.streams.v[0].about->pt->vendor, "GenuineIntel");
    assert_int_equal(r.streams.v[0].about->pt->model, 79);
    assert_int_equal(r.read(&r.streams.v[0], &r.streams.v[0].pieces.v[0], 6, back, sizeof(back)), 4);
    assert_memory_equal(back, "6789", 4);
    assert_int_equal(r.threads.n, 2);
    assert_int_equal(r.losses.n, 1); /* the module that is not there */
    recording_release(&r);
}

/* An ELF file of our own: its mappings lie where the description says. */
static void map_a_module(void **state)
{
    struct etch_recording r;
    struct etch_error err;
    char json[1024];
    size_t code = 0;

    (void)state;
    put("t", "x", 1);
    snprintf(json, sizeof(json),
             "{" CPU ",\"processes\":[{\"pid\":5,\"threads\":[{\"tid\":7,\"iptTrace\":\"t\"}],\"modules\":["
             "{\"file\":\"/proc/self/exe\",\"loadAddress\":94000000000000,\"uuid\":\"0102-0304\"}]}]}");
    assert_int_equal(load(&r, json, &err), 0);
    assert_true(r.images.n >= 2);
    assert_int_equal(r.images.v[0]->start, 94000000000000 / 4096 * 4096);
    for (size_t i = 0; i < r.images.n; i++) {
        code += (r.images.v[i]->prot & 4) != 0;
        assert_int_equal(r.images.v[i]->build_id.len, 4);
        assert_int_equal(r.images.v[i]->file_offset % 4096, 0);
    }
    assert_int_equal(code, 1);
    recording_release(&r);
}

static void load_cpus(void **state)
{
    const struct {
        struct perf_event_header header;
        uint32_t other[2];
        uint32_t pid, tid;
        uint64_t time;
    } switches[] = {{{PERF_RECORD_SWITCH_CPU_WIDE, 0, 32}, {0, 0}, 5, 7, 100},
                    {{PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT, 32}, {0, 0}, 5, 7, 200},
                    {{PERF_RECORD_LOST, 0, 40}, {0, 0}, 0, 0, 0} /* cut */};
    struct etch_recording r;
    struct etch_error err;

    (void)state;
    put("4.trace", "abc", 3);
    put("4.switches", switches, sizeof(switches));
    assert_int_equal(
        load(&r,
             "{" CPU ",\"cpus\":[{\"id\":4,\"iptTrace\":\"4.trace\",\"contextSwitchTrace\":\"4.switches\"}],"
             "\"tscPerfZeroConversion\":{\"timeMult\":1,\"timeShift\":1,\"timeZero\":18446744073709551606},"
             "\"processes\":[{\"pid\":5,\"threads\":[{\"tid\":7}],\"modules\":[]}]}",
             &err),
        0);
    assert_int_equal(r.streams.v[0].about->cpu, 4);
    assert_int_equal(r.switches.n, 2);
    assert_true(r.switches.v[0].in);
    assert_int_equal(r.switches.v[0].tsc, 220); /* (100 - -10) * 2 */
    assert_false(r.switches.v[1].in);
    assert_int_equal(r.switches.v[1].tid, 7);
    assert_int_equal(r.damaged, 1);
    recording_release(&r);
}

static void refuse_what_is_none(void **state)
{
    static const char *const texts[] = {"",
                                        "{",
                                        "[]",
                                        "{\"type\":\"arm\"}",
                                        "{" CPU "}",
                                        "{" CPU ",\"cpus\":[{\"id\":1,\"iptTrace\":\"no-such-file\"}]}",
                                        "{" CPU ",\"cpus\":[7],\"processes\":3}"};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct etch_recording r;
        struct etch_error err;

        assert_int_equal(load(&r, texts[i], &err), -1);
        assert_true(err.what[0]);
        recording_release(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(load_threads), cmocka_unit_test(map_a_module),
                                       cmocka_unit_test(load_cpus), cmocka_unit_test(refuse_what_is_none)};
    char command[300];
    int status;

    if (!mkdtemp(folder))
        return 1;
    status = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command) ? 1 : status;
}
