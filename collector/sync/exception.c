/* SPDX-License-Identifier: MIT */
/* Reading the rings of exceptions; see exception.h. */
#include "collector/sync/exception.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define REGISTERS 24u /* in the order of Linux's perf x86 register numbers */

enum { BX = 1, BP = 6, SP = 7, IP = 8, R12 = 20 };

/* Copies a throw. False if the throw is not whole, or changes during the copy. */
static bool copy_throw(const struct etch_throw *from, struct etch_throw *to)
{
    /* Acquire: pairs with the writer's release; the fields are those of this sequence number ... */
    uint64_t sequence = __atomic_load_n(&from->sequence, __ATOMIC_ACQUIRE);

    if (!sequence)
        return false;
    *to = *from;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    /* ... if it is still there after the copy. */
    return __atomic_load_n(&from->sequence, __ATOMIC_RELAXED) == sequence && to->stack_size <= sizeof(to->stack);
}

/* ---- Messages ---- */

/* Bytes of the UTF-8 character at `at`, of `n` that there are; 0: it is none. */
static size_t character(const unsigned char *at, size_t n)
{
    size_t size = at[0] < 0x80 ? 1 : at[0] >= 0xc2 && at[0] < 0xe0 ? 2 : (at[0] & 0xf0) == 0xe0 ? 3 : 4;

    if (at[0] < 0x20 || at[0] == 0x7f || (at[0] >= 0x80 && at[0] < 0xc2) || at[0] > 0xf4 || size > n)
        return 0;
    for (size_t i = 1; i < size; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) || (at[0] == 0xf0 && at[1] < 0x90) ||
        (at[0] == 0xf4 && at[1] > 0x8f))
        return 0;
    return size;
}

/* A protobuf string is UTF-8, and the program's memory may be anything: a byte that is no text becomes a '?', an end of
 * a line a space. */
static char *text_of(const char *from, size_t size)
{
    size_t n = strnlen(from, size - 1), k;
    char *text = malloc(n + 1);

    if (!text)
        return NULL;
    for (size_t i = 0; i < n; i += k ? k : 1) {
        k = character((const unsigned char *)from + i, n - i);
        memcpy(text + i, from + i, k);
        if (!k)
            text[i] = from[i] == '\n' || from[i] == '\t' ? ' ' : '?';
    }
    text[n] = '\0';
    return text;
}

static bool fill_state(Etch__ThreadState *state, const struct etch_throw *from)
{
    const uint64_t kept[4] = {from->r12, from->r13, from->r14, from->r15};

    state->tid = from->tid;
    state->stack_start = from->sp;
    state->registers = calloc(REGISTERS, sizeof(*state->registers));
    state->frames = calloc(1, sizeof(*state->frames));
    state->stack.data = malloc(from->stack_size + 1u);
    if (!state->registers || !state->frames || !state->stack.data)
        return false;
    state->n_registers = REGISTERS;
    state->registers[BX] = from->bx;
    state->registers[BP] = from->bp;
    state->registers[SP] = from->sp;
    /* Within the call: what stands behind a call that does not return may be another function. */
    state->registers[IP] = from->ip - 1;
    memcpy(&state->registers[R12], kept, sizeof(kept));
    state->frames[state->n_frames++] = from->ip - 1;
    memcpy(state->stack.data, from->stack, from->stack_size);
    state->stack.len = from->stack_size;
    return true;
}

static Etch__Throw *make_throw(const struct etch_throw *from)
{
    Etch__Throw *made = malloc(sizeof(*made));

    if (!made)
        return NULL;
    etch__throw__init(made);
    made->tsc = from->tsc;
    made->made = from->made ? from->made - 1 : 0;
    made->state = malloc(sizeof(*made->state));
    if (made->state)
        etch__thread_state__init(made->state);
    if (!made->state || !fill_state(made->state, from)) {
        etch__throw__free_unpacked(made, NULL);
        return NULL; /* NOLINT(clang-analyzer-unix.Malloc): the analyzer does not see that free_unpacked() frees */
    }
    return made;
}

/* ---- Which throws ---- */

/* The next throw of the exception behind `after`, or the newest one of all that made it. */
static bool find_throw(const struct etch_sync_memory *m, const struct etch_terminate *t, bool again, uint64_t after,
                       struct etch_throw *found)
{
    uint32_t claimed = etch_sync_claimed(m);
    struct etch_throw *copy = malloc(sizeof(*copy));
    bool any = false;

    if (!copy)
        return false;
    for (size_t i = 0; i < claimed; i++)
        for (size_t k = 0; k < ETCH_THROWS; k++) {
            if (!copy_throw(&m->throws[i].throws[k], copy) || copy->object != t->object ||
                (copy->again != 0) != again || copy->tsc <= after || copy->tsc > t->tsc)
                continue;
            if (!any || (again ? copy->tsc < found->tsc : copy->tsc > found->tsc))
                *found = *copy;
            any = true;
        }
    free(copy);
    return any;
}

static void add_again(Etch__Exception *e, const struct etch_throw *from)
{
    Etch__Throw **bigger = realloc(e->again, (e->n_again + 1) * sizeof(*bigger)), *made;

    if (bigger)
        e->again = bigger;
    made = bigger ? make_throw(from) : NULL;
    if (made)
        e->again[e->n_again++] = made;
}

static void add_throws(Etch__Exception *e, const struct etch_sync_memory *m, const struct etch_terminate *t)
{
    struct etch_throw *found = malloc(sizeof(*found));
    uint64_t after = 0;

    if (found && find_throw(m, t, false, 0, found)) {
        e->thrown = make_throw(found);
        after = found->tsc;
    }
    while (found && e->n_again < ETCH_THROWS && find_throw(m, t, true, after, found)) {
        add_again(e, found);
        after = found->tsc;
    }
    free(found);
}

/* ---- The exception ---- */

static const struct etch_terminate *terminate_of(const struct etch_sync_memory *m, uint32_t tid, uint32_t *state)
{
    uint32_t claimed = etch_sync_claimed(m);

    for (size_t i = 0; i < claimed; i++) {
        const struct etch_terminate *t = &m->throws[i].terminate;

        *state = __atomic_load_n(&t->state, __ATOMIC_ACQUIRE); /* pairs with the writer's release */
        if (*state != ETCH_TERMINATE_NOT && t->tid == tid)
            return t;
    }
    return NULL;
}

static void fill_exception(Etch__Exception *e, const struct etch_sync_memory *m, const struct etch_terminate *t)
{
    bool words = t->known & (ETCH_TERMINATE_MESSAGE | ETCH_TERMINATE_WHAT | ETCH_TERMINATE_TEXT);

    e->object = t->object;
    e->on_their_way = t->on_their_way;
    e->handled = t->known & ETCH_TERMINATE_ABORT;
    e->is_text = t->known & ETCH_TERMINATE_TEXT;
    e->made_with = t->known & ETCH_TERMINATE_MESSAGE;
    e->type = text_of(t->type, sizeof(t->type));
    if (t->known & ETCH_TERMINATE_VALUE) {
        e->known_case = ETCH__EXCEPTION__KNOWN_VALUE;
        e->value = t->value;
    }
    if (words && (e->what = text_of(t->what, sizeof(t->what))))
        e->said_case = ETCH__EXCEPTION__SAID_WHAT;
    add_throws(e, m, t);
}

Etch__Exception *etch_sync_exception(const struct etch_sync_memory *memory, uint32_t tid)
{
    uint32_t state;
    const struct etch_terminate *t = terminate_of(memory, tid, &state);
    Etch__Exception *e = t ? malloc(sizeof(*e)) : NULL;

    if (!e)
        return NULL;
    etch__exception__init(e);
    e->none = state == ETCH_TERMINATE_NONE;
    if (state == ETCH_TERMINATE_ACTIVE)
        fill_exception(e, memory, t);
    if (!e->type)
        e->type = calloc(1, 1);
    return e;
}
