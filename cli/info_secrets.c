/* SPDX-License-Identifier: MIT */
/* etch info --secrets; see info_secrets.h. */
#include "cli/info_secrets.h"

#include "base/array.h"
#include "collector/privacy.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STRING_LEAST 6u /* printable bytes in a row */
#define EXAMPLES 5u

struct variable {
    uint32_t watch;
    char *name;
    uint64_t values, texts;
};

struct users {
    ETCH_ARRAY(char *) names;
};

struct bytes {
    uint64_t pieces, bytes, strings, variables; /* `variables`: of the environment */
};

struct secrets {
    bool plain, failed;
    struct etch_policy *policy; /* the built-in policy, which knows what looks like a secret */
    Etch__Program *program;
    struct users users;
    ETCH_ARRAY(struct variable) variables;
    uint64_t values, texts, registers, register_texts, masked_registers;
    uint64_t messages, messages_secret;
    char *message;
    uint64_t masked_stacks;
    struct bytes raw_stacks, memory;
    uint64_t damaged, unknown;
    bool host, cut;
};

/* ---- Collecting ---- */

static void take_bytes(struct bytes *b, const ProtobufCBinaryData *data)
{
    size_t from = 0;

    if (!data->len)
        return;
    b->pieces++;
    b->bytes += data->len;
    for (size_t i = 0; i <= data->len; i++) {
        if (i < data->len && isprint(data->data[i]))
            continue;
        if (i - from >= STRING_LEAST) {
            size_t n = from;

            while (n < i && (isupper(data->data[n]) || data->data[n] == '_' || isdigit(data->data[n])))
                n++;
            b->strings++;
            b->variables += n > from && n < i && data->data[n] == '=';
        }
        from = i + 1;
    }
}

static void take_path(struct secrets *s, const char *path)
{
    const char *home = strstr(path, "/home/"), *name = home ? home + 6 : NULL;
    size_t n = name ? strcspn(name, "/") : 0;
    char *copy;

    if (!n || (n == strlen(ETCH_POLICY_MASKED) && strncmp(name, ETCH_POLICY_MASKED, n) == 0))
        return;
    for (size_t i = 0; i < s->users.names.n; i++)
        if (strncmp(s->users.names.v[i], name, n) == 0 && !s->users.names.v[i][n])
            return;
    copy = strndup(name, n);
    if (!copy || !etch_array_push(&s->users.names, copy)) {
        free(copy);
        s->failed = true;
    }
}

static void take_program(struct secrets *s, const Etch__Program *p)
{
    size_t size = etch__program__get_packed_size(p);
    uint8_t *bytes = malloc(size ? size : 1);

    take_path(s, p->exe);
    take_path(s, p->cwd);
    take_path(s, p->plan);
    take_path(s, p->policy);
    for (size_t i = 0; i < p->n_argv; i++)
        take_path(s, p->argv[i]);
    if (s->program)
        etch__program__free_unpacked(s->program, NULL);
    s->program = NULL;
    if (bytes) {
        etch__program__pack(p, bytes);
        s->program = etch__program__unpack(NULL, size, bytes);
    }
    s->failed |= !s->program;
    free(bytes);
}

static struct variable *variable_of(struct secrets *s, uint32_t watch)
{
    struct variable v = {.watch = watch};

    for (size_t i = 0; i < s->variables.n; i++)
        if (s->variables.v[i].watch == watch)
            return &s->variables.v[i];
    if (etch_array_push(&s->variables, v))
        return &s->variables.v[s->variables.n - 1];
    s->failed = true;
    return NULL;
}

static bool is_text(uint64_t word)
{
    return word != ETCH_PRIVACY_MASKED_WORD && etch_policy_type(word)[0] == 't';
}

static void take_value(struct secrets *s, uint32_t watch, uint64_t value)
{
    struct variable *v = variable_of(s, watch);

    s->values++;
    s->texts += is_text(value);
    if (!v)
        return;
    v->values++;
    v->texts += is_text(value);
}

static void take_watch(struct secrets *s, const Etch__Watch *w)
{
    struct variable *v = variable_of(s, w->id);

    if (v && !v->name)
        s->failed |= !(v->name = strdup(w->name));
    if (w->initially_case == ETCH__WATCH__INITIALLY_INITIAL_VALUE)
        take_value(s, w->id, w->initial_value);
}

static void take_registers(struct secrets *s, const uint64_t *registers, size_t n, uint32_t masked)
{
    s->registers += n;
    for (size_t i = 0; i < n; i++) {
        s->register_texts += is_text(registers[i]);
        s->masked_registers += i < 32 && (masked >> i & 1);
    }
}

static void take_stack(struct secrets *s, const ProtobufCBinaryData *stack, bool masked)
{
    if (masked)
        s->masked_stacks += stack->len != 0;
    else
        take_bytes(&s->raw_stacks, stack);
}

static void take_accesses(struct secrets *s, const Etch__Accesses *list)
{
    for (size_t i = 0; i < list->n_accesses; i++) {
        const Etch__Access *a = list->accesses[i];

        if (a->known_case == ETCH__ACCESS__KNOWN_VALUE)
            take_value(s, a->watch, a->value);
        take_registers(s, a->registers, a->n_registers, a->masked);
        take_stack(s, &a->stack, list->stacks_masked);
    }
}

static void take_message(struct secrets *s, const char *text)
{
    uint64_t hidden = 0;

    if (!text || !text[0])
        return;
    s->messages++;
    free(etch_policy_text(s->policy, ETCH_POLICY_MESSAGE, text, NULL, &hidden));
    s->messages_secret += hidden;
    if (!s->message)
        s->failed |= !(s->message = strdup(text));
}

static void take_state(struct secrets *s, const Etch__ThreadState *state)
{
    if (!state)
        return;
    take_registers(s, state->registers, state->n_registers, state->masked);
    take_stack(s, &state->stack, state->stack_masked);
}

static void take_failure(struct secrets *s, const Etch__Failure *f)
{
    const Etch__Exception *e = f->exception;

    take_message(s, f->message);
    for (size_t i = 0; i < f->n_threads; i++)
        take_state(s, f->threads[i]);
    if (!e)
        return;
    if (e->said_case == ETCH__EXCEPTION__SAID_WHAT)
        take_message(s, e->what);
    if (e->known_case == ETCH__EXCEPTION__KNOWN_VALUE) {
        s->values++;
        s->texts += is_text(e->value);
    }
    if (e->thrown)
        take_state(s, e->thrown->state);
    for (size_t i = 0; i < e->n_again; i++)
        take_state(s, e->again[i]->state);
}

static void take(struct secrets *s, const Etch__Record *r)
{
    switch (r->body_case) {
    case ETCH__RECORD__BODY_HOST:
        s->host = true;
        break;
    case ETCH__RECORD__BODY_PROGRAM:
        take_program(s, r->program);
        break;
    case ETCH__RECORD__BODY_IMAGE:
        take_path(s, r->image->path);
        if (strcmp(r->image->path, "[vdso]") != 0) /* the kernel's own code */
            take_bytes(&s->memory, &r->image->code);
        break;
    case ETCH__RECORD__BODY_WATCH:
        take_watch(s, r->watch);
        break;
    case ETCH__RECORD__BODY_ACCESSES:
        take_accesses(s, r->accesses);
        break;
    case ETCH__RECORD__BODY_FAILURE:
        take_failure(s, r->failure);
        break;
    default:
        break;
    }
}

static int collect(struct secrets *s, struct etch_bundle_reader *reader, struct etch_error *err)
{
    for (;;) {
        struct etch_bundle_item item;

        switch (etch_bundle_next(reader, &item, err)) {
        case ETCH_BUNDLE_RECORD:
            if (item.record)
                take(s, item.record);
            s->unknown += !item.record;
            break;
        case ETCH_BUNDLE_DAMAGED:
            s->damaged++;
            break;
        case ETCH_BUNDLE_FAILED:
            return -1;
        case ETCH_BUNDLE_CUT:
            s->cut = true;
            return 0;
        case ETCH_BUNDLE_END:
            return 0;
        }
    }
}

/* ---- Printing ---- */

/* Prints the first two characters and the length, or with `plain` the whole text. A "?" replaces what does not print.
 */
static void print_example(const struct secrets *s, const char *text)
{
    size_t n = strlen(text), shown = s->plain ? n : n > 8 ? 2 : 0;

    for (size_t i = 0; i < shown; i++)
        putchar(isprint((unsigned char)text[i]) ? text[i] : '?');
    if (!s->plain)
        printf("*** (%zu)", n);
}

static void print_arguments(const struct secrets *s)
{
    const Etch__Program *p = s->program;
    struct etch_policy_words words = {""};
    uint64_t hidden = 0, masked = 0;

    for (size_t i = 1; i < p->n_argv; i++) {
        bool is_masked = strstr(p->argv[i], ETCH_POLICY_MASKED) || strcmp(p->argv[i], ETCH_POLICY_DENIED) == 0;

        masked += is_masked;
        if (!is_masked)
            free(etch_policy_text(s->policy, ETCH_POLICY_ARGUMENT, p->argv[i], &words, &hidden));
    }
    printf("arguments    %zu", p->n_argv ? p->n_argv - 1 : 0);
    printf(", %" PRIu64 " hidden already, %" PRIu64 " look like secrets", masked, hidden);
    for (size_t i = 1; i < p->n_argv && i <= EXAMPLES; i++) {
        printf(i == 1 ? ": " : ", ");
        print_example(s, p->argv[i]);
    }
    printf("\n");
}

static void print_paths(const struct secrets *s)
{
    if (s->program) {
        printf("program      ");
        print_example(s, s->program->exe);
        printf(", run in ");
        print_example(s, s->program->cwd);
        printf("\n");
    }
    printf("user names   %zu in paths", s->users.names.n);
    for (size_t i = 0; i < s->users.names.n && i < EXAMPLES; i++) {
        printf(i ? ", " : ": ");
        print_example(s, s->users.names.v[i]);
    }
    printf("\nmachine      %s; no host name\n", s->host ? "kernel, CPU and boot id" : "nothing");
}

static void print_values(const struct secrets *s)
{
    printf("messages     %" PRIu64 ", %" PRIu64 " words look like secrets", s->messages, s->messages_secret);
    if (s->message) {
        printf(": ");
        print_example(s, s->message);
    }
    printf("\nvalues       %" PRIu64 ", %" PRIu64 " hold text", s->values, s->texts);
    for (size_t i = 0; i < s->variables.n && i < EXAMPLES; i++) {
        const struct variable *v = &s->variables.v[i];

        printf(i ? ", " : ": ");
        for (const char *c = v->name ? v->name : "?"; *c; c++)
            putchar(isprint((unsigned char)*c) ? *c : '?');
        printf(" %" PRIu64, v->values);
    }
    printf("\nregisters    %" PRIu64 ", %" PRIu64 " hidden already, %" PRIu64 " hold text\n", s->registers,
           s->masked_registers, s->register_texts);
}

static void print_bytes(const char *name, const struct bytes *b)
{
    printf("%s%" PRIu64 ", %" PRIu64 " bytes, %" PRIu64 " strings\n", name, b->pieces, b->bytes, b->strings);
}

static void print_memory(const struct secrets *s)
{
    uint64_t variables = s->raw_stacks.variables + s->memory.variables;

    printf("stacks       %" PRIu64 " masked: addresses only\n", s->masked_stacks);
    print_bytes("raw stacks   ", &s->raw_stacks);
    print_bytes("raw memory   ", &s->memory);
    if (variables)
        printf("environment  %" PRIu64 " variables, in raw memory\n", variables);
    else
        printf("environment  none\n");
}

static void print_all(const struct secrets *s, const char *path)
{
    printf("%s: what the file would give away\n", path);
    if (s->program)
        print_arguments(s);
    print_paths(s);
    print_values(s);
    print_memory(s);
    if (s->unknown)
        printf("unknown      %" PRIu64 " records of a later version, which may hold anything\n", s->unknown);
    if (s->damaged || s->cut)
        printf("not whole    %" PRIu64 " records are damaged%s: their bytes may hold anything\n", s->damaged,
               s->cut ? ", the file is cut" : "");
}

static void release(struct secrets *s)
{
    for (size_t i = 0; i < s->users.names.n; i++)
        free(s->users.names.v[i]);
    for (size_t i = 0; i < s->variables.n; i++)
        free(s->variables.v[i].name);
    etch_array_free(&s->users.names);
    etch_array_free(&s->variables);
    if (s->program)
        etch__program__free_unpacked(s->program, NULL);
    free(s->message);
    etch_policy_free(s->policy);
}

int etch_info_secrets(const struct etch_command *self, struct etch_bundle_reader *reader, const char *path, bool plain)
{
    struct secrets s = {.plain = plain};
    struct etch_error err;
    int status = etch_policy_standard(&s.policy, &err);

    if (status == 0)
        status = collect(&s, reader, &err);
    if (status == 0 && s.failed)
        status = etch_error_no_memory(&err);
    if (status == 0)
        print_all(&s, path);
    release(&s);
    return status < 0 ? etch_command_failed(self, &err) : ETCH_EXIT_DONE;
}
