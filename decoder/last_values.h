/* SPDX-License-Identifier: MIT */
/* The values that the last instructions of a failed thread read and wrote, recovered from its registers and from the
 * memory at its end; see backward.h and docs/values.md. */
#ifndef ETCH_DECODER_LAST_VALUES_H
#define ETCH_DECODER_LAST_VALUES_H

#include "decoder/backward.h"
#include "decoder/recording.h"

/* What ran between two instructions of the list, and is not in the list. */
enum etch_last_gap {
    ETCH_LAST_GAP_NONE,
    ETCH_LAST_GAP_CALL, /* code that was called, at `called`; 0: not known which */
    ETCH_LAST_GAP_LOSS, /* nobody knows */
};

struct etch_last_instruction {
    uint64_t ip;
    uint64_t called;
    enum etch_last_gap gap; /* right before it */
};

struct etch_last_thread {
    const Etch__ThreadState *state;
    const struct etch_last_instruction *instructions; /* in the order in which they ran */
    size_t n;
    enum etch_last_gap gap; /* behind the last instruction */
    uint64_t called;
    const char *core; /* path of a core file of the same moment; NULL: none */
};

struct etch_last_count {
    size_t accesses, known; /* explicit ones */
    struct etch_backward_count engine;
    bool threaded; /* the process had other threads */
};

/* Called for each explicit access whose value is known, in the order in which they ran. Accesses of more than eight
 * bytes are left out. */
typedef int etch_last_visitor(void *context, const struct etch_backward_access *access);

/* Returns 0, the value of the visitor, or -1 with `err` set: nothing can be recovered, for example because the
 * registers are not known. */
int etch_last_values(struct etch_recording *recording, const struct etch_last_thread *thread, etch_last_visitor *visit,
                     void *context, struct etch_last_count *count, struct etch_error *err);

#endif
