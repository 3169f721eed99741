/* SPDX-License-Identifier: MIT */
/* etch diagnose: the whole loop on one machine. Runs the program until it fails, slices from where it did, watches what
 * the slice's nearest statements use, runs on, ranks what failing runs do that passing ones do not, and widens until
 * the best answer is strong and stays. */
#include "base/index.h"
#include "calibrate/calibration.h"
#include "cli/command.h"
#include "cli/runner.h"
#include "cli/sketching.h"
#include "cli/summaries.h"
#include "collector/clock_record.h"
#include "collector/pt.h"
#include "collector/vpt_find.h"
#include "collector/watch.h"
#include "sketch/store.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_SIGMA 16u /* what it takes to tell most stories; with debug registers a round sees all its sets */
#define STRONG 0.97
#define FAILING_ENOUGH 2u /* failing runs of which a strong predictor is true */
#define FAILING_ENOUGH_OF_VALUE                                                                                        \
    3u                            /* the same, of one that is a value: two runs have the same one by chance too often */
#define FAILING_MAX 4u            /* kept of a bug for each set of watches of a round */
#define FAILING_MAX_AT_LAST 8u    /* where there is no more to watch: many failed with an object no register was on */
#define PASSING_ENOUGH 5u         /* passing runs of which it is known not to be */
#define PASSING_KEPT 40u          /* bundles of passing runs, with watches */
#define PASSING_KEPT_UNTRACKED 4u /* and without */
#define HOPELESS 20u              /* runs, of which none passed: more will not either */
#define HOPELESS_THREADED 100u    /* of threads, which a recorder delays, a few may yet */
#define SLOWDOWN 12.0             /* of a program by watches, beside its runs without */
#define DISTURBED 16u             /* failures with a set of watches, and no pass, that are the watches' own doing */
#define FOUND_MAX 3u              /* plans for the same statements, for what runs have shown of them */
#define SET_PATIENCE 12u          /* runs that a set of watches may be ahead of another */

struct diagnose_options {
    char **argv;
    unsigned runs, jobs;
    uint32_t sigma; /* statements to begin with; 0: as the source takes best */
    double time, timeout;
    const char *fails_if, *store, *source, *input, *program, *bug;
    bool fresh;
    bool patient; /* the user said how many runs, or how long */
    struct sketching_output output;
};

/* What came of the runs that took a set of watches, in this round. */
struct set_seen {
    unsigned tries, failing, passing;
};

struct diagnosis {
    const struct diagnose_options *o;
    char program[4096]; /* the binary */
    struct sketching s;
    struct runner runner;
    struct etch_store *store;
    char folder[4096];
    Etch__Clock *clock;
    double began;
    unsigned runs, failures, stored; /* of this call, with those of the store, and how many those were */
    unsigned passed;
    unsigned unplaced;        /* failed, but nowhere in the program */
    unsigned passing_kept[2]; /* bundles: without watches, and with */
    unsigned failing_tracked;
    unsigned round;
    uint32_t sigma;
    ETCH_ARRAY(char *) watches;
    char plan[4200];                  /* for soft and none: the file with this round's watches, in sets; empty: none */
    uint32_t slots;                   /* debug registers that a set takes */
    size_t found;                     /* watches of the plan whose object other runs have shown */
    unsigned plans;                   /* for this many statements */
    ETCH_ARRAY(struct set_seen) sets; /* of the plan, nearest to the failure first; one where there is no plan */
    char *best;                       /* the top predictor's words */
    double best_f;
    unsigned best_true, best_passing; /* failing runs of which it is true, passing ones that can tell */
    bool best_is_value, best_is_said; /* said: it is how the program came to say that it failed */
    unsigned needed;                  /* failures of the bug when it became the best, and strong */
    unsigned enough;                  /* runs when the best first was good enough; 0: not yet */
    bool exhausted, done;
    bool terminal;
};

static volatile sig_atomic_t interrupted;
static const struct runner *volatile at_work; /* what the end would leave behind */

/* Once: the best sketch so far. Twice: the end, now, also of a program that would not hear of it. */
static void on_interrupt(int number)
{
    if (interrupted) {
        if (at_work)
            runner_kill(at_work);
        signal(number, SIG_DFL);
        raise(number);
    }
    interrupted = 1;
}

static void take_interrupts(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction act = {.sa_handler = on_interrupt};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        sigaction(numbers[i], &act, NULL);
}

/* ---- Progress ---- */

static void progress(const struct diagnosis *d)
{
    if (!d->terminal)
        return;
    fprintf(stderr, "\r\033[K%u runs, %u failed", d->runs, d->failures);
    if (d->round)
        fprintf(stderr, ", round %u (%u statements)", d->round, d->sigma);
    if (d->best)
        fprintf(stderr, ": F %.2f %.60s", d->best_f, d->best);
    fflush(stderr);
}

static void clear_progress(const struct diagnosis *d)
{
    if (d->terminal)
        fputs("\r\033[K", stderr);
}

/* ---- The store ---- */

static uint64_t mix_text(uint64_t hash, const char *text)
{
    return etch_hash(hash, text, strlen(text) + 1);
}

/* One folder for each build, arguments, input and check: runs of others are not to be mixed in. */
static int choose_folder(struct diagnosis *d, struct etch_error *err)
{
    uint64_t hash = ETCH_HASH_START;
    const char *name = strrchr(d->program, '/');
    struct etch_elf elf;

    if (etch_elf_read(&elf, d->program, err) < 0)
        return -1;
    hash = etch_hash(hash, elf.build_id, elf.build_id_size);
    if (!elf.build_id_size) {
        struct stat st;

        if (stat(d->program, &st) == 0)
            hash = etch_hash(hash, &st.st_mtim, sizeof(st.st_mtim));
    }
    for (char **a = d->o->argv + (d->o->program ? 0 : 1); *a; a++)
        hash = mix_text(hash, *a);
    hash = mix_text(hash, d->o->source);
    if (d->o->fails_if)
        hash = mix_text(hash, d->o->fails_if);
    if (d->o->input)
        hash = mix_text(mix_text(hash, "<"), d->o->input);
    snprintf(d->folder, sizeof(d->folder), "%.3800s/%.150s-%016" PRIx64, d->o->store, name ? name + 1 : d->program,
             hash);
    return 0;
}

static const char *verdict_of(const char *text)
{
    return strcmp(text, "pass") == 0 ? "pass" : strcmp(text, "hang") == 0 ? "hang" : "fail";
}

static bool is_pass(const char *verdict)
{
    return strcmp(verdict, "pass") == 0;
}

/* Failing runs with watches of one bug; NULL: of any. */
static unsigned count_tracked(const struct diagnosis *d, const char *bucket)
{
    unsigned n = 0;

    for (size_t i = 0; i < d->s.bundles.n; i++) {
        const struct sketching_bundle *b = &d->s.bundles.v[i];

        n += b->failing && b->tracked && !b->unplaced && (!bucket || strcmp(b->bucket, bucket) == 0);
    }
    return n;
}

static void account(struct diagnosis *d, const struct sketching_bundle *b)
{
    d->runs++;
    d->passed += !b->failing;
    d->unplaced += b->unplaced;
    d->failures += b->failing && !b->unplaced;
    d->passing_kept[b->tracked] += !b->failing;
    d->failing_tracked = count_tracked(d, d->s.sliced);
}

/* A run whose bundle is not kept. */
static void count_only(struct diagnosis *d, const char *verdict)
{
    d->runs++;
    d->passed += is_pass(verdict);
    d->failures += !is_pass(verdict);
}

static int take_stored(void *context, const struct etch_store_run *run)
{
    struct diagnosis *d = context;
    struct etch_error ignored;
    size_t before = d->s.bundles.n;
    char path[4400];

    snprintf(path, sizeof(path), "%s/%s", d->folder, run->bundle);
    if (!run->bundle[0])
        count_only(d, run->verdict);
    else if (sketching_add(&d->s, path, verdict_of(run->verdict), run->sigma != 0, &ignored) == 0 &&
             d->s.bundles.n > before)
        account(d, &d->s.bundles.v[d->s.bundles.n - 1]);
    else
        return 0; /* a bundle that is gone or damaged is as if it had not run */
    d->sigma = run->sigma > d->sigma ? run->sigma : d->sigma;
    d->stored++;
    return 0;
}

static int open_store(struct diagnosis *d, struct etch_error *err)
{
    if (choose_folder(d, err) < 0 || etch_store_open(&d->store, d->folder, d->o->fresh, err) < 0)
        return -1;
    return etch_store_list(d->store, take_stored, d, err);
}

/* Each set of watches needs its own share of runs: what another one's saw says nothing of its variables. */
static unsigned for_each_set(const struct diagnosis *d, unsigned n)
{
    return n * (d->sets.n > 1 ? (unsigned)d->sets.n : 1);
}

static bool is_seen(const struct set_seen *set, unsigned failing)
{
    return set->failing >= failing && set->passing >= PASSING_ENOUGH;
}

/* The set for the next run: the one nearest to the failure of which not enough is known. A set whose watches keep the
 * program from failing, or from passing, must not hold up the others for ever. */
static uint32_t next_set(const struct diagnosis *d)
{
    size_t least = 0;

    for (size_t i = 1; i < d->sets.n; i++)
        if (d->sets.v[i].tries < d->sets.v[least].tries)
            least = i;
    for (size_t i = 0; i < d->sets.n; i++)
        if (!is_seen(&d->sets.v[i], FAILING_ENOUGH) && d->sets.v[i].tries < d->sets.v[least].tries + SET_PATIENCE)
            return (uint32_t)i;
    return (uint32_t)least;
}

/* The watches are the CPU's own. */
static bool is_native(const struct diagnosis *d)
{
    return strcmp(d->o->source, "none") == 0 || strcmp(d->o->source, "soft") == 0;
}

static unsigned most_failing(const struct diagnosis *d)
{
    return d->exhausted && is_native(d) ? FAILING_MAX_AT_LAST : FAILING_MAX;
}

/* Whether this round has what it can have: failures and passes with every set of watches, or, where one of them never
 * has both, as many as that over all. `most`: as many failures as are kept, for want of a cause. */
static bool is_round_over(const struct diagnosis *d, bool most)
{
    unsigned each = most ? most_failing(d) : d->sets.n > 1 ? FAILING_ENOUGH : FAILING_MAX, failing = 0, passing = 0;
    bool all = true;

    for (size_t i = 0; i < d->sets.n; i++) {
        all &= is_seen(&d->sets.v[i], each);
        failing += d->sets.v[i].failing;
        passing += d->sets.v[i].passing;
    }
    return all || (failing >= for_each_set(d, most ? each : FAILING_MAX) && passing >= for_each_set(d, PASSING_ENOUGH));
}

/* Whether watching keeps the program from passing: hits make a thread slow, and another overtakes it each time. Fewer
 * watches at a time disturb it less. */
static bool is_disturbed(const struct diagnosis *d)
{
    for (size_t i = 0; i < d->sets.n; i++)
        if (!d->sets.v[i].passing && d->sets.v[i].failing >= DISTURBED)
            return d->passed && d->slots > 1;
    return false;
}

static bool start_sets(struct diagnosis *d, size_t n)
{
    const struct set_seen none = {0};

    d->sets.n = 0;
    for (size_t i = 0; i < n || i < 1; i++)
        if (!etch_array_push(&d->sets, none))
            return false;
    return true;
}

/* The set of watches that a run of this round took; NULL: it is of none. */
static struct set_seen *set_of(struct diagnosis *d, const struct runner_result *result)
{
    return d->round && result->sigma == d->sigma && result->set < d->sets.n ? &d->sets.v[result->set] : NULL;
}

/* A passing run of which there are enough like it; each set of watches needs its own. */
static bool is_one_too_many(struct diagnosis *d, const struct runner_result *result)
{
    const struct set_seen *set = set_of(d, result);

    if (!is_pass(result->verdict))
        return false;
    if (!result->sigma)
        return d->passing_kept[0] >= PASSING_KEPT_UNTRACKED;
    return d->passing_kept[1] >= PASSING_KEPT && (!set || set->passing >= PASSING_ENOUGH);
}

static bool is_ours(const struct diagnosis *d, const struct sketching_bundle *b)
{
    return b->failing && !b->unplaced && d->s.sliced && b->bucket && strcmp(b->bucket, d->s.sliced) == 0;
}

/* The same of a failing run, which has been looked into. A program that nearly always fails: what counts then is to see
 * it pass, and a rarer bug among a common one's failures. */
static bool is_surplus(struct diagnosis *d, const struct runner_result *result, const struct sketching_bundle *b)
{
    const struct set_seen *set = set_of(d, result);

    if (!b->failing || !b->tracked)
        return false;
    if (is_ours(d, b) && set)
        return set->failing > most_failing(d);
    return b->unplaced || count_tracked(d, b->bucket) > FAILING_MAX;
}

/* What a run says of its set of watches; failures of another bug say nothing. */
static void see_set(struct diagnosis *d, const struct runner_result *result, const struct sketching_bundle *b)
{
    struct set_seen *set = set_of(d, result);

    if (!set)
        return;
    set->passing += !b->failing;
    set->failing += is_ours(d, b);
}

/* So the store stays small, and reading it quick: what adds nothing is only counted. */
static int keep(struct diagnosis *d, const struct runner_result *result, bool *kept, struct etch_error *err)
{
    struct etch_store_run run = {.id = result->number, .sigma = result->sigma, .seconds = result->seconds};
    const char *slash = strrchr(result->bundle, '/');

    snprintf(run.verdict, sizeof(run.verdict), "%s", result->verdict);
    *kept = !is_one_too_many(d, result);
    if (*kept) {
        size_t before = d->s.bundles.n;

        if (sketching_add(&d->s, result->bundle, result->verdict, result->sigma != 0, err) < 0)
            return -1;
        *kept = d->s.bundles.n > before;
        if (*kept)
            see_set(d, result, &d->s.bundles.v[d->s.bundles.n - 1]);
        if (*kept && is_surplus(d, result, &d->s.bundles.v[d->s.bundles.n - 1])) {
            sketching_drop_last(&d->s);
            *kept = false;
        }
    }
    if (*kept) {
        account(d, &d->s.bundles.v[d->s.bundles.n - 1]);
        snprintf(run.bundle, sizeof(run.bundle), "%s", slash ? slash + 1 : result->bundle);
    } else {
        unlink(result->bundle);
        count_only(d, run.verdict);
    }
    return etch_store_add(d->store, &run, err);
}

/* ---- The plan ---- */

static void drop_watches(struct diagnosis *d)
{
    for (size_t i = 0; i < d->watches.n; i++)
        free(d->watches.v[i]);
    d->watches.n = 0;
}

static bool has_watch(const struct diagnosis *d, const char *text)
{
    for (size_t i = 0; i < d->watches.n; i++)
        if (strcmp(d->watches.v[i], text) == 0)
            return true;
    return false;
}

/* A plan with what the runs so far have shown of where things are. NULL where memory is short. */
static Etch__Plan *make_plan(const struct diagnosis *d)
{
    ETCH_ARRAY(struct etch_slice_seen) seen = {0};
    Etch__Plan *made = NULL;
    bool good = true;

    for (size_t i = 0; i < d->s.bundles.n; i++) {
        const struct etch_run *run = d->s.bundles.v[i].run;

        for (size_t k = 0; good && run && k < run->sites.n; k++) {
            const struct etch_slice_seen site = {run->sites.v[k].instruction, run->sites.v[k].object};

            good = etch_array_push(&seen, site);
        }
    }
    if (good)
        made = etch_slice_plan(d->s.slicing, d->sigma, d->slots, seen.v, seen.n);
    etch_array_free(&seen);
    return made;
}

static size_t count_found(const Etch__Plan *plan)
{
    size_t n = 0;

    for (size_t i = 0; i < plan->n_sets; i++)
        for (size_t k = 0; k < plan->sets[i]->n_watches; k++)
            n += plan->sets[i]->watches[k]->global && plan->sets[i]->watches[k]->site;
    return n;
}

/* A debug register takes shared memory only, four at a time: runs take turns at the sets of the plan. */
static int plan_sets(struct diagnosis *d, struct etch_error *err)
{
    Etch__Plan *made = make_plan(d);
    int status;

    if (!made)
        return etch_error_set(err, "out of memory");
    if (!start_sets(d, made->n_sets)) {
        etch__plan__free_unpacked(made, NULL);
        return etch_error_set(err, "out of memory");
    }
    d->found = count_found(made);
    snprintf(d->plan, sizeof(d->plan), "%.4000s/round-%u.plan", d->folder, d->round);
    status = sketching_write_plan(d->plan, made, err);
    if (!made->n_sets)
        d->plan[0] = '\0';
    etch__plan__free_unpacked(made, NULL);
    return status;
}

/* What the first `sigma` statements use: shared memory wherever it is used from then on, a thread's own where it is. */
static int plan(struct diagnosis *d, struct etch_error *err)
{
    const Etch__Slice *slice = d->s.slice;

    if (is_native(d))
        return plan_sets(d, err);
    if (!start_sets(d, 1))
        return etch_error_set(err, "out of memory");
    drop_watches(d);
    if (strcmp(d->o->source, "vpt") != 0)
        return 0; /* these watches are emulated ones; control flow alone then */
    for (size_t i = 0; i < slice->n_statements && i < d->sigma; i++) {
        for (size_t k = 0; k < slice->statements[i]->n_operands; k++) {
            const Etch__Operand *op = slice->statements[i]->operands[k];
            char text[64], *copy;

            /* QEMU shows what an instruction accesses. A call accesses the stack; the code that it calls is asked. */
            const uint64_t site = op->call ? op->inner : op->address;

            if (!site || !op->size || op->size > 8 || d->watches.n == ETCH_RECORD_MAX_WATCHES)
                continue;
            if (slice->n_modules && site >= slice->modules[0]->added) {
                sketching_note(&d->s, "what statements in shared libraries use is not watched: the source vpt watches "
                                      "the program's own instructions (--source soft or none watches them)");
                continue;
            }
            snprintf(text, sizeof(text), "@0x%" PRIx64 ":%u%s", site, op->size, op->shared ? "" : ":here");
            if (has_watch(d, text))
                continue;
            copy = strdup(text);
            if (!copy || !etch_array_push(&d->watches, copy)) {
                free(copy);
                return etch_error_set(err, "out of memory");
            }
        }
    }
    return 0;
}

/* What orders accesses across CPUs; measured once for all runs, before the first with watches, and only where there
 * are threads. A crowded machine may need another try. */
static void measure_clocks(struct diagnosis *d)
{
    struct etch_calibration_options options = {.skip_trap = true};
    struct etch_calibration calibration;
    struct etch_error ignored;

    bool threaded = false;

    for (size_t i = 0; i < d->s.bundles.n; i++)
        threaded |= d->s.bundles.v[i].threaded;
    for (int i = 0; threaded && i < 3 && !(d->clock && d->clock->n_skews); i++) {
        if (d->clock)
            etch__clock__free_unpacked(d->clock, NULL);
        d->clock = NULL;
        if (etch_calibrate(&calibration, &options, &ignored) == 0) {
            d->clock = etch_clock_record(&calibration, ETCH__CLOCK_PHASE__CLOCK_BEFORE);
            etch_calibration_free(&calibration);
        }
    }
    d->runner.clock = d->clock;
}

static int next_round(struct diagnosis *d, uint32_t sigma, struct etch_error *err)
{
    uint32_t statements = (uint32_t)d->s.slice->n_statements;

    measure_clocks(d);
    d->round++;
    d->plans = sigma == d->sigma ? d->plans + 1 : 1;
    d->sigma = sigma < statements ? sigma : statements;
    d->exhausted = d->sigma == statements;
    d->failing_tracked = count_tracked(d, d->s.sliced);
    d->runner.sync = sketching_hangs(&d->s); /* else it would only shift the times at which threads start */
    return plan(d, err);
}

static uint32_t first_sigma(const struct diagnosis *d)
{
    if (d->sigma)
        return d->sigma; /* goes on where the call before ended */
    if (d->o->sigma)
        return d->o->sigma;
    return FIRST_SIGMA;
}

/* ---- After each run ---- */

/* Failures of the bug in question that are compared. */
static unsigned count_ours(const struct diagnosis *d)
{
    unsigned n = 0;

    for (size_t i = 0; i < d->s.bundles.n; i++)
        n += is_ours(d, &d->s.bundles.v[i]);
    return n;
}

/* Whether a predictor speaks of nothing but how the program noticed: a branch, or a statement that ran in failing runs
 * only. */
static bool is_said(const Etch__Sketch *sketch, const Etch__Predictor *top)
{
    if (strcmp(top->kind, "branch") == 0 || strcmp(top->kind, "executed") == 0)
        return true;
    for (size_t i = 0; i < sketch->n_predictors; i++) {
        const Etch__Predictor *p = sketch->predictors[i];
        const Etch__Place *ran = strcmp(p->pattern, "executed") == 0 && p->f >= STRONG ? p->statements[0] : NULL;

        for (size_t k = 0; ran && k < top->n_statements; k++)
            if (ran->line == top->statements[k]->line && strcmp(ran->file, top->statements[k]->file) == 0)
                return true;
    }
    return false;
}

/* Ranks anew and remembers whether the best is still the best. */
static int rank(struct diagnosis *d, struct etch_error *err)
{
    Etch__Sketch *sketch;
    const Etch__Predictor *top;

    if (sketching_prepare(&d->s, err) < 0)
        return -1;
    sketch = sketching_compose(&d->s, d->round, d->sigma, false, err);
    if (!sketch)
        return -1;
    top = sketch->n_predictors ? sketch->predictors[0] : NULL;
    if (top && (!d->best || strcmp(d->best, top->text) != 0 || d->best_f < STRONG))
        d->needed = count_ours(d);
    if (top && (!d->best || strcmp(d->best, top->text) != 0)) {
        free(d->best);
        d->best = strdup(top->text);
    }
    d->best_f = top ? top->f : 0;
    d->best_is_value = top && strcmp(top->kind, "value") == 0;
    d->best_is_said = top && is_native(d) && is_said(sketch, top);
    d->best_true = top ? top->failing_true : 0;
    d->best_passing = top ? top->passing : 0;
    etch__sketch__free_unpacked(sketch, NULL);
    return 0;
}

/* Where threads share it, a value is what came of it, and so is how it was said: as long as there is more to watch, the
 * cause may be nearer. */
static bool is_symptom(const struct diagnosis *d)
{
    return (d->best_is_value || d->best_is_said) && sketching_is_threaded(&d->s);
}

static bool is_enough(const struct diagnosis *d)
{
    return d->best && !(is_symptom(d) && !d->exhausted) && d->best_f >= STRONG &&
           d->best_true >= (d->best_is_value ? FAILING_ENOUGH_OF_VALUE : FAILING_ENOUGH) &&
           d->best_passing >= PASSING_ENOUGH;
}

/* A set of watches that was not seen may hold what explains more, or how it came to that: the round is brought to its
 * end, if that does not take for ever. So may a failure with an object that a register is on, where all that is known
 * is what came of it. */
static bool is_told(struct diagnosis *d)
{
    bool most = is_native(d) && is_symptom(d);

    if (!d->enough)
        d->enough = d->runs;
    return (d->sets.n <= 1 && !most) || is_round_over(d, most) ||
           d->runs - d->enough >= for_each_set(d, most ? 2 * SET_PATIENCE : SET_PATIENCE);
}

/* Whether runs have shown of what the plan looks for at instructions that it is the program's own variables: these can
 * be watched from the start, and need no register for each of those instructions. Asked once each set has been tried.
 */
static bool has_found(const struct diagnosis *d)
{
    Etch__Plan *made;
    bool more;

    for (size_t i = 0; i < d->sets.n; i++)
        if (!is_native(d) || d->plans > FOUND_MAX || d->sets.v[i].passing + d->sets.v[i].failing == 0)
            return false;
    made = make_plan(d);
    more = made && count_found(made) > d->found;
    if (made)
        etch__plan__free_unpacked(made, NULL);
    return more;
}

/* `result`: of the run that has come in; NULL: those of the store have. */
static int consider(struct diagnosis *d, const struct runner_result *result, struct etch_error *err)
{
    const struct set_seen *set = result && is_pass(result->verdict) ? set_of(d, result) : NULL;

    if (!d->failures)
        return 0;
    if (!d->round) {
        if (sketching_prepare(&d->s, err) < 0 || next_round(d, first_sigma(d), err) < 0)
            return -1;
        return rank(d, err);
    }
    if (set && d->best_f < STRONG && set->passing > PASSING_ENOUGH && !is_round_over(d, d->exhausted))
        return 0; /* only failing runs can still make it stronger */
    if (rank(d, err) < 0)
        return -1;
    if ((!is_enough(d) || is_symptom(d)) && has_found(d))
        return next_round(d, d->sigma, err);
    if (is_enough(d))
        d->done = is_told(d);
    else if (is_disturbed(d)) {
        d->slots /= 2;
        return next_round(d, d->sigma, err);
    } else if (is_round_over(d, d->exhausted)) {
        if (d->exhausted)
            d->done = true;
        else
            return next_round(d, d->sigma * 2, err);
    }
    return 0;
}

/* ---- The loop ---- */

static int start_more(struct diagnosis *d, unsigned limit, struct etch_error *err)
{
    while (runner_busy(&d->runner) < d->runner.jobs && d->runs - d->stored + runner_busy(&d->runner) < limit) {
        int64_t number = etch_store_reserve(d->store, err);
        uint32_t set = next_set(d);
        struct runner_watches watches = {.list = d->watches.v,
                                         .n = d->watches.n,
                                         .plan = d->plan[0] ? d->plan : NULL,
                                         .set = set,
                                         .sigma = d->round ? d->sigma : 0};
        char bundle[4200];

        if (number < 0)
            return -1;
        snprintf(bundle, sizeof(bundle), "%.4000s/%06" PRId64 ".etch", d->folder, number);
        if (!runner_start(&d->runner, number, bundle, &watches))
            return etch_error_set_errno(err, errno, "cannot start a run");
        if (d->round)
            d->sets.v[set].tries++;
    }
    return 0;
}

static bool is_over(const struct diagnosis *d)
{
    unsigned hopeless = sketching_is_threaded(&d->s) ? HOPELESS_THREADED : HOPELESS;

    if (!d->o->patient && !d->passed && d->failing_tracked >= FAILING_ENOUGH && d->runs >= hopeless)
        return true;
    return d->done || interrupted || (d->o->time > 0 && runner_now() - d->began > d->o->time);
}

static int loop(struct diagnosis *d, struct etch_error *err)
{
    while (!is_over(d)) {
        struct runner_result result;
        bool kept;

        if (start_more(d, d->o->runs, err) < 0)
            return -1;
        if (!runner_busy(&d->runner))
            return 0;
        progress(d);
        if (!runner_wait(&d->runner, 0.2, &result))
            continue;
        if (!result.verdict) {
            *err = result.err;
            return -1;
        }
        if (keep(d, &result, &kept, err) < 0)
            return -1;
        if (!result.sigma && strcmp(result.verdict, "pass") == 0 &&
            result.seconds * SLOWDOWN > d->runner.tracked_timeout)
            d->runner.tracked_timeout = result.seconds * SLOWDOWN;
        if (kept && consider(d, &result, err) < 0)
            return -1;
    }
    return 0;
}

/* The binary that is diagnosed: the one that runs, or one that a script starts. */
static int find_program(struct diagnosis *d, struct etch_error *err)
{
    struct etch_elf elf;

    if (d->o->program) {
        snprintf(d->program, sizeof(d->program), "%s", d->o->program);
        return etch_elf_read(&elf, d->program, err);
    }
    if (etch_record_find_program(d->o->argv[0], d->program, sizeof(d->program), err) < 0)
        return -1;
    if (etch_elf_read(&elf, d->program, err) == 0)
        return 0;
    return etch_error_advise(err, "--program PROG, where %s is a script that runs PROG", d->o->argv[0]);
}

static int begin(struct diagnosis *d, struct etch_error *err)
{
    if (find_program(d, err) < 0)
        return -1;
    d->s.program = d->program;
    d->s.bug = d->o->bug;
    d->s.lenient = true;
    d->slots = ETCH_WATCH_SLOTS;
    if (sketching_open(&d->s, err) < 0 || open_store(d, err) < 0)
        return -1;
    d->runner = (struct runner){.argv = d->o->argv,
                                .source = d->o->source,
                                .fails_if = d->o->fails_if,
                                .input = d->o->input,
                                .subject = d->o->program,
                                .timeout = d->o->timeout,
                                .jobs = d->o->jobs};
    if (runner_open(&d->runner, err) < 0)
        return -1;
    at_work = &d->runner;
    return d->failures ? consider(d, NULL, err) : 0;
}

/* Returns the exit status, or -1 with `err` set. */
static int conclude(struct diagnosis *d, struct etch_error *err)
{
    Etch__Sketch *sketch;
    int status;

    if (!d->failures && d->unplaced) {
        etch_error_set(err, "%u of %u runs failed, none of them at a known place of %s", d->unplaced, d->runs,
                       d->o->argv[0]);
        return etch_error_advise(err, "a longer --timeout, if they hang; build it with etch cc -g");
    }
    if (!d->failures) {
        printf("%sno failure in %u runs of %s\n", interrupted ? "interrupted; " : "", d->runs, d->o->argv[0]);
        return ETCH_EXIT_FAILED;
    }
    if (sketching_prepare(&d->s, err) < 0)
        return -1;
    sketch = sketching_compose(&d->s, d->round, d->sigma, d->o->output.all, err);
    if (!sketch)
        return -1;
    status = sketching_write(&d->s, sketch, &d->o->output, err);
    etch__sketch__free_unpacked(sketch, NULL);
    return status < 0 ? -1 : ETCH_EXIT_DONE;
}

static const char *needed_text(const struct diagnosis *d, char *text, size_t size)
{
    text[0] = '\0';
    if (d->best && d->best_f >= STRONG)
        snprintf(text, size, ", the cause stood after %u failure%s", d->needed, d->needed == 1 ? "" : "s");
    return text;
}

static int diagnose(const struct etch_command *self, const struct diagnose_options *o)
{
    struct diagnosis *d = calloc(1, sizeof(*d));
    struct etch_error err;
    char needed[80];
    int status;

    if (!d)
        return ETCH_EXIT_FAILED;
    d->o = o;
    d->began = runner_now();
    d->terminal = isatty(2);
    take_interrupts();
    status = begin(d, &err);
    if (status == 0)
        status = loop(d, &err);
    runner_close(&d->runner);
    at_work = NULL;
    clear_progress(d);
    if (status < 0 && d->failures) { /* what is known already is not withheld */
        etch_command_failed(self, &err);
        status = conclude(d, &err) < 0 ? -1 : ETCH_EXIT_FAILED;
    } else if (status == 0) {
        status = conclude(d, &err);
        if (status >= 0)
            fprintf(stderr, "etch diagnose: %u runs, %u failed, %.1f s%s; kept in %s\n", d->runs, d->failures,
                    runner_now() - d->began, needed_text(d, needed, sizeof(needed)), d->folder);
    }
    drop_watches(d);
    etch_array_free(&d->watches);
    etch_array_free(&d->sets);
    sketching_release(&d->s);
    etch_store_close(d->store);
    if (d->clock)
        etch__clock__free_unpacked(d->clock, NULL);
    free(d->best);
    free(d);
    return status < 0 ? etch_command_failed(self, &err) : etch_command_close_output(self, status);
}

/* ---- The command ---- */

static bool number(const char *text, double least, double most, double *value)
{
    char *end;

    *value = strtod(text, &end);
    return end != text && !*end && *value >= least && *value <= most;
}

static int bad_number(const struct etch_command *self, const char *option, const char *text)
{
    return etch_command_usage(self, "%s does not take '%s'", option, text);
}

static bool is_source(const char *name)
{
    static const char *const sources[] = {"soft", "vpt", "none", "pt", "auto"};

    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
        if (strcmp(name, sources[i]) == 0)
            return true;
    return false;
}

/* What auto takes; NULL: nothing that is here can record a program that another one starts. pt comes last of those that
 * can, because it sets no watches yet. */
static const char *choose_source(const char *started, bool by_script)
{
    struct etch_error ignored;

    if (!by_script && etch_record_has_recorder(started))
        return "soft";
    if (etch_vpt_usable())
        return "vpt";
    if (!by_script)
        return "none";
    return etch_pt_usable(&ignored) ? "pt" : NULL;
}

static int run(const struct etch_command *self, int argc, char **argv)
{
    static const struct option long_options[] = {
        {"help", no_argument, NULL, 'h'},          {"runs", required_argument, NULL, 'r'},
        {"time", required_argument, NULL, 't'},    {"jobs", required_argument, NULL, 'J'},
        {"timeout", required_argument, NULL, 'T'}, {"fails-if", required_argument, NULL, 'f'},
        {"store", required_argument, NULL, 'S'},   {"fresh", no_argument, NULL, 'F'},
        {"html", required_argument, NULL, 'H'},    {"json", required_argument, NULL, 'j'},
        {"sarif", required_argument, NULL, 's'},   {"all", no_argument, NULL, 'a'},
        {"source", required_argument, NULL, 'o'},  {"input", required_argument, NULL, 'i'},
        {"program", required_argument, NULL, 'p'}, {"bug", required_argument, NULL, 'b'},
        {"sigma", required_argument, NULL, 'g'},   {0}};
    struct diagnose_options o = {.runs = 300, .jobs = 1, .timeout = 10, .store = ".etch", .source = "auto"};
    double value;
    int c;

    while ((c = getopt_long(argc, argv, "+:h", long_options, NULL)) != -1) {
        switch (c) {
        case 'h':
            return etch_command_help(self);
        case 'r':
            if (!number(optarg, 1, 1e6, &value))
                return bad_number(self, "--runs", optarg);
            o.runs = (unsigned)value;
            o.patient = true;
            break;
        case 'g':
            if (!number(optarg, 1, 1e6, &value))
                return bad_number(self, "--sigma", optarg);
            o.sigma = (uint32_t)value;
            break;
        case 't':
            if (!number(optarg, 0.1, 1e7, &o.time))
                return bad_number(self, "--time", optarg);
            o.patient = true;
            break;
        case 'J':
            if (!number(optarg, 1, RUNNER_JOBS_MAX, &value))
                return bad_number(self, "--jobs", optarg);
            o.jobs = (unsigned)value;
            break;
        case 'T':
            if (!number(optarg, 0.1, 1e6, &o.timeout))
                return bad_number(self, "--timeout", optarg);
            break;
        case 'f':
            o.fails_if = optarg;
            break;
        case 'i':
            o.input = optarg;
            break;
        case 'p':
            o.program = optarg;
            break;
        case 'b':
            o.bug = optarg;
            break;
        case 'S':
            o.store = optarg;
            break;
        case 'F':
            o.fresh = true;
            break;
        case 'o':
            if (!is_source(optarg))
                return etch_command_usage(self, "--source takes soft, vpt, none, pt or auto");
            o.source = optarg;
            break;
        default:
            if (!sketching_take_option(&o.output, c, optarg))
                return etch_command_bad_option(self, c, argv);
            break;
        }
    }
    if (optind == argc)
        return etch_command_usage(self, "which program?");
    if (strcmp(o.source, "auto") == 0) {
        o.source = choose_source(argv[optind], o.program != NULL);
        if (!o.source) {
            struct etch_error err;

            etch_error_set(&err, "--program needs vpt or pt, and neither can be had here");
            etch_error_advise(&err, "etch doctor, which says why; or diagnose %s itself", o.program);
            return etch_command_failed(self, &err);
        }
        if (strcmp(o.source, "none") == 0)
            fprintf(stderr, "etch diagnose: " ETCH_NO_CONTROL_FLOW "\n");
    }
    if (o.program && (strcmp(o.source, "none") == 0 || strcmp(o.source, "soft") == 0))
        return etch_command_usage(self, "--source %s watches the program that it starts itself: no --program",
                                  o.source);
    if (o.jobs > RUNNER_JOBS_MAX)
        o.jobs = RUNNER_JOBS_MAX;
    o.argv = argv + optind;
    return diagnose(self, &o);
}

const struct etch_command etch_command_diagnose = {
    .name = "diagnose",
    .summary = ETCH_SUMMARY_DIAGNOSE,
    .help =
        "usage: etch diagnose [OPTION...] [--] PROG [ARG...]\n\n"
        "Runs PROG, which was built with etch cc, again and again under the recorder, with the given "
        "arguments,\n"
        "and its output out of sight. Once it fails, what the statements nearest to the failure use is "
        "watched in\n"
        "the runs that follow, until what sets failing runs apart is clear, or nothing more is to be had. Then prints "
        "the\n"
        "sketch. A run fails by a signal, by taking too long, or by an exit status other than 0. Ctrl-C prints the "
        "best\n"
        "sketch so far, twice ends etch. Runs are kept: a second call goes on where the first stopped; of runs that "
        "are alike only\n"
        "some, the others are counted. Each run finds its number in $ETCH_RUN. Exit status 1: no run failed, or "
        "etch could not\n"
        "go on.\n\n"
        "  --runs N       at most N more runs (300)\n"
        "  --time S       at most S seconds\n"
        "  --jobs N       N runs at a time (1); not where they would get into each other's way: a file, a port\n"
        "  --timeout S    a run that takes longer than S seconds hangs (10); one that surely does is not waited for\n"
        "  --input FILE   standard input of each run (none)\n"
        "  --program BIN  the program in question, where PROG is a script, or make, that runs it\n"
        "  --fails-if CMD a run that ends by itself fails if this shell command succeeds: it gets the output on "
        "standard\n"
        "                 input and as the file $ETCH_OUTPUT, and the exit status as $ETCH_STATUS\n"
        "  --bug TEXT     where runs fail in several ways: the one whose name has TEXT in it\n"
        "  --source S     soft: what etch cc --record compiled in, at nearly full speed, with the CPU's four "
        "watchpoints,\n"
        "                 which runs take turns at; vpt: every step of any program, under QEMU; none: the watchpoints "
        "alone,\n"
        "                 without control flow; pt: Intel PT, without watches for now, so values and orders stay "
        "unknown;\n"
        "                 auto: soft where PROG has the recorder, else vpt where it can be had, else none (auto)\n"
        "  --sigma N      begin with the N statements nearest to the failure (16); each round doubles it\n"
        "  --store DIR    where runs are kept (.etch)\n"
        "  --fresh        forget the runs kept before\n"
        "  --html FILE, --json FILE, --sarif FILE, --all\n"
        "                 as etch sketch has them\n\n"
        "examples:\n"
        "  etch diagnose -- ./server --test\n"
        "  etch diagnose --html sketch.html --time 120 -- ./a.out input.txt\n"
        "  etch diagnose --fails-if 'grep -q corrupt' -- ./logger\n"
        "  etch diagnose --program ./server -- ./tests/stress.sh\n",
    .run = run,
};
