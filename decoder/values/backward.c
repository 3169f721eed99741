/* SPDX-License-Identifier: MIT */
/* Values backwards from the end: the rounds, contradictions, and the answers. */
#include "decoder/backward.h"
#include "decoder/values/backward_model.h"

#include <string.h>

#define MOST_CONTRADICTIONS 16u /* with more of them memory is not trusted at all */
#define MOST_ROUNDS 100u        /* of one run; what is not known then stays unknown */
#define MOST_JUDGED 12u         /* rounds after which no store to an unknown place is taken for harmless */
#define PAGE 4096u

struct etch_backward {
    struct model m;
    struct etch_backward_question question;
};

/* ---- Preparing ---- */

static void count_use(struct model *m, uint32_t var)
{
    if (var != NO_VAR)
        m->use_start[var + 1]++;
}

static void add_use(struct model *m, uint32_t *fill, uint32_t var, uint32_t op)
{
    if (var != NO_VAR)
        m->uses[fill[var]++] = op;
}

static bool index_uses(struct model *m)
{
    uint32_t *fill = malloc((m->vars.n + 1) * sizeof(*fill));

    m->use_start = calloc(m->vars.n + 2, sizeof(*m->use_start));
    m->uses = malloc((m->ops.n + 1) * 4 * sizeof(*m->uses));
    if (!fill || !m->use_start || !m->uses) {
        free(fill);
        return false;
    }
    for (size_t i = 0; i < m->ops.n; i++) {
        count_use(m, m->ops.v[i].out);
        for (int k = 0; k < 3; k++)
            count_use(m, m->ops.v[i].in[k]);
    }
    for (size_t i = 0; i < m->vars.n; i++)
        m->use_start[i + 1] += m->use_start[i];
    memcpy(fill, m->use_start, m->vars.n * sizeof(*fill));
    for (uint32_t i = 0; i < m->ops.n; i++) {
        add_use(m, fill, m->ops.v[i].out, i);
        for (int k = 0; k < 3; k++)
            add_use(m, fill, m->ops.v[i].in[k], i);
    }
    free(fill);
    return true;
}

static bool prepare(struct model *m)
{
    for (uint32_t i = 0; i < m->accesses.n; i++)
        if (m->accesses.v[i].kind == ACCESS_UNSEEN && !etch_array_push(&m->unseen, i))
            return false;
    for (int k = 0; k < 3; k++) {
        m->clobbers[k].before = malloc((m->accesses.n + 1) * sizeof(uint32_t));
        m->clobbers[k].which = malloc((m->accesses.n + 1) * sizeof(uint32_t));
    }
    m->bold = calloc(m->accesses.n + 1, sizeof(*m->bold));
    m->hint = calloc(m->accesses.n + 1, sizeof(*m->hint));
    m->same = malloc((m->vars.n + 1) * sizeof(*m->same));
    m->heap = calloc(m->vars.n + 1, sizeof(*m->heap));
    m->links = calloc(m->accesses.n + 1, sizeof(*m->links));
    m->holder = malloc((m->vars.n + 1) * sizeof(*m->holder));
    m->wild = calloc(m->accesses.n + 1, sizeof(*m->wild));
    m->maker = malloc((m->vars.n + 1) * sizeof(*m->maker));
    m->queue = malloc((m->ops.n + 1) * sizeof(*m->queue));
    m->queued = calloc(m->ops.n + 1, sizeof(*m->queued));
    if (!m->clobbers[0].before || !m->clobbers[0].which || !m->clobbers[1].before || !m->clobbers[1].which ||
        !m->clobbers[2].before || !m->clobbers[2].which || !m->wild || !m->bold || !m->hint || !m->holder || !m->same ||
        !m->heap || !m->links || !m->maker || !m->queue || !m->queued || !index_uses(m))
        return false;
    memset(m->maker, 0xff, (m->vars.n + 1) * sizeof(*m->maker));
    memset(m->holder, 0xff, (m->vars.n + 1) * sizeof(*m->holder));
    for (uint32_t i = 0; i < m->accesses.n; i++)
        if (m->accesses.v[i].kind == ACCESS_READ)
            m->holder[m->accesses.v[i].value] = i;
    for (uint32_t i = 0; i < m->ops.n; i++)
        if (m->maker[m->ops.v[i].out] == NO_VAR)
            m->maker[m->ops.v[i].out] = i;
    return true;
}

/* ---- Solving ---- */

/* Forgets everything but the roots. */
static void start(struct model *m)
{
    for (size_t i = 0; i < m->vars.n; i++)
        m->vars.v[i] = (struct var){.reason = NO_VAR};
    for (size_t i = 0; i < m->accesses.n; i++)
        m->accesses.v[i].located = false;
    memset(m->queued, 0, m->ops.n * sizeof(*m->queued));
    m->queue_head = m->queue_n = 0;
    m->reasons.n = m->cells.n = m->sorted = 0;
    m->carried = false;
    memset(m->same, 0xff, m->vars.n * sizeof(*m->same));
    memset(m->heap, 0, m->vars.n * sizeof(*m->heap));
    memset(m->links, 0, m->accesses.n * sizeof(*m->links));
    m->conflict = NO_VAR;
    m->conflict_in_memory = m->conflict_wild = false;
    for (uint32_t i = 0; i < m->ops.n; i++) {
        m->queued[i] = true;
        m->queue[m->queue_n++] = i;
    }
    for (size_t i = 0; i < m->roots.n; i++) {
        const struct root *r = &m->roots.v[i];

        etch_backward_learn(m, r->var, r->value, r->known, r->how, NO_VAR, 0);
        m->vars.v[r->var].reason = NO_VAR;
    }
}

static void run(struct model *m)
{
    unsigned rounds = 0;

    start(m);
    do {
        etch_backward_propagate(m);
        m->count.rounds++;
    } while (m->conflict == NO_VAR && !m->failed && ++rounds <= MOST_ROUNDS && etch_backward_carry(m));
}

/* ---- Contradictions ---- */

/* A walk over all that a contradiction may come from. */
struct blame {
    struct model *m;
    bool *seen;
    ETCH_ARRAY(uint32_t) todo;
    ETCH_ARRAY(uint64_t) pages;
};

static void blame_var(struct blame *b, uint32_t var)
{
    if (var == NO_VAR || b->seen[var])
        return;
    b->seen[var] = true;
    if (!etch_array_push(&b->todo, var))
        b->m->failed = true;
}

static void blame_byte(struct blame *b, uint64_t address)
{
    struct model *m = b->m;
    bool listed = false;

    for (size_t i = 0; i < b->pages.n && !listed; i++)
        listed = b->pages.v[i] == address / PAGE;
    if (!listed && !etch_array_push(&b->pages, address / PAGE))
        m->failed = true;
    for (size_t i = etch_backward_first_cell(m, address); i < m->cells.n && m->cells.v[i].address == address; i++) {
        const struct access *a = &m->accesses.v[m->cells.v[i].access];

        if (a->kind == ACCESS_READ || a->kind == ACCESS_WRITE) {
            blame_var(b, a->value);
            blame_var(b, a->address); /* the access may be elsewhere in truth */
        }
    }
}

static void blame_reasons(struct blame *b, uint32_t var)
{
    const struct model *m = b->m;

    for (uint32_t r = m->vars.v[var].reason; r != NO_VAR; r = m->reasons.v[r].before) {
        const struct reason *reason = &m->reasons.v[r];

        if (reason->op == NO_VAR) {
            blame_byte(b, reason->address);
            continue;
        }
        blame_var(b, m->ops.v[reason->op].out);
        for (int k = 0; k < 3; k++)
            blame_var(b, m->ops.v[reason->op].in[k]);
    }
}

/* Finds the memory that two values for one thing came from. Only memory can be wrong: something unseen wrote it.
 * Without memory in between, the instructions or the registers are not what was said, and nothing can be known. */
static void distrust(struct model *m)
{
    struct blame b = {.m = m, .seen = calloc(m->vars.n + 1, sizeof(bool))};

    if (!b.seen) {
        m->failed = true;
        return;
    }
    if (m->conflict_in_memory)
        blame_byte(&b, m->conflict_address);
    else
        blame_var(&b, m->conflict);
    while (b.todo.n && !m->failed)
        blame_reasons(&b, b.todo.v[--b.todo.n]);
    for (size_t i = 0; i < b.pages.n && !m->failed; i++)
        if (!etch_array_push(&m->distrusted, b.pages.v[i]))
            m->failed = true;
    if (!b.pages.n)
        m->count.gave_up = true;
    etch_array_free(&b.todo);
    etch_array_free(&b.pages);
    free(b.seen);
}

/* Returns whether the contradiction may come from a store that was taken for harmless. */
static bool doubt(struct model *m, bool before)
{
    return (!before && etch_backward_doubt_stores(m, false)) || etch_backward_doubt_stores(m, true);
}

/* A round of all. Returns whether there must be another. */
static bool settle(struct model *m, unsigned *judged)
{
    run(m);
    if (m->failed)
        return false;
    if (m->conflict == NO_VAR) {
        if (++*judged >= MOST_JUDGED)
            return *judged == MOST_JUDGED && etch_backward_doubt_stores(m, true);
        return etch_backward_judge_stores(m);
    }
    if (m->conflict_wild)
        return true;
    if (doubt(m, m->doubted)) {
        m->doubted = true;
        return true;
    }
    if (m->count.contradictions++ >= MOST_CONTRADICTIONS) {
        m->count.gave_up = m->no_memory;
        m->no_memory = true;
    } else
        distrust(m);
    return !m->count.gave_up;
}

static void solve(struct model *m)
{
    unsigned judged = 0;

    while (settle(m, &judged))
        ;
}

/* ---- The door ---- */

int etch_backward_solve(struct etch_backward **answer, const struct etch_backward_question *question,
                        struct etch_error *err)
{
    struct etch_backward *b;

    *answer = NULL;
    if (question->n > ETCH_BACKWARD_LIMIT) {
        etch_error_set(err, "values backwards: %zu instructions, at most %u are possible", question->n,
                       ETCH_BACKWARD_LIMIT);
        return -1;
    }
    b = calloc(1, sizeof(*b));
    if (b) {
        b->question = *question;
        b->m.question = &b->question;
        b->m.conflict = NO_VAR;
        if (etch_backward_lift(&b->m) && prepare(&b->m))
            solve(&b->m);
        else
            b->m.failed = true;
    }
    if (!b || b->m.failed) {
        etch_backward_free(b);
        etch_error_set(err, "values backwards: out of memory");
        return -1;
    }
    *answer = b;
    return 0;
}

void etch_backward_free(struct etch_backward *answer)
{
    if (!answer)
        return;
    etch_array_free(&answer->m.vars);
    etch_array_free(&answer->m.origins);
    etch_array_free(&answer->m.ops);
    etch_array_free(&answer->m.accesses);
    etch_array_free(&answer->m.roots);
    etch_array_free(&answer->m.reasons);
    etch_array_free(&answer->m.cells);
    etch_array_free(&answer->m.distrusted);
    etch_array_free(&answer->m.unseen);
    etch_array_free(&answer->m.registers);
    free(answer->m.use_start);
    free(answer->m.uses);
    for (int k = 0; k < 3; k++) {
        free(answer->m.clobbers[k].before);
        free(answer->m.clobbers[k].which);
    }
    free(answer->m.wild);
    free(answer->m.bold);
    free(answer->m.hint);
    free(answer->m.holder);
    free(answer->m.same);
    free(answer->m.heap);
    free(answer->m.links);
    free(answer->m.maker);
    etch_array_free(&answer->m.alive);
    free(answer->m.queue);
    free(answer->m.queued);
    free(answer);
}

/* ---- Answers ---- */

static enum etch_how_known value_of(const struct model *m, uint32_t var, unsigned bytes, uint64_t *value)
{
    uint64_t mask = etch_backward_mask(bytes * 8);

    *value = 0;
    if (var == NO_VAR || m->count.gave_up || (m->vars.v[var].known & mask) != mask)
        return ETCH_HOW_UNKNOWN;
    *value = m->vars.v[var].value & mask;
    return m->vars.v[var].how;
}

size_t etch_backward_accesses(const struct etch_backward *answer)
{
    return answer->m.accesses.n;
}

void etch_backward_access(const struct etch_backward *answer, size_t i, struct etch_backward_access *access)
{
    const struct access *a = &answer->m.accesses.v[i];

    *access = (struct etch_backward_access){
        .instruction = a->instruction, .size = a->size, .write = a->kind != ACCESS_READ, .implicit = a->implicit};
    if (a->kind != ACCESS_READ && a->kind != ACCESS_WRITE) {
        access->size = 0;
        return;
    }
    access->address_known = value_of(&answer->m, a->address, 8, &access->address) != ETCH_HOW_UNKNOWN;
    access->how = value_of(&answer->m, a->value, a->size, &access->value);
}

enum etch_how_known etch_backward_register(const struct etch_backward *answer, size_t i, unsigned perf_register,
                                           uint64_t *value)
{
    *value = 0;
    for (size_t r = 0; r < R_FLAGS; r++)
        if (etch_backward_perf_numbers[r] == perf_register && i < answer->question.n)
            return value_of(&answer->m, answer->m.registers.v[i * R_SNAPSHOT + r], 8, value);
    return ETCH_HOW_UNKNOWN;
}

enum etch_why_unknown etch_backward_why(struct etch_backward *answer, size_t access, uint32_t *instruction)
{
    return etch_backward_find_why(&answer->m, (uint32_t)access, instruction);
}

const char *etch_why_unknown_name(enum etch_why_unknown why)
{
    static const char *const names[] = {
        [ETCH_WHY_START_REGISTER] = "start-register",
        [ETCH_WHY_START_MEMORY] = "start-memory",
        [ETCH_WHY_ALLOCATED] = "allocated",
        [ETCH_WHY_RESULT] = "result-of-unseen",
        [ETCH_WHY_GAP] = "gap",
        [ETCH_WHY_SYSTEM_CALL] = "system-call",
        [ETCH_WHY_INSTRUCTION] = "instruction",
        [ETCH_WHY_SHARED] = "shared",
        [ETCH_WHY_CALL_WROTE] = "unseen-wrote",
        [ETCH_WHY_STORE_WROTE] = "store-wrote",
        [ETCH_WHY_COPIED] = "copied",
    };

    return names[why];
}

struct etch_backward_count etch_backward_count(const struct etch_backward *answer)
{
    return answer->m.count;
}

const char *etch_how_known_name(enum etch_how_known how)
{
    static const char *const names[] = {
        [ETCH_HOW_UNKNOWN] = "unknown", [ETCH_HOW_CORE] = "core",     [ETCH_HOW_CONSTANT] = "constant",
        [ETCH_HOW_FLOW] = "flow",       [ETCH_HOW_UNDONE] = "undone", [ETCH_HOW_EXECUTED] = "executed"};

    return names[how];
}
