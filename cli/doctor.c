/* SPDX-License-Identifier: MIT */
/* etch doctor: shows what this machine can record, which source auto takes, and what to change. */
#include "base/printable.h"
#include "cli/command.h"
#include "collector/machine.h"

#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const state_names[] = {"ok", "limited", "missing"};

static void print_people(const struct etch_machine *m)
{
    static const char *const marks[] = {"+", "~", "-"};

    for (size_t i = 0; i < m->n_checks; i++) {
        const struct etch_check *check = &m->checks[i];

        printf("  %s %-22s %s\n", marks[check->state], check->title, etch_shown(check->found));
        if (check->advice[0])
            printf("    %-22s try: %s\n", "", etch_shown(check->advice));
    }
    printf("\nauto takes %s: %s.\n", m->source, etch_shown(m->source_reason));
    if (strcmp(m->source, "pt") != 0)
        printf("For a program built with etch cc --record, auto takes soft. For a program linked by etch cc without\n"
               "--record, etch record takes the lab by itself.\n");
}

static void print_json(const struct etch_machine *m)
{
    json_t *checks = json_array();
    json_t *object;

    for (size_t i = 0; i < m->n_checks; i++) {
        const struct etch_check *check = &m->checks[i];

        json_array_append_new(checks,
                              json_pack("{s:s,s:s,s:s,s:s,s:s}", "id", check->id, "title", check->title, "state",
                                        state_names[check->state], "found", check->found, "advice", check->advice));
    }
    object = json_pack("{s:s,s:s,s:s,s:s,s:{s:b,s:b,s:i},s:{s:i,s:b},s:i,s:{s:b,s:b,s:s,s:b},s:b,s:b,s:o}", "source",
                       m->source, "source_reason", m->source_reason, "kernel", m->kernel, "hypervisor", m->hypervisor,
                       "intel_pt", "present", m->pt_present, "usable", m->pt_usable, "address_filters", m->pt_filters,
                       "watchpoints", "slots", m->watch_slots, "delivered", m->watch_delivered, "perf_event_paranoid",
                       m->paranoid, "tsc", "constant", m->clock.constant, "nonstop", m->clock.nonstop, "clocksource",
                       m->clock.clocksource, "perf_clock_offered", m->clock.perf_clock_offered, "qemu_plugins",
                       m->qemu_plugins, "vpt_plugin", m->vpt_plugin, "checks", checks);
    json_dumpf(object, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
    putchar('\n');
    json_decref(object);
}

static int run(const struct etch_command *self, int argc, char **argv)
{
    static const struct option long_options[] = {
        {"help", no_argument, NULL, 'h'}, {"json", no_argument, NULL, 'j'}, {0}};
    struct etch_machine machine;
    int json = 0;
    int c;

    while ((c = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
        switch (c) {
        case 'h':
            return etch_command_help(self);
        case 'j':
            json = 1;
            break;
        default:
            return etch_command_bad_option(self, c, argv);
        }
    }
    if (optind != argc)
        return etch_command_usage(self, "the command takes no argument, but got '%s'", argv[optind]);
    etch_machine_probe(&machine, "");
    if (json)
        print_json(&machine);
    else
        print_people(&machine);
    return etch_command_close_output(self, ETCH_EXIT_DONE);
}

const struct etch_command etch_command_doctor = {
    .name = "doctor",
    .summary = "what this machine can record, and what to change so that it can record more",
    .help = "usage: etch doctor [--json]\n\n"
            "Tries each part of the machine that etch can use: Intel PT, hardware watchpoints, clocks, QEMU, clang. "
            "Prints\n"
            "advice for each missing part. etch doctor changes nothing and needs no permission. If etch doctor may not "
            "look at\n"
            "a part, it reports that. The exit status is always 0.\n\n"
            "  --json   print one JSON object\n\n"
            "examples:\n"
            "  etch doctor\n"
            "  etch doctor --json | jq -r .source\n",
    .run = run,
};
