/* SPDX-License-Identifier: MIT */
/* See soft_flow.h. */
#include "decoder/flow/soft_flow.h"
#include "decoder/flow/soft_walk.h"

#include <stdlib.h>
#include <string.h>

#define SILENT_MAX 100000u /* segments without a byte: more is a map that makes no sense */
#define DEPTH_MAX 32u      /* of signal handlers within each other */
#define TAPE_MAX ((size_t)64 << 20)
#define AFTER_TELLING 0xffu
#define CALL_SIZE 5u    /* of a direct call */
#define GUARD_BLOCKS 8u /* more than any has */
#define STUB_SIZE 192u  /* more than any has, or any guard */

/* Who goes on when the function at hand returns. */
struct frame {
    uint32_t function, node; /* the node behind the call */
    struct etch_soft_stand stand;
    bool outside; /* code without a recorder, called from the node before; then that goes on */
    bool called;  /* outside: by a call, rather than from within a segment */
    bool jumped;  /* the call was a jump: there is no code behind it */
    bool bare;    /* behind the call is nothing but the return */
    bool told;    /* outside, but not called: of the context */
    bool awaits;  /* outside: of the context */
};

enum mode {
    LOST,     /* not known where the thread is */
    HEAD,     /* at the begin of node `node` */
    IN_CALL,  /* outside, called from `function`; `node` is behind the call */
    COMPUTED, /* behind a computed goto of `function` */
    OUT,      /* outside, and nothing is known of who called whom */
};

/* One of a thread's contexts: itself, or a signal handler. */
struct context {
    enum mode mode;
    uint32_t function, node;
    bool told;          /* HEAD: its number was read */
    bool awaits;        /* IN_CALL: of a stub, which is yet to tell */
    uint64_t guard;     /* IN_CALL: this was called, and the next record says whether it led to its function; 0: none */
    bool away;          /* what was entered from outside returned, which is yet to be told */
    uint64_t signal_ip; /* where a handler interrupted the segment at hand; 0: nowhere */
    int high;           /* first of two bytes that tell a number; -1: none */
    struct etch_soft_stand stand;
    ETCH_ARRAY(struct frame) frames;
};

struct chunk {
    struct etch_soft_chunk head;
    const uint8_t *bytes;
    bool done;
};

/* A byte tells of code that ran before it was written, and of code that ran then. So a TIME may lie before the byte
 * that leads past the call which wrote it, or right behind: it is taken where the walk passes that call. */
struct stamps {
    ETCH_ARRAY(uint64_t) read; /* since the last byte */
    size_t passed;             /* of those */
    const uint8_t *ahead;      /* what is behind the record in hand, up to the end of its chunk */
    const uint8_t *end;
    size_t taken; /* records behind the one in hand that the walk has passed: not to be taken again */
};

struct replay {
    const struct etch_soft_input *in;
    const struct etch_soft_map *map;
    struct etch_soft_walks *walks;
    struct etch_step_buffer *tape;
    ETCH_ARRAY(struct chunk) chunks; /* by seq */
    struct context *c;
    uint64_t offset; /* of the record in hand, in the stream */
    uint64_t passed; /* the guard that it says led to no function of its module; 0: it does not */
    struct stamps stamps;
    uint64_t pending; /* a stamp whose call is not known: what follows the next byte is not before it; 0: none */
    uint64_t low;     /* the one that what comes now is not before */
    bool failed;      /* memory */
};

/* ---- The tape ---- */

static void event(struct replay *r, enum etch_step_kind kind, uint64_t ip, uint64_t to)
{
    etch_step_buffer_event(r->tape,
                           &(struct etch_step_buffer_event){.kind = kind, .ip = ip, .to = to, .offset = r->offset});
}

static void loss(struct replay *r, Etch__LossCause cause, const char *detail)
{
    etch_step_buffer_event(r->tape, &(struct etch_step_buffer_event){
                                        .kind = ETCH_STEP_LOSS, .cause = cause, .offset = r->offset, .detail = detail});
}

/* Tells what was passed of the block at hand. */
static void tell_rest(struct replay *r)
{
    struct etch_soft_stand *s = &r->c->stand;
    const char *why;
    struct etch_block *b, *part;

    if (s->now <= s->from || !(b = etch_block_at(etch_soft_walks_view(r->walks), s->from, &why)))
        return;
    part = etch_block_before(etch_soft_walks_view(r->walks), b, s->now);
    if (part)
        etch_step_buffer_block(r->tape, part);
    *s = etch_soft_stand_at(r->walks, s->now);
}

/* Stamps that were read and whose calls will not be passed any more. */
static void drop_stamps(struct replay *r)
{
    if (r->stamps.passed < r->stamps.read.n)
        r->pending = r->stamps.read.v[r->stamps.read.n - 1];
    r->stamps.read.n = r->stamps.passed = 0;
}

static void lose(struct replay *r, const char *detail)
{
    drop_stamps(r);
    if (r->c->mode == HEAD)
        tell_rest(r);
    if (r->c->mode != LOST)
        loss(r, ETCH__LOSS_CAUSE__LOSS_DECODE, detail);
    r->c->mode = LOST;
    r->c->frames.n = 0;
    r->c->guard = 0;
    r->c->away = false;
}

static const char no_way[] = "the machine code has no way to where the recorder says that it went";

/* A call without a recorder on the other side: tracing stops and goes on behind it. */
static bool passes_call(const struct etch_block *b)
{
    return b->branch == ETCH_BRANCH_CALL || b->branch == ETCH_BRANCH_CALL_INDIRECT;
}

/* The stamp that the walk has come to; 0: none was written, for want of room. Such a chunk has none behind it, either.
 */
static uint64_t next_stamp(struct replay *r)
{
    struct stamps *s = &r->stamps;
    uint64_t tsc = 0;

    if (s->passed < s->read.n)
        return s->read.v[s->passed++];
    if (s->end - s->ahead >= (ptrdiff_t)ETCH_SOFT_TIME_SIZE && *s->ahead == ETCH_SOFT_TIME) {
        memcpy(&tsc, s->ahead + 1, sizeof(tsc));
        s->ahead += ETCH_SOFT_TIME_SIZE;
        s->taken++;
    }
    return tsc;
}

static void pass_stamp(struct replay *r)
{
    uint64_t tsc = next_stamp(r);

    if (!tsc)
        return;
    etch_step_buffer_until(r->tape, tsc, 0);
    r->low = tsc > r->low ? tsc : r->low;
    etch_step_buffer_time(r->tape, r->low, 0);
}

static void tell_way(struct replay *r, const struct etch_soft_way *way, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct etch_block *b = way->blocks[i];

        etch_step_buffer_block(r->tape, b);
        if (!passes_call(b))
            continue;
        event(r, ETCH_STEP_END, b->branch == ETCH_BRANCH_CALL ? b->target : 0, 0);
        if (b->branch == ETCH_BRANCH_CALL && etch_soft_map_is_stamp(r->map, b->target))
            pass_stamp(r);
        event(r, ETCH_STEP_BEGIN, b->end, 0);
    }
}

/* Walks, and tells what is passed. */
static bool walk(struct replay *r, enum etch_soft_goal goal, uint64_t goal_at)
{
    const struct etch_soft_way *way = etch_soft_walk(r->walks, r->c->stand, goal, r->c->function, goal_at);

    if (!way) {
        r->failed = true;
        return false;
    }
    if (!way->found) {
        lose(r, no_way);
        return false;
    }
    tell_way(r, way, way->n);
    r->c->stand = way->end;
    return true;
}

/* ---- Moving ---- */

static const struct etch_soft_function *function_of(const struct replay *r)
{
    return &r->map->functions.v[r->c->function];
}

static bool is_unmarked(const struct replay *r, uint32_t function, uint32_t node)
{
    size_t n;

    etch_soft_map_places(r->map, function, node, &n);
    return n == 0;
}

static bool arrive(struct replay *r, uint32_t node)
{
    r->c->node = node;
    r->c->mode = HEAD;
    r->c->told = false;
    r->c->high = -1;
    return walk(r, ETCH_SOFT_TO_NODE, node);
}

static bool enter(struct replay *r, uint32_t function)
{
    r->c->function = function;
    r->c->stand = etch_soft_stand_at(r->walks, r->map->functions.v[function].address);
    return arrive(r, 0);
}

static bool push(struct replay *r, struct frame frame)
{
    if (etch_array_push(&r->c->frames, frame))
        return true;
    r->failed = true;
    return false;
}

/* Back in the frame below. Returns false where there is none, or it cannot be. */
static bool go_back(struct replay *r)
{
    for (;;) {
        struct context *c = r->c;
        struct frame f;

        if (c->frames.n == 0) {
            c->mode = OUT;
            c->away = true;
            return true;
        }
        f = c->frames.v[--c->frames.n];
        c->function = f.function;
        c->node = f.node;
        c->stand = f.stand;
        if (f.jumped)
            continue;
        if (f.outside) {
            event(r, ETCH_STEP_END, 0, 0);
            event(r, ETCH_STEP_BEGIN, f.stand.now, 0);
            c->mode = f.called ? IN_CALL : HEAD;
            c->told = f.told;
            c->awaits = f.awaits;
            c->away = true;
            return true;
        }
        if (!f.bare)
            return arrive(r, f.node);
        if (!walk(r, ETCH_SOFT_TO_RETURN, 0))
            return false;
    }
}

static bool leave(struct replay *r)
{
    return walk(r, ETCH_SOFT_TO_RETURN, 0) && go_back(r);
}

/* Of the function at hand, which called and is behind that call when it goes on. */
static struct frame frame_behind(const struct replay *r)
{
    const struct context *c = r->c;

    return (struct frame){.function = c->function,
                          .node = c->node,
                          .stand = c->stand,
                          .jumped = c->stand.now == 0,
                          .bare = is_unmarked(r, c->function, c->node)};
}

static bool call_guard(struct replay *r, uint64_t guard, uint32_t after)
{
    r->c->mode = IN_CALL;
    r->c->awaits = true;
    r->c->guard = guard;
    r->c->node = after;
    return true;
}

/* The guard led to its function: comparisons, and a jump. */
static bool pass_guard(struct replay *r)
{
    struct context *c = r->c;
    uint32_t function = etch_soft_map_guarded(r->map, c->guard);
    struct etch_block_view *view = etch_soft_walks_view(r->walks);
    const char *why;
    const struct etch_block *b = etch_block_at(view, c->guard, &why);

    for (unsigned i = 0; i < GUARD_BLOCKS && b; i++) {
        etch_step_buffer_block(r->tape, b);
        b = b->branch == ETCH_BRANCH_CONDITIONAL ? etch_block_at(view, b->end, &why) : NULL;
    }
    c->guard = 0;
    c->awaits = false;
    return push(r, frame_behind(r)) && enter(r, function);
}

/* A call with nothing behind it: perhaps a jump, perhaps a call and a return. */
static bool call_last(struct replay *r, uint32_t after)
{
    const struct etch_soft_way *way = etch_soft_walk(r->walks, r->c->stand, ETCH_SOFT_TO_RETURN, r->c->function, 0);
    const struct etch_block *last;
    struct frame f = {.function = r->c->function, .node = after};
    size_t calls = 0, n;
    uint64_t target;
    uint32_t callee;

    if (!way || !way->found)
        return way ? (lose(r, no_way), false) : (r->failed = true, false);
    for (n = way->n; n > 0 && !passes_call(way->blocks[n - 1]); n--)
        ;
    calls = n;
    last = way->blocks[way->n - 1];
    if (last->branch == ETCH_BRANCH_RETURN && calls) {
        last = way->blocks[calls - 1];
        tell_way(r, way, calls - 1);
        etch_step_buffer_block(r->tape, last);
        f.bare = true;
        f.stand = etch_soft_stand_at(r->walks, last->end);
    } else {
        tell_way(r, way, way->n);
        f.jumped = true;
    }
    target = last->branch == ETCH_BRANCH_CALL || last->branch == ETCH_BRANCH_JUMP ? last->target : 0;
    callee = target ? etch_soft_map_function(r->map, target) : UINT32_MAX;
    if (callee != UINT32_MAX && !r->map->functions.v[callee].enters)
        return push(r, f) && enter(r, callee);
    r->c->stand = f.stand; /* of a jump it is 0: outside is in our place, for whoever called us */
    if (etch_soft_map_guarded(r->map, target) != UINT32_MAX)
        return call_guard(r, target, after);
    event(r, ETCH_STEP_END, target, 0);
    if (!f.jumped)
        event(r, ETCH_STEP_BEGIN, f.stand.now, 0);
    r->c->mode = IN_CALL;
    r->c->awaits = etch_soft_map_is_stub(r->map, target);
    r->c->node = after;
    return true;
}

/* The call at the end of a node: into a function with a recorder, or out. */
static bool call(struct replay *r, uint32_t after)
{
    const struct etch_soft_way *way;
    const struct etch_block *last;
    uint32_t callee = UINT32_MAX;

    if (is_unmarked(r, r->c->function, after))
        return call_last(r, after);
    way = etch_soft_walk(r->walks, r->c->stand, ETCH_SOFT_TO_CALL, r->c->function, after);
    if (!way || !way->found)
        return way ? (lose(r, no_way), false) : (r->failed = true, false);
    last = way->blocks[way->n - 1];
    tell_way(r, way, way->n - 1);
    etch_step_buffer_block(r->tape, last);
    r->c->stand = way->end;
    if (last->branch == ETCH_BRANCH_CALL)
        callee = etch_soft_map_function(r->map, last->target);
    if (callee != UINT32_MAX && !r->map->functions.v[callee].enters) {
        struct frame f = {.function = r->c->function, .node = after, .stand = way->end};

        return push(r, f) && enter(r, callee);
    }
    if (last->branch == ETCH_BRANCH_CALL && etch_soft_map_guarded(r->map, last->target) != UINT32_MAX)
        return call_guard(r, last->target, after);
    event(r, ETCH_STEP_END, last->branch == ETCH_BRANCH_CALL ? last->target : 0, 0);
    event(r, ETCH_STEP_BEGIN, last->end, 0);
    r->c->mode = IN_CALL;
    r->c->awaits = last->branch == ETCH_BRANCH_CALL && etch_soft_map_is_stub(r->map, last->target);
    r->c->node = after;
    return true;
}

/* Behind the end of a segment. */
static bool follow(struct replay *r, uint32_t node, const struct etch_soft_map_edge *edge)
{
    switch (function_of(r)->node[node].kind) {
    case ETCH_SOFT_CALL:
        return call(r, edge->target);
    case ETCH_SOFT_RETURN:
        return leave(r);
    case ETCH_SOFT_RESUME:
        if (!walk(r, ETCH_SOFT_TO_OUTSIDE, 0))
            return false;
        r->c->mode = IN_CALL;
        r->c->awaits = false;
        r->c->node = UINT32_MAX; /* from which it does not come back */
        return true;
    case ETCH_SOFT_COMPUTED:
        r->c->mode = COMPUTED;
        r->c->node = node;
        r->c->high = -1;
        return true;
    default:
        return arrive(r, edge->target);
    }
}

/* ---- Segments ---- */

/* The edge of `node` on the way with number `*path`, which then is what is left of it. */
static const struct etch_soft_map_edge *choose(const struct etch_soft_function *f, uint32_t node, uint32_t *path)
{
    const struct etch_soft_map_edge *edges = f->edge + f->node[node].first_edge, *best = edges;
    uint32_t n = etch_soft_map_edges(f, node);

    for (uint32_t i = 0; i < n; i++)
        if (edges[i].value <= *path && edges[i].value >= best->value)
            best = &edges[i];
    *path -= best->value;
    return best;
}

/* The end of the segment at hand, where it has one way only; NULL where it has several. */
static const struct etch_soft_map_edge *only_end(const struct replay *r, uint32_t *node)
{
    const struct etch_soft_function *f = function_of(r);
    uint32_t at = r->c->node;

    if (f->node[at].paths != 1)
        return NULL;
    for (uint32_t i = 0; i < f->nodes; i++) {
        const struct etch_soft_map_edge *e = f->edge + f->node[at].first_edge;

        *node = at;
        if (e->flags & ETCH_SOFT_CUT)
            return e;
        at = e->target;
    }
    return NULL;
}

/* Goes along the way with number `path`, up to the end of the segment and beyond. */
static bool go(struct replay *r, uint32_t path)
{
    const struct etch_soft_function *f = function_of(r);
    uint32_t at = r->c->node;

    for (uint32_t i = 0; i < f->nodes; i++) {
        const struct etch_soft_map_edge *e = choose(f, at, &path);

        if (e->flags & ETCH_SOFT_CUT) {
            if (path != 0)
                break;
            return follow(r, at, e);
        }
        if (!walk(r, ETCH_SOFT_TO_NODE, e->target))
            return false;
        at = e->target;
    }
    lose(r, "a path number that the function does not have");
    return false;
}

static bool needs_telling(const struct replay *r)
{
    return r->c->mode == HEAD && !r->c->told && function_of(r)->node[r->c->node].flags & ETCH_SOFT_TELLS;
}

/* Does the return from here lead to code without a recorder? That is told. */
static bool returns_outside(const struct replay *r, uint32_t node)
{
    size_t n = r->c->frames.n;

    if (function_of(r)->node[node].kind != ETCH_SOFT_RETURN)
        return false;
    while (n > 0 && (r->c->frames.v[n - 1].jumped || (r->c->frames.v[n - 1].bare && !r->c->frames.v[n - 1].outside)))
        n--;
    return n > 0 && r->c->frames.v[n - 1].outside;
}

/* Goes on as far as no byte is needed. */
static bool go_silently(struct replay *r)
{
    for (unsigned i = 0; i < SILENT_MAX; i++) {
        const struct etch_soft_map_edge *end;
        uint32_t node;

        if (r->c->guard && r->c->guard != r->passed) {
            if (!pass_guard(r))
                return false;
            continue;
        }
        if (r->c->mode != HEAD || r->c->away || needs_telling(r))
            return true;
        end = only_end(r, &node);
        if (!end || !(end->flags & ETCH_SOFT_SILENT) || returns_outside(r, node))
            return true;
        if (!go(r, 0))
            return false;
    }
    lose(r, "a loop without end that leaves no byte");
    return false;
}

/* Behind a call of something without a recorder there is more of the segment. */
static bool come_back(struct replay *r)
{
    struct context *c = r->c;

    if (c->mode != IN_CALL || c->awaits || c->away)
        return true;
    if (c->node == UINT32_MAX) {
        lose(r, "an exception went where the recorder did not see it");
        return false;
    }
    if (is_unmarked(r, c->function, c->node))
        return c->stand.now ? leave(r) : go_back(r);
    return arrive(r, c->node);
}

/* Up to where the next byte belongs. */
static bool go_to_byte(struct replay *r)
{
    for (unsigned i = 0; i < SILENT_MAX; i++) {
        if (!come_back(r) || !go_silently(r))
            return false;
        if (r->c->mode != IN_CALL || r->c->awaits || r->c->away)
            return true;
    }
    return false;
}

static uint32_t told_node(const struct etch_soft_function *f, uint32_t number)
{
    for (uint32_t i = 0; i < f->nodes; i++)
        if (f->node[i].flags & ETCH_SOFT_TELLS && f->node[i].tells == number)
            return i;
    return UINT32_MAX;
}

/* A byte of the number of a computed goto's target. */
static bool take_number(struct replay *r, uint32_t value)
{
    const struct etch_soft_function *f = function_of(r);
    uint32_t node;

    if (f->tells > ETCH_SOFT_PATHS && r->c->high < 0) {
        r->c->high = (int)value;
        return true;
    }
    node = told_node(f, (r->c->high < 0 ? 0 : (uint32_t)r->c->high) * ETCH_SOFT_PATHS + value);
    if (node == UINT32_MAX || (r->c->mode == HEAD && node != r->c->node)) {
        lose(r, "a computed goto to where none is");
        return false;
    }
    if (r->c->mode == COMPUTED && !arrive(r, node))
        return false;
    r->c->told = true;
    return true;
}

static const char went_on[] = "the thread went on in a function that called before the ring begins";

static bool take_path(struct replay *r, uint8_t byte)
{
    uint32_t value = byte - (uint32_t)ETCH_SOFT_PATH;

    if (r->c->mode == OUT)
        lose(r, went_on);
    if (r->c->mode == LOST || !go_to_byte(r))
        return true;
    if (r->c->away || (r->c->mode == IN_CALL && r->c->awaits)) {
        lose(r, "the replay and the recorder disagree on where the thread is");
        return true;
    }
    if (r->c->mode == COMPUTED || needs_telling(r))
        return take_number(r, value);
    if (r->c->mode != HEAD)
        return true;
    r->c->signal_ip = 0;
    if (value >= function_of(r)->node[r->c->node].paths) {
        lose(r, "a path number that the function does not have");
        return true;
    }
    return go(r, value);
}

/* ---- Records ---- */

static uint64_t word_at(const uint8_t *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

static uint32_t half_at(const uint8_t *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

static void take_entry(struct replay *r, uint64_t address)
{
    struct context *c = r->c;
    uint32_t function = etch_soft_map_function(r->map, address);

    if (c->mode != LOST && c->mode != OUT && c->mode != IN_CALL)
        go_silently(r);
    if (function == UINT32_MAX) {
        if (c->mode == LOST)
            return;
        lose(r, "a function was entered that the binaries do not have");
        return;
    }
    if (c->mode == IN_CALL || c->mode == HEAD || c->mode == COMPUTED) {
        struct frame f = {.function = c->function,
                          .node = c->node,
                          .stand = c->stand,
                          .outside = true,
                          .called = c->mode == IN_CALL,
                          .told = c->told,
                          .awaits = c->awaits};

        if (c->mode == HEAD)
            tell_rest(r);
        f.stand = c->stand;
        if (!push(r, f))
            return;
        event(r, ETCH_STEP_END, 0, 0);
    }
    event(r, ETCH_STEP_BEGIN, address, 0);
    c->away = false;
    enter(r, function);
}

/* A stub tells that it was called. */
static void take_out(struct replay *r)
{
    struct context *c = r->c;

    if (c->mode == OUT)
        lose(r, went_on);
    if (c->mode == LOST || !go_to_byte(r))
        return;
    if (c->mode == IN_CALL && c->awaits && !c->away)
        c->awaits = false;
    else if (c->mode != LOST)
        lose(r, "the replay and the recorder disagree on where the thread is");
}

/* A guard tells that it called what another module has in place of its function. */
static void take_replaced(struct replay *r)
{
    struct context *c = r->c;

    if (c->mode == OUT)
        lose(r, went_on);
    if (c->mode == LOST || !go_to_byte(r))
        return;
    if (c->mode != IN_CALL || c->guard != r->passed || c->away) {
        lose(r, "the replay and the recorder disagree on where the thread is");
        return;
    }
    event(r, ETCH_STEP_END, c->guard, 0);
    if (c->stand.now)
        event(r, ETCH_STEP_BEGIN, c->stand.now, 0);
    c->guard = 0;
    c->awaits = false;
}

/* What was entered from outside returned. */
static void take_left(struct replay *r)
{
    struct context *c = r->c;
    uint32_t node;

    if (c->mode == LOST)
        return;
    if (!c->away && c->mode != OUT && !go_to_byte(r))
        return;
    if (!c->away && c->mode == HEAD && only_end(r, &node) && returns_outside(r, node))
        go(r, 0);
    if (!c->away)
        lose(r, c->mode == OUT ? went_on : "the replay and the recorder disagree on where the thread is");
    c->away = false;
}

/* Compiled code called it through a pointer. */
static void take_passed(struct replay *r, uint64_t address)
{
    struct context *c = r->c;
    uint32_t function = etch_soft_map_function(r->map, address);

    if (c->mode == HEAD)
        go_silently(r);
    if (c->mode != IN_CALL || c->node == UINT32_MAX || function == UINT32_MAX) {
        take_entry(r, address);
        return;
    }
    event(r, ETCH_STEP_END, address, 0);
    event(r, ETCH_STEP_BEGIN, address, 0);
    if (push(r, frame_behind(r)))
        enter(r, function);
}

static bool stands_in(const struct replay *r, size_t frame, uint64_t ip)
{
    const struct frame *f = &r->c->frames.v[frame];

    return !f->outside && !f->jumped && f->stand.from == ip;
}

/* Does the activation that ends before frame `top` have these return addresses at its bottom? Returns how many frames
 * are left then; SIZE_MAX: it does not. */
static size_t fits(const struct replay *r, size_t bottom, size_t top, const uint8_t *addresses, size_t n)
{
    size_t at = bottom, left = n;

    for (; left > 0 && at < top; at++) {
        if (r->c->frames.v[at].jumped)
            continue;
        if (!stands_in(r, at, word_at(addresses + 8 * (left - 1))))
            return SIZE_MAX;
        left--;
    }
    return left ? SIZE_MAX : at;
}

/* How many of the addresses are of the activation at hand. */
static size_t own_frames(const uint8_t *addresses, size_t n)
{
    size_t own = 0;

    while (own < n && word_at(addresses + 8 * own) != 0)
        own++;
    return own;
}

/* What the direct call before a return address leads to; 0: there is no such call. */
static uint64_t called_before(const struct replay *r, uint64_t address)
{
    const char *why;
    const struct etch_block *b = etch_block_at(etch_soft_walks_view(r->walks), address - CALL_SIZE, &why);

    return b && b->branch == ETCH_BRANCH_CALL && b->count == 1 && b->end == address ? b->target : 0;
}

static bool is_in_stub(const struct replay *r, uint64_t address)
{
    uint64_t stub = etch_soft_map_stub_before(r->map, address);

    return stub && address - stub < STUB_SIZE && called_before(r, address);
}

/* Frames were followed through code without a recorder, from `before` to `address` in a function that has one. Is that
 * who called out? Code without frame pointers hides its caller, and then it is the caller's caller. So it is sure only
 * behind a stub, which has a frame, or where the call itself is seen to lead out. */
static bool called_out(const struct replay *r, uint64_t before, uint64_t address)
{
    uint64_t target = called_before(r, address);

    return is_in_stub(r, before) || (target && etch_soft_map_function(r->map, target) == UINT32_MAX &&
                                     etch_soft_map_guarded(r->map, target) == UINT32_MAX);
}

/* Frames from return addresses. Beyond an entry from outside whose caller is not known they are of no use. */
static bool build_frames(struct replay *r, const uint8_t *addresses, size_t n)
{
    struct frame found[UINT8_MAX];
    size_t k = 0;
    bool entry = false;

    for (size_t i = 0; i < n; i++) {
        uint64_t address = word_at(addresses + 8 * i), before = i ? word_at(addresses + 8 * (i - 1)) : 0;
        struct frame f = {.stand = etch_soft_stand_at(r->walks, address), .outside = entry, .called = entry};

        if (address == 0 && entry)
            break;
        if (address == 0) {
            entry = true;
            continue;
        }
        f.bare = !etch_soft_next_node(r->walks, address, &f.function, &f.node);
        if (entry && f.bare)
            continue;
        if (entry && before && !called_out(r, before, address))
            break;
        entry = false;
        found[k++] = f;
    }
    r->c->frames.n = 0;
    while (k > 0)
        if (!push(r, found[--k]))
            return false;
    return true;
}

/* Where the innermost activation begins. */
static size_t activation(const struct replay *r, size_t top)
{
    while (top > 0 && !r->c->frames.v[top - 1].outside)
        top--;
    return top;
}

static bool go_to_last(struct replay *r, uint64_t ip, bool returns);

/* Up to where a segment was left: by a call, or by a handler that did not return. */
static void leave_segment(struct replay *r)
{
    if (r->c->mode != HEAD)
        return;
    go_silently(r);
    if (r->c->mode != HEAD)
        return;
    if (r->c->signal_ip && go_to_last(r, r->c->signal_ip, false))
        return;
    tell_rest(r);
    loss(r, ETCH__LOSS_CAUSE__LOSS_UNSPECIFIED, "the end of a segment that control left is not known");
}

static void land(struct replay *r, const struct etch_soft_sync *sync, const uint8_t *addresses)
{
    struct context *c = r->c;
    uint32_t function = etch_soft_map_function(r->map, sync->where);
    size_t top = c->frames.n, n, kept = SIZE_MAX;
    const struct etch_soft_place *place;

    if (function == UINT32_MAX || sync->node >= r->map->functions.v[function].nodes) {
        lose(r, "control came back to where the binaries have nothing");
        return;
    }
    leave_segment(r);
    if (c->mode != LOST && c->mode != OUT)
        event(r, ETCH_STEP_END, 0, 0);
    for (size_t bottom = activation(r, top);; bottom = activation(r, top)) { /* perhaps several were left */
        kept = fits(r, bottom, top, addresses, own_frames(addresses, sync->frames));
        if (kept != SIZE_MAX && (kept < c->frames.n ? c->frames.v[kept].function : c->function) != function)
            kept = SIZE_MAX;
        if (kept != SIZE_MAX || bottom == 0)
            break;
        top = bottom - 1;
    }
    if (kept != SIZE_MAX)
        c->frames.n = kept;
    else if (!build_frames(r, addresses, sync->frames))
        return;
    place = etch_soft_map_places(r->map, function, sync->node, &n);
    if (!n) {
        lose(r, no_way);
        return;
    }
    c->function = function;
    c->mode = HEAD;
    c->away = false;
    c->node = sync->node;
    c->told = true;
    c->stand = etch_soft_stand_at(r->walks, place->address);
    event(r, ETCH_STEP_BEGIN, place->address, 0);
    walk(r, ETCH_SOFT_TO_NODE, sync->node);
}

/* Is the thread in a loop-free way where the recorder says? Then both agree. */
static bool agrees(const struct replay *r, const struct etch_soft_place *flush, const struct etch_soft_sync *sync,
                   const uint8_t *addresses)
{
    const struct etch_soft_function *f = &r->map->functions.v[flush->function];
    const struct etch_soft_map_node *n = &f->node[flush->node];

    if (r->c->mode == LOST || r->c->mode == OUT)
        return false;
    if (n->kind != ETCH_SOFT_FLOW || sync->edge == AFTER_TELLING || sync->flags & ETCH_SOFT_TRUNCATED)
        return true; /* the replay is a call or return further */
    return r->c->mode == HEAD && r->c->function == flush->function &&
           sync->edge < etch_soft_map_edges(f, flush->node) &&
           f->edge[n->first_edge + sync->edge].target == r->c->node &&
           fits(r, activation(r, r->c->frames.n), r->c->frames.n, addresses, own_frames(addresses, sync->frames)) ==
               r->c->frames.n;
}

static void resume(struct replay *r, const struct etch_soft_place *flush, const struct etch_soft_sync *sync,
                   const uint8_t *addresses)
{
    const struct etch_soft_function *f = &r->map->functions.v[flush->function];
    struct context *c = r->c;

    if (c->mode != LOST && c->mode != OUT)
        lose(r, "the replay and the recorder disagree on where the thread is");
    if (!build_frames(r, addresses, sync->frames))
        return;
    c->function = flush->function;
    c->away = false;
    c->stand = etch_soft_stand_at(r->walks, sync->where);
    event(r, ETCH_STEP_BEGIN, sync->where, 0);
    if (sync->edge == AFTER_TELLING) {
        if (arrive(r, flush->node))
            c->told = true;
    } else if (sync->edge < etch_soft_map_edges(f, flush->node)) {
        follow(r, flush->node, &f->edge[f->node[flush->node].first_edge + sync->edge]);
    } else {
        lose(r, "an edge that the function does not have");
    }
}

/* The caller of the function whose entry follows: the innermost that is known, if code without a recorder is between.
 */
static void take_caller(struct replay *r, const struct etch_soft_sync *sync, const uint8_t *addresses)
{
    struct context *c = r->c;
    uint64_t where = sync->where, before = 0;
    uint32_t function, node;
    size_t i = 0;

    if (c->mode != LOST && c->mode != OUT)
        return;
    while (where == 0 || !etch_soft_next_node(r->walks, where, &function, &node)) {
        if (i == sync->frames)
            return;
        before = where;
        where = word_at(addresses + 8 * i++);
    }
    if (before && !called_out(r, before, where))
        return;
    if (!build_frames(r, addresses + 8 * i, sync->frames - i))
        return;
    c->mode = IN_CALL;
    c->awaits = c->away = false;
    c->function = function;
    c->node = node;
    c->stand = etch_soft_stand_at(r->walks, where);
    event(r, ETCH_STEP_BEGIN, where, 0);
}

static void take_sync(struct replay *r, const struct etch_soft_sync *sync, const uint8_t *addresses)
{
    const struct etch_soft_place *flush;

    if (sync->flags & ETCH_SOFT_OUTSIDE) {
        take_caller(r, sync, addresses);
        return;
    }
    if (sync->flags & ETCH_SOFT_LANDED) {
        land(r, sync, addresses);
        return;
    }
    flush = etch_soft_map_flush(r->map, sync->where);
    if (!flush)
        lose(r, "the recorder was where the binaries have none");
    else if (!agrees(r, flush, sync, addresses))
        resume(r, flush, sync, addresses);
}

/* What was told so far is not after it. */
static void stamp(struct replay *r, uint64_t tsc)
{
    etch_step_buffer_until(r->tape, tsc, 0);
    etch_step_buffer_time(r->tape, r->low, 0);
}

/* Of what the next byte tells, some may have run before it and some behind. */
static void stamp_somewhere(struct replay *r, uint64_t tsc)
{
    stamp(r, tsc);
    r->pending = tsc;
}

static void take_time(struct replay *r, uint64_t tsc)
{
    if (r->stamps.taken) {
        r->stamps.taken--;
        return;
    }
    if (!r->map->stamps.n || r->c->mode == LOST || r->c->mode == OUT) {
        stamp_somewhere(r, tsc);
        return;
    }
    stamp(r, tsc);
    if (!etch_array_push(&r->stamps.read, tsc))
        r->failed = true;
}

/* Once a byte was taken: all that was stamped before it has been told. */
static void apply_stamp(struct replay *r)
{
    drop_stamps(r);
    if (r->pending > r->low)
        etch_step_buffer_time(r->tape, r->low = r->pending, 0);
    r->pending = 0;
}

/* The thread, or a handler, left compiled code for good. */
static void take_end(struct replay *r)
{
    if (r->c->mode == LOST)
        return;
    if (r->c->mode == OUT && !r->c->away)
        loss(r, ETCH__LOSS_CAUSE__LOSS_DECODE, went_on);
    go_to_byte(r);
    r->c->mode = OUT;
    r->c->away = false;
    r->c->frames.n = 0;
    event(r, ETCH_STEP_END, 0, 0);
}

/* Of the record at `at`; 0 where there is none. */
static size_t size_of_record(const uint8_t *at, size_t size)
{
    struct etch_soft_sync sync;
    size_t n = 1;

    switch (*at) {
    case ETCH_SOFT_NOTHING:
        return 0;
    case ETCH_SOFT_ENTRY:
        n = ETCH_SOFT_ENTRY_SIZE;
        break;
    case ETCH_SOFT_PASSED:
        n = ETCH_SOFT_PASSED_SIZE;
        break;
    case ETCH_SOFT_TIME:
        n = ETCH_SOFT_TIME_SIZE;
        break;
    case ETCH_SOFT_SYNC:
        if (size < 1 + sizeof(sync))
            return 0;
        memcpy(&sync, at + 1, sizeof(sync));
        n = 1 + sizeof(sync) + 8 * (size_t)sync.frames;
        break;
    default:
        break;
    }
    return n <= size ? n : 0;
}

/* The function or the guard that a PASSED is of. */
static uint64_t passed_address(const struct replay *r, const uint8_t *at)
{
    return etch_soft_map_address(r->map, half_at(at + 1), r->c->mode == LOST ? 0 : function_of(r)->address);
}

/* The chunk changed right before the call at hand: of what that led to nothing is said. */
static bool is_before_call(const struct replay *r, const uint8_t *at)
{
    const struct etch_soft_place *flush;
    const struct etch_soft_function *f;
    struct etch_soft_sync sync;

    memcpy(&sync, at + 1, sizeof(sync));
    flush = sync.flags & (ETCH_SOFT_OUTSIDE | ETCH_SOFT_LANDED) ? NULL : etch_soft_map_flush(r->map, sync.where);
    if (!flush || flush->function != r->c->function)
        return false;
    f = function_of(r);
    return f->node[flush->node].kind == ETCH_SOFT_CALL && f->edge[f->node[flush->node].first_edge].target == r->c->node;
}

/* What the record says of the guard that was called last: if it is not that the function was replaced, it was not. */
static bool look_at_guard(struct replay *r, const uint8_t *at)
{
    uint64_t passed = *at == ETCH_SOFT_PASSED ? passed_address(r, at) : 0;

    if (*at == ETCH_SOFT_SYNC && r->c->guard && is_before_call(r, at))
        return true;
    r->passed = passed && etch_soft_map_guarded(r->map, passed) != UINT32_MAX ? passed : 0;
    return !r->c->guard || r->c->guard == r->passed || pass_guard(r);
}

static void take_record(struct replay *r, const uint8_t *at)
{
    struct etch_soft_sync sync;

    if (*at != ETCH_SOFT_TIME && !look_at_guard(r, at))
        return;
    switch (*at) {
    case ETCH_SOFT_ENTRY:
        take_entry(r, word_at(at + 1));
        break;
    case ETCH_SOFT_PASSED:
        if (r->passed)
            take_replaced(r);
        else
            take_passed(r, passed_address(r, at));
        break;
    case ETCH_SOFT_TIME:
        take_time(r, word_at(at + 1));
        return;
    case ETCH_SOFT_SYNC:
        memcpy(&sync, at + 1, sizeof(sync));
        take_sync(r, &sync, at + 1 + sizeof(sync));
        if (r->stamps.passed < r->stamps.read.n)
            return; /* no code was told: that is for the next byte */
        break;
    case ETCH_SOFT_OUT:
        take_out(r);
        break;
    case ETCH_SOFT_LEFT:
        take_left(r);
        break;
    case ETCH_SOFT_END:
    case ETCH_SOFT_RETURNED:
        take_end(r);
        return;
    default:
        if (*at > ETCH_SOFT_PATHS) {
            lose(r, "a byte that no recorder writes");
            return;
        }
        take_path(r, *at);
        break;
    }
    apply_stamp(r);
}

/* ---- Chunks and contexts ---- */

static int compare_chunks(const void *a, const void *b)
{
    uint64_t x = ((const struct chunk *)a)->head.seq, y = ((const struct chunk *)b)->head.seq;

    return x < y ? -1 : x > y;
}

static bool find_chunks(struct replay *r)
{
    for (size_t at = 0; r->in->size - at >= ETCH_SOFT_CHUNK; at += ETCH_SOFT_CHUNK) {
        struct chunk chunk = {.bytes = r->in->bytes + at};

        memcpy(&chunk.head, chunk.bytes, sizeof(chunk.head));
        if (chunk.head.magic == ETCH_SOFT_CHUNK_MAGIC && !etch_array_push(&r->chunks, chunk))
            return false;
    }
    if (r->chunks.n)
        qsort(r->chunks.v, r->chunks.n, sizeof(r->chunks.v[0]), compare_chunks);
    return true;
}

static void run_context(struct replay *r, size_t from, unsigned depth);

/* A handler that began at this place of this chunk, or earlier. */
static bool interrupts(const struct chunk *handler, const struct chunk *chunk, size_t at)
{
    uint64_t where = handler->head.interrupted;

    return handler->head.kind == ETCH_SOFT_SIGNAL && !handler->done &&
           where >= chunk->head.seq * ETCH_SOFT_CHUNK + sizeof(struct etch_soft_chunk) &&
           where <= chunk->head.seq * ETCH_SOFT_CHUNK + at;
}

static void run_handlers(struct replay *r, size_t chunk, size_t at, unsigned depth)
{
    for (size_t i = chunk + 1; i < r->chunks.n && depth < DEPTH_MAX; i++)
        if (interrupts(&r->chunks.v[i], &r->chunks.v[chunk], at))
            run_context(r, i, depth + 1);
}

static void run_chunk(struct replay *r, size_t index, unsigned depth)
{
    struct chunk *chunk = &r->chunks.v[index];
    size_t at = sizeof(struct etch_soft_chunk), n;

    chunk->done = true;
    if (chunk->head.tsc) /* 0: the program might not read it */
        stamp_somewhere(r, chunk->head.tsc);
    r->stamps.taken = 0;
    while (at < ETCH_SOFT_CHUNK && !r->failed && r->tape->blocks.n < TAPE_MAX) {
        run_handlers(r, index, at, depth);
        r->offset = chunk->head.seq * ETCH_SOFT_CHUNK + at;
        n = size_of_record(chunk->bytes + at, ETCH_SOFT_CHUNK - at);
        if (!n)
            break;
        if (!r->stamps.taken)
            r->stamps.ahead = chunk->bytes + at + n;
        r->stamps.end = chunk->bytes + ETCH_SOFT_CHUNK;
        take_record(r, chunk->bytes + at);
        at += n;
    }
    run_handlers(r, index, ETCH_SOFT_CHUNK, depth);
}

/* Of the chunks of one context, is none missing between these two? Others' chunks lie between them. */
static bool follows(const struct replay *r, size_t before, size_t next)
{
    uint64_t seq = r->chunks.v[before].head.seq;

    for (size_t i = before + 1; i <= next; i++) {
        if (r->chunks.v[i].head.seq > seq + 1)
            return false;
        seq = r->chunks.v[i].head.seq;
    }
    return true;
}

/* All chunks of a context from `from` on. An orphan in between is a handler of a chunk that is gone. */
static void run_chunks(struct replay *r, size_t from, unsigned depth)
{
    uint64_t id = r->chunks.v[from].head.context;
    size_t before = from;

    for (size_t i = from; i < r->chunks.n && !r->failed; i++) {
        if (r->chunks.v[i].done || r->chunks.v[i].head.context != id)
            continue;
        r->offset = r->chunks.v[i].head.seq * ETCH_SOFT_CHUNK;
        if (i > from && !follows(r, before, i))
            lose(r, "chunks of the ring are missing");
        run_chunk(r, i, depth);
        before = i;
    }
}

static void run_context(struct replay *r, size_t from, unsigned depth)
{
    struct context own = {.mode = LOST, .high = -1}, *outer = r->c;
    struct stamps stamps = r->stamps;
    uint64_t low = r->low, pending = r->pending;

    outer->signal_ip = r->chunks.v[from].head.ip;
    r->c = &own;
    r->stamps = (struct stamps){0};
    run_chunks(r, from, depth);
    etch_array_free(&own.frames);
    etch_array_free(&r->stamps.read);
    r->c = outer;
    r->stamps = stamps;
    r->pending = pending;
    etch_step_buffer_time(r->tape, r->low = low, 0); /* of what is told next some ran before the handler */
}

/* ---- The end ---- */

/* The function whose code is around an address, as far as one can tell by where functions begin. */
static uint32_t function_around(const struct replay *r, uint64_t ip)
{
    size_t lo = 0, hi = r->map->functions.n;
    const char *why;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (r->map->functions.v[mid].address <= ip)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo > 0 && r->map->functions.v[lo - 1].address >= etch_soft_map_stub_before(r->map, ip) &&
                   etch_block_at(etch_soft_walks_view(r->walks), ip, &why)
               ? (uint32_t)(lo - 1)
               : UINT32_MAX;
}

/* Goes on to where the thread is known to have stood, if only one way leads there. */
static bool go_to_last(struct replay *r, uint64_t ip, bool returns)
{
    const struct etch_soft_way *way;

    way = etch_soft_walk(r->walks, r->c->stand, ETCH_SOFT_TO_IP, r->c->function, returns ? ip - 1 : ip);
    if (!way || !way->found)
        return false;
    if (way->unsure) {
        tell_rest(r);
        loss(r, ETCH__LOSS_CAUSE__LOSS_UNSPECIFIED, "several ways lead to where the thread stood");
        event(r, ETCH_STEP_BEGIN, ip, 0);
        r->c->stand = etch_soft_stand_at(r->walks, ip);
        return true;
    }
    tell_way(r, way, way->n);
    r->c->stand = way->end;
    r->c->stand.now = ip;
    tell_rest(r);
    return true;
}

/* Whether a function that has called others, directly or not, is where the thread stands: by its caller. */
static bool is_left(const struct replay *r, uint32_t function)
{
    const struct etch_soft_input *in = r->in;

    for (size_t k = r->c->frames.n; k-- > 0 && !r->c->frames.v[k].outside;) {
        if (r->c->frames.v[k].function != function || in->n_frames < 2)
            continue;
        if (k > 0 ? stands_in(r, k - 1, in->frames[1]) : function_around(r, in->frames[1] - 1) == UINT32_MAX)
            return true;
    }
    return false;
}

/* The thread had called outside, and came back: it stamped the time behind that call, or it stands in the function that
 * called, and not behind the call, or in one further out. */
static bool came_back(const struct replay *r, size_t frame)
{
    const struct context *c = r->c;
    uint64_t ip = r->in->frames[frame];
    bool returns = frame > 0;
    uint32_t function = function_around(r, ip - returns);

    if (c->mode != IN_CALL || c->awaits || c->away || c->node == UINT32_MAX)
        return false;
    return r->stamps.passed < r->stamps.read.n || (function == c->function && !(returns && ip == c->stand.now)) ||
           (!returns && is_left(r, function));
}

static void finish(struct replay *r)
{
    const struct etch_soft_input *in = r->in;
    size_t i = 0;

    r->passed = 0;
    if (r->c->guard && !pass_guard(r))
        return;
    while (i < in->n_frames && function_around(r, in->frames[i] - (i > 0)) == UINT32_MAX)
        i++;
    if (i < in->n_frames && came_back(r, i))
        come_back(r);
    for (unsigned n = 0; n < SILENT_MAX && r->c->mode == HEAD && i < in->n_frames; n++) {
        const struct etch_soft_map_edge *end;
        uint32_t node;

        if (function_around(r, in->frames[i] - (i > 0)) == r->c->function && go_to_last(r, in->frames[i], i > 0)) {
            if (in->failed && i == 0)
                event(r, ETCH_STEP_INTERRUPT, in->frames[0], 0);
            return;
        }
        end = needs_telling(r) ? NULL : only_end(r, &node);
        if (!end || !(end->flags & ETCH_SOFT_SILENT) || !go(r, 0))
            break;
    }
    if (r->c->mode == HEAD)
        tell_rest(r);
}

static void replay_thread(struct replay *r)
{
    struct context thread = {.mode = LOST, .high = -1};

    r->c = &thread;
    if (!r->map->functions.n)
        loss(r, ETCH__LOSS_CAUSE__LOSS_UNMAPPED_CODE,
             "no binary of the build that ran is there, with its recorder's map");
    if (r->chunks.n && r->chunks.v[0].head.seq > 0)
        loss(r, ETCH__LOSS_CAUSE__LOSS_RING_WRAPPED, "older bytes were overwritten");
    for (size_t i = 0; i < r->chunks.n && !r->failed; i++) {
        if (r->chunks.v[i].done)
            continue;
        if (r->chunks.v[i].head.context == 0)
            run_chunks(r, i, 0);
        else
            run_context(r, i, 1); /* what it interrupted is gone */
    }
    if (!r->failed)
        finish(r);
    r->c = NULL;
    etch_array_free(&thread.frames);
}

void etch_soft_decode(const struct etch_soft_input *input, struct etch_blocks *blocks, struct etch_step_buffer *tape)
{
    struct replay r = {.in = input, .map = input->map, .tape = tape};

    r.walks = etch_soft_walks_new(input->map, blocks);
    if (r.walks && find_chunks(&r))
        replay_thread(&r);
    else
        r.failed = true;
    if (!r.failed)
        etch_step_buffer_end_at(tape, etch_soft_walks_view(r.walks), &input->death);
    tape->failed |= r.failed;
    tape->bytes = input->size;
    etch_array_free(&r.chunks);
    etch_array_free(&r.stamps.read);
    etch_soft_walks_free(r.walks);
}
