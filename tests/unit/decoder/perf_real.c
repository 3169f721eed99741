/* SPDX-License-Identifier: MIT */
/* Real captures: a perf.data against the list of its records that another reader printed, and its trace packet by
 * packet. */
#include "decoder/recording/perf_recording.h"
#include "tests/unit/recording_release.h"

#include <fcntl.h>
#include <intel-pt.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[4096];

static ssize_t read_fd(void *context, void *buffer, size_t size, uint64_t offset)
{
    return pread(*(int *)context, buffer, size, (off_t)offset);
}

/* The fields of the expected list, a record a line, in the order in which both have them. */
static void print_sample(FILE *out, const struct etch_perf_sample_id *s)
{
    fprintf(out, "pid %u|tid %u|sample_time_ns %" PRIu64 "|id %" PRIu64 "|", s->pid, s->tid, s->time, s->id);
    if (s->has_cpu)
        fprintf(out, "cpu %u|", s->cpu);
}

static int print_record(void *context, const struct etch_perf_file *file, const struct etch_perf_record *r)
{
    FILE *out = context;

    (void)file;
    if (r->type == PERF_RECORD_SAMPLE || r->type == PERF_USER_FINISHED_ROUND)
        return 0;
    fprintf(out, "type %u|misc %u|size %u|", r->type, r->misc, r->size);
    switch (r->type) {
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        fprintf(out, "pid %u|tid %u|start %" PRIu64 "|len %" PRIu64 "|pgoff %" PRIu64 "|", r->mmap.pid, r->mmap.tid,
                r->mmap.start, r->mmap.size, r->mmap.offset);
        fprintf(out, "filename \"%s\"|", r->mmap.path);
        break;
    case PERF_RECORD_COMM:
        fprintf(out, "pid %u|tid %u|comm \"%s\"|", r->comm.pid, r->comm.tid, r->comm.name);
        break;
    case PERF_RECORD_EXIT:
        fprintf(out, "pid %u|ppid %u|tid %u|ptid %u|", r->task.pid, r->task.ppid, r->task.tid, r->task.ptid);
        break;
    case PERF_RECORD_AUX:
        fprintf(out, "aux_offset %" PRIu64 "|aux_size %" PRIu64 "|", r->aux.offset, r->aux.size);
        break;
    case PERF_RECORD_ITRACE_START:
        fprintf(out, "pid %u|tid %u|", r->itrace.pid, r->itrace.tid);
        break;
    case PERF_RECORD_SWITCH_CPU_WIDE:
        fprintf(out, "is_out %s|next_prev_pid %u|next_prev_tid %u|",
                r->misc & PERF_RECORD_MISC_SWITCH_OUT ? "true" : "false", r->other.pid, r->other.tid);
        break;
    case PERF_USER_AUXTRACE_INFO:
        fprintf(out, "type %u|", r->auxtrace_info.type);
        for (size_t i = 0; i < r->auxtrace_info.n; i++)
            fprintf(out, "unparsed_binary_blob_priv_data %" PRIu64 "|", r->auxtrace_info.words[i]);
        fputc('\n', out);
        return 0;
    case PERF_USER_AUXTRACE:
        fprintf(out, "size %" PRIu64 "|offset %" PRIu64 "|reference %" PRIu64 "|idx %u|tid %u|cpu %u|\n",
                r->auxtrace.size, r->auxtrace.offset, r->auxtrace.reference, r->auxtrace.idx, r->auxtrace.tid,
                r->auxtrace.cpu);
        return 0;
    default:
        fprintf(out, "time_shift %" PRIu64 "|time_mult %" PRIu64 "|time_zero %" PRIu64 "|\n", r->time_conv.shift,
                r->time_conv.mult, r->time_conv.zero);
        return 0;
    }
    print_sample(out, &r->sample);
    if (r->type == PERF_RECORD_MMAP2)
        fprintf(out, "prot %u|", r->mmap.prot);
    fputc('\n', out);
    return 0;
}

/* From the list: the keys above, of every record but samples and round marks, sorted away from what we do not compare.
 */
static const char expected[] =
    "zcat '%s/quipper/perf.data.intel_pt-4.14.pb_text.gz' | awk '"
    "/^events \\{/ { if (keep) print text; text = \"\"; keep = 1; inside = 1; next }"
    "/^[a-z]/ { inside = 0 }"
    "!inside || !/: / { next }"
    "{ key = $1; sub(/:$/, \"\", key); value = $0; sub(/^ *[a-z0-9_]+: /, \"\", value) }"
    "key == \"type\" && !n[NR] && text == \"\" && (value == 9 || value == 68) { keep = 0 }"
    "key ~ /^(type|misc|size|pid|tid|start|len|pgoff|prot|filename|comm|ppid|ptid|aux_offset|aux_size|is_out|"
    "next_prev_pid|next_prev_tid|unparsed_binary_blob_priv_data|offset|reference|idx|time_shift|time_mult|time_zero|"
    "sample_time_ns|id|cpu)$/ { text = text key \" \" value \"|\" }"
    "END { if (keep) print text }'";

struct lines {
    char *text;
    ETCH_ARRAY(char *) list;
};

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The other reader sorts by time, the file does not: both lists are compared sorted. */
static void sort_lines(struct lines *lines)
{
    char *rest = lines->text, *line;

    while ((line = strtok_r(rest, "\n", &rest)))
        assert_true(etch_array_push(&lines->list, line));
    qsort(lines->list.v, lines->list.n, sizeof(char *), compare_lines);
}

static void release_lines(struct lines *lines)
{
    free(lines->text);
    etch_array_free(&lines->list);
}

static void read_every_record(void **state)
{
    struct lines ours = {0}, theirs = {0};
    char path[8192];
    struct etch_perf_file file;
    struct etch_error err;
    struct stat st;
    size_t n;
    FILE *out = open_memstream(&ours.text, &n), *list;
    int fd;

    (void)state;
    snprintf(path, sizeof(path), "%s/quipper/perf.data.intel_pt-4.14", folder);
    fd = open(path, O_RDONLY);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    struct etch_perf_source source = {.read = read_fd, .context = &fd, .size = (uint64_t)st.st_size};
    assert_int_equal(etch_perf_data_read(&source, path, &file, print_record, out, &err), 0);
    fclose(out);
    assert_int_equal(file.damaged, 0);
    assert_false(file.cut);
    etch_perf_file_release(&file);
    close(fd);
    snprintf(path, sizeof(path), expected, folder);
    list = popen(path, "re");
    n = 0;
    assert_true(getdelim(&theirs.text, &n, 0, list) > 0);
    pclose(list);
    sort_lines(&ours);
    sort_lines(&theirs);
    assert_int_equal(theirs.list.n, 238); /* of 257: without 15 samples and 4 round marks */
    assert_int_equal(ours.list.n, theirs.list.n);
    for (size_t i = 0; i < ours.list.n; i++)
        assert_string_equal(ours.list.v[i], theirs.list.v[i]);
    release_lines(&ours);
    release_lines(&theirs);
}

static uint8_t *read_stream(const struct etch_recording *r, const struct etch_stream *s, size_t *size)
{
    uint8_t *bytes = malloc(1 << 20);

    *size = 0;
    for (size_t i = 0; i < s->pieces.n; i++) {
        ssize_t n = r->read(s, &s->pieces.v[i], 0, bytes + *size, (size_t)(1 << 20) - *size);

        assert_int_equal(n, s->pieces.v[i].size);
        *size += (size_t)n;
    }
    return bytes;
}

static void count_packets(uint8_t *bytes, size_t size, uint64_t counts[64])
{
    struct pt_config config;
    struct pt_packet_decoder *decoder;

    pt_config_init(&config);
    config.begin = bytes;
    config.end = bytes + size;
    decoder = pt_pkt_alloc_decoder(&config);
    assert_true(pt_pkt_sync_forward(decoder) >= 0);
    for (;;) {
        struct pt_packet packet;

        if (pt_pkt_next(decoder, &packet, sizeof(packet)) < 0)
            break;
        if ((unsigned)packet.type < 64)
            counts[packet.type]++;
    }
    pt_pkt_free_decoder(decoder);
}

static void hold_every_packet(void **state)
{
    static const struct {
        enum pt_packet_type type;
        uint64_t count;
    } want[] = {{ppt_tip, 12039}, {ppt_mtc, 2802}, {ppt_pip, 441}, {ppt_fup, 149}, {ppt_tsc, 24},
                {ppt_tma, 24},    {ppt_cbr, 24},   {ppt_psb, 10},  {ppt_ovf, 0}};
    uint64_t counts[64] = {0};
    struct etch_recording r = {0};
    struct etch_error err;
    char path[8192];

    (void)state;
    snprintf(path, sizeof(path), "%s/quipper/perf.data.intel_pt-4.14", folder);
    assert_int_equal(etch_recording_load_perf(&r, path, &err), 0);
    assert_int_equal(r.streams.n, 2);
    for (size_t i = 0; i < r.streams.n; i++) {
        size_t size;
        uint8_t *bytes = read_stream(&r, &r.streams.v[i], &size);

        count_packets(bytes, size, counts);
        free(bytes);
    }
    assert_int_equal(counts[ppt_tnt_8] + counts[ppt_tnt_64], 69516);
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
        assert_int_equal(counts[want[i].type], want[i].count);
    recording_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(read_every_record), cmocka_unit_test(hold_every_packet)};
    const char *place = getenv("ETCH_PTDATA");

    snprintf(folder, sizeof(folder), "%s", place ? place : ETCH_PTDATA_DEFAULT);
    if (access(folder, R_OK) != 0) {
        fputs("skipped: no real captures here (ETCH_PTDATA)\n", stderr);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
