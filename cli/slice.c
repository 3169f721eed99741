/* SPDX-License-Identifier: MIT */
/* etch slice: the statements that can have caused a failure, nearest first, and the plan for watching them. */
#include "slicer/slice.h"

#include "base/array.h"
#include "base/function_name.h"
#include "base/path.h"
#include "base/printable.h"
#include "cli/command.h"
#include "cli/message_json.h"
#include "cli/summaries.h"
#include "decoder/recording.h"
#include "decoder/steps.h"
#include "decoder/thrown.h"
#include "decoder/unwind.h"
#include "diagnose/source_text.h"
#include "proto/bundle.h"
#include "sketch/run_build.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

struct slice_options {
    const char *program, *at, *failure, *plan, *output;
    uint32_t sigma, slots;
    bool json, alias, stats;
};

/* ---- Source lines ---- */

static const char *checksum_of(void *model, const char *file)
{
    return etch_model_checksum(model, file);
}

static void print_source(struct etch_source_text *source, const char *path, uint32_t line)
{
    const char *text = source ? etch_source_text_line(source, path, line) : NULL;

    if (text)
        etch_print(stdout, text + strspn(text, " \t"));
    else if (source && etch_source_text_state(source, path) == ETCH_SOURCE_OUTSIDE)
        printf("(outside of the source folders: --source-root)");
    else
        printf("(source not found)");
}

/* ---- For people ---- */

static bool accesses(const Etch__Statement *s, bool write)
{
    for (size_t i = 0; i < s->n_operands; i++)
        if (s->operands[i]->write == write && s->operands[i]->shared)
            return true;
    return false;
}

static void print_operands(const Etch__Statement *s)
{
    const char *separator = "   # ";

    for (size_t i = 0; i < s->n_operands; i++) {
        if (!s->operands[i]->shared)
            continue;
        printf("%s%s %s", separator, s->operands[i]->write ? "writes" : "reads", etch_shown(s->operands[i]->name));
        separator = ", ";
    }
}

static void print_statement(struct etch_source_text *source, const Etch__Statement *s)
{
    bool failing = s->n_roles && s->roles[0] == ETCH__STATEMENT_ROLE__ROLE_FAILURE;

    printf("  %s%3u  %c%c%c%c  %5u  ", failing ? ">" : " ", s->distance, accesses(s, false) ? 'r' : '-',
           accesses(s, true) ? 'w' : '-', s->branch ? 'b' : '-', s->call ? 'c' : '-', s->place->line);
    print_source(source, s->place->file, s->place->line);
    print_operands(s);
    putchar('\n');
}

static bool same_function(const Etch__Statement *a, const Etch__Statement *b)
{
    return strcmp(a->place->function, b->place->function) == 0 && strcmp(a->place->file, b->place->file) == 0;
}

static void print_people(const Etch__Slice *slice, struct etch_source_text *source)
{
    bool *done = calloc(slice->n_statements + 1, sizeof(*done));

    printf("slice of %s from %s:%u: %u lines, %u instructions\n", etch_shown(slice->program),
           etch_shown(slice->failure->file), slice->failure->line, slice->lines, slice->instructions);
    for (size_t i = 0; done && i < slice->n_statements; i++) {
        const Etch__Statement *first = slice->statements[i];

        if (done[i])
            continue;
        printf("\n%s  (%s)\n", etch_shown(first->place->function), etch_shown(first->place->file));
        for (size_t k = i; k < slice->n_statements; k++) {
            if (!done[k] && same_function(first, slice->statements[k])) {
                done[k] = true;
                print_statement(source, slice->statements[k]);
            }
        }
    }
    free(done);
}

/* Prints an address relative to the file that holds it. */
static void print_address(const Etch__Plan *plan, uint64_t address)
{
    const Etch__Module *module = NULL;

    for (size_t i = 0; i < plan->n_modules; i++)
        if (address >= plan->modules[i]->added)
            module = plan->modules[i];
    printf("0x%" PRIx64, address - (module ? module->added : 0));
    if (!module)
        return;
    printf(" of %s", etch_shown(etch_path_name(module->path)));
}

static void print_plan(const Etch__Plan *plan)
{
    printf("\nplan for the first %u statements: %zu set%s of watches, %zu ranges of code to track\n", plan->sigma,
           plan->n_sets, plan->n_sets == 1 ? "" : "s", plan->n_track);
    for (size_t i = 0; i < plan->n_sets; i++) {
        for (size_t k = 0; k < plan->sets[i]->n_watches; k++) {
            const Etch__PlanWatch *w = plan->sets[i]->watches[k];

            printf("  set %zu  %s, %u bytes, %s ", i, etch_shown(w->name), w->size, w->global ? "at" : "where");
            print_address(plan, w->global ? w->global : w->site);
            if (w->global)
                putchar('\n');
            else
                printf(" takes it (%s)\n", etch_shown(w->site_operand));
        }
    }
}

/* The functions of the planned statements, for a program that records itself within a budget. */
static void print_kept(const Etch__Slice *slice, uint32_t sigma)
{
    size_t n = sigma < slice->n_statements ? sigma : slice->n_statements;
    char name[256];

    printf("\nalways-on: ETCH_RING_KEEP=");
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;

        while (k < i && strcmp(slice->statements[k]->place->function, slice->statements[i]->place->function) != 0)
            k++;
        if (k == i)
            printf("%s%s", i ? "," : "",
                   etch_shown(etch_function_short(slice->statements[i]->place->function, name, sizeof(name))));
    }
    printf("\n");
}

static int print_json(const Etch__Slice *slice, const Etch__Plan *plan, struct etch_error *err)
{
    json_t *object;

    etch_json_begin();
    object = etch_message_json(&slice->base);

    if (plan)
        json_object_set_new(object, "plan", etch_message_json(&plan->base));
    return etch_json_print(object, JSON_INDENT(2), err);
}

/* ---- Files ---- */

static int write_records(const char *path, const Etch__Slice *slice, const Etch__Plan *plan, struct etch_error *err)
{
    struct etch_bundle_writer *writer;
    Etch__Record record = ETCH__RECORD__INIT;
    int result = etch_bundle_create(&writer, path, err);

    if (result < 0)
        return -1;
    record.body_case = ETCH__RECORD__BODY_SLICE;
    record.slice = (Etch__Slice *)slice;
    result = etch_bundle_write(writer, &record, err);
    if (result == 0 && plan) {
        record.body_case = ETCH__RECORD__BODY_PLAN;
        record.plan = (Etch__Plan *)plan;
        result = etch_bundle_write(writer, &record, err);
    }
    if (result == 0)
        result = etch_bundle_finish(writer, err);
    if (result < 0)
        etch_bundle_discard(writer);
    else
        etch_bundle_writer_free(writer);
    return result;
}

/* The last place of a thread in the program itself, by the recorded control flow. A recorder without a stack walk does
 * not report this place for a failure inside a library. */
struct last_seen {
    uint32_t tid;
    uint64_t end; /* the return address of the call */
};

struct trace {
    const struct etch_recording *recording;
    ETCH_ARRAY(struct last_seen) threads;
    uint64_t site; /* of a call through a pointer whose target comes next; 0: none */
    ETCH_ARRAY(struct etch_indirect_call) calls;
};

static bool is_program(const struct etch_recording *recording, const Etch__Image *image)
{
    return image && recording->program && strcmp(image->path, recording->program->exe) == 0;
}

static bool add_call(struct trace *trace, uint64_t target)
{
    struct etch_indirect_call call = {trace->site, target};

    for (size_t i = 0; i < trace->calls.n; i++)
        if (trace->calls.v[i].site == call.site && trace->calls.v[i].target == call.target)
            return true;
    return etch_array_push(&trace->calls, call);
}

static int see_step(void *context, const struct etch_step *step)
{
    struct trace *trace = context;
    struct last_seen seen = {step->tid, step->end};

    if (trace->site && step->kind == ETCH_STEP_BLOCK && !add_call(trace, step->first))
        return 1;
    trace->site = step->kind == ETCH_STEP_BLOCK && step->branch == ETCH_BRANCH_CALL_INDIRECT &&
                          is_program(trace->recording, step->image)
                      ? step->last
                      : 0;

    if (step->kind != ETCH_STEP_BLOCK || !is_program(trace->recording, step->image) ||
        (step->branch != ETCH_BRANCH_CALL && step->branch != ETCH_BRANCH_CALL_INDIRECT))
        return 0;
    if (trace->threads.n && trace->threads.v[trace->threads.n - 1].tid == step->tid)
        trace->threads.v[trace->threads.n - 1].end = step->end;
    else if (!etch_array_push(&trace->threads, seen))
        return 1;
    return 0;
}

/* A failure with added threads: those that the trace has and the recorded failure does not have. */
struct completed {
    Etch__Failure failure;
    ETCH_ARRAY(Etch__ThreadState *) threads;
    ETCH_ARRAY(Etch__ThreadState *) own;
};

static bool has_frames(const Etch__Failure *failure, uint32_t tid)
{
    for (size_t i = 0; i < failure->n_threads; i++)
        if (failure->threads[i]->tid == tid && failure->threads[i]->n_frames > 1)
            return true;
    return false;
}

static bool add_seen(struct completed *full, const Etch__Failure *failure, const struct last_seen *seen)
{
    Etch__ThreadState *state;

    if (has_frames(failure, seen->tid))
        return true;
    state = malloc(sizeof(*state));
    if (!state || !etch_array_push(&full->own, state)) {
        free(state);
        return false;
    }
    etch__thread_state__init(state);
    state->tid = seen->tid;
    state->frames = calloc(2, sizeof(*state->frames));
    if (!state->frames || !etch_array_push(&full->threads, state))
        return false;
    state->frames[state->n_frames++] = seen->tid == failure->tid ? failure->ip : 0;
    state->frames[state->n_frames++] = seen->end;
    return true;
}

static void complete(struct completed *full, struct etch_recording *recording, struct trace *trace)
{
    const struct etch_steps_options options = {0};
    struct etch_error ignored; /* a bundle without control flow adds nothing */
    bool ok = true;

    full->failure = *recording->failure;
    for (size_t i = 0; ok && i < recording->failure->n_threads; i++)
        ok = etch_array_push(&full->threads, recording->failure->threads[i]);
    if (recording->streams.n && etch_steps(recording, &options, see_step, trace, NULL, &ignored) == 0)
        for (size_t i = 0; ok && i < trace->threads.n; i++)
            ok = add_seen(full, recording->failure, &trace->threads.v[i]);
    full->failure.threads = full->threads.v;
    full->failure.n_threads = full->threads.n;
}

static void release_completed(struct completed *full)
{
    for (size_t i = 0; i < full->own.n; i++) {
        free(full->own.v[i]->frames);
        free(full->own.v[i]);
    }
    etch_array_free(&full->own);
    etch_array_free(&full->threads);
}

static uint32_t exit_status(const struct etch_recording *recording)
{
    const Etch__Outcome *outcome = recording->outcome;

    return outcome && outcome->how_case == ETCH__OUTCOME__HOW_EXIT_STATUS ? outcome->exit_status : 0;
}

/* For a run that failed by its exit status: starts at the last executed statement that can have set the status. */
static int criterion_of_exit(struct etch_criterion **criterion, struct etch_model *model,
                             struct etch_recording *recording, struct etch_error *err)
{
    Etch__Slice *exits = etch_exits_message(model, (int)exit_status(recording));
    ProtobufCBinaryData id = {0};
    struct etch_run_options options = {.verdict = ETCH_VERDICT_FAIL, .build_id = &id, .exits = exits, .layout = exits};
    struct etch_names names = {0};
    struct etch_run *run = NULL;
    int result = exits ? 0 : etch_error_no_memory(err);

    id.data = (uint8_t *)(uintptr_t)etch_model_build_id(model, &id.len);
    if (result == 0)
        result = etch_run_build(&run, &names, recording, &options, err);
    if (result == 0)
        result = etch_criterion_failure(criterion, model, run->failure, recording->program, recording->images.v,
                                        recording->images.n, err);
    etch_run_free(run);
    etch_names_release(&names);
    if (exits)
        etch__slice__free_unpacked(exits, NULL);
    return result;
}

/* The slice of an uncaught exception starts at the throw, even if the stack no longer holds the throw. */
static void blame_throw(struct etch_recording *recording)
{
    static const struct etch_symbols_options options = {0};
    struct etch_symbols *symbols = recording->failure->exception ? etch_symbols_new(&options) : NULL;

    if (!symbols)
        return;
    etch_unwind_failure(recording, symbols);
    etch_exception_settle(recording, symbols);
    etch_failure_blame(recording->failure);
    etch_symbols_free(symbols);
}

static int criterion_of_bundle(struct etch_criterion **criterion, struct etch_model *model, const char *path,
                               struct etch_error *err)
{
    struct etch_recording *recording;
    struct completed full = {0};
    struct trace trace = {0};
    int result;

    if (etch_recording_open(&recording, path, err) < 0)
        return -1;
    if (exit_status(recording) &&
        (!recording->failure || recording->failure->kind == ETCH__FAILURE_KIND__FAILURE_EXIT)) {
        result = criterion_of_exit(criterion, model, recording, err);
    } else if (!recording->failure) {
        etch_error_set(err, "%s records no failure", path);
        result = etch_error_advise(err, "a bundle of a failing run, or --at FILE:LINE");
    } else {
        trace.recording = recording;
        blame_throw(recording);
        complete(&full, recording, &trace);
        result = etch_criterion_failure(criterion, model, &full.failure, recording->program, recording->images.v,
                                        recording->images.n, err);
        if (result == 0 && etch_model_narrow(model, recording->program, recording->images.v, recording->images.n,
                                             trace.calls.v, trace.calls.n, err) < 0)
            result = -1;
    }
    etch_array_free(&trace.threads);
    etch_array_free(&trace.calls);
    release_completed(&full);
    etch_recording_free(recording);
    return result;
}

/* ---- The command ---- */

/* Processor time, which does not depend on other programs. */
static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void print_stats(const struct etch_model *model, double start, double modelled, double sliced)
{
    struct etch_model_size size;
    struct rusage usage;

    etch_model_measure(model, &size);
    getrusage(RUSAGE_SELF, &usage);
    fprintf(stderr,
            "%zu modules, %zu functions, %zu instructions, %zu stores, %zu calls; model %.2f s, slice %.2f s, peak "
            "%ld MiB\n",
            size.modules, size.functions, size.instructions, size.stores, size.calls, modelled - start,
            sliced - modelled, usage.ru_maxrss / 1024);
}

static int show_messages(const struct slice_options *o, const Etch__Slice *slice, const Etch__Plan *plan,
                         struct etch_source_text *source, struct etch_error *err)
{
    if (o->plan && write_records(o->plan, slice, plan, err) < 0)
        return -1;
    if (o->json)
        return print_json(slice, plan, err);
    print_people(slice, source);
    if (plan) {
        print_plan(plan);
        print_kept(slice, plan->sigma);
    }
    return 0;
}

static int show(const struct slice_options *o, struct etch_model *model, struct etch_slice *slice,
                struct etch_error *err)
{
    struct etch_source_text *source = etch_source_text_new(o->program, checksum_of, model);
    bool wanted = o->plan || o->sigma;
    Etch__Slice *message = etch_slice_message(slice);
    Etch__Plan *plan = wanted ? etch_slice_plan(slice, o->sigma ? o->sigma : 4, o->slots, NULL, 0) : NULL;
    int result = -1;

    if (message && (plan || !wanted))
        result = show_messages(o, message, plan, source, err);
    else
        etch_error_no_memory(err);
    if (message)
        etch__slice__free_unpacked(message, NULL);
    if (plan)
        etch__plan__free_unpacked(plan, NULL);
    etch_source_text_free(source);
    return result;
}

/* The libraries that a recorded run loaded and the model does not have. */
struct loaded {
    ETCH_ARRAY(char *) paths;
};

static int find_loaded(struct loaded *loaded, const struct etch_model *model, const char *bundle,
                       struct etch_error *err)
{
    struct etch_recording *recording;
    int result = etch_recording_open(&recording, bundle, err);

    if (result < 0)
        return -1;
    for (size_t i = 0; result == 0 && i < recording->images.n; i++) {
        const Etch__Image *image = recording->images.v[i];
        char *copy;

        if (!(image->prot & 4) || image->path[0] != '/' || is_program(recording, image) ||
            etch_model_covers(model, image->path, image->build_id.data, image->build_id.len))
            continue;
        copy = strdup(image->path);
        if (!copy || !etch_array_push(&loaded->paths, copy)) {
            free(copy);
            result = etch_error_no_memory(err);
        }
    }
    etch_recording_free(recording);
    return result;
}

static int open_model(struct etch_model **model, const struct slice_options *o, struct etch_error *err)
{
    struct loaded loaded = {0};
    int result = etch_model_open(model, o->program, NULL, 0, err);

    if (result == 0 && o->failure)
        result = find_loaded(&loaded, *model, o->failure, err);
    if (result == 0 && loaded.paths.n) {
        etch_model_free(*model);
        *model = NULL;
        result = etch_model_open(model, o->program, (const char *const *)loaded.paths.v, loaded.paths.n, err);
    }
    for (size_t i = 0; result == 0 && etch_model_note(*model, i); i++)
        fprintf(stderr, "etch slice: %s\n", etch_shown(etch_model_note(*model, i)));
    for (size_t i = 0; i < loaded.paths.n; i++)
        free(loaded.paths.v[i]);
    etch_array_free(&loaded.paths);
    return result;
}

static int work(const struct slice_options *o, struct etch_error *err)
{
    struct etch_slice_options options = {.alias = o->alias};
    struct etch_criterion *criterion = NULL;
    struct etch_model *model = NULL;
    struct etch_slice *slice = NULL;
    double start = now(), modelled;
    int result = open_model(&model, o, err);

    modelled = now();
    if (result == 0)
        result = o->at ? etch_criterion_at(&criterion, model, o->at, err)
                       : criterion_of_bundle(&criterion, model, o->failure, err);
    if (result == 0)
        result = etch_slice_make(&slice, model, criterion, &options, err);
    if (result == 0)
        result = show(o, model, slice, err);
    if (result == 0 && o->stats)
        print_stats(model, start, modelled, now());
    etch_slice_free(slice);
    etch_criterion_free(criterion);
    etch_model_free(model);
    return result;
}

static bool number(const char *text, uint32_t *value)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);

    *value = (uint32_t)n;
    return text[0] >= '0' && text[0] <= '9' && !*end && n > 0 && n < 1000000;
}

static int run(const struct etch_command *self, int argc, char **argv)
{
    static const struct option long_options[] = {
        {"help", no_argument, NULL, 'h'},          {"at", required_argument, NULL, 'a'},
        {"failure", required_argument, NULL, 'f'}, {"plan", required_argument, NULL, 'p'},
        {"sigma", required_argument, NULL, 's'},   {"slots", required_argument, NULL, 'n'},
        {"json", no_argument, NULL, 'j'},          {"alias", no_argument, NULL, 'A'},
        {"stats", no_argument, NULL, 'S'},         {0}};
    struct slice_options o = {.slots = 4};
    struct etch_error err;
    int c;

    while ((c = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
        switch (c) {
        case 'h':
            return etch_command_help(self);
        case 'a':
            o.at = optarg;
            break;
        case 'f':
            o.failure = optarg;
            break;
        case 'p':
            o.plan = optarg;
            break;
        case 's':
            if (!number(optarg, &o.sigma))
                return etch_command_usage(self, "--sigma takes a number of statements, not '%s'", optarg);
            break;
        case 'n':
            if (!number(optarg, &o.slots))
                return etch_command_usage(self, "--slots takes a number of watchpoints, not '%s'", optarg);
            break;
        case 'j':
            o.json = true;
            break;
        case 'A':
            o.alias = true;
            break;
        case 'S':
            o.stats = true;
            break;
        default:
            return etch_command_bad_option(self, c, argv);
        }
    }
    if (argc - optind != 1)
        return etch_command_usage(self, argc == optind ? "which program?" : "one program at a time");
    if (!o.at == !o.failure)
        return etch_command_usage(self, "from where? Either --at FILE:LINE or --failure BUNDLE");
    o.program = argv[optind];
    if (work(&o, &err) < 0)
        return etch_command_failed(self, &err);
    return etch_command_close_output(self, ETCH_EXIT_DONE);
}

const struct etch_command etch_command_slice = {
    .name = "slice",
    .summary = ETCH_SUMMARY_SLICE,
    .help = "usage: etch slice PROG --at FILE:LINE[:COLUMN] | --failure BUNDLE [OPTION...]\n\n"
            "Prints the backward slice of a program built with etch cc: every statement that the failing statement may "
            "depend\n"
            "on, by data, memory, arguments, returned values, threads and control. Statements are grouped by function, "
            "nearest\n"
            "first. Each line has: distance, marks (r reads, w writes something shared, b branches, c calls), line, "
            "source.\n\n"
            "  --at PLACE        begin at this line, or at this column of the line\n"
            "  --failure BUNDLE  begin where the run in BUNDLE failed, or where its threads hang\n"
            "  --plan FILE       write the slice, and a plan for etch record, to FILE\n"
            "  --sigma N         plan for the first N statements (default 4), and print the plan\n"
            "  --slots N         set at most N watches in one run (default 4)\n"
            "  --alias           also follow stores through pointers that match only by type\n"
            "  --json            print the slice, and the plan if there is one, as one JSON object\n"
            "  --stats           print sizes, time and memory on standard error\n\n"
            "examples:\n"
            "  etch slice ./pbzip2 --at pbzip2.cpp:1041\n"
            "  etch slice ./server --failure run.etch --plan next.plan\n",
    .run = run,
    .reads = true,
    .outputs = (const char *const[]){"plan", NULL},
};
