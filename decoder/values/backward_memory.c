/* SPDX-License-Identifier: MIT */
/* Values carried through memory. A byte keeps its value from one access to the next, unless something in between wrote
 * it or may have written it. An access whose address is not known may have written everything. */
#include "decoder/values/backward_model.h"

#include <string.h>

#define PAGE 4096u
#define LOWEST 65536u           /* no program has memory below */
#define LONGEST 16384u          /* a longer write is taken for one of everything */
#define MOST_CELLS (1u << 21)   /* beyond them, accesses are not located any more */
#define MOST_UNSEEN 256u        /* calls that are looked at for one byte; with more of them the byte is not carried */
#define STACK_REACH (64u << 20) /* of a function that was called: how far below its caller's stack it may write */

/* ---- Where accesses are ---- */

static bool value_of(const struct model *m, uint32_t var, uint64_t *value)
{
    if (var == NO_VAR || m->vars.v[var].known != ~(uint64_t)0)
        return false;
    *value = m->vars.v[var].value;
    return true;
}

/* Of a string instruction: from the register before it and after it. The address is that of the first element. */
static bool locate_range(const struct model *m, struct access *a)
{
    uint64_t before, after;

    if (!value_of(m, a->address, &before) || !value_of(m, a->value, &after))
        return false;
    a->at = after >= before ? before : after + a->size;
    if ((after >= before ? after - before : before - after) > LONGEST)
        return false;
    a->length = (uint32_t)(after >= before ? after - before : before - after);
    return true;
}

static bool locate(const struct model *m, struct access *a)
{
    if (a->kind == ACCESS_RANGE)
        return locate_range(m, a);
    if (a->kind != ACCESS_READ && a->kind != ACCESS_WRITE && a->kind != ACCESS_WIDE)
        return false;
    return a->length <= LONGEST && value_of(m, a->address, &a->at);
}

static enum etch_memory_kind kind_of(const struct model *m, uint64_t address)
{
    const struct etch_backward_question *q = m->question;
    uint64_t from_thread = address - q->fs_base;

    /* The thread's pointer to itself, and the canary of its stack. */
    if (q->fs_base_known && (from_thread < 8 || (from_thread >= 0x28 && from_thread < 0x30)))
        return ETCH_MEMORY_CONSTANT;
    return q->kind ? q->kind(q->context, address) : ETCH_MEMORY_PLAIN;
}

static bool is_distrusted(const struct model *m, uint64_t address)
{
    for (size_t i = 0; i < m->distrusted.n; i++)
        if (m->distrusted.v[i] == address / PAGE)
            return true;
    return false;
}

static enum etch_memory_kind kind_of_access(const struct model *m, const struct access *a)
{
    uint64_t last = a->at + (a->length ? a->length - 1 : 0);
    enum etch_memory_kind kind = kind_of(m, a->at);

    if (kind_of(m, last) != kind || is_distrusted(m, a->at) || is_distrusted(m, last))
        return ETCH_MEMORY_SHARED;
    return kind == ETCH_MEMORY_STACK && m->question->threads && !a->frame ? ETCH_MEMORY_SHARED : kind;
}

static void learn_constant(struct model *m, const struct access *a)
{
    const struct etch_backward_question *q = m->question;
    uint8_t bytes[8] = {0};
    uint64_t value;

    if (a->kind != ACCESS_READ || !q->read || q->read(q->context, a->at, bytes, a->size) != a->size)
        return;
    memcpy(&value, bytes, sizeof(value));
    etch_backward_learn(m, a->value, value, etch_backward_mask(a->size * 8u), ETCH_HOW_CONSTANT, NO_VAR, a->at);
}

static bool add_cells(struct model *m, uint32_t access)
{
    const struct access *a = &m->accesses.v[access];

    for (uint32_t i = 0; i < a->length; i++)
        if (!etch_array_push(&m->cells, ((struct cell){.address = a->at + i, .access = access, .byte = i})))
            return false;
    return true;
}

/* Private cells are carried over stores to unknown places. If such a store turns out to go to one, all is done again,
 * without that. */
static void watch_wild(struct model *m, uint32_t access)
{
    const struct access *a = &m->accesses.v[access];

    if (a->kind == ACCESS_READ || a->frame || a->memory != ETCH_MEMORY_STACK || !m->sorted || m->wild[access] ||
        m->bold[access] != BOLD_NEVER)
        return;
    for (uint32_t i = 0; i < a->length; i++)
        for (size_t c = etch_backward_first_cell(m, a->at + i); c < m->sorted && m->cells.v[c].address == a->at + i;
             c++)
            if (m->accesses.v[m->cells.v[c].access].frame) {
                m->wild[access] = m->conflict_wild = true;
                m->conflict = 0; /* any */
                return;
            }
}

/* Returns whether an access was located. */
static bool locate_all(struct model *m)
{
    bool any = false;

    for (uint32_t i = 0; i < m->accesses.n && !m->failed; i++) {
        struct access *a = &m->accesses.v[i];

        if (a->located || m->cells.n > MOST_CELLS || !locate(m, a))
            continue;
        a->located = any = true;
        if (a->at < LOWEST && a->kind != ACCESS_RANGE) { /* it did not fault */
            m->conflict = a->address;
            return true;
        }
        a->memory = (uint8_t)kind_of_access(m, a);
        a->late = m->carried;
        watch_wild(m, i);
        if (a->memory == ETCH_MEMORY_CONSTANT)
            learn_constant(m, a);
        else if ((a->memory != ETCH_MEMORY_SHARED || a->kind != ACCESS_READ) && !add_cells(m, i))
            m->failed = true; /* a write of shared memory may reach beyond it: the byte's value before is gone */
    }
    return any;
}

static int by_place(const void *left, const void *right)
{
    const struct cell *l = left, *r = right;

    if (l->address != r->address)
        return l->address < r->address ? -1 : 1;
    return l->access < r->access ? -1 : l->access > r->access;
}

/* ---- What may have been written in between ---- */

/* System calls that write no memory of the program. Others may write everything. */
static bool is_silent_call(const struct model *m, const struct access *a)
{
    static const uint16_t silent[] = {
        1 /* write */,   3 /* close */, 24 /* sched_yield */, 34 /* pause */,  37 /* alarm */,
        39 /* getpid */, 62 /* kill */, 186 /* gettid */,     200 /* tkill */, 234 /* tgkill */};
    uint64_t number;

    if (!value_of(m, a->value, &number))
        return false;
    for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++)
        if (silent[i] == number)
            return true;
    return false;
}

static bool may_write_everything(const struct model *m, const struct access *a)
{
    uint64_t sp;

    switch (a->kind) {
    case ACCESS_WRITE:
    case ACCESS_RANGE:
        return !a->located && !a->ring && m->bold[a - m->accesses.v] != BOLD_NOTHING;
    case ACCESS_WIDE:
        return !a->located && !a->ring;
    case ACCESS_ALL:
        return true;
    case ACCESS_SYSCALL:
        return !is_silent_call(m, a);
    case ACCESS_UNSEEN:
        return a->length >= ETCH_UNSEEN_CALL || !value_of(m, a->address, &sp);
    default:
        return false;
    }
}

/* Whether a known part of the sum that makes an address is an address of the stack. */
static bool is_from_stack(const struct model *m, uint32_t var, unsigned depth)
{
    const struct op *o;
    uint64_t value;

    if (value_of(m, var, &value))
        return kind_of(m, value) == ETCH_MEMORY_STACK;
    if (var == NO_VAR || !depth || m->maker[var] == NO_VAR)
        return false;
    o = &m->ops.v[m->maker[var]];
    for (int k = 0; k < 3; k++)
        if (o->in[k] != NO_VAR && o->in[k] != var && is_from_stack(m, o->in[k], depth - 1))
            return true;
    return false;
}

#define SUM_DEPTH 8u

/* Whether an access that may write everything may write the private part of a function's stack too. Pointers do not
 * lead there, if they are not computed from the stack pointer. */
static bool may_write_frames(const struct model *m, size_t access)
{
    const struct access *a = &m->accesses.v[access];

    if (a->kind == ACCESS_ALL)
        return true;
    if (a->kind == ACCESS_SYSCALL)
        return false;
    if (a->kind == ACCESS_UNSEEN) {
        uint64_t sp;

        return !value_of(m, a->address, &sp);
    }
    return a->at_stack || m->wild[access] || is_from_stack(m, a->address, SUM_DEPTH);
}

/* The kinds of memory that an access which may write everything may write: clobbers[0] has all, clobbers[1] those of
 * private frames, clobbers[2] those of the stack and of the program's variables. */
static void count_clobbers(struct model *m)
{
    uint32_t n[3] = {0};

    for (size_t i = 0; i <= m->accesses.n; i++) {
        m->clobbers[0].before[i] = n[0];
        m->clobbers[1].before[i] = n[1];
        m->clobbers[2].before[i] = n[2];
        if (i == m->accesses.n || !may_write_everything(m, &m->accesses.v[i]))
            continue;
        m->clobbers[0].which[n[0]++] = (uint32_t)i;
        if (may_write_frames(m, i))
            m->clobbers[1].which[n[1]++] = (uint32_t)i;
        if ((m->accesses.v[i].kind != ACCESS_WRITE && m->accesses.v[i].kind != ACCESS_RANGE) ||
            !etch_backward_is_heap(m, m->accesses.v[i].address))
            m->clobbers[2].which[n[2]++] = (uint32_t)i;
    }
}

/* Whether a function that was called may have written the byte. */
static bool unseen_writes(const struct model *m, const struct access *call, uint64_t address)
{
    enum etch_memory_kind kind;
    uint64_t sp = 0;

    (void)value_of(m, call->address, &sp);
    if (address < sp && sp - address <= STACK_REACH)
        return true;
    if (call->length == ETCH_UNSEEN_QUIET)
        return false;
    kind = kind_of(m, address);
    return kind != ETCH_MEMORY_STACK && kind != ETCH_MEMORY_STATIC;
}

static size_t first_unseen_after(const struct model *m, size_t time)
{
    size_t lo = 0, hi = m->unseen.n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (m->unseen.v[mid] > time)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

/* A byte as it was at some time, if it is known. */
struct byte {
    bool known;
    uint8_t value;
};

/* Whether a store to an unknown place may have made the byte what it is. If no byte of the stored value is like it, the
 * store went elsewhere. */
static bool may_have_made(const struct model *m, const struct access *a, struct byte byte)
{
    const struct var *v;

    if (a->kind != ACCESS_WRITE || !byte.known)
        return true;
    v = &m->vars.v[a->value];
    for (unsigned i = 0; i < a->size; i++) {
        uint8_t known = (uint8_t)(v->known >> i * 8);

        if (((uint8_t)(v->value >> i * 8) & known) == (byte.value & known))
            return true;
    }
    return false;
}

/* Whether a store to an unknown place may have gone to an address. */
static bool hits(const struct model *m, uint32_t access, uint64_t address)
{
    return m->bold[access] != BOLD_ELSEWHERE || address - m->hint[access] < m->accesses.v[access].length;
}

static bool clobbered(const struct model *m, uint64_t address, size_t from, size_t to, struct byte after, unsigned list)
{
    const struct clobbers *c = &m->clobbers[list];
    uint32_t first = c->before[from + 1], end = c->before[to];

    if (end - first > MOST_UNSEEN)
        return true;
    for (uint32_t i = first; i < end; i++)
        if (hits(m, c->which[i], address) && may_have_made(m, &m->accesses.v[c->which[i]], after))
            return true;
    return false;
}

/* Whether only one activation of one function can have written the byte behind access `from` and before access `to`. */
static bool is_private(const struct model *m, size_t from, size_t to)
{
    const struct access *a = &m->accesses.v[from], *b = to < m->accesses.n ? &m->accesses.v[to] : NULL;

    if (!a->frame || a->memory != ETCH_MEMORY_STACK)
        return false;
    if (b)
        return b->frame && a->activation == b->activation;
    for (size_t i = 0; i < m->alive.n; i++)
        if (m->alive.v[i] == a->activation)
            return true;
    return false;
}

static bool is_heapless(const struct model *m, size_t access)
{
    return m->accesses.v[access].memory == ETCH_MEMORY_STACK || m->accesses.v[access].memory == ETCH_MEMORY_STATIC;
}

/* Whether the byte may have changed behind access `from` and before access `to`, other than by accesses at known
 * places. `after` is the byte at `to`. */
static bool is_broken(const struct model *m, uint64_t address, size_t from, size_t to, struct byte after)
{
    size_t first, looked = 0;
    bool private = is_private(m, from, to);

    if (clobbered(m, address, from, to, after, private ? 1 : is_heapless(m, from) ? 2 : 0))
        return true;
    if (private) /* nobody who was called knows the place */
        return false;
    first = first_unseen_after(m, from);
    for (size_t i = first; i < m->unseen.n && m->unseen.v[i] < to; i++)
        if (++looked > MOST_UNSEEN || unseen_writes(m, &m->accesses.v[m->unseen.v[i]], address))
            return true;
    return false;
}

size_t etch_backward_first_cell(const struct model *m, uint64_t address)
{
    size_t lo = 0, hi = m->sorted;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (m->cells.v[mid].address >= address)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

uint32_t etch_backward_breaker(const struct model *m, uint64_t address, size_t from, size_t to)
{
    for (size_t i = to; i-- > from + 1;)
        if (may_write_everything(m, &m->accesses.v[i]) ||
            (m->accesses.v[i].kind == ACCESS_UNSEEN && unseen_writes(m, &m->accesses.v[i], address)))
            return (uint32_t)i;
    return NO_VAR;
}

/* ---- Carrying ---- */

/* Cells of one byte that all have the same value, and what is known of it. */
struct life {
    size_t first, end; /* of model.cells */
    uint8_t value, known;
    size_t source; /* the cell that the value is from; end: the core */
};

static uint64_t byte_of(uint64_t v, uint32_t byte)
{
    return v >> byte * 8 & 0xff;
}

static uint32_t var_of(const struct model *m, const struct cell *c)
{
    const struct access *a = &m->accesses.v[c->access];

    if (a->memory == ETCH_MEMORY_SHARED)
        return NO_VAR;
    return a->kind == ACCESS_READ || a->kind == ACCESS_WRITE ? a->value : NO_VAR;
}

static void merge(struct model *m, struct life *life, size_t source, uint8_t value, uint8_t known)
{
    if (life->known & known & (life->value ^ value)) {
        m->conflict_in_memory = true;
        m->conflict_address = m->cells.v[life->first].address;
        m->conflict = 0; /* any: the address says more */
        return;
    }
    if (known & ~life->known)
        life->source = source;
    life->value |= value & known;
    life->known |= known;
}

static void collect(struct model *m, struct life *life)
{
    for (size_t i = life->first; i < life->end && life->known != 0xff; i++) {
        const struct cell *c = &m->cells.v[i];
        uint32_t var = var_of(m, c);

        if (var != NO_VAR)
            merge(m, life, i, (uint8_t)byte_of(m->vars.v[var].value, c->byte),
                  (uint8_t)byte_of(m->vars.v[var].known, c->byte));
    }
}

/* An access whose bytes are all those of one earlier access has its value, whatever it is. */
static void link_cells(struct model *m, const struct cell *earlier, const struct cell *c)
{
    struct link *link = &m->links[c->access];
    uint32_t size = m->accesses.v[c->access].size;

    if (earlier->byte != c->byte || m->accesses.v[earlier->access].size != size || m->same[var_of(m, c)] != NO_VAR)
        return;
    if (!c->byte || link->earlier != earlier->access)
        *link = (struct link){.earlier = earlier->access};
    link->bytes++;
    if (link->bytes == size)
        m->same[var_of(m, c)] = var_of(m, earlier);
}

static void link_life(struct model *m, const struct life *life)
{
    for (size_t i = life->first + 1; i < life->end; i++)
        if (var_of(m, &m->cells.v[i]) != NO_VAR && var_of(m, &m->cells.v[i - 1]) != NO_VAR)
            link_cells(m, &m->cells.v[i - 1], &m->cells.v[i]);
}

static void hand_out(struct model *m, const struct life *life)
{
    for (size_t i = life->first; i < life->end; i++) {
        const struct cell *c = &m->cells.v[i];
        enum etch_how_known how = life->source == life->end ? ETCH_HOW_CORE
                                  : i > life->source        ? ETCH_HOW_EXECUTED
                                                            : ETCH_HOW_UNDONE;

        if (var_of(m, c) != NO_VAR) /* a wide access has no variable, and more than eight bytes */
            etch_backward_learn(m, var_of(m, c), (uint64_t)life->value << c->byte * 8,
                                (uint64_t)life->known << c->byte * 8, how, NO_VAR, c->address);
    }
}

/* `last`: the byte at the end, if nothing wrote it behind these cells. */
static void carry_life(struct model *m, size_t first, size_t end, struct byte last)
{
    struct life life = {.first = first, .end = end};

    if (last.known) {
        life.value = last.value;
        life.known = 0xff;
        life.source = end;
    }
    collect(m, &life);
    link_life(m, &life);
    if (life.known && m->conflict == NO_VAR)
        hand_out(m, &life);
}

static struct byte byte_at_end(const struct model *m, uint64_t address)
{
    const struct etch_backward_question *q = m->question;
    struct byte byte = {0};

    byte.known = q->read && q->read(q->context, address, &byte.value, 1) == 1;
    return byte;
}

static struct byte byte_in(const struct model *m, const struct cell *c)
{
    uint32_t var = var_of(m, c);

    if (var == NO_VAR || byte_of(m->vars.v[var].known, c->byte) != 0xff)
        return (struct byte){0};
    return (struct byte){.known = true, .value = (uint8_t)byte_of(m->vars.v[var].value, c->byte)};
}

/* Whether the byte of a cell may be another than that of the cell before it. */
static bool begins_life(const struct model *m, size_t cell)
{
    const struct cell *c = &m->cells.v[cell];

    return m->accesses.v[c->access].kind != ACCESS_READ ||
           is_broken(m, c->address, m->cells.v[cell - 1].access, c->access, byte_in(m, c));
}

/* What a life shows is used at once: it may show the next one. */
static void carry_on(struct model *m, size_t first, size_t end, struct byte last)
{
    if (m->conflict != NO_VAR || m->failed)
        return;
    carry_life(m, first, end, last);
    etch_backward_propagate(m);
}

/* Cells [first, end) are all of one byte. */
static void carry_forward(struct model *m, size_t first, size_t end, struct byte last)
{
    size_t begin = first;

    for (size_t i = first + 1; i < end; i++)
        if (begins_life(m, i)) {
            carry_on(m, begin, i, (struct byte){0});
            begin = i;
        }
    carry_on(m, begin, end, last);
}

static void carry_backward(struct model *m, size_t first, size_t end, struct byte last)
{
    for (size_t i = end; i-- > first;)
        if (i == first || begins_life(m, i)) {
            carry_on(m, i, end, last);
            end = i;
            last.known = false;
        }
}

static void carry_byte(struct model *m, size_t first, size_t end)
{
    struct byte last = byte_at_end(m, m->cells.v[first].address);

    if (is_broken(m, m->cells.v[first].address, m->cells.v[end - 1].access, m->accesses.n, last))
        last.known = false;
    if (m->count.rounds & 1)
        carry_forward(m, first, end, last);
    else
        carry_backward(m, first, end, last);
}

bool etch_backward_carry(struct model *m)
{
    size_t reasons = m->reasons.n;
    bool located;

    if (m->no_memory)
        return false;
    located = locate_all(m);
    if (m->failed || m->conflict != NO_VAR)
        return false;
    m->sorted = m->cells.n;
    m->carried = true;
    if (located && m->cells.n)
        qsort(m->cells.v, m->cells.n, sizeof(*m->cells.v), by_place);
    count_clobbers(m);
    for (size_t i = 0, end; i < m->cells.n && m->conflict == NO_VAR && !m->failed; i = end) {
        for (end = i + 1; end < m->cells.n && m->cells.v[end].address == m->cells.v[i].address;)
            end++;
        carry_byte(m, i, end);
    }
    return located || m->reasons.n != reasons;
}
