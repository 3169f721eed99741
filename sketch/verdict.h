/* SPDX-License-Identifier: MIT */
/* How a run ended, according to the caller that ran it. */
#ifndef ETCH_SKETCH_VERDICT_H
#define ETCH_SKETCH_VERDICT_H

enum etch_verdict {
    ETCH_VERDICT_AS_RECORDED, /* no verdict from the caller: the recording decides */
    ETCH_VERDICT_PASS,
    ETCH_VERDICT_FAIL,
    ETCH_VERDICT_HANG,
};

/* "pass", "fail", "hang", as in the run store; "" for ETCH_VERDICT_AS_RECORDED. */
const char *etch_verdict_name(enum etch_verdict verdict);

/* The verdict of that name; ETCH_VERDICT_FAIL of any other. */
enum etch_verdict etch_verdict_of(const char *name);

#endif
