/* SPDX-License-Identifier: MIT */
/* The code that each thread executed, as a sequence of steps. All control flow leaves the decoder in this form,
 * whichever source recorded the program. A step is a block of instructions that ran one after another, or an event
 * between two blocks. */
#ifndef ETCH_DECODER_STEPS_H
#define ETCH_DECODER_STEPS_H

#include "base/error.h"
#include "base/text.h"
#include "decoder/recording.h"
#include "proto/etch.pb-c.h"

#include <stdbool.h>
#include <stdint.h>

/* A time in TSC ticks of the CPU that the thread ran on: not before lo, not after hi. lo = 0 or hi = UINT64_MAX: no
 * bound known. */
struct etch_interval {
    uint64_t lo, hi;
};

/* The kind of a block's last instruction. */
enum etch_branch_kind {
    ETCH_BRANCH_NONE, /* none: the block was cut (event, limit, next block has another image) */
    ETCH_BRANCH_CONDITIONAL,
    ETCH_BRANCH_JUMP, /* direct */
    ETCH_BRANCH_JUMP_INDIRECT,
    ETCH_BRANCH_CALL, /* direct */
    ETCH_BRANCH_CALL_INDIRECT,
    ETCH_BRANCH_RETURN,
    ETCH_BRANCH_FAR, /* syscall, sysret, int, iret */
};

enum etch_step_kind {
    ETCH_STEP_BLOCK,
    ETCH_STEP_BEGIN,     /* tracing starts, or starts again, at `ip` (TIP.PGE) */
    ETCH_STEP_END,       /* tracing stops; `ip` is where execution went if known, else 0 (TIP.PGD) */
    ETCH_STEP_INTERRUPT, /* the last instruction of the block before was followed by something asynchronous: a signal, a
                            fault; `ip` is the first instruction that did not run (or did not finish), `to` where it
                            went, 0 if not known */
    ETCH_STEP_LOSS,      /* instructions are missing here: `cause`, `offset` */
};

struct etch_step {
    enum etch_step_kind kind;
    uint32_t pid, tid;
    uint32_t cpu; /* UINT32_MAX where not known */
    struct etch_interval time;

    /* ETCH_STEP_BLOCK: instructions first .. last (addresses), `count` of them, ending before `end`.
     * Branch taken or not follows from the next block: a block that begins at `end` fell through. */
    uint64_t first, last, end;
    uint32_t count;
    enum etch_branch_kind branch; /* of the instruction at `last` */
    const Etch__Image *image;     /* the mapping that holds it */
    const uint8_t *sizes;         /* of its instructions, `count` of them */

    /* Events: see enum etch_step_kind. For a block, `to` is the address at which execution went on (the branch's
     * target, or `end`). 0: not known, because tracing ended with the block or the next steps are lost. */
    uint64_t ip, to;
    Etch__LossCause cause; /* ETCH_STEP_LOSS */
    uint32_t stream;       /* where in the bytes */
    uint64_t offset;
    const char *detail; /* ETCH_STEP_LOSS: words; static */
    bool nowhere; /* ETCH_STEP_INTERRUPT: the last block jumped, called or returned to `ip`, where no code is known, and
                     the thread died there */
};

/* Called for each step, threads one after another (by pid, tid), each thread's steps in the order in which they ran.
 * A return value other than 0 ends the decode, and the decode returns this value. */
typedef int etch_step_visitor(void *context, const struct etch_step *step);

struct etch_steps_options {
    unsigned jobs;     /* worker threads; 0: as many as CPUs. The result does not depend on it */
    uint32_t tid;      /* only this thread; 0: all */
    uint64_t from, to; /* only steps that may lie within these TSC values; 0, 0: all */
    /* Folder to look for binaries in, by their path below it, before the path itself; NULL: none. Build-ids are
     * checked. */
    const char *sysroot;
    uint64_t last; /* only the last so many instructions of each thread, and the events between them; 0: all */
};

struct etch_steps_count {
    uint64_t blocks, instructions, branches, losses, bytes;
    uint64_t lost[ETCH_LOSS_CAUSES]; /* losses by cause */
};

/* Decodes `recording` and calls `visit`. `count` may be NULL. Returns 0, the value of the visitor, or -1 with `err` set
 * if nothing can be decoded at all. Losses and undecodable bytes are steps, not errors. */
int etch_steps(struct etch_recording *recording, const struct etch_steps_options *options, etch_step_visitor *visit,
               void *context, struct etch_steps_count *count, struct etch_error *err);

/* Writes a step as text. Called from several threads at once: a renderer keeps no state outside its arguments. */
typedef void etch_step_renderer(const void *context, struct etch_text *out, const struct etch_step *step);

/* Takes text in its order. A return other than 0 ends the decode, which returns it. */
typedef int etch_text_writer(void *context, const char *text, size_t size);

/* The same as etch_steps(), but the thread that decodes a step also renders the step: the fast way to text. */
int etch_steps_render(struct etch_recording *recording, const struct etch_steps_options *options,
                      etch_step_renderer *render, const void *context, etch_text_writer *write, void *write_context,
                      struct etch_steps_count *count, struct etch_error *err);

/* The address of the instruction after `ip` in a block; 0 after the last instruction. */
uint64_t etch_step_next_ip(const struct etch_step *step, uint64_t ip);

#endif
