/* SPDX-License-Identifier: MIT */
/* Callers of watched accesses; see callers.h. libdwfl's own unwinder goes on by the frame pointer where its tables end,
 * which in libc is anything but a frame pointer: so the steps from frame to frame are made here, by the tables alone.
 */
#include "decoder/values/callers.h"

#include "base/function_name.h"
#include "decoder/unwind.h"

#include <stdlib.h>
#include <string.h>

#define FRAMES_MAX 64u             /* between an access and the program */
#define KERNEL ((uint64_t)1 << 47) /* addresses from here on are its own */

struct callers {
    struct etch_unwind_tables *tables;
    struct etch_symbols *symbols;
    const struct etch_recording *recording;
    const Etch__Access *access;
};

static bool read_stack(const void *context, uint64_t address, uint64_t *word)
{
    const Etch__Access *a = context;
    uint64_t start = a->registers[etch_unwind_perf_register[ETCH_UNWIND_SP]];

    if (address < start || a->stack.len < sizeof(*word) || address - start > a->stack.len - sizeof(*word))
        return false;
    memcpy(word, a->stack.data + (address - start), sizeof(*word));
    return true;
}

/* How near to the user an address is: not in the program, or in a stub that leads out of it; in code of a system header
 * that is part of the program; in the user's own. */
enum nearness { OUTSIDE, HEADER, OWN };

static enum nearness nearness_of(const struct callers *c, uint64_t address)
{
    const struct etch_recording *r = c->recording;
    struct etch_location location;

    for (size_t i = 0; i < r->images.n; i++) {
        const Etch__Image *image = r->images.v[i];

        if (!(image->prot & 4) || address < image->start || address - image->start >= image->size ||
            (image->pid && image->pid != r->program->pid) || strcmp(image->path, r->program->exe) != 0)
            continue;
        etch_symbols_find(c->symbols, image, address, &location);
        if (location.is_plt)
            return OUTSIDE;
        for (const struct etch_frame *f = &location.frame; f; f = f->caller)
            if (!f->file || !etch_file_is_system(f->file))
                return OWN;
        return HEADER;
    }
    return OUTSIDE;
}

static uint64_t find(const struct callers *c)
{
    /* The kernel does not sample these registers, although a system call leaves them alone. */
    static const uint8_t unsampled[] = {3, 12, 13, 14, 15};
    const Etch__Access *a = c->access;
    const struct etch_unwind_memory memory = {read_stack, a};
    struct etch_unwind_frame f = {.known = (1u << ETCH_UNWIND_FRAME_REGISTERS) - 1};
    enum nearness near;
    uint64_t header = 0;

    for (unsigned i = 0; i < ETCH_UNWIND_FRAME_REGISTERS; i++)
        f.r[i] = a->registers[etch_unwind_perf_register[i]];
    for (size_t i = 0; a->ip >= KERNEL && i < sizeof(unsampled); i++)
        f.known &= ~(1u << unsampled[i]);
    if (nearness_of(c, f.r[ETCH_UNWIND_PC]) == OWN)
        return 0;
    for (unsigned i = 0; i < FRAMES_MAX && etch_unwind_tables_step(c->tables, &memory, &f, i == 0); i++) {
        near = nearness_of(c, f.r[ETCH_UNWIND_PC] - 1);
        if (near == OWN)
            return f.r[ETCH_UNWIND_PC];
        if (near == HEADER && !header)
            header = f.r[ETCH_UNWIND_PC];
    }
    return header;
}

uint64_t etch_callers_choose(const struct etch_recording *recording, struct etch_symbols *symbols, uint64_t ip,
                             const uint64_t *addresses, size_t n)
{
    const struct callers c = {.recording = recording, .symbols = symbols};
    uint64_t header = 0;

    if (!recording->program || nearness_of(&c, ip) == OWN)
        return 0;
    for (size_t i = 0; i < n; i++) {
        enum nearness near = nearness_of(&c, addresses[i] - 1);

        if (near == OWN)
            return addresses[i];
        if (near == HEADER && !header)
            header = addresses[i];
    }
    return header;
}

void etch_callers_find(struct etch_recording *r, struct etch_symbols *symbols)
{
    struct callers c = {.recording = r, .symbols = symbols};
    bool tried = false;

    for (size_t i = 0; i < r->accesses.n; i++) {
        Etch__Access *a = &r->accesses.v[i];

        if (!a->stack.len)
            continue;
        if (!tried && r->program) { /* most recordings need none */
            c.tables = etch_unwind_open(r, symbols);
            tried = true;
        }
        c.access = a;
        if (c.tables && a->n_registers >= ETCH_UNWIND_REGISTERS && !a->caller)
            a->caller = find(&c);
        free(a->stack.data);
        a->stack = (ProtobufCBinaryData){0};
    }
    etch_unwind_tables_free(c.tables);
}
