/* SPDX-License-Identifier: MIT */
/* order EVENTS: a simulated run of about so many events, merged; prints the time, the memory and what stayed unordered.
 */
#include "tests/sim/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* one thread: what others take of the machine does not count */
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Pairs of neighbours in true order and pairs at random, of different threads. */
static void sample(const struct sim_run *run, const struct etch_order *order, bool near, uint64_t *asked,
                   uint64_t *open, uint64_t *wrong)
{
    struct sim_random random = {.state = 11};

    for (int i = 0; i < 1000000; i++) {
        size_t a = sim_below(&random, run->n);
        size_t b = near ? a + 1 + sim_below(&random, 8) : sim_below(&random, run->n);
        enum etch_relation relation;

        if (b >= run->n || run->events[a].thread == run->events[b].thread)
            continue;
        relation = etch_order_ask(order, a, b);
        ++*asked;
        *open += relation == ETCH_UNORDERED;
        *wrong += (relation == ETCH_BEFORE && run->truth[a] > run->truth[b]) ||
                  (relation == ETCH_AFTER && run->truth[a] < run->truth[b]);
    }
}

int main(int argc, char **argv)
{
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    size_t want = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    uint64_t asked = 0, open = 0, wrong = 0, near_asked = 0, near_open = 0;
    struct etch_order_size size;
    struct etch_error err;
    struct etch_order *order;
    struct sim_run run;
    struct rusage usage;
    double start, took;

    options.threads = options.cpus = 8;
    options.steps = (uint32_t)(want / options.threads);
    options.mutexes = 8;
    options.unique_values = true;
    options.trap = 400;
    if (sim_run_new(&run, &options) < 0)
        return 1;
    start = seconds();
    if (etch_order_build(&order, &run.input, &err) < 0) {
        etch_error_print(&err, "bench_order", stderr);
        return 1;
    }
    took = seconds() - start;
    etch_order_measure(order, &size);
    sample(&run, order, false, &asked, &open, &wrong);
    sample(&run, order, true, &near_asked, &near_open, &wrong);
    getrusage(RUSAGE_SELF, &usage);
    printf(
        "%10zu events %7.2f s %8.0f ns/event %6.1f bytes/event (peak %.1f MiB with the events) %9zu edges, %u turns, "
        "unordered %.4f %% of all pairs, %.2f %% of neighbours, %" PRIu64 " wrong\n",
        size.events, took, 1e9 * took / (double)size.events, (double)size.bytes / (double)size.events,
        (double)usage.ru_maxrss / 1024, size.edges, size.turns, 100.0 * (double)open / (double)asked,
        100.0 * (double)near_open / (double)near_asked, wrong);
    etch_order_free(order);
    sim_run_free(&run);
    return wrong ? 1 : 0;
}
