/* SPDX-License-Identifier: MIT */
/* See stack.h. */
#include "collector/native/stack.h"

#include "binary/object.h"
#include "collector/native/frames.h"
#include "collector/policy/stack_mask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Code ---- */

struct code {
    const struct etch_stack_memory *memory;
    uint64_t interrupted; /* where a signal's frame has the address of what it interrupted; 0: no such frame yet */
};

static const struct etch_mapping *code_at(const struct code *code, uint64_t address)
{
    const struct etch_mapping *mapping = etch_mappings_at(code->memory->mappings, address);

    return mapping && (mapping->prot & 4) ? mapping : NULL;
}

static size_t read_memory(const struct etch_stack_memory *memory, uint64_t address, void *buffer, size_t size)
{
    return memory->read(memory->context, address, buffer, size);
}

static bool follows_call(void *context, uint64_t address)
{
    const struct code *code = context;
    const struct etch_mapping *mapping = code_at(code, address - 1);
    uint8_t bytes[7];
    size_t n;

    if (!mapping)
        return false;
    n = address - mapping->start < sizeof(bytes) ? address - mapping->start : sizeof(bytes);
    return read_memory(code->memory, address - n, bytes, n) == n && etch_code_ends_in_call(bytes + n, n);
}

/* ---- Stacks ---- */

/* Returns true if signal handlers return to this address: the code of every libc for the system call rt_sigreturn. */
static bool returns_from_signal(const struct code *code, uint64_t address)
{
    static const uint8_t far[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05},
                         near[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};
    uint8_t bytes[sizeof(far)];

    return read_memory(code->memory, address, bytes, sizeof(bytes)) == sizeof(bytes) &&
           (memcmp(bytes, far, sizeof(far)) == 0 || memcmp(bytes, near, sizeof(near)) == 0);
}

/* Accepts the words that the unwind tables look for: return addresses, and in a signal frame the address of the
 * interrupted instruction. This address lies 176 bytes above the return address (struct ucontext). */
static bool is_code(void *context, uint64_t address, uint64_t word)
{
    struct code *code = context;

    if (!code_at(code, word) && !code_at(code, word - 1))
        return false;
    if (returns_from_signal(code, word)) {
        code->interrupted = address + 176;
        return true;
    }
    return address == code->interrupted || follows_call(code, word);
}

static uint64_t mask_stack(const struct etch_stack_memory *memory, Etch__ThreadState *state, struct code *code,
                           uint64_t high)
{
    struct etch_stack_mask mask = {state->stack_start, state->stack_start, high, is_code, code};

    if (memory->keep)
        return 0;
    state->stack_masked = true;
    return etch_stack_mask(&mask, state->stack.data, state->stack.len);
}

/* How much there is from the stack pointer up, without arguments and environment. */
static size_t stack_size(const struct etch_stack_memory *memory, const struct etch_mapping *mapping, uint64_t sp)
{
    uint64_t end = mapping ? mapping->end : sp + ETCH_FAILURE_STACK_MAX;

    if (!memory->keep && memory->arguments > sp && memory->arguments < end)
        end = memory->arguments;
    return end - sp < ETCH_FAILURE_STACK_MAX ? end - sp : ETCH_FAILURE_STACK_MAX;
}

uint64_t etch_stack_take(const struct etch_stack_memory *memory, Etch__ThreadState *state, uint64_t ip, uint64_t sp,
                         uint64_t bp)
{
    const struct etch_mapping *mapping = etch_mappings_at(memory->mappings, sp);
    struct code code = {memory, 0};
    struct etch_frames_stack stack = {ip, sp, bp, NULL, 0, follows_call, &code};
    size_t size = stack_size(memory, mapping, sp);
    bool scanned = false;
    uint64_t masked;

    state->stack_start = sp;
    state->stack.data = sp ? malloc(size) : NULL;
    if (state->stack.data)
        state->stack.len = read_memory(memory, sp, state->stack.data, size);
    masked = mask_stack(memory, state, &code, mapping ? mapping->end : sp + size);
    state->frames = calloc(ETCH_FAILURE_FRAMES_MAX, sizeof(*state->frames));
    if (!state->frames)
        return masked;
    stack.bytes = state->stack.data;
    stack.size = state->stack.len;
    state->n_frames = etch_frames_find(&stack, state->frames, ETCH_FAILURE_FRAMES_MAX, &scanned);
    state->frames_scanned = scanned;
    return masked;
}

/* ---- Messages ---- */

/* The message of assert() or libc before abort(). glibc keeps the message in __abort_msg, a pointer to a size and the
 * text. */
char *etch_abort_message(const struct etch_stack_memory *memory, const char *root)
{
    const struct etch_mappings *mappings = memory->mappings;
    const struct etch_mapping *libc = NULL;
    struct etch_object *object;
    struct etch_symbol symbol;
    struct etch_error ignored;
    uint64_t pointer = 0;
    char path[4200], text[1024 + 1] = "";
    size_t n = 0;

    for (size_t i = 0; i < mappings->list.n && !libc; i++)
        if (strstr(mappings->list.v[i].path, "/libc.so.6"))
            libc = &mappings->list.v[i];
    if (!libc)
        return NULL;
    snprintf(path, sizeof(path), "%s%s", root, libc->path);
    if (etch_object_open(&object, path, &ignored) < 0)
        return NULL;
    if (etch_object_symbol(object, "__abort_msg", &symbol) &&
        read_memory(memory, symbol.address + etch_object_bias(object, libc->start, libc->offset), &pointer, 8) == 8 &&
        pointer)
        n = read_memory(memory, pointer + 4, text, sizeof(text) - 1);
    etch_object_free(object);
    text[n] = '\0';
    text[strcspn(text, "\n")] = '\0';
    for (char *c = text; *c; c++)
        if ((unsigned char)*c >= 0x80 || (unsigned char)*c < 0x20)
            *c = '?'; /* a protobuf string is UTF-8, and memory is not */
    return text[0] ? strdup(text) : NULL;
}
