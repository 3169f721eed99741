/* SPDX-License-Identifier: MIT */
/* etch info: shows what a file holds, for people and for programs, and checks if the file is whole. */
#include "base/printable.h"
#include "cli/command.h"
#include "cli/info_secrets.h"
#include "cli/message_json.h"
#include "proto/contents.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct info_options {
    const char *path;
    bool json, verify, records, secrets, plain;
};

static const char *source_name(Etch__Source source)
{
    static const char *const names[] = {"none", "pt", "soft", "vpt", "lab"};

    return (unsigned)source < sizeof(names) / sizeof(names[0]) ? names[source] : "unknown";
}

static void print_size(uint64_t bytes)
{
    if (bytes < 10000)
        printf("%" PRIu64 " B", bytes);
    else if (bytes < (uint64_t)10 << 20)
        printf("%.1f KiB", (double)bytes / 1024);
    else
        printf("%.1f MiB", (double)bytes / (1 << 20));
}

static void print_build_id(const ProtobufCBinaryData *id)
{
    for (size_t i = 0; i < id->len && i < 20; i++)
        printf("%02x", id->data[i]);
}

static void print_text(const char *s)
{
    etch_print(stdout, s);
}

static void print_time(uint64_t unix_ns)
{
    time_t seconds = (time_t)(unix_ns / 1000000000u);
    struct tm utc;
    char stamp[40];

    if (gmtime_r(&seconds, &utc) && strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S UTC", &utc))
        printf("%s", stamp);
}

static void print_program(const struct etch_contents *c)
{
    const Etch__Program *p = c->program;

    if (!p)
        return;
    printf("program    ");
    for (size_t i = 0; i < p->n_argv; i++) {
        printf(i ? " " : "");
        print_text(p->argv[i]);
    }
    printf("\n           build-id ");
    if (p->build_id.len)
        print_build_id(&p->build_id);
    else
        printf("none");
    printf(", pid %u, source %s\n", p->pid, source_name(p->source));
    printf("started    ");
    print_time(p->start_unix_ns);
    if (c->outcome && c->outcome->end_unix_ns > p->start_unix_ns)
        printf(", ran %.3f s", (double)(c->outcome->end_unix_ns - p->start_unix_ns) / 1e9);
    printf("\n");
}

static void print_host(const Etch__Host *h)
{
    if (!h)
        return;
    printf("host       Linux ");
    print_text(h->kernel);
    printf(", %u CPUs, ", h->cpus);
    print_text(h->cpu_model);
    if (h->hypervisor[0]) {
        printf(" (under ");
        print_text(h->hypervisor);
        printf(")");
    }
    printf("\n");
}

static void print_end(const struct etch_contents *c)
{
    if (c->failure) {
        const Etch__Failure *f = c->failure;

        printf("failure    ");
        if (f->kind == ETCH__FAILURE_KIND__FAILURE_SIGNAL)
            printf("signal %u (%s) in thread %u at 0x%" PRIx64 ", address 0x%" PRIx64, f->signal,
                   strsignal((int)f->signal), f->tid, f->ip, f->fault_address);
        else if (f->kind == ETCH__FAILURE_KIND__FAILURE_HANG)
            printf("hang, %zu threads", f->n_threads);
        else if (f->kind == ETCH__FAILURE_KIND__FAILURE_TIMEOUT)
            printf("time limit reached, %zu threads", f->n_threads);
        else
            printf("by its result");
        if (f->message[0]) {
            printf(": ");
            print_text(f->message);
        }
        printf("\n");
    }
    if (!c->outcome || c->outcome->how_case == ETCH__OUTCOME__HOW__NOT_SET)
        printf("outcome    unknown\n");
    else if (c->outcome->how_case == ETCH__OUTCOME__HOW_SIGNAL)
        printf("outcome    killed by signal %u (%s)\n", c->outcome->signal, strsignal((int)c->outcome->signal));
    else
        printf("outcome    exit status %u\n", c->outcome->exit_status);
}

static void print_streams(const struct etch_contents *c)
{
    for (size_t i = 0; i < c->streams.listed.n; i++) {
        const Etch__Stream *s = (const Etch__Stream *)c->streams.listed.v[i];
        const struct etch_contents_stream *flow = NULL;

        for (size_t k = 0; k < c->flows.n; k++)
            if (c->flows.v[k].id == s->id)
                flow = &c->flows.v[k];
        printf("  stream %-3u %-5s", s->id, source_name(s->source));
        if (s->of_case == ETCH__STREAM__OF_CPU)
            printf(" CPU %-8u ", s->cpu);
        else
            printf(" thread %-8u ", s->tid);
        print_size(flow ? flow->bytes : 0);
        printf("%s", s->snapshot ? ", newest part" : "");
        if (flow && flow->holes)
            printf(", %" PRIu64 " holes", flow->holes);
        printf("\n");
    }
}

static void print_watches(const struct etch_contents *c)
{
    for (size_t i = 0; i < c->watches.listed.n; i++) {
        const Etch__Watch *w = (const Etch__Watch *)c->watches.listed.v[i];

        printf("  watch %-3u  ", w->id);
        print_text(w->name);
        printf(" at 0x%" PRIx64 ", %u bytes, %s%s%s\n", w->address, w->size, w->reads ? "r" : "", w->writes ? "w" : "",
               w->skipped ? ", not armed" : "");
    }
}

static void print_dark(const struct etch_contents *c)
{
    for (size_t i = 0; i < c->darks.listed.n; i++) {
        printf("dark       ");
        print_text(((const Etch__Loss *)c->darks.listed.v[i])->detail);
        printf("\n");
    }
}

static void print_data(const struct etch_contents *c)
{
    char lost[400];

    printf("recorded   %" PRIu64 " threads, %" PRIu64 " mappings, ", c->threads.total, c->images.total);
    print_size(c->flow_bytes);
    printf(" of control flow, %" PRIu64 " accesses (%" PRIu64 " without value), %" PRIu64 " sync events, %" PRIu64
           " context switches\n",
           c->accesses, c->values_unknown, c->syncs, c->switches);
    print_streams(c);
    print_watches(c);
    printf("lost       %s\n", etch_losses_text(c->losses, lost, sizeof(lost)));
    print_dark(c);
}

/* Prints what the policy left out: once for the recorder, and once for each `etch redact`. */
static void print_redactions(const struct etch_contents *c)
{
    for (size_t i = 0; i < c->redactions.listed.n; i++) {
        const Etch__Redaction *r = (const Etch__Redaction *)c->redactions.listed.v[i];
        const struct {
            uint64_t n;
            const char *what;
        } counts[] = {{r->arguments, "arguments"},
                      {r->values, "values"},
                      {r->messages, "messages"},
                      {r->registers, "registers"},
                      {r->stack_words, "stack words"},
                      {r->memory_bytes, "bytes of memory"},
                      {r->paths, "paths"},
                      {r->names, "names"},
                      {r->unknown, "unknown fields or records"}};
        unsigned n = 0;

        printf("hidden     ");
        for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++)
            if (counts[k].n)
                printf("%s%" PRIu64 " %s", n++ ? ", " : "", counts[k].n, counts[k].what);
        printf("%s, %s, policy ", n ? "" : "nothing", r->afterwards ? "by etch redact" : "by the recorder");
        print_text(r->policy);
        printf("\n");
    }
}

static void print_kinds(const struct etch_contents *c)
{
    printf("\n  %-12s %10s %14s %14s\n", "record", "count", "bytes", "unpacked");
    for (uint32_t i = 0; i < ETCH_CONTENTS_KINDS; i++)
        if (c->kinds[i].records)
            printf("  %-12s %10" PRIu64 " %14" PRIu64 " %14" PRIu64 "\n", etch_record_kind_name(i), c->kinds[i].records,
                   c->kinds[i].bytes, c->kinds[i].raw_bytes);
    if (c->unknown.records)
        printf("  %-12s %10" PRIu64 " %14" PRIu64 " %14" PRIu64 "\n", "(unknown)", c->unknown.records, c->unknown.bytes,
               c->unknown.raw_bytes);
}

static void print_damage(const struct etch_contents *c, const char *path, FILE *out)
{
    for (size_t i = 0; i < c->damages.n; i++) {
        const struct etch_contents_damage *d = &c->damages.v[i];
        const char *kind = etch_record_kind_name(d->kind);

        fprintf(out, "%s: record %" PRIu64 " (%s, byte %" PRIu64 ", %" PRIu64 " bytes) is damaged: %s\n",
                etch_shown(path), d->index, kind ? kind : "kind unknown", d->offset, d->size, d->why);
    }
    if (c->ending == ETCH_BUNDLE_CUT)
        fprintf(out,
                "%s: cut at byte %" PRIu64 ": its writer did not finish; %" PRIu64 " records are whole, %" PRIu64
                " bytes of an unfinished record follow\n",
                etch_shown(path), c->cut_at, c->records, c->cut_tail);
}

static bool is_whole(const struct etch_contents *c)
{
    return c->ending == ETCH_BUNDLE_END && c->damaged == 0;
}

static void print_people(const struct info_options *options, const struct etch_contents *c)
{
    printf("%s: etch file, format %u.%u, ", etch_shown(options->path), c->major, c->minor);
    print_size(c->bytes);
    printf(", %" PRIu64 " records, %s\n", c->records,
           is_whole(c)                    ? "complete"
           : c->ending == ETCH_BUNDLE_CUT ? "cut"
                                          : "damaged");
    if (options->verify) {
        print_damage(c, options->path, stdout);
        printf("%" PRIu64 " whole, %" PRIu64 " damaged%s\n", c->records, c->damaged,
               is_whole(c) ? "; every checksum is right and the end record is there" : "");
        return;
    }
    print_program(c);
    print_host(c->host);
    if (c->program || c->outcome || c->failure)
        print_end(c);
    if (c->program || c->flow_bytes)
        print_data(c);
    print_redactions(c);
    print_kinds(c);
    print_damage(c, options->path, stderr);
}

static json_t *list_json(const struct etch_contents_list *list)
{
    json_t *array = json_array();

    for (size_t i = 0; i < list->listed.n; i++)
        json_array_append_new(array, etch_message_json(list->listed.v[i]));
    return array;
}

static json_t *kinds_json(const struct etch_contents *c)
{
    json_t *object = json_object();

    for (uint32_t i = 0; i < ETCH_CONTENTS_KINDS; i++)
        if (c->kinds[i].records)
            json_object_set_new(object, etch_record_kind_name(i),
                                json_pack("{s:I,s:I,s:I}", "records", (json_int_t)c->kinds[i].records, "bytes",
                                          (json_int_t)c->kinds[i].bytes, "raw_bytes",
                                          (json_int_t)c->kinds[i].raw_bytes));
    return object;
}

static json_t *damage_json(const struct etch_contents *c)
{
    json_t *array = json_array();

    for (size_t i = 0; i < c->damages.n; i++) {
        const struct etch_contents_damage *d = &c->damages.v[i];
        const char *kind = etch_record_kind_name(d->kind);

        json_array_append_new(array,
                              json_pack("{s:I,s:s?,s:I,s:I,s:s}", "record", (json_int_t)d->index, "kind", kind,
                                        "offset", (json_int_t)d->offset, "size", (json_int_t)d->size, "why", d->why));
    }
    return array;
}

static json_t *losses_json(const struct etch_contents *c)
{
    json_t *object = json_object();
    char name[64];

    for (unsigned i = 0; i < ETCH_LOSS_CAUSES; i++)
        if (c->losses[i])
            json_object_set_new(object, etch_loss_key((Etch__LossCause)i, name),
                                json_integer((json_int_t)c->losses[i]));
    return object;
}

static void set_message(json_t *object, const char *key, const void *message)
{
    if (message)
        json_object_set_new(object, key, etch_message_json(message));
}

static int print_json(const struct info_options *options, const struct etch_contents *c, struct etch_error *err)
{
    json_t *object =
        json_pack("{s:o,s:{s:i,s:i},s:I,s:I,s:I,s:I,s:b,s:b}", "file", etch_text_json(options->path), "format", "major",
                  (int)c->major, "minor", (int)c->minor, "bytes", (json_int_t)c->bytes, "records",
                  (json_int_t)c->records, "damaged_records", (json_int_t)c->damaged, "unknown_records",
                  (json_int_t)c->unknown.records, "complete", is_whole(c), "cut", c->ending == ETCH_BUNDLE_CUT);

    set_message(object, "host", c->host);
    set_message(object, "program", c->program);
    set_message(object, "failure", c->failure);
    set_message(object, "outcome", c->outcome);
    json_object_set_new(object, "threads", list_json(&c->threads));
    json_object_set_new(object, "images", list_json(&c->images));
    json_object_set_new(object, "clocks", list_json(&c->clocks));
    json_object_set_new(object, "streams", list_json(&c->streams));
    json_object_set_new(object, "watches", list_json(&c->watches));
    json_object_set_new(object, "redactions", list_json(&c->redactions));
    json_object_set_new(object, "flow_bytes", json_integer((json_int_t)c->flow_bytes));
    json_object_set_new(object, "accesses", json_integer((json_int_t)c->accesses));
    json_object_set_new(object, "values_unknown", json_integer((json_int_t)c->values_unknown));
    json_object_set_new(object, "syncs", json_integer((json_int_t)c->syncs));
    json_object_set_new(object, "switches", json_integer((json_int_t)c->switches));
    json_object_set_new(object, "records_not_kept", json_integer((json_int_t)c->budget.refused));
    json_object_set_new(object, "losses", losses_json(c));
    json_object_set_new(object, "dark", list_json(&c->darks));
    json_object_set_new(object, "kinds", kinds_json(c));
    json_object_set_new(object, "damages", damage_json(c));
    return etch_json_print(object, JSON_INDENT(2), err);
}

/* Prints one JSON object a line for each record. */
static int print_records(const struct etch_command *self, struct etch_bundle_reader *reader)
{
    struct etch_error err;

    for (;;) {
        struct etch_bundle_item item;

        switch (etch_bundle_next(reader, &item, &err)) {
        case ETCH_BUNDLE_RECORD:
            if (item.record) {
                json_t *object = etch_message_json(&item.record->base);

                if (etch_json_print(object, JSON_COMPACT, &err) < 0)
                    return etch_command_failed(self, &err);
            }
            break;
        case ETCH_BUNDLE_DAMAGED:
            fprintf(stderr, "etch info: record %" PRIu64 " is damaged: %s\n", item.index, item.damage);
            break;
        case ETCH_BUNDLE_END:
            return ETCH_EXIT_DONE;
        case ETCH_BUNDLE_CUT:
            fprintf(stderr, "etch info: the file is cut at byte %" PRIu64 "\n", item.offset);
            return ETCH_EXIT_FAILED;
        case ETCH_BUNDLE_FAILED:
            return etch_command_failed(self, &err);
        }
    }
}

static int show(const struct etch_command *self, const struct info_options *options)
{
    struct etch_bundle_reader *reader;
    struct etch_contents contents;
    struct etch_error err;
    int status = ETCH_EXIT_DONE;

    etch_json_begin();
    if (etch_bundle_open(&reader, options->path, &err) < 0)
        return etch_command_failed(self, &err);
    if (options->secrets) {
        status = etch_info_secrets(self, reader, options->path, options->plain);
    } else if (options->records) {
        status = print_records(self, reader);
    } else if (etch_contents_read(&contents, reader, &err) < 0) {
        status = etch_command_failed(self, &err);
        etch_contents_release(&contents);
    } else {
        if (!options->json)
            print_people(options, &contents);
        else if (print_json(options, &contents, &err) < 0)
            status = etch_command_failed(self, &err);
        if (options->verify && !is_whole(&contents))
            status = ETCH_EXIT_FAILED;
        etch_contents_release(&contents);
    }
    etch_bundle_reader_free(reader);
    return etch_command_close_output(self, status);
}

static int run(const struct etch_command *self, int argc, char **argv)
{
    static const struct option long_options[] = {
        {"help", no_argument, NULL, 'h'},    {"json", no_argument, NULL, 'j'},
        {"records", no_argument, NULL, 'r'}, {"secrets", optional_argument, NULL, 's'},
        {"verify", no_argument, NULL, 'v'},  {0}};
    struct info_options options = {0};
    int c;

    while ((c = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
        switch (c) {
        case 'h':
            return etch_command_help(self);
        case 'j':
            options.json = true;
            break;
        case 'r':
            options.records = true;
            break;
        case 's':
            options.secrets = true;
            options.plain = optarg != NULL;
            if (optarg && strcmp(optarg, "plain") != 0)
                return etch_command_usage(self, "--secrets takes no value other than plain");
            break;
        case 'v':
            options.verify = true;
            break;
        default:
            return etch_command_bad_option(self, c, argv);
        }
    }
    if (argc - optind != 1)
        return etch_command_usage(self, argc == optind ? "which file?" : "one file at a time");
    if (options.records && (options.verify || options.json))
        return etch_command_usage(self, "--records cannot be combined with --json or --verify");
    if (options.secrets && (options.verify || options.json || options.records))
        return etch_command_usage(self, "--secrets cannot be combined with --json, --records or --verify");
    options.path = argv[optind];
    return show(self, &options);
}

const struct etch_command etch_command_info = {
    .name = "info",
    .summary = "what is in a recorded file, and whether it is whole",
    .help = "usage: etch info [--json | --records | --secrets] [--verify] FILE\n\n"
            "Shows what a file of etch holds: the run, the machine, threads, control flow, accesses, losses. If FILE "
            "is -,\n"
            "etch reads standard input. Of a cut or damaged file, etch shows all that it can read.\n\n"
            "  --json     print one JSON object\n"
            "  --records  print every record as JSON, one record a line\n"
            "  --secrets[=plain]\n"
            "             show what the file would give away: arguments, paths, texts, values, stacks, memory. "
            "Examples are\n"
            "             masked; --secrets=plain shows them in full\n"
            "  --verify   check every record. If a record is damaged or the file is cut, name the damage and exit with "
            "status 1\n\n"
            "examples:\n"
            "  etch info run.etch\n"
            "  etch info --verify run.etch && echo whole\n"
            "  etch info --json run.etch | jq .losses\n"
            "  etch info --secrets run.etch\n",
    .run = run,
    .reads = true,
};
