/* SPDX-License-Identifier: MIT */
/* Private to timeline.c: ties the sequences of a thread together by their stamps. */
#ifndef ETCH_DECODER_ORDER_TIMELINE_TIE_H
#define ETCH_DECODER_ORDER_TIMELINE_TIE_H

#include "decoder/timeline.h"

/* Events first .. first + n - 1 of the timeline, in program order, with stamps or (marks) with bounds set. */
struct etch_sequence {
    size_t first, n;
};

/* Ties two sequences of one thread: adds links between events whose stamps tell which came first, and bounds the events
 * by each other's stamps. The bounds of each event within its own sequence must be set. False when memory is short. */
bool etch_timeline_tie(struct etch_timeline *timeline, struct etch_sequence a, struct etch_sequence b);

#endif
