/* SPDX-License-Identifier: MIT */
/* The last reads of the failing statement. The crash itself shows them if no debug register reported them. */
#include "sketch/runs/build_model.h"

#include "decoder/code.h"
#include "decoder/values.h"

#include <signal.h>
#include <string.h>

/* The bytes of the instruction at `ip`, as many as there may be. */
static const uint8_t *instruction_at(const struct etch_code *code, const struct build *b, uint64_t ip, size_t *size)
{
    const struct etch_code_space *space = etch_code_space_of(code, b->pid);
    const char *why;
    const struct etch_code_section *section = etch_code_find(space, ip, 0, etch_code_space_changes(space), &why);

    *size = section && section->bytes && ip - section->start < section->size
                ? (size_t)(section->size - (ip - section->start))
                : 0;
    return *size ? section->bytes + (ip - section->start) : NULL;
}

bool etch_build_is_trap(struct build *b, uint64_t ip)
{
    static const uint8_t ud2[] = {0x0f, 0x0b}, ud1[] = {0x0f, 0xb9}; /* ud1 also with a prefix */
    struct etch_error ignored;
    struct etch_code *code;
    const uint8_t *bytes;
    bool trap = false;
    size_t size;

    if (etch_code_open(&code, b->recording, NULL, &ignored) < 0)
        return false;
    bytes = instruction_at(code, b, ip, &size);
    if (bytes && size >= 3)
        trap = memcmp(bytes, ud2, 2) == 0 || memcmp(bytes + (bytes[0] == 0x67), ud1, 2) == 0;
    etch_code_free(code);
    return trap;
}

void etch_build_place_last(struct build *b)
{
    const struct etch_run *run = b->run;
    const struct etch_run_visit *visit = etch_run_visited_by(run, run->failing_thread, run->failing_place);

    for (size_t i = b->accesses.n; visit && i-- > 0;) {
        struct etch_run_access *a = &b->accesses.v[i];

        if (a->thread != run->failing_thread)
            continue;
        if (a->place != run->failing_place || a->nth)
            return;
        a->nth = visit->count;
        a->seq = visit->seq;
        a->depth = visit->depth;
    }
}

/* As if it had been seen: a read of the failing statement's, its thread's last access. */
static int add_last(struct build *b, struct etch_run_access a, struct etch_error *err)
{
    const struct etch_run *run = b->run;
    const struct etch_run_visit *visit = etch_run_visited_by(run, run->failing_thread, run->failing_place);

    a.thread = run->failing_thread;
    a.place = run->failing_place;
    a.hi = run->failure->tsc;
    a.event = ETCH_NOWHERE;
    a.read = true;
    a.nth = visit ? visit->count : 0;
    a.seq = visit ? visit->seq : UINT64_MAX;
    a.depth = visit ? visit->depth : 0;
    for (size_t i = 0; i < run->accesses.n; i++) {
        const struct etch_run_access *seen = &run->accesses.v[i];

        if (seen->thread == a.thread && seen->place == a.place && seen->operand == a.operand && seen->nth == a.nth)
            return 0;
    }
    return etch_array_push(&b->run->accesses, a) ? 0 : etch_error_no_memory(err);
}

/* ---- A pointer to nothing ---- */

static bool reads_operand(const Etch__Statement *s, const char *name, size_t length)
{
    for (size_t i = 0; i < s->n_operands; i++)
        if (!s->operands[i]->write && strlen(s->operands[i]->name) == length &&
            strncmp(s->operands[i]->name, name, length) == 0)
            return true;
    return false;
}

/* The pointer in e->data[0] is e->data if the statement reads e->data. Otherwise it is e, and data is an array in the
 * object. Returns the length of the pointer's name; 0: there is no pointer. */
static size_t pointer_length(const Etch__Statement *s, const char *name)
{
    size_t length = strlen(name);

    while (length > 1) {
        size_t depth = 0, at = length - 1;

        if (name[at] == ']') {
            for (; at > 0; at--) {
                depth += name[at] == ']';
                if (name[at] == '[' && --depth == 0)
                    break;
            }
        } else {
            while (at > 0 && name[at] != '.' && name[at] != '>')
                at--;
            at -= at > 0 && name[at] == '>' && name[at - 1] == '-';
        }
        length = at;
        if (length && reads_operand(s, name, length))
            return length;
    }
    return 0;
}

static bool is_null(struct build *b, const Etch__ThreadState *state)
{
    const Etch__Failure *f = b->run->failure;
    struct etch_error ignored;
    struct etch_code *code;
    const uint8_t *bytes;
    uint64_t pointer = 1;
    size_t size;

    if (etch_code_open(&code, b->recording, NULL, &ignored) < 0)
        return false;
    bytes = instruction_at(code, b, f->ip, &size);
    if (!bytes || !etch_value_pointer(bytes, size, f->ip, state->registers, f->fault_address, &pointer))
        pointer = 1;
    etch_code_free(code);
    return pointer == 0;
}

void etch_build_find_null(struct build *b)
{
    const Etch__Failure *f = b->run->failure;
    const Etch__ThreadState *state = f ? etch_build_state_of(f, f->tid) : NULL;
    const Etch__Operand *operand;
    const Etch__Slice *slice = b->options->slice;
    size_t length = 0;
    char name[256];

    if (!state || f->signal != SIGSEGV || f->code == SI_USER || state->n_registers < 24 ||
        !etch_build_use_image(b, etch_build_image_at(b, f->ip)) || b->run->failing_place == ETCH_NOWHERE)
        return;
    operand = etch_build_operand_at(b, f->ip - b->bias, false);
    for (size_t i = 0; operand && !length && i < slice->n_statements; i++)
        for (size_t k = 0; k < slice->statements[i]->n_operands; k++)
            if (slice->statements[i]->operands[k] == operand)
                length = pointer_length(slice->statements[i], operand->name);
    if (!length || length >= sizeof(name) || !is_null(b, state))
        return;
    memcpy(name, operand->name, length);
    name[length] = '\0';
    b->run->null_operand = b->run->null_variable = etch_names_variable(b->names, name);
}

int etch_build_add_null(struct build *b, struct etch_error *err)
{
    const struct etch_run_access a = {.operand = b->run->null_operand,
                                      .watch = ETCH_NOWHERE,
                                      .variable = b->run->null_operand,
                                      .object = ETCH_NOWHERE,
                                      .known = true,
                                      .crash = true};

    return add_last(b, a, err);
}

/* ---- A read that did not trap ---- */

/* The watch whose location the failing instruction's memory operand is at, by the registers before it; NULL: none. */
static const struct watched *fatal_watch(struct build *b, const Etch__ThreadState *state)
{
    const struct watched *found = NULL;
    struct etch_error ignored;
    struct etch_code *code;
    const uint8_t *bytes;
    uint64_t pointer;
    size_t size;

    if (etch_code_open(&code, b->recording, NULL, &ignored) < 0)
        return NULL;
    bytes = instruction_at(code, b, b->run->failure->ip, &size);
    for (size_t i = 0; bytes && !found && i < b->watched.n; i++)
        if (etch_value_pointer(bytes, size, b->run->failure->ip, state->registers, b->watched.v[i].watch->address,
                               &pointer))
            found = &b->watched.v[i];
    etch_code_free(code);
    return found;
}

int etch_build_add_fatal(struct build *b, struct etch_error *err)
{
    const Etch__Failure *f = b->run->failure;
    const Etch__ThreadState *state = f ? etch_build_state_of(f, f->tid) : NULL;
    const struct watched *watched;
    const Etch__Operand *operand;
    struct etch_run_access a = {.watch = ETCH_NOWHERE};

    if (b->recording->source == ETCH__SOURCE__SOURCE_VPT || !state || f->signal != SIGFPE || f->code == SI_USER ||
        state->n_registers < 24 || !etch_build_use_image(b, etch_build_image_at(b, f->ip)) ||
        b->run->failing_place == ETCH_NOWHERE)
        return 0;
    operand = etch_build_operand_at(b, f->ip - b->bias, false);
    watched = operand ? fatal_watch(b, state) : NULL;
    if (!watched)
        return 0;
    a.operand = etch_names_variable(b->names, operand->name);
    a.watch = a.variable = watched->variable;
    a.object = watched->object;
    a.address = watched->watch->address;
    a.size = watched->watch->size;
    return add_last(b, a, err);
}
