/* SPDX-License-Identifier: MIT */
/* pack_runs [--lean] PROGRAM OUT BUNDLE...: an input for tests/fuzz/runs.c.
 * --lean: with stacks unwound already, and libraries whose files are not there. Reading the symbols of libc and
 * libstdc++ takes ten times as long as all the rest, and is not what is tested. */
#include "tests/damage/records.h"

#include "binary/symbols.h"
#include "decoder/recording.h"
#include "decoder/unwind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __attribute__((noreturn)) void die(const char *what)
{
    fprintf(stderr, "pack_runs: %s\n", what);
    exit(1);
}

static void replace(struct packed_record *packed, const Etch__Record *record)
{
    packed->size = etch__record__get_packed_size(record);
    free(packed->bytes);
    packed->bytes = malloc(packed->size + 1);
    if (!packed->bytes)
        die("out of memory");
    etch__record__pack(record, packed->bytes);
}

static void move_library(struct packed_record *packed, const char *program)
{
    Etch__Record *record = etch__record__unpack(NULL, packed->size, packed->bytes);
    char path[4200], *kept;
    size_t id;

    if (!record)
        die("a record that does not unpack");
    kept = record->image->path;
    id = record->image->build_id.len;
    snprintf(path, sizeof(path), "/gone%s", kept);
    if (kept[0] == '/' && strcmp(kept, program) != 0) {
        record->image->path = path;
        record->image->build_id.len = 0; /* by which it would be found elsewhere */
        replace(packed, record);
        record->image->path = kept;
        record->image->build_id.len = id;
    }
    etch__record__free_unpacked(record, NULL);
}

/* The recording's failure, with its stacks unwound, in the place of what the file has. */
static void unwind(struct packed_record *packed, const char *bundle)
{
    static const struct etch_symbols_options options = {0};
    struct etch_symbols *symbols = etch_symbols_new(&options);
    struct etch_recording *recording;
    Etch__Record record = ETCH__RECORD__INIT;
    struct etch_error err;

    if (!symbols || etch_recording_open(&recording, bundle, &err) < 0 || !recording->failure)
        die(bundle);
    etch_unwind_failure(recording, symbols);
    record.body_case = ETCH__RECORD__BODY_FAILURE;
    record.failure = recording->failure;
    replace(packed, &record);
    etch_recording_free(recording);
    etch_symbols_free(symbols);
}

static void make_lean(struct records *records, const char *program, const char *bundle)
{
    for (size_t i = 0; i < records->list.n; i++) {
        if (records->list.v[i].kind == ETCH__RECORD__BODY_IMAGE)
            move_library(&records->list.v[i], program);
        else if (records->list.v[i].kind == ETCH__RECORD__BODY_FAILURE)
            unwind(&records->list.v[i], bundle);
    }
}

static void add(FILE *out, const char *bundle, const char *program, bool lean)
{
    struct records records = {0};
    uint8_t *file;
    uint32_t length;
    size_t size;

    if (!records_load(&records, bundle))
        die(bundle);
    if (lean)
        make_lean(&records, program, bundle);
    file = records_write(&records, &size);
    if (!file)
        die("out of memory");
    length = (uint32_t)size;
    fwrite(&length, 4, 1, out);
    fwrite(file, 1, size, out);
    free(file);
    records_release(&records);
}

int main(int argc, char **argv)
{
    bool lean = argc > 1 && strcmp(argv[1], "--lean") == 0;
    char **rest = argv + 1 + lean;
    FILE *out;

    if (argc - 1 - lean < 3)
        die("usage: pack_runs [--lean] PROGRAM OUT BUNDLE...");
    out = fopen(rest[1], "wbe");
    if (!out)
        die(rest[1]);
    fprintf(out, "%s\n", rest[0]);
    for (char **bundle = rest + 2; *bundle; bundle++)
        add(out, *bundle, rest[0], lean);
    return fclose(out) == 0 ? 0 : 1;
}
