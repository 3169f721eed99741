/* SPDX-License-Identifier: MIT */
/* Any bytes as a PT stream of a thread and of a CPU, over a small program: no crash, no hang, the same from one worker
 * and from two, and no instruction that is not in the program. */
#include "tests/unit/memory_recording.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t code[] = {
    [0x00] = 0x90, 0x74,          0x02,          0x90, 0x90, 0xe8, 0x06, 0x00, 0x00, 0x00, 0x0f, 0x05, 0xeb, 0xf2, 0x90,
    0x90,          [0x10] = 0xc3, [0x20] = 0x90, 0x0f, 0x05, 0xff, 0xe0, 0xf3, 0x0f, 0xae, 0xe0, 0x0f, 0x05, 0xeb, 0xfe,
};

struct sum {
    uint64_t steps, hash;
};

static int add(void *context, const struct etch_step *step)
{
    struct sum *sum = context;
    uint64_t v[] = {step->kind, step->first, step->end,     step->count,   step->ip,
                    step->to,   step->tid,   step->time.lo, step->time.hi, step->offset};

    if (step->kind == ETCH_STEP_BLOCK && (step->first < 0x1000 || step->end > 0x1000 + sizeof(code)))
        abort();
    if (step->time.lo > step->time.hi)
        abort();
    for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
        sum->hash = (sum->hash ^ v[i]) * 0x100000001b3u;
    sum->steps++;
    return 0;
}

static void add_switches(struct etch_recording *r)
{
    for (uint32_t i = 0; i < 4; i++) {
        Etch__Switch s = ETCH__SWITCH__INIT;

        s.tsc = 100 + 100 * i;
        s.in = !(i & 1);
        s.pid = 1;
        s.tid = 1 + i / 2;
        (void)!etch_array_push(&r->switches, s);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sum sums[2] = {{0}};

    for (unsigned i = 0; i < 2; i++) {
        struct etch_steps_options options = {.jobs = i + 1};
        struct etch_recording *r = memory_recording("fuzz");
        Etch__PtConfig *config;
        struct etch_error err;

        config = memory_stream(r, UINT32_MAX, 1, 1, data, size)->pt;
        config->mtc_freq = 3;
        config->nom_freq = 20;
        config->cpuid_15_eax = 2;
        config->cpuid_15_ebx = 250;
        memory_stream(r, 0, 0, 0, data, size);
        add_switches(r);
        memory_image(r, 1, 0x1000, sizeof(code), NULL, code);
        memory_image(r, 1, 0x1020, sizeof(code) - 0x20, NULL, code + 0x20)->mapped_tsc = 300;
        memory_done(r);
        (void)etch_steps(r, &options, add, &sums[i], NULL, &err);
        options.last = 5;
        (void)etch_steps(r, &options, add, &sums[i], NULL, &err);
        etch_recording_free(r);
    }
    if (sums[0].steps != sums[1].steps || sums[0].hash != sums[1].hash)
        abort();
    return 0;
}
