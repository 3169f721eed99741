/* SPDX-License-Identifier: MIT */
/* Records without secrets; see privacy.h. A record that may hold a secret is copied, and the copy is changed. */
#include "collector/privacy.h"

#include "base/array.h"
#include "collector/policy/stack_mask.h"

#include <stdlib.h>
#include <string.h>

#define STACK_REACH                                                                                                    \
    ((uint64_t)8 << 20) /* a pointer that far above the stack pointer is taken for one into the stack                  \
                         */

enum { FLAGS = 9, GS = 15, SP = 7, IP = 8, REGISTERS = 24 }; /* of perf's numbers */

struct code {
    uint64_t start, end;
};

struct name {
    uint32_t id;
    char *text;
};

struct etch_privacy {
    struct etch_policy *policy;
    bool keep_stack, no_stack;
    bool text_only; /* of values: the policy says nothing of others */
    ETCH_ARRAY(struct code) code;
    ETCH_ARRAY(struct name) watches;
    Etch__Record *copy;
    uint8_t *packed;
    size_t packed_capacity;
    char *source; /* the policy's name, with secrets masked */
    Etch__Redaction count;
    Etch__Record last;
};

struct etch_privacy *etch_privacy_new(struct etch_policy *policy, bool keep_stack)
{
    struct etch_privacy *p = calloc(1, sizeof(*p));

    if (!p) {
        etch_policy_free(policy);
        return NULL;
    }
    p->policy = policy;
    p->keep_stack = keep_stack;
    p->no_stack = etch_policy_decide(policy, ETCH_POLICY_STACK, NULL, NULL, NULL) == ETCH_POLICY_DENY;
    p->text_only = !etch_policy_speaks_of(policy, ETCH_POLICY_VALUE);
    etch__redaction__init(&p->count);
    etch__record__init(&p->last);
    p->source = etch_policy_path(policy, etch_policy_name(policy), &p->count.paths);
    p->count.policy = p->source;
    if (p->source)
        return p;
    etch_privacy_free(p);
    return NULL;
}

int etch_privacy_open(struct etch_privacy **privacy, const char *policy, bool keep_stack, struct etch_error *err)
{
    struct etch_policy *found;

    if (etch_policy_find(&found, policy, err) < 0)
        return -1;
    if (keep_stack && etch_policy_decide(found, ETCH_POLICY_STACK, NULL, NULL, NULL) != ETCH_POLICY_ALLOW) {
        etch_error_set(err, "the policy %s does not allow stacks; nothing is recorded", etch_policy_name(found));
        etch_policy_free(found);
        return etch_error_advise(err, "record without --keep-stack");
    }
    *privacy = etch_privacy_new(found, keep_stack);
    return *privacy ? 0 : etch_error_no_memory(err);
}

static void drop_copy(struct etch_privacy *p)
{
    if (p->copy)
        etch__record__free_unpacked(p->copy, NULL);
    p->copy = NULL;
}

void etch_privacy_free(struct etch_privacy *p)
{
    if (!p)
        return;
    drop_copy(p);
    for (size_t i = 0; i < p->watches.n; i++)
        free(p->watches.v[i].text);
    etch_array_free(&p->watches);
    etch_array_free(&p->code);
    free(p->packed);
    free(p->source);
    etch_policy_free(p->policy);
    free(p);
}

Etch__Redaction *etch_privacy_count(struct etch_privacy *p)
{
    return &p->count;
}

/* ---- Texts ---- */

/* Puts `with` in the place of the text. protobuf-c's empty text is not for free(). */
static bool replace(char **text, char *with)
{
    if (!with)
        return false;
    if (*text != protobuf_c_empty_string)
        free(*text);
    *text = with;
    return true;
}

static bool pass_path(struct etch_privacy *p, char **path)
{
    return !*path || !(*path)[0] || replace(path, etch_policy_path(p->policy, *path, &p->count.paths));
}

static bool pass_message(struct etch_privacy *p, char **text)
{
    return !*text || !(*text)[0] ||
           replace(text, etch_policy_text(p->policy, ETCH_POLICY_MESSAGE, *text, NULL, &p->count.messages));
}

static bool pass_program(struct etch_privacy *p, Etch__Program *program)
{
    struct etch_policy_words words = {""};
    bool done = pass_path(p, &program->exe) && pass_path(p, &program->cwd) && pass_path(p, &program->plan) &&
                pass_path(p, &program->rings) &&
                (program->policy[0] ? pass_path(p, &program->policy) : replace(&program->policy, strdup(p->source)));

    program->raw_stacks = p->keep_stack;
    if (program->n_argv)
        done = done && pass_path(p, &program->argv[0]);
    for (size_t i = 1; done && i < program->n_argv; i++)
        done = replace(&program->argv[i], etch_policy_text(p->policy, ETCH_POLICY_ARGUMENT, program->argv[i], &words,
                                                           &p->count.arguments));
    return done;
}

/* ---- Code ---- */

bool etch_privacy_learn(struct etch_privacy *p, const Etch__Image *image)
{
    struct code c = {image->start, image->start + image->size};

    if (!(image->prot & 4) || c.end < c.start)
        return true;
    for (size_t i = 0; i < p->code.n; i++)
        if (p->code.v[i].start == c.start && p->code.v[i].end == c.end)
            return true;
    return etch_array_push(&p->code, c);
}

static bool is_code(void *context, uint64_t address, uint64_t word)
{
    const struct etch_privacy *p = context;

    (void)address;
    for (size_t i = 0; i < p->code.n; i++)
        if (word >= p->code.v[i].start && word <= p->code.v[i].end)
            return true;
    return false;
}

static bool pass_image(struct etch_privacy *p, Etch__Image *image)
{
    if (image->code.len &&
        etch_policy_decide(p->policy, ETCH_POLICY_MEMORY, image->path, NULL, NULL) != ETCH_POLICY_ALLOW) {
        p->count.memory_bytes += image->code.len;
        free(image->code.data);
        image->code = (ProtobufCBinaryData){0};
    }
    return pass_path(p, &image->path);
}

/* ---- Registers and stacks ---- */

static bool hides(const struct etch_privacy *p, const char *name, uint64_t word)
{
    const char *type = etch_policy_type(word);

    if (p->text_only && type[0] != 't')
        return false; /* most are so, and there are many */
    return etch_policy_decide(p->policy, ETCH_POLICY_VALUE, name, type, NULL) != ETCH_POLICY_ALLOW;
}

static bool mask_register(struct etch_privacy *p, const char *name, const uint64_t *registers, unsigned number)
{
    uint64_t word = registers[number], sp = registers[SP];

    if (number == SP || (number >= IP && number <= GS) || word == ETCH_PRIVACY_MASKED_WORD ||
        (word >= sp && word - sp < STACK_REACH))
        return false;
    return hides(p, name, word);
}

/* Another number of registers than the recorder's makes no sense, and goes. */
static uint32_t pass_registers(struct etch_privacy *p, const char *name, uint64_t *registers, size_t *n)
{
    uint32_t masked = 0;

    if (*n != REGISTERS) {
        p->count.registers += *n;
        *n = 0;
        return 0;
    }
    for (unsigned i = 0; i < REGISTERS; i++)
        if (mask_register(p, name, registers, i)) {
            masked |= 1u << i;
            registers[i] = ETCH_PRIVACY_MASKED_WORD;
            p->count.registers++;
        }
    return masked;
}

static void pass_stack(struct etch_privacy *p, uint64_t start, ProtobufCBinaryData *stack)
{
    struct etch_stack_mask mask = {start, start, start + STACK_REACH, is_code, p};

    if (p->keep_stack || !stack->len)
        return;
    if (p->no_stack) {
        p->count.stack_words += stack->len / 8;
        stack->len = 0;
        free(stack->data);
        stack->data = NULL;
        return;
    }
    p->count.stack_words += etch_stack_mask(&mask, stack->data, stack->len);
}

static void pass_state(struct etch_privacy *p, Etch__ThreadState *state)
{
    if (!state)
        return;
    state->masked |= pass_registers(p, NULL, state->registers, &state->n_registers);
    pass_stack(p, state->stack_start, &state->stack);
    state->stack_masked |= !p->keep_stack;
}

/* ---- Failures ---- */

static void pass_throw(struct etch_privacy *p, Etch__Throw *thrown)
{
    if (thrown)
        pass_state(p, thrown->state);
}

static bool pass_exception(struct etch_privacy *p, Etch__Exception *e)
{
    if (e->known_case == ETCH__EXCEPTION__KNOWN_VALUE && hides(p, e->type, e->value)) {
        e->known_case = ETCH__EXCEPTION__KNOWN__NOT_SET;
        e->value = 0;
        p->count.values++;
    }
    pass_throw(p, e->thrown);
    for (size_t i = 0; i < e->n_again; i++)
        pass_throw(p, e->again[i]);
    return e->said_case != ETCH__EXCEPTION__SAID_WHAT || pass_message(p, &e->what);
}

static bool pass_failure(struct etch_privacy *p, Etch__Failure *f)
{
    for (size_t i = 0; i < f->n_threads; i++)
        pass_state(p, f->threads[i]);
    return pass_message(p, &f->message) && (!f->exception || pass_exception(p, f->exception));
}

/* ---- Watches and accesses ---- */

static const char *watch_name(const struct etch_privacy *p, uint32_t id)
{
    if (id && id <= p->watches.n && p->watches.v[id - 1].id == id) /* the lab has thousands, numbered from 1 */
        return p->watches.v[id - 1].text;
    for (size_t i = 0; i < p->watches.n; i++)
        if (p->watches.v[i].id == id)
            return p->watches.v[i].text;
    return NULL;
}

/* A watch may be reported twice: the later name counts. */
static bool learn_watch(struct etch_privacy *p, const Etch__Watch *w)
{
    struct name name = {w->id, strdup(w->name)};
    bool next = p->watches.n && p->watches.v[p->watches.n - 1].id + 1 == w->id; /* numbered in turn: a new one */

    for (size_t i = next ? p->watches.n : 0; name.text && i < p->watches.n; i++)
        if (p->watches.v[i].id == w->id) {
            free(p->watches.v[i].text);
            p->watches.v[i] = name;
            return true;
        }
    if (name.text && etch_array_push(&p->watches, name))
        return true;
    free(name.text);
    return false;
}

static bool pass_watch(struct etch_privacy *p, Etch__Watch *w)
{
    if (!learn_watch(p, w))
        return false;
    if (w->initially_case == ETCH__WATCH__INITIALLY_INITIAL_VALUE && hides(p, w->name, w->initial_value)) {
        w->initially_case = ETCH__WATCH__INITIALLY__NOT_SET;
        w->initial_value = 0;
        p->count.values++;
    }
    if (etch_policy_decide(p->policy, ETCH_POLICY_VALUE, w->name, NULL, NULL) != ETCH_POLICY_DENY)
        return true;
    p->count.names++;
    return replace(&w->name, strdup(ETCH_POLICY_DENIED));
}

/* The lab does not know the names of variables: any of them may be one whose values are to be hidden. */
static bool is_unnamed(const struct etch_privacy *p, const char *name)
{
    return name && !name[0] && etch_policy_names_values(p->policy);
}

static void pass_access(struct etch_privacy *p, Etch__Access *a)
{
    const char *name = watch_name(p, a->watch);

    if (a->known_case == ETCH__ACCESS__KNOWN_VALUE && (is_unnamed(p, name) || hides(p, name, a->value))) {
        a->known_case = ETCH__ACCESS__KNOWN__NOT_SET;
        a->value = 0;
        p->count.values++;
    }
    a->masked |= pass_registers(p, name, a->registers, &a->n_registers);
    if (a->n_registers == REGISTERS)
        pass_stack(p, a->registers[SP], &a->stack);
    else if (!p->keep_stack)
        a->stack.len = 0;
}

static bool pass_accesses(struct etch_privacy *p, Etch__Accesses *list)
{
    for (size_t i = 0; i < list->n_accesses; i++)
        pass_access(p, list->accesses[i]);
    list->stacks_masked |= !p->keep_stack;
    return true;
}

/* Its words name what was watched. */
static bool pass_loss(struct etch_privacy *p, Etch__Loss *loss)
{
    for (size_t i = 0; i < p->watches.n; i++)
        if (strstr(loss->detail, p->watches.v[i].text) &&
            etch_policy_decide(p->policy, ETCH_POLICY_VALUE, p->watches.v[i].text, NULL, NULL) == ETCH_POLICY_DENY)
            return replace(&loss->detail, strdup(ETCH_POLICY_DENIED));
    return true;
}

/* ---- Records ---- */

/* A field that this version does not know could hold anything. */
static void drop_unknown(struct etch_privacy *p, ProtobufCMessage *m)
{
    for (unsigned i = 0; i < m->n_unknown_fields; i++)
        free(m->unknown_fields[i].data);
    p->count.unknown += m->n_unknown_fields;
    free(m->unknown_fields);
    m->unknown_fields = NULL;
    m->n_unknown_fields = 0;
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        uint8_t *at = (uint8_t *)m + f->offset;

        if (f->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        if (f->label == PROTOBUF_C_LABEL_REPEATED)
            for (size_t k = 0; k < *(size_t *)(void *)((uint8_t *)m + f->quantifier_offset); k++)
                drop_unknown(p, (*(ProtobufCMessage ***)(void *)at)[k]);
        else if ((!(f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) ||
                  *(uint32_t *)(void *)((uint8_t *)m + f->quantifier_offset) == f->id) &&
                 *(ProtobufCMessage **)(void *)at)
            drop_unknown(p, *(ProtobufCMessage **)(void *)at);
    }
}

static bool copy(struct etch_privacy *p, const Etch__Record *record)
{
    size_t size = etch__record__get_packed_size(record);
    uint8_t *bigger = size > p->packed_capacity ? realloc(p->packed, size) : p->packed;

    drop_copy(p);
    if (!bigger && size)
        return false;
    if (size > p->packed_capacity) {
        p->packed = bigger;
        p->packed_capacity = size;
    }
    etch__record__pack(record, p->packed);
    p->copy = etch__record__unpack(NULL, size, p->packed);
    if (p->copy)
        drop_unknown(p, &p->copy->base);
    return p->copy != NULL;
}

static bool change(struct etch_privacy *p, Etch__Record *r)
{
    switch (r->body_case) {
    case ETCH__RECORD__BODY_PROGRAM:
        return pass_program(p, r->program);
    case ETCH__RECORD__BODY_IMAGE:
        return etch_privacy_learn(p, r->image) && pass_image(p, r->image);
    case ETCH__RECORD__BODY_WATCH:
        return pass_watch(p, r->watch);
    case ETCH__RECORD__BODY_ACCESSES:
        return pass_accesses(p, r->accesses);
    case ETCH__RECORD__BODY_FAILURE:
        return pass_failure(p, r->failure);
    case ETCH__RECORD__BODY_LOSS:
        return pass_loss(p, r->loss);
    default:
        return true;
    }
}

/* Control flow is addresses, and much; the writer's own end is no message of the program's. */
static bool is_harmless(const Etch__Record *record)
{
    return !record->base.n_unknown_fields &&
           (record->body_case == ETCH__RECORD__BODY_END ||
            (record->body_case == ETCH__RECORD__BODY_FLOW && !record->flow->base.n_unknown_fields));
}

const Etch__Record *etch_privacy_pass(void *privacy, const Etch__Record *record)
{
    struct etch_privacy *p = privacy;

    if (is_harmless(record))
        return record;
    return copy(p, record) && change(p, p->copy) ? p->copy : NULL;
}

const Etch__Record *etch_privacy_last(void *privacy)
{
    struct etch_privacy *p = privacy;

    p->last.body_case = ETCH__RECORD__BODY_REDACTION;
    p->last.redaction = &p->count;
    return &p->last;
}

void etch_privacy_guard(struct etch_privacy *p, struct etch_bundle_writer *writer)
{
    const struct etch_bundle_filter filter = {etch_privacy_pass, etch_privacy_last, p};

    etch_bundle_set_filter(writer, &filter);
}
