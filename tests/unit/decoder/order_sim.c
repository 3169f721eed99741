/* SPDX-License-Identifier: MIT */
/* The order against the truth, on simulated machines: whatever it claims must be so. ETCH_SIM_RUNS sets how many runs.
 */
#include "tests/sim/sim.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__) || (defined(__has_feature) && __has_feature(address_sanitizer))
#define RUNS 600
#define LENGTHS 2
#else
#define RUNS 10000
#define LENGTHS 4
#endif

static uint64_t runs_wanted(void)
{
    const char *text = getenv("ETCH_SIM_RUNS");

    return text ? strtoull(text, NULL, 10) : RUNS;
}

struct pairs {
    uint64_t asked, wrong, unordered; /* of different threads */
    uint64_t sync_asked, sync_unordered;
    uint64_t near_asked, near_unordered;   /* neighbours on one lock */
    uint64_t value_asked, value_unordered; /* on one watched variable */
};

/* What a wrong claim rests on, for the first few. */
static void tell_wrong(const struct sim_run *run, const struct etch_order *order, size_t a, size_t b,
                       struct pairs *pairs)
{
    struct etch_evidence links[64];
    size_t n = etch_order_why(order, a, b, links, 64);

    if (pairs->wrong++ > 5)
        return;
    print_message("wrong: %zu and %zu, by\n", a, b);
    for (size_t i = 0; i < n && i < 64; i++) {
        const struct etch_event *x = &run->events[links[i].from];
        const struct etch_event *y = &run->events[links[i].to];

        print_message("  %s: event %u, thread %u, kind %u op %u access %u object %" PRIx64 " (true place %" PRIu64
                      ") -> event %u, thread %u, kind %u op %u access %u object %" PRIx64 " (true place %" PRIu64 ")\n",
                      etch_evidence_name(links[i].kind), links[i].from, x->thread, x->kind, x->op, x->access, x->object,
                      run->truth[links[i].from], links[i].to, y->thread, y->kind, y->op, y->access, y->object,
                      run->truth[links[i].to]);
    }
}

static void ask_pair(const struct sim_run *run, const struct etch_order *order, size_t a, size_t b, struct pairs *pairs)
{
    const struct etch_event *x = &run->events[a];
    const struct etch_event *y = &run->events[b];
    enum etch_relation relation = etch_order_ask(order, a, b);
    bool unordered = relation == ETCH_UNORDERED;

    if (x->kind == ETCH_EVENT_LOSS || y->kind == ETCH_EVENT_LOSS)
        return;
    if ((relation == ETCH_BEFORE && run->truth[a] > run->truth[b]) ||
        (relation == ETCH_AFTER && run->truth[a] < run->truth[b]))
        tell_wrong(run, order, a, b, pairs);
    if (x->thread == y->thread)
        return;
    pairs->asked++;
    pairs->unordered += unordered;
    if (x->kind == ETCH_EVENT_SYNC && y->kind == ETCH_EVENT_SYNC) {
        pairs->sync_asked++;
        pairs->sync_unordered += unordered;
    }
    if (x->kind == ETCH_EVENT_ACCESS && y->kind == ETCH_EVENT_ACCESS && x->object == y->object &&
        ((x->access | y->access) & ETCH_ACCESS_WRITE)) {
        pairs->value_asked++;
        pairs->value_unordered += unordered;
    }
}

static void ask_all(const struct sim_run *run, const struct etch_order *order, struct pairs *pairs)
{
    for (size_t a = 0; a < run->n; a++)
        for (size_t b = a + 1; b < run->n; b++)
            ask_pair(run, order, a, b, pairs);
}

/* The displayed sequence contradicts no answer, and every answer has its reasons, link by link. */
static void check_sequence(const struct sim_run *run, const struct etch_order *order)
{
    const uint32_t *sequence = etch_order_sequence(order);

    for (size_t i = 0; i < run->n; i++)
        for (size_t k = i + 1; k < run->n; k++)
            assert_int_not_equal(etch_order_ask(order, sequence[i], sequence[k]), ETCH_AFTER);
}

static uint64_t check_reasons(const struct sim_run *run, const struct etch_order *order, struct sim_random *random)
{
    uint64_t signals = 0;

    for (int i = 0; i < 50; i++) {
        size_t a = sim_below(random, run->n), b = sim_below(random, run->n);
        enum etch_relation relation = etch_order_ask(order, a, b);
        struct etch_evidence links[64];
        size_t n = etch_order_why(order, a, b, links, 64);

        if (relation == ETCH_UNORDERED || relation == ETCH_SAME) {
            assert_int_equal(n, 0);
            continue;
        }
        assert_in_range(n, 1, 64);
        assert_int_equal(links[0].from, relation == ETCH_BEFORE ? a : b);
        assert_int_equal(links[n - 1].to, relation == ETCH_BEFORE ? b : a);
        for (size_t k = 0; k < n; k++) {
            assert_int_equal(etch_order_ask(order, links[k].from, links[k].to), ETCH_BEFORE);
            assert_true(k == 0 || links[k].from == links[k - 1].to);
            signals += links[k].kind == ETCH_BY_SIGNAL;
        }
    }
    return signals;
}

/* All kinds of machines and programs. */
static struct sim_options any_options(struct sim_random *random, uint64_t seed)
{
    struct sim_options o = SIM_OPTIONS_DEFAULT;

    o.seed = seed;
    o.cpus = (uint32_t)sim_between(random, 1, sim_chance(random, 100) ? 256 : 8);
    o.threads = (uint32_t)sim_between(random, 2, 8);
    o.steps = (uint32_t)sim_between(random, 8, 30);
    o.max_skew = sim_chance(random, 500) ? sim_between(random, 0, 500) : sim_between(random, 0, 1000000);
    o.drift_ppb = sim_chance(random, 300) ? (int32_t)sim_between(random, 0, 100000) : 0;
    o.migrate = (unsigned)sim_below(random, 100);
    o.preempt = (unsigned)sim_below(random, 50);
    o.lose = sim_chance(random, 300) ? (unsigned)sim_below(random, 60) : 0;
    o.mutexes = (uint32_t)sim_between(random, 1, 3);
    o.rwlocks = (uint32_t)sim_below(random, 3);
    o.conditions = (uint32_t)sim_below(random, 2);
    o.semaphores = (uint32_t)sim_below(random, 4);
    o.variables = (uint32_t)sim_between(random, 1, 3);
    o.access = (unsigned)sim_between(random, 5, 60);
    o.barrier = sim_chance(random, 300) ? (unsigned)sim_between(random, 4, 10) : 0;
    o.unique_values = sim_chance(random, 500);
    o.pace = sim_chance(random, 500) ? sim_between(random, 20, 300) : sim_between(random, 300, 20000);
    o.trap = sim_chance(random, 500) ? sim_between(random, 10, 200) : 40000;
    o.clocks_refused = sim_chance(random, 100);
    o.signals_wake = sim_chance(random, 500);
    o.spans = sim_chance(random, 700);
    o.mark = sim_chance(random, 300) ? (unsigned)sim_below(random, 1000) : 0;
    return o;
}

static void claims_nothing_wrong(void **state)
{
    struct sim_random random = {.state = 42};
    uint64_t runs = runs_wanted();
    struct pairs pairs = {0};
    uint64_t signals = 0;
    size_t conflicts = 0;

    (void)state;
    for (uint64_t seed = 0; seed < runs; seed++) {
        struct sim_options options = any_options(&random, seed);
        struct sim_run run;
        struct etch_order *order;
        struct etch_error err;
        uint64_t wrong = pairs.wrong;
        size_t n;

        assert_int_equal(sim_run_new(&run, &options), 0);
        assert_int_equal(etch_order_build(&order, &run.input, &err), 0);
        etch_order_conflicts(order, &n);
        conflicts += n;
        ask_all(&run, order, &pairs);
        if (pairs.wrong != wrong)
            print_message("seed %" PRIu64 ": %" PRIu64 " wrong pairs of %zu events\n", seed, pairs.wrong - wrong,
                          run.n);
        if (seed % 10 == 0)
            check_sequence(&run, order);
        signals += check_reasons(&run, order, &random);
        etch_order_free(order);
        sim_run_free(&run);
    }
    print_message("%" PRIu64 " runs, %" PRIu64 " pairs, %" PRIu64 " wrong, %.3f %% unordered, %zu conflicts, %" PRIu64
                  " reasons by signal\n",
                  runs, pairs.asked, pairs.wrong, 100.0 * (double)pairs.unordered / (double)pairs.asked, conflicts,
                  signals);
    assert_int_equal(pairs.wrong, 0);
    assert_int_equal(conflicts, 0);
    assert_true(signals > 0 || runs < 100);
}

/* Why a wait's end is no proof of a signal unless the user says so: where waits may end for no reason, orders that rest
 * on it are wrong, or contradict what is known. */
static void signals_are_no_proof_where_waits_end_by_themselves(void **state)
{
    struct sim_random random = {.state = 42};
    struct pairs pairs = {0};
    size_t conflicts = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct sim_options options = any_options(&random, seed);
        struct sim_run run;
        struct etch_order *order;
        struct etch_error err;
        size_t n;

        options.conditions = 1;
        options.signals_wake = false;
        options.lose = 0;
        assert_int_equal(sim_run_new(&run, &options), 0);
        run.input.signals_wake = true;
        assert_int_equal(etch_order_build(&order, &run.input, &err), 0);
        etch_order_conflicts(order, &n);
        conflicts += n;
        pairs.wrong = 100; /* quietly */
        ask_all(&run, order, &pairs);
        conflicts += pairs.wrong > 100;
        etch_order_free(order);
        sim_run_free(&run);
    }
    assert_true(conflicts > 0);
}

/* So many runs of four threads on four CPUs, a step every 2,000 cycles or so, ordered with everything. */
static struct pairs order_runs(uint32_t steps, bool spans, uint64_t *events)
{
    struct pairs pairs = {0};

    for (uint64_t seed = 0; seed < 10; seed++) {
        struct sim_options options = SIM_OPTIONS_DEFAULT;
        struct sim_run run;
        struct etch_order *order;
        struct etch_error err;

        options.seed = seed;
        options.steps = steps;
        options.access = 10;
        options.unique_values = true;
        options.trap = 20;
        options.spans = spans;
        assert_int_equal(sim_run_new(&run, &options), 0);
        assert_int_equal(etch_order_build(&order, &run.input, &err), 0);
        ask_all(&run, order, &pairs);
        *events += run.n;
        etch_order_free(order);
        sim_run_free(&run);
    }
    assert_int_equal(pairs.wrong, 0);
    return pairs;
}

static double percent(uint64_t part, uint64_t of)
{
    return of ? 100.0 * (double)part / (double)of : 0;
}

/* How much stays unordered. The share of all pairs falls with the length of the run, because what is far apart is
 * ordered whatever happens; what does not depend on it is how many others an event is unordered with. So both are
 * printed, for runs from 30 steps of each thread on. The goals, 1 % of pairs of synchronisation and 0.1 % of
 * conflicting accesses, are held from 100 and from 1,000 steps on. */
static void orders_nearly_all_synchronisation(void **state)
{
    static const uint32_t lengths[] = {30, 100, 300, 1000}; /* the sanitizers are for the first ones */

    (void)state;
    for (int spans = 0; spans < 2; spans++)
        for (size_t i = 0; i < LENGTHS; i++) {
            uint64_t events = 0;
            struct pairs p = order_runs(lengths[i], spans, &events);
            double sync = percent(p.sync_unordered, p.sync_asked), values = percent(p.value_unordered, p.value_asked);

            print_message(
                "%4u steps, stamps on %s of a call: unordered %.4f %% of pairs of syncs, %.4f %% of conflicting "
                "accesses; an event with %.2f others\n",
                lengths[i], spans ? "both sides" : "one side", sync, values,
                2.0 * (double)p.unordered / (double)events);
            if (lengths[i] >= 100 && spans)
                assert_true(sync < 1);
            if (lengths[i] >= 1000)
                assert_true(sync < 1 && values < 0.1);
        }
}

/* Some clock is off by more than its range allows: if the evidence shows it, the right one is named. */
static void names_the_wrong_clock(void **state)
{
    struct sim_random random = {.state = 7};
    struct pairs pairs = {0};
    uint64_t evident = 0, named = 0, silent = 0, runs = runs_wanted() / 10 > 200 ? runs_wanted() / 10 : 200;

    (void)state;
    for (uint64_t seed = 0; seed < runs; seed++) {
        struct sim_options options = SIM_OPTIONS_DEFAULT;
        const struct etch_conflict *conflicts;
        struct sim_run run;
        struct etch_order *order;
        struct etch_error err;
        size_t n;

        options.seed = seed;
        options.cpus = (uint32_t)sim_between(&random, 3, 8);
        options.threads = options.cpus;
        options.steps = 150;
        options.migrate = 30;
        options.unique_values = true;
        options.trap = 300;
        options.wrong_cpu = (uint32_t)sim_below(&random, options.cpus);
        options.wrong_by = sim_between(&random, 500, 200000) * (sim_chance(&random, 500) ? 1 : -1);
        options.wrong_from = sim_chance(&random, 500) ? 0 : 0.4;
        assert_int_equal(sim_run_new(&run, &options), 0);
        assert_int_equal(etch_order_build(&order, &run.input, &err), 0);
        conflicts = etch_order_conflicts(order, &n);
        evident += n > 0;
        silent += n == 0;
        named += n > 0 && conflicts[0].cpu == options.wrong_cpu;
        if (n > 0 && conflicts[0].cpu != options.wrong_cpu)
            print_message("seed %" PRIu64 ": CPU %u of %u is off by %" PRId64
                          " from %.1f on, and CPU %u is blamed (with %u, excess %" PRId64 ", %" PRIu64
                          " events, %zu links, %zu conflicts)\n",
                          seed, options.wrong_cpu, options.cpus, options.wrong_by, options.wrong_from, conflicts[0].cpu,
                          conflicts[0].cpu_with, conflicts[0].excess, conflicts[0].events, conflicts[0].n, n);
        for (size_t i = 0; i < n; i++)
            assert_in_range(conflicts[i].n, 1, 64);
        if (seed % 20 == 0 && n == 1 && conflicts[0].cpu == options.wrong_cpu)
            ask_all(&run, order, &pairs); /* what is left without that clock is right */
        etch_order_free(order);
        sim_run_free(&run);
    }
    print_message("%" PRIu64 " runs with evidence, the CPU named in %" PRIu64 "; %" PRIu64 " without evidence\n",
                  evident, named, silent);
    assert_true(pairs.asked > 0);
    assert_int_equal(pairs.wrong, 0);
    assert_true(evident > runs / 2);
    assert_true((double)named >= 0.99 * (double)evident);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claims_nothing_wrong),
        cmocka_unit_test(signals_are_no_proof_where_waits_end_by_themselves),
        cmocka_unit_test(orders_nearly_all_synchronisation),
        cmocka_unit_test(names_the_wrong_clock),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
