/* SPDX-License-Identifier: MIT */
/* Steps as calls; see calls.h. Each thread has a stack of open calls. A return goes to the frame that expects its
 * address. Any other branch into the middle of a function goes to the frame of that function. */
#include "decoder/calls.h"
#include "decoder/flow/block_cache.h"

#include <string.h>

/* The end of the last block: tells how the next block was reached. */
struct origin {
    bool known;
    uint64_t end;
    enum etch_branch_kind branch;
    struct etch_interval time;
};

struct open_call {
    const struct etch_location *at; /* where it was entered */
    uint64_t return_to;             /* 0: not known */
    bool shown;                     /* the visitor knows of it; a linkage stub is shown when it turns out to be more */
    enum etch_call_why why;
    bool signal;
    uint64_t resume;      /* signal: the address of the instruction that did not run */
    struct origin before; /* signal */
};

enum gap { GAP_NONE, GAP_BREAK, GAP_INTERRUPT, GAP_LOSS };

struct etch_calls {
    struct etch_symbols *symbols;
    etch_call_visitor *visit;
    void *context;
    struct etch_block_cache cache;
    ETCH_ARRAY(struct etch_location *) locations;

    bool in_thread;
    uint32_t pid, tid;
    uint64_t instructions;
    int base; /* depth of open.v[0] */
    ETCH_ARRAY(struct open_call) open;
    struct origin last;
    struct etch_interval now;
    enum gap gap;
    uint64_t interrupted, went_to;
    int result; /* the visitor's, once it is not 0; -1 when memory is short */
};

struct etch_calls *etch_calls_new(struct etch_symbols *symbols, etch_call_visitor *visit, void *context)
{
    struct etch_calls *calls = calloc(1, sizeof(*calls));

    if (calls) {
        calls->symbols = symbols;
        calls->visit = visit;
        calls->context = context;
    }
    return calls;
}

void etch_calls_free(struct etch_calls *calls)
{
    if (!calls)
        return;
    for (size_t i = 0; i < calls->locations.n; i++)
        free(calls->locations.v[i]);
    etch_array_free(&calls->locations);
    etch_array_free(&calls->open);
    etch_block_cache_release(&calls->cache);
    free(calls);
}

/* The location of the block's first instruction, looked up once per address. */
static const struct etch_location *locate(struct etch_calls *calls, const struct etch_step *step)
{
    struct etch_block_key key = {step->image, step->first, step->first};
    struct etch_block_slot *slot = etch_block_cache_slot(&calls->cache, &key);
    struct etch_location *location;

    if (!slot)
        return NULL;
    if (slot->value)
        return calls->locations.v[slot->value - 1];
    location = malloc(sizeof(*location));
    if (!location || !etch_array_push(&calls->locations, location)) {
        free(location);
        return NULL;
    }
    etch_symbols_find(calls->symbols, step->image, step->first, location);
    slot->value = (uint32_t)calls->locations.n;
    return location;
}

/* ---- Telling the visitor ------------------------------------------------------------------------------------------
 */

static void tell(struct etch_calls *calls, enum etch_call_kind kind, enum etch_call_why why, size_t index,
                 const struct etch_location *at, struct etch_interval time)
{
    struct etch_call call = {.kind = kind,
                             .why = why,
                             .pid = calls->pid,
                             .tid = calls->tid,
                             .depth = calls->base + (int)index,
                             .module = "",
                             .time = time,
                             .instructions = calls->instructions};

    if (at) {
        const struct etch_frame *outer = &at->frame;

        while (outer->caller)
            outer = outer->caller;
        call.name = outer->function ? outer->function : at->symbol;
        call.module = at->module;
        call.module_offset = at->module_offset;
    }
    if (calls->result == 0)
        calls->result = calls->visit(calls->context, &call);
}

static void show(struct etch_calls *calls, size_t index, struct etch_interval time)
{
    struct open_call *call = &calls->open.v[index];

    if (call->shown)
        return;
    call->shown = true;
    tell(calls, ETCH_CALL_ENTER, call->why, index, call->at, time);
}

static void push(struct etch_calls *calls, const struct open_call *call)
{
    if (calls->open.n)
        show(calls, calls->open.n - 1, calls->now);
    if (!etch_array_push(&calls->open, *call)) {
        calls->result = -1;
        return;
    }
    if (!call->at->is_plt || call->signal || calls->open.n == 1)
        show(calls, calls->open.n - 1, calls->now);
}

static void enter(struct etch_calls *calls, const struct etch_location *at, enum etch_call_why why, uint64_t return_to)
{
    struct open_call call = {.at = at, .why = why, .return_to = return_to};

    push(calls, &call);
}

static void leave(struct etch_calls *calls, enum etch_call_why why)
{
    size_t index = calls->open.n - 1;

    if (calls->open.v[index].shown)
        tell(calls, ETCH_CALL_LEAVE, why, index, calls->open.v[index].at, calls->last.time);
    calls->open.n--;
}

/* Leaves until `keep` are open; all but the last one left are `why`, that one `last_why`. */
static void leave_to(struct etch_calls *calls, size_t keep, enum etch_call_why why, enum etch_call_why last_why)
{
    while (calls->open.n > keep && calls->result == 0)
        leave(calls, calls->open.n == keep + 1 ? last_why : why);
}

static void begin_part(struct etch_calls *calls, const struct etch_location *at, enum etch_call_why why,
                       enum etch_call_why left_why)
{
    leave_to(calls, 0, left_why, left_why);
    tell(calls, ETCH_CALL_PART, left_why, 0, NULL, calls->now);
    enter(calls, at, why, 0);
}

/* The innermost function becomes another one, which returns to where the first would have. */
static void become(struct etch_calls *calls, const struct etch_location *at, enum etch_call_why why)
{
    struct open_call call = calls->open.v[calls->open.n - 1];

    if (call.shown)
        call.why = why;
    leave(calls, why);
    call.at = at;
    call.shown = false;
    push(calls, &call);
}

/* ---- How one block leads to the next ------------------------------------------------------------------------------
 */

/* How many are open up to and with the function, looking below `from`; 0: it is not among them. */
static size_t find_function(const struct etch_calls *calls, const struct etch_location *at, size_t from)
{
    if (at->function_id == 0)
        return 0;
    for (size_t i = from; i > 0; i--)
        if (calls->open.v[i - 1].at->function_id == at->function_id)
            return i;
    return 0;
}

/* Into the middle of a function, by no call and no return: out of all that was called since, if it is on the stack. */
static void land(struct etch_calls *calls, const struct etch_location *at)
{
    size_t found = find_function(calls, at, calls->open.n);

    if (found)
        leave_to(calls, found, ETCH_WHY_UNWOUND, ETCH_WHY_UNWOUND);
    else if (at->function_id)
        become(calls, at, ETCH_WHY_JUMP);
}

static void go_back(struct etch_calls *calls, const struct etch_location *at, uint64_t address)
{
    struct open_call *top = &calls->open.v[calls->open.n - 1];
    size_t found;

    for (size_t i = calls->open.n; i > 0; i--)
        if (calls->open.v[i - 1].return_to == address) {
            leave_to(calls, i - 1, ETCH_WHY_UNWOUND, ETCH_WHY_CALL);
            return;
        }
    found = find_function(calls, at, calls->open.n - 1);
    if (found) {
        leave_to(calls, found, ETCH_WHY_UNWOUND, ETCH_WHY_UNWOUND);
    } else if (top->signal) {
        return; /* to the trampoline that makes the sigreturn call */
    } else if (at->is_entry) {
        become(calls, at, ETCH_WHY_TAIL); /* a jump made of push and ret */
    } else if (calls->open.n == 1) {
        leave(calls, ETCH_WHY_CALL);
        calls->base--;
        tell(calls, ETCH_CALL_BELOW, ETCH_WHY_BEGAN, 0, at, calls->now);
        calls->result =
            calls->result ? calls->result
            : etch_array_push(&calls->open, ((struct open_call){.at = at, .shown = true, .why = ETCH_WHY_BEGAN})) ? 0
                                                                                                                  : -1;
    } else {
        begin_part(calls, at, ETCH_WHY_JUMP, ETCH_WHY_UNWOUND);
    }
}

static void go_on(struct etch_calls *calls, const struct etch_location *at)
{
    const struct open_call *top = &calls->open.v[calls->open.n - 1];

    if (top->signal && top->at->function_id != at->function_id && !at->is_entry)
        return; /* within the trampoline */
    if (at->function_id == top->at->function_id) {
        if (at->function_id == 0 && strcmp(at->module, top->at->module) != 0)
            become(calls, at, ETCH_WHY_TAIL);
        return;
    }
    if (at->is_entry || at->function_id == 0 || top->at->is_plt)
        become(calls, at, ETCH_WHY_TAIL);
    else
        land(calls, at);
}

static void follow(struct etch_calls *calls, const struct etch_location *at, uint64_t address)
{
    switch (calls->last.known ? calls->last.branch : ETCH_BRANCH_NONE) {
    case ETCH_BRANCH_CALL:
    case ETCH_BRANCH_CALL_INDIRECT:
        if (address != calls->last.end) /* else how code learns its own address, or a callee that was not traced */
            enter(calls, at, ETCH_WHY_CALL, calls->last.end);
        break;
    case ETCH_BRANCH_RETURN:
        go_back(calls, at, address);
        break;
    default:
        go_on(calls, at);
    }
}

static void enter_signal(struct etch_calls *calls, const struct etch_location *at, uint64_t resume)
{
    struct open_call call = {.at = at, .why = ETCH_WHY_SIGNAL, .signal = true, .resume = resume, .before = calls->last};

    push(calls, &call);
}

/* Returns from a signal handler to the interrupted code. A branch that the signal interrupted is taken now. */
static bool resume(struct etch_calls *calls, uint64_t address)
{
    for (size_t i = calls->open.n; i > 0; i--)
        if (calls->open.v[i - 1].signal && calls->open.v[i - 1].resume == address) {
            struct origin before = calls->open.v[i - 1].before;

            leave_to(calls, i - 1, ETCH_WHY_UNWOUND, ETCH_WHY_CALL);
            before.time = calls->last.time;
            calls->last = before;
            return calls->open.n > 0;
        }
    return false;
}

/* Execution left the traced code (system call, filter) and came back. */
static void come_back(struct etch_calls *calls, const struct etch_location *at, uint64_t address)
{
    if (calls->last.branch == ETCH_BRANCH_FAR && address == calls->last.end)
        return;
    if (resume(calls, address)) {
        if (calls->last.branch != ETCH_BRANCH_FAR)
            follow(calls, at, address);
        return;
    }
    if (calls->last.branch != ETCH_BRANCH_FAR)
        follow(calls, at, address);
    else if (at->symbol && strcmp(at->symbol, "_start") == 0)
        begin_part(calls, at, ETCH_WHY_BEGAN, ETCH_WHY_END); /* execve */
    else if (at->is_entry)
        enter_signal(calls, at, calls->last.end);
    else
        land(calls, at);
}

static void after_loss(struct etch_calls *calls, const struct etch_location *at)
{
    size_t found = find_function(calls, at, calls->open.n);

    if (found)
        leave_to(calls, found, ETCH_WHY_LOST, ETCH_WHY_LOST);
    else
        begin_part(calls, at, ETCH_WHY_BEGAN, ETCH_WHY_LOST);
}

static void arrive(struct etch_calls *calls, const struct etch_location *at, uint64_t address)
{
    if (calls->open.n == 0)
        enter(calls, at, at->is_entry ? ETCH_WHY_CALL : ETCH_WHY_BEGAN, 0);
    else if (calls->gap == GAP_LOSS)
        after_loss(calls, at);
    else if (calls->gap == GAP_INTERRUPT && address != calls->interrupted) {
        if (at->is_entry || calls->went_to == address)
            enter_signal(calls, at, calls->interrupted);
        else
            land(calls, at);
    } else if (calls->gap == GAP_BREAK || calls->last.branch == ETCH_BRANCH_FAR)
        come_back(calls, at, address);
    else
        follow(calls, at, address);
    calls->gap = GAP_NONE;
}

/* ---- Steps --------------------------------------------------------------------------------------------------------
 */

static void end_thread(struct etch_calls *calls)
{
    if (!calls->in_thread)
        return;
    calls->now = calls->last.time;
    leave_to(calls, 0, ETCH_WHY_END, ETCH_WHY_END);
    tell(calls, ETCH_CALL_THREAD_END, ETCH_WHY_END, 0, NULL, calls->now);
    calls->in_thread = false;
}

static void begin_thread(struct etch_calls *calls, const struct etch_step *step)
{
    end_thread(calls);
    calls->in_thread = true;
    calls->pid = step->pid;
    calls->tid = step->tid;
    calls->instructions = 0;
    calls->base = 0;
    calls->last = (struct origin){.time = step->time};
    calls->gap = GAP_NONE;
    tell(calls, ETCH_CALL_THREAD, ETCH_WHY_BEGAN, 0, NULL, step->time);
}

static void on_block(struct etch_calls *calls, const struct etch_step *step)
{
    const struct etch_location *at = locate(calls, step);

    if (!at) {
        calls->result = -1;
        return;
    }
    arrive(calls, at, step->first);
    calls->instructions += step->count;
    calls->last = (struct origin){true, step->end, step->branch, step->time};
}

static void on_event(struct etch_calls *calls, const struct etch_step *step)
{
    struct etch_call call = {.kind = ETCH_CALL_LOSS,
                             .pid = step->pid,
                             .tid = step->tid,
                             .depth = calls->base + (int)calls->open.n,
                             .module = "",
                             .time = step->time,
                             .instructions = calls->instructions,
                             .step = step};

    if (step->kind == ETCH_STEP_LOSS) {
        calls->gap = GAP_LOSS;
        if (calls->result == 0)
            calls->result = calls->visit(calls->context, &call);
        return;
    }
    if (step->nowhere) {
        call.kind = ETCH_CALL_NOWHERE;
        if (calls->result == 0)
            calls->result = calls->visit(calls->context, &call);
    }
    if (step->kind == ETCH_STEP_INTERRUPT && calls->gap != GAP_LOSS) {
        calls->gap = GAP_INTERRUPT;
        calls->interrupted = step->ip;
        calls->went_to = step->to;
    } else if (calls->gap == GAP_NONE) {
        calls->gap = GAP_BREAK;
    }
}

int etch_calls_step(void *context, const struct etch_step *step)
{
    struct etch_calls *calls = context;

    if (!calls->in_thread || step->pid != calls->pid || step->tid != calls->tid)
        begin_thread(calls, step);
    calls->now = step->time;
    if (step->kind == ETCH_STEP_BLOCK)
        on_block(calls, step);
    else
        on_event(calls, step);
    return calls->result;
}

int etch_calls_finish(struct etch_calls *calls)
{
    end_thread(calls);
    return calls->result;
}
