/* SPDX-License-Identifier: MIT */
/* The cause of a failure, if the signal alone does not show it: an exception that nothing caught, std::terminate
 * without an exception, a pure virtual call, a trap that the compiler put in, a stack overflow. The recorder's own data
 * comes first, then the stack. */
#include "sketch/runs/build_model.h"

#include "base/function_name.h"
#include "binary/returns.h"
#include "decoder/thrown.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* ---- The cause by the stack ---- */

/* Functions of the C++ library between the program and abort(). */
struct runtime {
    bool terminate, thrown, stopped, pure, thread;
};

static void look_at(struct runtime *r, const char *name)
{
    r->terminate |= strncmp(name, "std::terminate", 14) == 0;
    /* clang and gcc call these functions if an exception would leave a noexcept function. */
    r->stopped |= strcmp(name, "__clang_call_terminate") == 0 || strcmp(name, "__cxa_call_terminate") == 0;
    r->thrown |= r->stopped || strcmp(name, "__cxa_throw") == 0 || strcmp(name, "__cxa_rethrow") == 0 ||
                 strncmp(name, "std::rethrow_exception", 22) == 0;
    r->thread |= strncmp(name, "std::thread::~thread", 20) == 0 || strncmp(name, "std::thread::operator=", 22) == 0;
    r->pure |= strcmp(name, "__cxa_pure_virtual") == 0;
}

/* A header's function may be inlined into the user's own. */
static void look_at_frame(struct build *b, struct runtime *r, uint64_t address)
{
    struct etch_location location;

    etch_symbols_find(b->symbols, etch_build_image_at(b, address), address, &location);
    if (location.symbol && !location.frame.function)
        look_at(r, location.symbol);
    for (const struct etch_frame *f = &location.frame; f; f = f->caller)
        if (f->function && !(f->file && !etch_file_is_system(f->file)))
            look_at(r, f->function);
}

static struct runtime runtime_of(struct build *b, const struct etch_run_thread *t, struct etch_frame *own, bool *found)
{
    struct runtime r = {0};
    size_t n = etch_own_frame(b->recording, b->symbols, t->frames.v, t->frames.n, own);

    *found = n < t->frames.n;
    for (size_t i = 0; i < n + *found; i++)
        look_at_frame(b, &r, t->frames.v[i] - (i > 0));
    return r;
}

static Etch__FailureCause cause_of(const Etch__Failure *f, const struct runtime *r)
{
    const Etch__Exception *e = f->exception;

    if (e && !e->none && !e->handled)
        return ETCH__FAILURE_CAUSE__CAUSE_EXCEPTION;
    if (r->pure)
        return ETCH__FAILURE_CAUSE__CAUSE_PURE_VIRTUAL;
    if (r->thread && r->terminate)
        return ETCH__FAILURE_CAUSE__CAUSE_JOINABLE_THREAD;
    if (e && e->none)
        return ETCH__FAILURE_CAUSE__CAUSE_TERMINATE;
    if (e || !r->terminate)
        return ETCH__FAILURE_CAUSE__CAUSE_UNSPECIFIED;
    return r->thrown ? ETCH__FAILURE_CAUSE__CAUSE_EXCEPTION : ETCH__FAILURE_CAUSE__CAUSE_TERMINATE;
}

/* An instruction that only fails was put there by the compiler. The slice knows from the bitcode whether the function
 * ends there; that it should return a value is in the debug information. */
static Etch__FailureCause trap_cause(struct build *b)
{
    const Etch__Failure *f = b->run->failure;
    const Etch__Image *image = etch_build_image_at(b, f->ip);
    const Etch__Slice *slice = b->options->slice;
    struct etch_location location;

    if (f->signal != SIGILL || !image || !etch_build_is_program(b, image) || !etch_build_is_trap(b, f->ip))
        return ETCH__FAILURE_CAUSE__CAUSE_UNSPECIFIED;
    etch_symbols_find(b->symbols, image, f->ip, &location);
    return slice && slice->ends_without_value && etch_returns_value(image, location.module_offset)
               ? ETCH__FAILURE_CAUSE__CAUSE_NO_RETURN_VALUE
               : ETCH__FAILURE_CAUSE__CAUSE_TRAP;
}

#define STACK_POINTER 7u /* among perf's registers */
#define GUARD 4096u
#define LARGEST_FRAME (16u << 20)

/* A fault next to the stack pointer: the stack ends there. A large frame can begin beyond the end; nothing of the stack
 * could be copied then. */
static bool is_stack_overflow(const Etch__Failure *f, const Etch__ThreadState *state)
{
    uint64_t sp = state && state->n_registers > STACK_POINTER ? state->registers[STACK_POINTER] : 0;
    uint64_t above = state && !state->stack.len ? LARGEST_FRAME : GUARD;

    return f->signal == SIGSEGV && sp > GUARD && !(state->masked >> STACK_POINTER & 1) && f->fault_address &&
           f->fault_address >= sp - GUARD && f->fault_address < sp + above;
}

/* ---- Where ---- */

static struct etch_run_thread *thread_of(struct build *b, uint32_t tid)
{
    for (size_t i = 0; i < b->run->threads.n; i++)
        if (b->run->threads.v[i].tid == tid)
            return &b->run->threads.v[i];
    return NULL;
}

/* The frames of the throw, of whichever thread it was. */
static void stand_at_throw(struct build *b)
{
    Etch__Failure *f = b->run->failure;
    const Etch__ThreadState *state;
    struct etch_run_thread *t;

    if (!etch_failure_blame(f))
        return;
    state = etch_build_state_of(f, f->tid);
    t = etch_build_thread(b, f->tid) == ETCH_NOWHERE ? NULL : thread_of(b, f->tid);
    if (!t || !state) {
        b->failed = true;
        return;
    }
    b->run->inferred = false;
    t->frames.n = 0;
    for (size_t i = 0; i < state->n_frames; i++)
        b->failed |= !etch_array_push(&t->frames, state->frames[i]);
}

void etch_build_find_cause(struct build *b)
{
    Etch__Failure *f = b->run->failure;
    struct etch_run_thread *t = thread_of(b, f->tid);
    const Etch__ThreadState *state = etch_build_state_of(b->recording->failure, f->tid);
    struct runtime runtime = {0};
    struct etch_frame own;
    bool found = false;

    if (f->cause == ETCH__FAILURE_CAUSE__CAUSE_NO_MEMORY) /* the recorder knows */
        return;
    if (!t || (f->kind != ETCH__FAILURE_KIND__FAILURE_SIGNAL && f->kind != ETCH__FAILURE_KIND__FAILURE_EXIT))
        return;
    if (f->kind == ETCH__FAILURE_KIND__FAILURE_SIGNAL && f->signal == SIGILL) {
        f->cause = trap_cause(b);
        return;
    }
    if (f->kind == ETCH__FAILURE_KIND__FAILURE_SIGNAL && is_stack_overflow(f, state)) {
        f->cause = ETCH__FAILURE_CAUSE__CAUSE_STACK_OVERFLOW;
        return;
    }
    if (f->signal == SIGABRT && !(state && state->frames_scanned))
        runtime = runtime_of(b, t, &own, &found);
    f->cause = cause_of(f, &runtime);
    if (f->cause == ETCH__FAILURE_CAUSE__CAUSE_UNSPECIFIED)
        return;
    if (f->exception && runtime.stopped && found && !f->exception->stopped_at)
        f->exception->stopped_at = etch_frame_place(&own);
    if (f->cause == ETCH__FAILURE_CAUSE__CAUSE_EXCEPTION && f->exception &&
        (f->exception->thrown_at || f->exception->n_again_at))
        stand_at_throw(b);
}
