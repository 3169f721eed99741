/* SPDX-License-Identifier: MIT */
/* The last instructions of a thread as a question to the engine; see last_values.h. */
#include "decoder/last_values.h"

#include "base/array.h"
#include "base/log.h"
#include "binary/object.h"
#include "decoder/code.h"
#include "decoder/last_memory.h"
#include "decoder/unwind.h"
#include "decoder/values/private_frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTION_MAX 65536u /* bytes of a function that are looked through */
#define FRAMES_MAX 256u
#define INSTRUCTION_MAX 15u

enum { SP = 7, IP = 8, FS = 14 };

/* An answer that is asked for many times. */
struct known_frame {
    uint64_t start, end;
    enum etch_stack_frame frame;
};

struct known_effect {
    uint64_t called;
    const struct etch_library_effect *effect;
};

struct asking {
    struct etch_recording *recording;
    struct etch_symbols *symbols; /* a table of its own: with the linker's names */
    const struct etch_last_thread *thread;
    struct etch_last_memory *memory;
    struct etch_code *code;
    uint32_t pid;
    struct etch_backward_instruction *list;
    size_t n;
    struct etch_backward_question question;
    ETCH_ARRAY(struct known_frame) frames;
    ETCH_ARRAY(struct known_effect) effects;
};

/* ---- Code ---- */

static const uint8_t *code_at(const struct asking *a, uint64_t ip, size_t *size)
{
    const struct etch_code_space *space = etch_code_space_of(a->code, a->pid);
    const char *why;
    const struct etch_code_section *s = etch_code_find(space, ip, 0, etch_code_space_changes(space), &why);

    *size = s && s->bytes && ip - s->start < s->size ? (size_t)(s->size - (ip - s->start)) : 0;
    return *size ? s->bytes + (ip - s->start) : NULL;
}

/* ---- Functions that keep their stack to themselves ---- */

static struct known_frame look_at_function(struct asking *a, uint64_t ip)
{
    const Etch__Image *image = etch_recording_image_at(a->recording, a->pid, ip);
    struct etch_location l = {0}, next;
    struct known_frame f = {ip, ip + 1, ETCH_FRAME_OPEN};
    const uint8_t *bytes;
    size_t size;

    etch_symbols_find(a->symbols, image, ip, &l);
    if (!image || !l.symbol)
        return f;
    f.start = ip - l.offset;
    for (f.end = l.until; f.end - f.start < FUNCTION_MAX; f.end = next.until) {
        etch_symbols_find(a->symbols, image, f.end, &next);
        if (next.symbol != l.symbol)
            break;
    }
    bytes = code_at(a, f.start, &size);
    if (bytes && f.end - f.start <= size && f.end - f.start < FUNCTION_MAX)
        f.frame = etch_frame_of(bytes, (size_t)(f.end - f.start));
    return f;
}

static enum etch_stack_frame frame_of(struct asking *a, uint64_t ip)
{
    struct known_frame f;

    for (size_t i = a->frames.n; i-- > 0;)
        if (a->frames.v[i].start <= ip && ip < a->frames.v[i].end)
            return a->frames.v[i].frame;
    f = look_at_function(a, ip);
    (void)etch_array_push(&a->frames, f);
    return f.frame;
}

/* ---- What unseen code writes ---- */

/* Libraries whose functions have the effects that their names say. */
static bool is_system_library(const char *path)
{
    static const char *const names[] = {"libc.so",     "libc-",      "libm.so",  "libm-", "libstdc++.so",
                                        "libgcc_s.so", "libpthread", "ld-linux", "ld-2",  "etch-sync.so"};
    const char *name = strrchr(path, '/');

    for (size_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++)
        if (strncmp(name + 1, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* True if the program or a library of its own defines the name: the call may have led there. */
static bool is_replaced(const struct asking *a, const char *name)
{
    for (size_t i = 0; i < a->recording->images.n; i++) {
        const Etch__Image *image = a->recording->images.v[i];
        struct etch_object *object = NULL;
        struct etch_symbol symbol;
        struct etch_error ignored;
        bool defined;

        if (!(image->prot & 4) || image->path[0] != '/' || is_system_library(image->path))
            continue;
        if (etch_object_open(&object, image->path, &ignored) < 0)
            return true;
        defined = etch_object_symbol(object, name, &symbol) > 0;
        etch_object_free(object);
        if (defined)
            return true;
    }
    return false;
}

static const struct etch_library_effect *find_effect(struct asking *a, uint64_t called)
{
    static const struct etch_library_effect recorder = {.unseen = ETCH_UNSEEN_LIBRARY};
    const Etch__Image *image = etch_recording_image_at(a->recording, a->pid, called);
    const struct etch_library_effect *all = etch_library_effect_of(NULL), *effect;
    struct etch_location l = {0};
    char name[256];

    etch_symbols_find(a->symbols, image, called, &l);
    if (!image || !l.symbol)
        return all;
    if (!l.is_plt && !is_system_library(image->path)) /* the recorder's own functions write the ring */
        return strncmp(l.symbol, "etch_soft_", 10) == 0 ? &recorder : all;
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(l.symbol, "@"), l.symbol);
    effect = etch_library_effect_of(name);
    return effect != all && is_replaced(a, name) ? all : effect;
}

static const struct etch_library_effect *effect_of(struct asking *a, uint64_t called)
{
    struct known_effect e = {.called = called};

    for (size_t i = 0; i < a->effects.n; i++)
        if (a->effects.v[i].called == called)
            return a->effects.v[i].effect;
    e.effect = called ? find_effect(a, called) : etch_library_effect_of(NULL);
    (void)etch_array_push(&a->effects, e);
    return e.effect;
}

/* ---- The list ---- */

static bool add_instruction(struct asking *a, const struct etch_last_instruction *from)
{
    struct etch_backward_instruction *to = &a->list[a->n];
    size_t size;

    *to = (struct etch_backward_instruction){.address = from->ip, .bytes = code_at(a, from->ip, &size)};
    if (!to->bytes)
        return false;
    to->size = (uint8_t)(size < INSTRUCTION_MAX ? size : INSTRUCTION_MAX);
    to->frame = (uint8_t)frame_of(a, from->ip);
    if (from->gap == ETCH_LAST_GAP_LOSS)
        to->unseen = ETCH_UNSEEN_ANY;
    else if (from->gap == ETCH_LAST_GAP_CALL) {
        to->effect = effect_of(a, from->called);
        to->unseen = (uint8_t)to->effect->unseen;
    }
    a->n++;
    return true;
}

/* Indexes stay those of the caller: an instruction whose bytes are not known ends the list, seen from its end. */
static size_t first_usable(struct asking *a)
{
    size_t size, i = a->thread->n;

    while (i > 0 && code_at(a, a->thread->instructions[i - 1].ip, &size))
        i--;
    return i;
}

static int fill_list(struct asking *a, size_t first, struct etch_error *err)
{
    a->list = calloc(a->thread->n - first + 1, sizeof(*a->list)); /* and the one that failed */
    if (!a->list)
        return etch_error_no_memory(err);
    for (size_t i = first; i < a->thread->n; i++)
        if (!add_instruction(a, &a->thread->instructions[i]))
            return etch_error_set(err, "the code at the end of the thread is not at hand");
    return a->n ? 0 : etch_error_set(err, "the last instructions of the failing thread are not known");
}

/* ---- The end ---- */

static bool read_word(const void *context, uint64_t address, uint64_t *word)
{
    return etch_last_memory_read((void *)(uintptr_t)context, address, word, sizeof(*word)) == sizeof(*word);
}

static struct etch_unwind_frame frame_at_end(const struct asking *a)
{
    struct etch_unwind_frame f = {0};

    for (unsigned i = 0; i < ETCH_UNWIND_FRAME_REGISTERS; i++) {
        unsigned perf = etch_unwind_perf_register[i];

        f.r[i] = a->question.registers[perf];
        f.known |= (uint32_t)!(a->question.masked >> perf & 1) << i;
    }
    return f;
}

/* Registers that functions keep for their callers. */
static bool is_kept(unsigned perf)
{
    return perf == 1 || perf == 6 || perf == SP || perf >= 20;
}

static void take_frame(struct asking *a, const struct etch_unwind_frame *f)
{
    a->question.masked = ~0u;
    for (unsigned i = 0; i < ETCH_UNWIND_FRAME_REGISTERS; i++) {
        unsigned perf = etch_unwind_perf_register[i];

        if (!(f->known >> i & 1) || !is_kept(perf))
            continue;
        a->question.registers[perf] = f->r[i];
        a->question.masked &= ~(1u << perf);
    }
}

/* The thread ended in unseen code. Unwinds to the last call that was seen, which returns to `to`. */
static bool unwind_to(struct asking *a, uint64_t to)
{
    const struct etch_unwind_memory memory = {read_word, a->memory};
    struct etch_unwind_tables *tables = etch_unwind_open(a->recording, a->symbols);
    struct etch_unwind_frame f = frame_at_end(a);
    bool found = false;

    for (size_t i = 0; tables && i < FRAMES_MAX && !found; i++) {
        if (!etch_unwind_tables_step(tables, &memory, &f, i == 0))
            break;
        found = (f.known >> ETCH_UNWIND_PC & 1) && f.r[ETCH_UNWIND_PC] == to;
    }
    if (found)
        take_frame(a, &f);
    etch_unwind_tables_free(tables);
    return found;
}

static int end_in_unseen(struct asking *a, struct etch_error *err)
{
    const struct etch_library_effect *effect = effect_of(a, a->thread->called);
    const struct etch_backward_instruction *call = &a->list[a->n - 1];
    unsigned length = etch_backward_length(call->bytes, call->size);

    if (!length || !unwind_to(a, call->address + length))
        return etch_error_set(err, "the stack of the failing thread does not lead to its last known instruction");
    a->question.unseen_after = effect->unseen;
    a->question.effect_after = effect;
    return 0;
}

static int end_in_code(struct asking *a, struct etch_error *err)
{
    struct etch_last_instruction failed = {.ip = a->question.registers[IP], .gap = a->thread->gap};

    if (a->list[a->n - 1].address != failed.ip && !add_instruction(a, &failed))
        return etch_error_set(err, "the failing instruction is not known");
    a->list[a->n - 1].incomplete = true;
    return 0;
}

static bool is_end_unseen(const struct asking *a)
{
    return a->thread->gap == ETCH_LAST_GAP_CALL && a->list[a->n - 1].address != a->question.registers[IP];
}

/* ---- The answer ---- */

/* True if another explicit access of the same instruction goes the same way: each is a part of an operand. */
static bool is_part(const struct etch_backward *answer, size_t i, const struct etch_backward_access *access)
{
    size_t n = etch_backward_accesses(answer);
    struct etch_backward_access other;

    for (size_t k = i > 16 ? i - 16 : 0; k < n && k < i + 16; k++) {
        etch_backward_access(answer, k, &other);
        if (k != i && other.instruction == access->instruction && other.write == access->write && !other.implicit)
            return true;
    }
    return false;
}

static int visit_all(struct asking *a, const struct etch_backward *answer, size_t first, etch_last_visitor *visit,
                     void *context, struct etch_last_count *count)
{
    count->engine = etch_backward_count(answer);
    for (size_t i = 0; i < etch_backward_accesses(answer); i++) {
        struct etch_backward_access access;
        int status;

        etch_backward_access(answer, i, &access);
        if (!access.size || access.implicit)
            continue;
        count->accesses++;
        if (access.how == ETCH_HOW_UNKNOWN || first + access.instruction >= a->thread->n || is_part(answer, i, &access))
            continue;
        count->known++;
        access.instruction += (uint32_t)first;
        status = visit(context, &access);
        if (status)
            return status;
    }
    return 0;
}

static int ask(struct asking *a, etch_last_visitor *visit, void *context, struct etch_last_count *count,
               struct etch_error *err)
{
    struct etch_backward *answer;
    size_t first = first_usable(a);
    int status;

    count->threaded = a->question.threads = etch_last_memory_is_threaded(a->memory);
    etch_last_memory_registers(a->memory, a->question.registers, &a->question.masked);
    a->question.fs_base = a->question.registers[FS];
    a->question.fs_base_known = a->question.fs_base && !(a->question.masked >> FS & 1);
    a->question.read = etch_last_memory_read;
    a->question.kind = etch_last_memory_kind;
    a->question.context = a->memory;
    if (fill_list(a, first, err) < 0 || (is_end_unseen(a) ? end_in_unseen(a, err) : end_in_code(a, err)) < 0)
        return -1;
    a->question.instructions = a->list;
    a->question.n = a->n;
    if (etch_backward_solve(&answer, &a->question, err) < 0)
        return -1;
    status = visit_all(a, answer, first, visit, context, count);
    etch_backward_free(answer);
    return status;
}

int etch_last_values(struct etch_recording *recording, const struct etch_last_thread *thread, etch_last_visitor *visit,
                     void *context, struct etch_last_count *count, struct etch_error *err)
{
    static const struct etch_symbols_options linkers = {.mangled = true};
    struct asking a = {.recording = recording,
                       .symbols = etch_symbols_new(&linkers),
                       .thread = thread,
                       .pid = recording->failure ? recording->failure->pid : 0};
    int status = -1;

    memset(count, 0, sizeof(*count));
    if (!a.symbols)
        return etch_error_no_memory(err);
    if (etch_last_memory_open(&a.memory, recording, thread->state, thread->core, err) == 0 &&
        etch_code_open(&a.code, recording, NULL, err) == 0)
        status = ask(&a, visit, context, count, err);
    if (status == 0)
        etch_log(ETCH_LOG_VALUES, ETCH_LOG_DEBUG,
                 "values of %zu of %zu accesses in %zu instructions, %zu contradictions", count->known, count->accesses,
                 a.n, count->engine.contradictions);
    etch_symbols_free(a.symbols);
    etch_code_free(a.code);
    etch_last_memory_free(a.memory);
    etch_array_free(&a.frames);
    etch_array_free(&a.effects);
    free(a.list);
    return status;
}
