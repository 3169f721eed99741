/* SPDX-License-Identifier: MIT */
/* reexport [--as-vpt] IN OUT: a perf.data or LLDB bundle, loaded and written again as perf.data, for the tests that
 * compare what perf says of the one and of the other. With OUT "-" it prints what was loaded. With --as-vpt the
 * recording is made to look like one of vpt's first: CPUs' streams become their thread's, without switches, and code is
 * held by the recording. */
#include "binary/find_binary.h"
#include "decoder/perf_data_write.h"
#include "decoder/recording/lldb_trace.h"
#include "decoder/recording/perf_recording.h"
#include "tests/unit/recording_release.h"

#include <inttypes.h>
#include <libgen.h>
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

static void embed_code(const struct etch_recording *r, Etch__Image *image)
{
    struct etch_binary_places places = {.beside = dirname(strdupa(r->path))};
    char path[PATH_MAX];
    FILE *in = etch_find_binary(image, &places, path) >= ETCH_BINARY_UNCHECKED ? fopen(path, "re") : NULL;

    if (!in)
        return;
    image->code.data = malloc((size_t)image->size);
    if (image->code.data && fseek(in, (long)image->file_offset, SEEK_SET) == 0)
        image->code.len = fread(image->code.data, 1, (size_t)image->size, in);
    fclose(in);
}

static void make_like_vpt(struct etch_recording *r)
{
    for (size_t i = 0; i < r->streams.n; i++) {
        Etch__Stream *about = (Etch__Stream *)(uintptr_t)r->streams.v[i].about;

        about->of_case = ETCH__STREAM__OF_TID;
        about->tid = about->pid;
    }
    r->switches.n = 0;
    for (size_t i = 0; i < r->images.n; i++)
        embed_code(r, r->images.v[i]);
}

int main(int argc, char **argv)
{
    struct etch_recording r = {0};
    struct etch_error err;
    bool as_vpt = argc == 4 && strcmp(argv[1], "--as-vpt") == 0;
    int status;

    argv += as_vpt;
    if (argc - as_vpt != 3)
        return 2;
    status =
        is_perf(argv[1]) ? etch_recording_load_perf(&r, argv[1], &err) : etch_recording_load_lldb(&r, argv[1], &err);
    if (status == 0 && !r.path)
        r.path = strdup(argv[1]);
    if (status == 0 && as_vpt)
        make_like_vpt(&r);
    if (status == 0 && strcmp(argv[2], "-") == 0)
        show(&r);
    else if (status == 0)
        status = etch_perf_data_write_file(&r, NULL, argv[2], &err);
    if (status < 0)
        etch_error_print(&err, "reexport", stderr);
    recording_release(&r);
    return status < 0;
}
