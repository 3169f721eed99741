/* SPDX-License-Identifier: MIT */
/* clang-format off: the tables keep their columns. */
/* The state of a replay of one thread's ring, and the steps that its files share. Private to decoder/flow/soft_*.c.
 *
 *   soft_flow.c     the chunks of a ring, the contexts of a thread
 *   soft_record.c   one record: which state it leads to
 *   soft_sync.c     the record SYNC, which says where the thread is
 *   soft_segment.c  from node to node, as the bytes say
 *   soft_call.c     calls, into functions with a recorder and out of them
 *   soft_frames.c   callers: returns, and frames from return addresses
 *   soft_stamp.c    the records TIME and HELD
 *   soft_dark.c     the records DARK and GONE_DARK: the plain copy of a function ran, or its rest
 *   soft_end.c      from the last record to where the thread was when the recording ended
 *   soft_replay.c   what the replay writes into the step buffer
 *
 * The states, and what leads from one to another. "Silently" means: the replay moves on without a record, because the
 * map leaves one way only. Any record that contradicts the state leads to LOST.
 *
 *   state       | the thread is                                | due next          | leads to
 *   ------------+----------------------------------------------+-------------------+------------------------------------
 *   LOST        | nowhere that is known                        | ENTRY             | AT_NODE of that function
 *               |                                              | SYNC              | AT_NODE, or what the edge leads to
 *               |                                              | SYNC with OUTSIDE | CALLED_OUT of the caller
 *   OUTSIDE     | in code without a recorder, of which no      | as LOST           | as LOST
 *               | caller is known                              |                   |
 *   AT_NODE     | at the mark of `node`, where a segment       | a path number     | the end of the segment: see below
 *               | begins                                       | silently          | the same
 *               |                                              | DARK at node 0    | CALLED_OUT: its plain copy runs
 *               |                                              | GONE_DARK         | CALLED_OUT: its rest runs
 *               |                                              | ENTRY             | AT_NODE, with a frame OUTSIDE
 *   AT_TARGET   | at the mark of `node`, which a computed goto | its number        | AT_NODE
 *               | leads to                                     |                   |
 *   AT_GOTO     | behind the computed goto of `node`           | a target's number | AT_NODE of the target
 *   CALLED_OUT  | in code without a recorder, which `function` | ENTRY             | AT_NODE, with a frame OUTSIDE
 *               | called; `node` is behind the call            | PASSED            | AT_NODE, with a frame BEHIND_CALL
 *               |                                              | a path number,    | AT_NODE behind the call, which
 *               |                                              | OUT, LEFT         | returned
 *   AT_STUB     | in a stub that `function` called             | OUT               | CALLED_OUT
 *               |                                              | ENTRY, PASSED     | as CALLED_OUT
 *   AT_GUARD    | in the guard `guard` that `function` called  | PASSED of guard   | CALLED_OUT: the loader replaced
 *               |                                              |                   | the guarded function
 *               |                                              | any other         | AT_NODE of the guarded function
 *   RETURNED    | in code without a recorder again: a function | LEFT              | the state `after_left`
 *               | that it had entered returned                 | ENTRY             | AT_NODE
 *
 *   the end of a segment | leads to
 *   ---------------------+-----------------------------------------------------------------------------------
 *   a call               | AT_NODE of the callee, CALLED_OUT, AT_STUB or AT_GUARD
 *   a return             | by the caller's frame: AT_NODE behind the call, RETURNED if the caller is outside
 *   an exception         | CALLED_OUT without a node: only a SYNC with LANDED says where it went
 *   a computed goto      | AT_GOTO
 *   anything else        | AT_NODE of the next node; AT_TARGET if a computed goto leads there too
 *
 *   in any state                          | leads to
 *   --------------------------------------+-------------------------------------------------------------------
 *   SYNC that agrees with the state       | the same state
 *   SYNC that disagrees                   | AT_NODE, or what the edge leads to, behind a loss
 *   SYNC with LANDED (longjmp, exception) | AT_NODE of the node where control came back
 *   END, RETURNED                         | OUTSIDE
 *   a chunk is missing                    | LOST
 *   the records TIME, HELD                | the same state
 */
/* clang-format on */
#ifndef ETCH_DECODER_FLOW_SOFT_REPLAY_H
#define ETCH_DECODER_FLOW_SOFT_REPLAY_H

#include "decoder/flow/soft_flow.h"
#include "decoder/flow/soft_walk.h"

#include <string.h>

#define ETCH_REPLAY_SILENT_MAX 100000u /* segments without a byte: more is a map that makes no sense */
#define ETCH_REPLAY_NO_NODE UINT32_MAX /* behind what does not return */

/* The table above says what each means. */
enum etch_replay_state {
    ETCH_REPLAY_LOST,
    ETCH_REPLAY_OUTSIDE,
    ETCH_REPLAY_AT_NODE,
    ETCH_REPLAY_AT_TARGET,
    ETCH_REPLAY_AT_GOTO,
    ETCH_REPLAY_CALLED_OUT,
    ETCH_REPLAY_AT_STUB,
    ETCH_REPLAY_AT_GUARD,
    ETCH_REPLAY_RETURNED,
};

enum etch_replay_frame_kind {
    ETCH_FRAME_BEHIND_CALL, /* a call of a function with a recorder: `node` is behind the call */
    ETCH_FRAME_BARE,        /* the same, and behind the call is nothing but the return */
    ETCH_FRAME_JUMPED,      /* the call was a jump: no code is behind it */
    ETCH_FRAME_OUTSIDE,     /* code without a recorder, in whose place the state `after_left` holds */
};

/* A caller: it goes on when the function at hand returns. */
struct etch_replay_frame {
    enum etch_replay_frame_kind kind;
    enum etch_replay_state after_left; /* OUTSIDE only */
    uint32_t function, node;
    struct etch_soft_position position;
};

/* One of a thread's contexts: the thread itself, or a signal handler. */
struct etch_replay_context {
    enum etch_replay_state state;
    enum etch_replay_state after_left; /* RETURNED only */
    uint32_t function, node;
    uint64_t guard;     /* AT_GUARD: its address */
    uint64_t signal_ip; /* where a handler interrupted the segment at hand; 0: nowhere */
    int high;           /* AT_TARGET, AT_GOTO: the first byte of a number that has two; -1: not read */
    struct etch_soft_position position;
    ETCH_ARRAY(struct etch_replay_frame) frames;
};

struct etch_replay_chunk {
    struct etch_soft_chunk head;
    const uint8_t *bytes;
    bool done;
};

/* A byte tells of code that ran before the byte was written, and of code that ran after it. So a TIME may lie before
 * the byte that leads past the call which wrote the TIME, or right behind that byte: the walk takes it at the call. */
struct etch_replay_stamp {
    uint64_t tsc;
    uint8_t record; /* TIME or HELD */
};

struct etch_replay_stamps {
    ETCH_ARRAY(struct etch_replay_stamp) read; /* since the last byte */
    size_t passed;                             /* of those */
    const uint8_t *ahead;                      /* what is behind the record in hand, up to the end of its chunk */
    const uint8_t *end;
    size_t taken; /* records behind the one in hand that the walk has passed: not to be taken again */
};

struct etch_replay {
    const struct etch_soft_input *in;
    const struct etch_soft_map *map;
    struct etch_soft_walks *walks;
    struct etch_step_buffer *buffer;
    ETCH_ARRAY(struct etch_replay_chunk) chunks; /* by seq */
    ETCH_ARRAY(size_t) signals; /* of the chunks: those that signal handlers began with */
    struct etch_replay_context *c;
    uint64_t offset; /* of the record in hand, in the stream */
    struct {
        uint64_t function; /* that the record in hand reports as dark; 0: it reports none */
        uint32_t from;     /* low half of the return address */
    } dark;
    uint64_t replaced; /* the guard whose function the record in hand reports as replaced; 0: it reports none */
    struct etch_replay_stamps stamps;
    uint64_t pending; /* a stamp whose call is not known: what follows the next byte is not before it; 0: none */
    uint64_t low;     /* a stamp: the steps that follow are not before it */
    bool full;        /* the step buffer is, and that is reported */
    bool failed;      /* memory */
};

extern const char etch_replay_no_way[], etch_replay_went_on[], etch_replay_disagrees[];

static inline uint64_t etch_replay_word(const uint8_t *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

static inline const struct etch_soft_function *etch_replay_function(const struct etch_replay *r)
{
    return &r->map->functions.v[r->c->function];
}

/* ---- soft_replay.c ---- */

/* The state, or the state that LEFT leads to: it says where the thread is, in either case. */
enum etch_replay_state etch_replay_place(const struct etch_replay_context *c);
/* Is the thread within a segment? */
bool etch_replay_in_segment(const struct etch_replay_context *c);
/* Is the thread where no record has told, or in code whose callers are unknown? */
bool etch_replay_is_unplaced(const struct etch_replay_context *c);

void etch_replay_event(struct etch_replay *r, enum etch_step_kind kind, uint64_t ip, uint64_t to);
void etch_replay_loss(struct etch_replay *r, Etch__LossCause cause, const char *detail);
/* Reports the part of the block at hand that was passed. */
void etch_replay_report_rest(struct etch_replay *r);
/* Reports the first `n` blocks of a way, and the calls out of them. */
void etch_replay_report_way(struct etch_replay *r, const struct etch_soft_way *way, size_t n);
/* Goes to LOST, and reports why. Returns false. */
bool etch_replay_lose(struct etch_replay *r, const char *detail);
/* A way that was looked for; NULL, with the loss reported, where there is none. */
const struct etch_soft_way *etch_replay_find_way(struct etch_replay *r, enum etch_soft_goal goal, uint64_t goal_at);
/* Goes to the goal, and reports what is passed. */
bool etch_replay_walk(struct etch_replay *r, enum etch_soft_goal goal, uint64_t goal_at);
/* A call without a recorder on the other side: tracing stops and goes on behind it. */
bool etch_replay_passes_call(const struct etch_block *b);

/* ---- soft_stamp.c ---- */

/* The walk has come to a call that writes a stamp, TIME or perhaps HELD. */
void etch_replay_pass_stamp(struct etch_replay *r, uint8_t record);
/* The calls of the stamps that were read will not be passed any more. */
void etch_replay_drop_stamps(struct etch_replay *r);
/* A byte was taken: the replay has reported all that was stamped before it. */
void etch_replay_apply_stamp(struct etch_replay *r);
/* Some of the code that the next byte tells of ran before the stamp, and some behind. */
void etch_replay_stamp_somewhere(struct etch_replay *r, uint64_t tsc);
void etch_replay_take_time(struct etch_replay *r, uint8_t record, uint64_t tsc);

/* ---- soft_frames.c ---- */

bool etch_replay_push(struct etch_replay *r, struct etch_replay_frame frame);
/* The function at hand as a caller: it has called, and goes on behind that call. */
struct etch_replay_frame etch_replay_frame_behind(const struct etch_replay *r);
/* Goes back to the caller's frame. Returns false where that cannot be. */
bool etch_replay_go_back(struct etch_replay *r);
/* Does the return from `node` lead to code without a recorder? Then a LEFT follows. */
bool etch_replay_returns_outside(const struct etch_replay *r, uint32_t node);
/* Is this frame behind a call, with this return address? */
bool etch_replay_frame_is_at(const struct etch_replay *r, size_t frame, uint64_t ip);
/* Builds the frames from return addresses. Beyond an entry from outside whose caller is not known they are of no use.
 */
bool etch_replay_build_frames(struct etch_replay *r, const uint8_t *addresses, size_t n);
/* The first frame of the activation that ends before frame `top`. */
size_t etch_replay_activation(const struct etch_replay *r, size_t top);
/* Does the activation from frame `bottom` to frame `top` have the addresses of the SYNC at its bottom? Returns how many
 * frames are left then; SIZE_MAX: it does not. */
size_t etch_replay_fits(const struct etch_replay *r, size_t bottom, size_t top, const struct etch_soft_sync *sync,
                        const uint8_t *addresses);
/* Did the function with the return address `address` call code without a recorder? Frames were followed through such
 * code, from the return address `before`. */
bool etch_replay_called_out(const struct etch_replay *r, uint64_t before, uint64_t address);

/* The target of the direct call before a return address; 0: there is no such call. */
uint64_t etch_replay_called_before(const struct etch_replay *r, uint64_t address);

/* ---- soft_call.c ---- */

/* The call at the end of a segment; `after` is the node behind the call. */
bool etch_replay_call(struct etch_replay *r, uint32_t after);
/* AT_GUARD: the guard led to its function. */
bool etch_replay_pass_guard(struct etch_replay *r);

/* ---- soft_segment.c ---- */

/* Is the node one that has no mark in the machine code? */
bool etch_replay_is_unmarked(const struct etch_replay *r, uint32_t function, uint32_t node);
/* Walks to the mark of a node of the function at hand. */
bool etch_replay_reach(struct etch_replay *r, uint32_t node);
/* Goes to the begin of a function. */
bool etch_replay_enter(struct etch_replay *r, uint32_t function);
/* Goes behind the end of a segment, which is an edge of `node`. */
bool etch_replay_follow(struct etch_replay *r, uint32_t node, const struct etch_soft_map_edge *edge);
/* The end of the segment at hand, where it has one way only; NULL where it has several. */
const struct etch_soft_map_edge *etch_replay_only_end(const struct etch_replay *r, uint32_t *node);
/* Goes along the way with number `path`, up to the end of the segment and beyond. */
bool etch_replay_go(struct etch_replay *r, uint32_t path);
/* Goes on as far as no byte is needed. */
bool etch_replay_go_silently(struct etch_replay *r);
/* CALLED_OUT: the code without a recorder returned, and there is more of the segment. */
bool etch_replay_come_back(struct etch_replay *r);
/* Goes on up to where the next byte belongs. */
bool etch_replay_go_to_byte(struct etch_replay *r);
/* A byte that is a path number, or part of the number of a computed goto's target. */
void etch_replay_take_path(struct etch_replay *r, uint8_t byte);

/* ---- soft_record.c ---- */

/* The size of the record at `at`; 0 where there is none. */
size_t etch_replay_record_size(const uint8_t *at, size_t size);
void etch_replay_take(struct etch_replay *r, const uint8_t *at);

/* ---- soft_dark.c ---- */

/* Is the thread at the begin of the function that the record in hand reports as dark? */
bool etch_replay_is_dark(const struct etch_replay *r);
/* Is this the return address of a call of a plain copy, by a function that was dark? Then that function, and its node
 * behind the call. */
bool etch_replay_is_dark_call(const struct etch_replay *r, uint64_t address, uint32_t *function, uint32_t *node);
/* The record GONE_DARK: a function went dark in a loop, and its rest runs. */
void etch_replay_take_gone(struct etch_replay *r, uint64_t function);
/* The record DARK: the plain copy of a function runs. */
void etch_replay_take_dark(struct etch_replay *r, uint64_t function, uint32_t from);

/* ---- soft_sync.c ---- */

void etch_replay_take_sync(struct etch_replay *r, const struct etch_soft_sync *sync, const uint8_t *addresses);

/* ---- soft_end.c ---- */

/* Goes on to an instruction that the thread is known to have come to, if only one way leads there. */
bool etch_replay_go_to_ip(struct etch_replay *r, uint64_t ip, bool returns);
/* Goes on from the last record to where the thread was when the recording ended. */
void etch_replay_finish(struct etch_replay *r);

#endif
