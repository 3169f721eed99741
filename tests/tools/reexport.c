/* SPDX-License-Identifier: MIT */
/* reexport IN OUT: a perf.data or LLDB bundle, loaded and written again as perf.data, for the tests that compare what
 * perf says of the one and of the other. With OUT "-" it prints what was loaded. */
#include "decoder/lldb_trace.h"
#include "decoder/perf_data_write.h"
#include "decoder/perf_recording.h"
#include "tests/unit/recording_release.h"

#include <inttypes.h>
#include <stdio.h>

static void show(const struct etch_recording *r)
{
    printf("streams %zu, images %zu, threads %zu, switches %zu, losses %zu, damaged %" PRIu64 "%s\n", r->streams.n,
           r->images.n, r->threads.n, r->switches.n, r->losses.n, r->damaged, r->cut ? ", cut" : "");
    for (size_t i = 0; i < r->streams.n; i++) {
        const Etch__Stream *s = r->streams.v[i].about;

        printf("stream %u cpu %d tid %d pid %u pieces %zu cpu %s/%u/%u/%u mtc %u nom %u ctc %u/%u\n", s->id,
               s->of_case == ETCH__STREAM__OF_CPU ? (int)s->cpu : -1,
               s->of_case == ETCH__STREAM__OF_TID ? (int)s->tid : -1, s->pid, r->streams.v[i].pieces.n, s->pt->vendor,
               s->pt->family, s->pt->model, s->pt->stepping, s->pt->mtc_freq, s->pt->nom_freq, s->pt->cpuid_15_ebx,
               s->pt->cpuid_15_eax);
    }
    for (size_t i = 0; i < r->images.n; i++)
        printf("image %d 0x%" PRIx64 " +0x%" PRIx64 " @0x%" PRIx64 " prot %u %s [%" PRIu64 ", %" PRIu64 "]\n",
               (int)r->images.v[i]->pid, r->images.v[i]->start, r->images.v[i]->size, r->images.v[i]->file_offset,
               r->images.v[i]->prot, r->images.v[i]->path, r->images.v[i]->mapped_tsc, r->images.v[i]->unmapped_tsc);
    for (size_t i = 0; i < r->threads.n; i++)
        printf("thread %u/%u %s\n", r->threads.v[i]->pid, r->threads.v[i]->tid, r->threads.v[i]->name);
    for (size_t i = 0; i < r->losses.n; i++)
        printf("loss %d at %" PRIu64 " events %" PRIu64 " %s\n", r->losses.v[i]->cause, r->losses.v[i]->offset,
               r->losses.v[i]->events, r->losses.v[i]->detail);
}

static bool is_perf(const char *path)
{
    char magic[8] = "";
    FILE *f = strcmp(path, "-") == 0 ? NULL : fopen(path, "re");
    bool perf = f == NULL;

    if (f) {
        perf = fread(magic, 1, 8, f) == 8 && memcmp(magic, "PERFILE2", 8) == 0;
        fclose(f);
    }
    return perf;
}

int main(int argc, char **argv)
{
    struct etch_recording r = {0};
    struct etch_error err;
    int status;

    if (argc != 3)
        return 2;
    status =
        is_perf(argv[1]) ? etch_recording_load_perf(&r, argv[1], &err) : etch_recording_load_lldb(&r, argv[1], &err);
    if (status == 0 && !r.path)
        r.path = strdup(argv[1]);
    if (status == 0 && strcmp(argv[2], "-") == 0)
        show(&r);
    else if (status == 0)
        status = etch_perf_data_write_file(&r, NULL, argv[2], &err);
    if (status < 0)
        etch_error_print(&err, "reexport", stderr);
    recording_release(&r);
    return status < 0;
}
