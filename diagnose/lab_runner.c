/* SPDX-License-Identifier: MIT */
/* See lab_runner.h. */
#include "diagnose/lab_runner.h"

#include <stdlib.h>
#include <string.h>

/* The first run is close to a run outside of the lab. Passing runs are needed too: in some runs a thread goes on as
 * long as it can, which hides many races. The random ones learn the shared memory. */
static struct etch_lab_spec spec_of(int64_t number)
{
    static const struct etch_lab_spec in_turn[] = {{.kind = ETCH_LAB_RANDOM},
                                                   {.kind = ETCH_LAB_PCT, .depth = 1},
                                                   {.kind = ETCH_LAB_SURW},
                                                   {.kind = ETCH_LAB_PCT, .depth = 2}};
    struct etch_lab_spec spec = in_turn[number % 4];

    if (number <= 1)
        spec.kind = ETCH_LAB_QUEUE;
    spec.seed = (uint64_t)number;
    return spec;
}

static void learn(struct etch_lab_learnt *learnt, const struct etch_lab_result *r)
{
    for (uint32_t i = 0; i < ETCH_LAB_SITES; i++) {
        uint64_t site = r->shared->learnt[i];
        uint32_t at = site ? etch_lab_site_slot(learnt->sites, site) : ETCH_LAB_SITES;

        if (at < ETCH_LAB_SITES)
            learnt->sites[at] = site;
    }
    for (uint32_t i = 0; r->end == ETCH_LAB_EXITED && i < ETCH_LAB_THREADS; i++)
        learnt->expected[i] = r->shared->thread[i].interesting;
}

int etch_lab_runner_record(const char *twin, int64_t number, struct etch_lab_learnt *learnt,
                           const struct etch_record_options *options, struct etch_record_summary *summary,
                           struct etch_error *err)
{
    struct etch_lab_request request = {.program = twin,
                                       .argv = options->argv,
                                       .spec = spec_of(number),
                                       .sites = learnt->sites,
                                       .expected = learnt->expected};
    struct etch_lab_result result;

    if (etch_lab_record_here(&result, &request, options, summary, err) < 0)
        return -1;
    learn(learnt, &result);
    etch_lab_result_release(&result);
    return 0;
}
