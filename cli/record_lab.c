/* SPDX-License-Identifier: MIT */
/* See record_lab.h; this is etch-llvm's side. */
#include "cli/record_lab.h"

#include "base/printable.h"
#include "collector/lab_record.h"
#include "diagnose/lab_twin.h"

#include <stdlib.h>

static int record_twin(const struct etch_record_lab *about, const struct etch_lab_twin *twin,
                       const struct etch_record_options *options, struct etch_record_summary *summary,
                       struct etch_error *err)
{
    struct etch_lab_request request = {.program = twin->path, .argv = options->argv};
    uint64_t *sites = calloc(ETCH_LAB_SITES, sizeof(*sites));
    struct etch_lab_result result;
    int status;

    if (!sites)
        return etch_error_no_memory(err);
    if (about->schedule && !etch_lab_spec_parse(&request.spec, about->schedule)) {
        free(sites);
        etch_error_set(err, "there is no schedule '%s'", etch_shown(about->schedule));
        return etch_error_advise(err, "--schedule queue, random:SEED, pct:SEED,DEPTH, pos:SEED or surw:SEED");
    }
    if (about->memory && !etch_lab_memory_parse(&request.memory, about->memory)) {
        free(sites);
        etch_error_set(err, "there is no memory model '%s'", etch_shown(about->memory));
        return etch_error_advise(err, "--memory sc, tso or c11");
    }
    if (etch_lab_sites_read(twin, sites))
        request.sites = sites;
    status = etch_lab_record_here(&result, &request, options, summary, err);
    if (status == 0) {
        etch_lab_sites_keep(twin, result.shared->learnt);
        etch_lab_result_release(&result);
    }
    free(sites);
    return status;
}

int etch_record_in_lab(const struct etch_record_lab *about, struct etch_record_options *options,
                       struct etch_record_summary *summary, struct etch_error *err)
{
    char path[PATH_MAX];
    struct etch_lab_twin twin;

    if (etch_record_find_program(options->argv[0], path, sizeof(path), err) < 0)
        return -1;
    if (etch_lab_twin(&twin, path, err) == 0)
        return record_twin(about, &twin, options, summary, err);
    if (!about->automatic)
        return -1;
    options->source = etch_record_source_without_lab();
    fprintf(stderr, "etch record: no lab build: %s; taking source %s\n", err->what, options->source);
    return etch_record(options, summary, err);
}
