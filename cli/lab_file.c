/* SPDX-License-Identifier: MIT */
/* See lab_file.h. */
#include "cli/lab_file.h"

#include "collector/lab_journal.h"
#include "proto/bundle.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Writing ---- */

static int write_program(struct etch_bundle_writer *w, const struct etch_lab_file *f, struct etch_error *err)
{
    Etch__Program program = ETCH__PROGRAM__INIT;
    Etch__Record record = ETCH__RECORD__INIT;
    char folder[PATH_MAX] = "";

    program.etch_version = (char *)ETCH_VERSION;
    program.argv = f->argv.v;
    program.n_argv = f->argv.n;
    program.exe = (char *)f->exe;
    program.cwd = getcwd(folder, sizeof(folder)) ? folder : (char *)"";
    record.body_case = ETCH__RECORD__BODY_PROGRAM;
    record.program = &program;
    return etch_bundle_write(w, &record, err);
}

/* The threads, the counts and the sites, as arrays for the message. */
struct lists {
    uint32_t *threads, *counts;
    uint64_t *sites;
    size_t n_sites;
};

static bool make_lists(struct lists *l, const struct etch_lab_schedule *s)
{
    size_t n = s->segments.n;

    l->threads = malloc((n + 1) * sizeof(*l->threads));
    l->counts = malloc((n + 1) * sizeof(*l->counts));
    l->sites = malloc(ETCH_LAB_SITES * sizeof(*l->sites));
    if (!l->threads || !l->counts || !l->sites)
        return false;
    for (size_t i = 0; i < n; i++) {
        l->threads[i] = s->segments.v[i].thread;
        l->counts[i] = s->segments.v[i].count;
    }
    for (uint32_t i = 0; i < ETCH_LAB_SITES; i++)
        if (s->sites[i])
            l->sites[l->n_sites++] = s->sites[i];
    return true;
}

#define ORDER_SIZE 2048 /* of the text of one order */

/* The text of the orders, a line each. NULL: no memory. */
static char *script_text(const struct etch_lab_script *script)
{
    char *text = calloc(script->orders.n + 1, ORDER_SIZE), *at = text;

    for (size_t i = 0; text && i < script->orders.n; i++) {
        etch_lab_constraint_print(&script->orders.v[i], false, at, ORDER_SIZE - 1);
        at += strlen(at);
        *at++ = '\n';
    }
    return text;
}

static int write_schedule(struct etch_bundle_writer *w, const struct etch_lab_file *f, struct etch_error *err)
{
    Etch__Schedule schedule = ETCH__SCHEDULE__INIT;
    Etch__Record record = ETCH__RECORD__INIT;
    struct lists l = {0};
    char *script = script_text(&f->script);
    int status = -1;

    if (script && make_lists(&l, &f->schedule)) {
        schedule.program = (ProtobufCBinaryData){sizeof(f->program), (uint8_t *)f->program};
        schedule.strategy = (char *)etch_lab_strategy_name(f->schedule.spec.kind);
        schedule.seed = f->schedule.spec.seed;
        schedule.points = f->schedule.points;
        schedule.hash = f->schedule.hash;
        schedule.threads = l.threads;
        schedule.counts = l.counts;
        schedule.n_threads = schedule.n_counts = f->schedule.segments.n;
        schedule.sites = l.sites;
        schedule.n_sites = l.n_sites;
        schedule.input = (char *)f->input;
        schedule.real_time = f->real_time;
        schedule.no_heap_check = f->no_heap_check;
        schedule.asked = f->schedule.asked;
        schedule.cut = f->schedule.cut;
        schedule.memory = (uint32_t)f->memory;
        schedule.script = script;
        schedule.scripted = f->scripted;
        schedule.misuse = f->schedule.end == ETCH_LAB_WRONG ? (uint32_t)f->schedule.number : 0;
        record.body_case = ETCH__RECORD__BODY_SCHEDULE;
        record.schedule = &schedule;
        status = etch_bundle_write(w, &record, err);
    } else {
        etch_error_no_memory(err);
    }
    free(l.threads);
    free(l.counts);
    free(l.sites);
    free(script);
    return status;
}

#define PIECE ((size_t)1 << 20)

static int write_piece(struct etch_bundle_writer *w, const struct etch_lab_schedule *s, size_t from,
                       struct etch_error *err)
{
    Etch__LabInput input = ETCH__LAB_INPUT__INIT;
    Etch__Record record = ETCH__RECORD__INIT;
    size_t size = s->journal.n * sizeof(uint64_t), flows = from / sizeof(uint32_t), most = PIECE / sizeof(uint32_t);

    if (from < size)
        input.answers =
            (ProtobufCBinaryData){size - from < PIECE ? size - from : PIECE, (uint8_t *)s->journal.v + from};
    if (flows < s->flows.n) {
        input.flows = s->flows.v + flows;
        input.n_flows = s->flows.n - flows < most ? s->flows.n - flows : most;
    }
    record.body_case = ETCH__RECORD__BODY_LAB_INPUT;
    record.lab_input = &input;
    return etch_bundle_write(w, &record, err);
}

static int write_input(struct etch_bundle_writer *w, const struct etch_lab_schedule *s, struct etch_error *err)
{
    size_t size = s->journal.n * sizeof(uint64_t), flows = s->flows.n * sizeof(uint32_t);
    int status = 0;

    for (size_t from = 0; status == 0 && (from < size || from < flows); from += PIECE)
        status = write_piece(w, s, from, err);
    return status;
}

/* A hang has neither a signal nor an exit status. */
static int write_outcome(struct etch_bundle_writer *w, const struct etch_lab_schedule *s, struct etch_error *err)
{
    Etch__Outcome outcome = ETCH__OUTCOME__INIT;
    Etch__Record record = ETCH__RECORD__INIT;

    if (s->end == ETCH_LAB_SIGNALED) {
        outcome.how_case = ETCH__OUTCOME__HOW_SIGNAL;
        outcome.signal = (uint32_t)s->number;
    } else if (s->end == ETCH_LAB_EXITED) {
        outcome.how_case = ETCH__OUTCOME__HOW_EXIT_STATUS;
        outcome.exit_status = (uint32_t)s->number;
    }
    record.body_case = ETCH__RECORD__BODY_OUTCOME;
    record.outcome = &outcome;
    return etch_bundle_write(w, &record, err);
}

int etch_lab_file_write(const char *path, const struct etch_lab_file *file, struct etch_error *err)
{
    struct etch_bundle_writer *w = NULL;
    int status = etch_bundle_create(&w, path, err);

    if (status == 0 && (write_program(w, file, err) < 0 || write_schedule(w, file, err) < 0 ||
                        write_input(w, &file->schedule, err) < 0 || write_outcome(w, &file->schedule, err) < 0 ||
                        etch_bundle_finish(w, err) < 0))
        status = -1;
    etch_bundle_writer_free(w);
    return status;
}

/* ---- Reading ---- */

static int damaged(struct etch_error *err)
{
    return etch_error_set(err, "the schedule is damaged");
}

static int take_program(struct etch_lab_file *f, const Etch__Program *p, struct etch_error *err)
{
    if (strlen(p->exe) >= sizeof(f->exe) || p->n_argv == 0 || f->argv.n)
        return damaged(err);
    snprintf(f->exe, sizeof(f->exe), "%s", p->exe);
    for (size_t i = 0; i < p->n_argv; i++) {
        char *copy = strdup(p->argv[i]);

        if (!copy || !etch_array_push(&f->argv, copy)) {
            free(copy);
            return etch_error_no_memory(err);
        }
    }
    if (!etch_array_reserve(&f->argv, f->argv.n + 1))
        return etch_error_no_memory(err);
    f->argv.v[f->argv.n] = NULL;
    return 0;
}

static int take_schedule(struct etch_lab_file *f, const Etch__Schedule *s, struct etch_error *err)
{
    struct etch_lab_schedule *k = &f->schedule;

    if (s->n_threads != s->n_counts || s->n_threads > ETCH_LAB_SEGMENTS || s->n_sites >= ETCH_LAB_SITES ||
        s->program.len != sizeof(f->program) || strlen(s->input) >= sizeof(f->input) || k->sites)
        return damaged(err);
    k->sites = calloc(ETCH_LAB_SITES, sizeof(*k->sites));
    if (!k->sites || !etch_array_reserve(&k->segments, s->n_threads + 1))
        return etch_error_no_memory(err);
    for (size_t i = 0; i < s->n_threads; i++) {
        if (s->threads[i] >= ETCH_LAB_THREADS || s->counts[i] == 0)
            return damaged(err);
        k->segments.v[k->segments.n++] = (struct etch_lab_segment){s->threads[i], s->counts[i]};
    }
    for (size_t i = 0; i < s->n_sites; i++)
        if (s->sites[i])
            k->sites[etch_lab_site_slot(k->sites, s->sites[i])] = s->sites[i];
    memcpy(f->program, s->program.data, sizeof(f->program));
    snprintf(f->input, sizeof(f->input), "%s", s->input);
    f->real_time = s->real_time;
    f->no_heap_check = s->no_heap_check;
    f->memory = s->memory <= ETCH_LAB_C11 ? (enum etch_lab_memory)s->memory : ETCH_LAB_SC;
    f->misuse = s->misuse;
    f->scripted = s->scripted;
    k->asked = s->asked;
    k->cut = s->cut;
    k->spec = (struct etch_lab_spec){.kind = ETCH_LAB_QUEUE, .seed = s->seed, .depth = 1};
    k->points = s->points;
    k->hash = s->hash;
    return etch_lab_script_parse(&f->script, s->script, strlen(s->script), err);
}

static int take_input(struct etch_lab_schedule *k, const Etch__LabInput *input, struct etch_error *err)
{
    size_t words = input->answers.len / sizeof(uint64_t);

    if (input->answers.len % sizeof(uint64_t) || k->journal.n + words > ETCH_LAB_JOURNAL / sizeof(uint64_t) ||
        k->flows.n + input->n_flows > ETCH_LAB_FLOWS)
        return damaged(err);
    if (!etch_array_reserve(&k->journal, k->journal.n + words + 1) ||
        !etch_array_reserve(&k->flows, k->flows.n + input->n_flows + 1))
        return etch_error_no_memory(err);
    if (words)
        memcpy(k->journal.v + k->journal.n, input->answers.data, input->answers.len);
    k->journal.n += words;
    if (input->n_flows)
        memcpy(k->flows.v + k->flows.n, input->flows, input->n_flows * sizeof(uint32_t));
    k->flows.n += input->n_flows;
    return 0;
}

/* The answers must be a journal before a program gets them. */
static int check_input(struct etch_lab_schedule *k, struct etch_error *err)
{
    uint64_t *first = malloc((ETCH_LAB_THREADS + 1) * sizeof(*first));
    bool good;

    if (!first || !etch_array_reserve(&k->journal, k->journal.n + 1)) {
        free(first);
        return etch_error_no_memory(err);
    }
    good = etch_lab_journal_link(k->journal.v, k->journal.n * sizeof(uint64_t), first, &k->answers);
    free(first);
    return good ? 0 : damaged(err);
}

static void take_outcome(struct etch_lab_schedule *k, const Etch__Outcome *o, uint32_t misuse)
{
    if (misuse) {
        k->end = ETCH_LAB_WRONG;
        k->number = (int)misuse;
        return;
    }
    k->end = o->how_case == ETCH__OUTCOME__HOW_SIGNAL        ? ETCH_LAB_SIGNALED
             : o->how_case == ETCH__OUTCOME__HOW_EXIT_STATUS ? ETCH_LAB_EXITED
                                                             : ETCH_LAB_HUNG;
    k->number = o->how_case == ETCH__OUTCOME__HOW_SIGNAL        ? (int)o->signal
                : o->how_case == ETCH__OUTCOME__HOW_EXIT_STATUS ? (int)o->exit_status
                                                                : 0;
}

static int read_all(struct etch_lab_file *f, struct etch_bundle_reader *reader, struct etch_error *err)
{
    enum etch_bundle_event event;
    struct etch_bundle_item item;
    int status = 0;

    while (status == 0 &&
           ((event = etch_bundle_next(reader, &item, err)) == ETCH_BUNDLE_RECORD || event == ETCH_BUNDLE_DAMAGED)) {
        if (event == ETCH_BUNDLE_DAMAGED || !item.record)
            continue;
        if (item.record->body_case == ETCH__RECORD__BODY_PROGRAM)
            status = take_program(f, item.record->program, err);
        else if (item.record->body_case == ETCH__RECORD__BODY_SCHEDULE)
            status = take_schedule(f, item.record->schedule, err);
        else if (item.record->body_case == ETCH__RECORD__BODY_LAB_INPUT)
            status = take_input(&f->schedule, item.record->lab_input, err);
        else if (item.record->body_case == ETCH__RECORD__BODY_OUTCOME)
            take_outcome(&f->schedule, item.record->outcome, f->misuse);
    }
    if (status < 0 || event == ETCH_BUNDLE_FAILED)
        return -1;
    if (f->schedule.sites && f->argv.n)
        return check_input(&f->schedule, err);
    etch_error_set(err, "the file holds no schedule");
    return etch_error_advise(err, "etch explore writes files that can be replayed");
}

int etch_lab_file_read(struct etch_lab_file *file, const char *path, struct etch_error *err)
{
    struct etch_bundle_reader *reader = NULL;
    int status;

    memset(file, 0, sizeof(*file));
    if (etch_bundle_open(&reader, path, err) < 0)
        return -1;
    status = read_all(file, reader, err);
    etch_bundle_reader_free(reader);
    if (status == 0)
        return 0;
    etch_lab_file_release(file);
    return etch_error_prefix(err, "cannot replay %s", path);
}

void etch_lab_file_release(struct etch_lab_file *file)
{
    for (size_t i = 0; i < file->argv.n; i++)
        free(file->argv.v[i]);
    etch_array_free(&file->argv);
    etch_lab_schedule_release(&file->schedule);
    etch_lab_script_release(&file->script);
}
