/* SPDX-License-Identifier: MIT */
/* Steps made by hand, over functions of this very program whose sizes and names are known: 64 bytes of nothing each. */
#ifndef ETCH_TESTS_STEPS_MADE_H
#define ETCH_TESTS_STEPS_MADE_H

#include "decoder/steps.h"

#include <link.h>
#include <string.h>
#include <unistd.h>

#define MADE_FUNCTION(name)                                                                                            \
    extern const char name[];                                                                                          \
    __asm__(".pushsection .text\n.globl " #name "\n.type " #name ",@function\n" #name                                  \
            ":\n.fill 64,1,0x90\n.size " #name ",64\n.popsection\n")

static Etch__Image made_image;
static char made_path[4096];

static int made_find_image(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    (void)data;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *load = &info->dlpi_phdr[i];
        uint64_t slack = load->p_vaddr & 4095;

        if (load->p_type != PT_LOAD || !(load->p_flags & PF_X))
            continue;
        made_image.start = info->dlpi_addr + load->p_vaddr - slack;
        made_image.size = load->p_memsz + slack;
        made_image.file_offset = load->p_offset - slack;
    }
    return 1; /* the program itself comes first */
}

static const Etch__Image *made_image_get(void)
{
    if (!made_image.path) {
        ssize_t n = readlink("/proc/self/exe", made_path, sizeof(made_path) - 1);

        etch__image__init(&made_image);
        made_path[n > 0 ? n : 0] = '\0';
        made_image.path = made_path;
        dl_iterate_phdr(made_find_image, NULL);
    }
    return &made_image;
}

static uint64_t made_clock;

/* Four instructions from `at` on, 4 bytes each, the last one being `branch`. */
static inline struct etch_step made_block(const char *at, enum etch_branch_kind branch)
{
    made_clock += 1000;
    return (struct etch_step){.kind = ETCH_STEP_BLOCK,
                              .pid = 7,
                              .tid = 8,
                              .cpu = UINT32_MAX,
                              .time = {made_clock, made_clock + 1500},
                              .first = (uintptr_t)at,
                              .last = (uintptr_t)at + 12,
                              .end = (uintptr_t)at + 16,
                              .count = 4,
                              .branch = branch,
                              .image = made_image_get()};
}

static inline struct etch_step made_event(enum etch_step_kind kind, const char *ip)
{
    made_clock += 1000;
    return (struct etch_step){.kind = kind,
                              .pid = 7,
                              .tid = 8,
                              .cpu = UINT32_MAX,
                              .time = {made_clock, made_clock + 1500},
                              .ip = (uintptr_t)ip,
                              .cause = ETCH__LOSS_CAUSE__LOSS_OVERFLOW,
                              .detail = "made by hand"};
}

#endif
