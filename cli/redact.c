/* SPDX-License-Identifier: MIT */
/* etch redact: copies a bundle without the data that a policy hides. */
#include "cli/command.h"
#include "collector/privacy.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RULES_MAX 64u

struct redaction {
    const char *in, *out, *policy;
    const char *rules[RULES_MAX];
    size_t n_rules;
    struct etch_privacy *privacy;
    struct etch_bundle_writer *writer;
    uint64_t damaged;
    enum etch_bundle_event ending;
};

static int open_privacy(struct redaction *r, struct etch_error *err)
{
    struct etch_policy *policy;

    if (etch_policy_find(&policy, r->policy, err) < 0)
        return -1;
    for (size_t i = r->n_rules; i-- > 0;) /* each rule goes to the front, so the first given ends up first */
        if (etch_policy_add(policy, r->rules[i], err) < 0) {
            etch_policy_free(policy);
            return etch_error_prefix(err, "--rule");
        }
    r->privacy = etch_privacy_new(policy, false);
    if (!r->privacy)
        return etch_error_set_errno(err, ENOMEM, "cannot redact");
    etch_privacy_count(r->privacy)->afterwards = true;
    return 0;
}

/* Reads the images first: stacks are masked by the code addresses, and the images may come after the stacks. */
static int learn(struct redaction *r, struct etch_error *err)
{
    const Etch__Record__BodyCase image = ETCH__RECORD__BODY_IMAGE;
    struct etch_bundle_reader *reader;
    enum etch_bundle_event event;
    int status = 0;

    if (etch_bundle_open(&reader, r->in, err) < 0)
        return -1;
    etch_bundle_want(reader, &image, 1);
    do {
        struct etch_bundle_item item;

        event = etch_bundle_next(reader, &item, err);
        if (event == ETCH_BUNDLE_FAILED)
            status = -1;
        else if (event == ETCH_BUNDLE_RECORD && item.record && !etch_privacy_learn(r->privacy, item.record->image))
            status = etch_error_set_errno(err, ENOMEM, "cannot redact");
    } while (status == 0 && (event == ETCH_BUNDLE_RECORD || event == ETCH_BUNDLE_DAMAGED));
    etch_bundle_reader_free(reader);
    return status;
}

/* A record of an unknown kind is left out, because it could hold anything. */
static int take_record(struct redaction *r, const struct etch_bundle_item *item, struct etch_error *err)
{
    if (item->kind == ETCH__RECORD__BODY_SKETCH) {
        etch_error_set(err, "%s is a sketch", r->in);
        return etch_error_advise(err, "redact the bundles, and sketch them again");
    }
    if (item->record)
        return etch_bundle_write(r->writer, item->record, err);
    etch_privacy_count(r->privacy)->unknown++;
    return 0;
}

static int copy_records(struct redaction *r, struct etch_bundle_reader *reader, struct etch_error *err)
{
    for (;;) {
        struct etch_bundle_item item;

        r->ending = etch_bundle_next(reader, &item, err);
        if (r->ending == ETCH_BUNDLE_FAILED)
            return -1;
        if (r->ending == ETCH_BUNDLE_END || r->ending == ETCH_BUNDLE_CUT)
            return 0;
        if (r->ending == ETCH_BUNDLE_DAMAGED)
            r->damaged++;
        else if (take_record(r, &item, err) < 0)
            return -1;
    }
}

static int write_damage(struct redaction *r, struct etch_error *err)
{
    Etch__Loss loss = ETCH__LOSS__INIT;
    Etch__Record record = ETCH__RECORD__INIT;

    loss.cause = ETCH__LOSS_CAUSE__LOSS_DAMAGED;
    loss.events = r->damaged;
    loss.detail = (char *)(uintptr_t)"records were damaged before etch redact, and are left out";
    record.body_case = ETCH__RECORD__BODY_LOSS;
    record.loss = &loss;
    return r->damaged ? etch_bundle_write(r->writer, &record, err) : 0;
}

/* The copy of a file that is not whole gets no end record, so the copy is not whole either. */
static int finish(struct redaction *r, struct etch_error *err)
{
    if (r->ending == ETCH_BUNDLE_END && !r->damaged)
        return etch_bundle_finish(r->writer, err);
    return write_damage(r, err) < 0 ? -1 : etch_bundle_write(r->writer, etch_privacy_last(r->privacy), err);
}

static int create(struct redaction *r, struct etch_error *err)
{
    int fd = open(r->out, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0) {
        etch_error_set_errno(err, errno, "cannot create %s", r->out);
        return etch_error_advise(err, "a new name, in a folder that you may write to");
    }
    if (etch_bundle_create_fd(&r->writer, fd, r->out, err) < 0) {
        unlink(r->out);
        return -1;
    }
    etch_privacy_guard(r->privacy, r->writer);
    return 0;
}

static int copy(struct redaction *r, struct etch_error *err)
{
    struct etch_bundle_reader *reader;
    int status = -1;

    if (etch_bundle_open(&reader, r->in, err) < 0)
        return -1;
    if (create(r, err) == 0) {
        status = copy_records(r, reader, err) < 0 || finish(r, err) < 0 ? -1 : 0;
        etch_bundle_writer_free(r->writer);
        if (status < 0)
            unlink(r->out);
    }
    etch_bundle_reader_free(reader);
    return status;
}

static void print_done(const struct redaction *r)
{
    const Etch__Redaction *n = etch_privacy_count(r->privacy);

    fprintf(stderr,
            "etch redact: %" PRIu64 " arguments, %" PRIu64 " values, %" PRIu64 " messages, %" PRIu64
            " registers, %" PRIu64 " stack words, %" PRIu64 " bytes of memory, %" PRIu64 " paths, %" PRIu64
            " names and %" PRIu64 " unknown fields or records are left out\n",
            n->arguments, n->values, n->messages, n->registers, n->stack_words, n->memory_bytes, n->paths, n->names,
            n->unknown);
    if (r->damaged)
        fprintf(stderr, "etch redact: %" PRIu64 " damaged records are left out\n", r->damaged);
    if (r->damaged || r->ending == ETCH_BUNDLE_CUT)
        fprintf(stderr, "etch redact: %s is not whole, and neither is the copy\n", r->in);
}

static int redact(const struct etch_command *self, struct redaction *r)
{
    struct etch_error err;
    int status = ETCH_EXIT_DONE;

    if (open_privacy(r, &err) < 0 || learn(r, &err) < 0 || copy(r, &err) < 0)
        status = etch_command_failed(self, &err);
    else
        print_done(r);
    etch_privacy_free(r->privacy);
    return status;
}

static int run(const struct etch_command *self, int argc, char **argv)
{
    static const struct option long_options[] = {{"help", no_argument, NULL, 'h'},
                                                 {"policy", required_argument, NULL, 'p'},
                                                 {"rule", required_argument, NULL, 'r'},
                                                 {"paths", no_argument, NULL, 'P'},
                                                 {0}};
    struct redaction r = {0};
    int c;

    while ((c = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
        if (c == 'h')
            return etch_command_help(self);
        if (c == 'p')
            r.policy = optarg;
        else if (c != 'r' && c != 'P')
            return etch_command_bad_option(self, c, argv);
        else if (r.n_rules == RULES_MAX)
            return etch_command_usage(self, "too many rules, at most %u", RULES_MAX);
        else
            r.rules[r.n_rules++] = c == 'r' ? optarg : "mask path";
    }
    if (argc - optind != 2)
        return etch_command_usage(self, "from which bundle, and to which?");
    r.in = argv[optind];
    r.out = argv[optind + 1];
    if (strcmp(r.in, "-") == 0)
        return etch_command_usage(self, "IN cannot be -, because etch reads IN twice");
    return redact(self, &r);
}

const struct etch_command etch_command_redact = {
    .name = "redact",
    .summary = "a copy of a recorded file without arguments, values and memory that a policy hides",
    .help =
        "usage: etch redact [--policy FILE] [--rule RULE]... [--paths] IN OUT\n\n"
        "Copies the bundle IN to the new file OUT, without the data that the policy hides: words of the command line,\n"
        "values, texts, registers, captured memory. Only the addresses of a stack stay. Everything else is copied\n"
        "unchanged. OUT must not exist. If IN is cut or damaged, its readable records are copied, and OUT is cut too.\n"
        "etch info OUT shows how much was left out.\n\n"
        "  --policy FILE  the policy (ETCH_POLICY, /etc/etch/policy, ~/.config/etch/policy; else the built-in policy)\n"
        "  --rule RULE    add a rule before the rules of the policy; may be repeated\n"
        "  --paths        hide the names of users in paths below /home; etch may then not find the program\n\n"
        "examples:\n"
        "  etch redact run.etch public.etch\n"
        "  etch redact --paths --rule 'mask value name=*balance*' run.etch public.etch\n"
        "  etch redact --rule 'deny argument' --rule 'deny stack' run.etch public.etch\n",
    .run = run,
};
