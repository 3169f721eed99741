/* SPDX-License-Identifier: MIT */
/* Unwinding copied stacks with libdwfl; see unwind.h. */
#include "decoder/unwind.h"

#include "base/input.h"

#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FRAMES_MAX 256u

const uint8_t etch_unwind_perf_register[17] = {0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8};

enum { PERF_IP = 8 };

struct unwinding {
    const Etch__ThreadState *state;
    uint64_t frames[FRAMES_MAX];
    size_t n;
};

static pid_t next_thread(Dwfl *dwfl, void *context, void **thread_context)
{
    struct unwinding *u = context;

    (void)dwfl;
    if (*thread_context)
        return 0;
    *thread_context = context;
    return (pid_t)u->state->tid;
}

static bool read_stack(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *word, void *context)
{
    const Etch__ThreadState *s = ((const struct unwinding *)context)->state;

    (void)dwfl;
    if (address < s->stack_start || s->stack.len < sizeof(*word) ||
        address - s->stack_start > s->stack.len - sizeof(*word))
        return false;
    memcpy(word, s->stack.data + (address - s->stack_start), sizeof(*word));
    return true;
}

static bool set_registers(Dwfl_Thread *thread, void *context)
{
    const Etch__ThreadState *s = ((const struct unwinding *)context)->state;
    Dwarf_Word words[16];

    for (size_t i = 0; i < 16; i++)
        words[i] = s->registers[etch_unwind_perf_register[i]];
    dwfl_thread_state_register_pc(thread, s->registers[PERF_IP]);
    return dwfl_thread_state_registers(thread, 0, 16, words);
}

static int on_frame(Dwfl_Frame *frame, void *context)
{
    struct unwinding *u = context;
    Dwarf_Addr pc;

    if (u->n == FRAMES_MAX || !dwfl_frame_pc(frame, &pc, NULL))
        return DWARF_CB_ABORT;
    u->frames[u->n++] = pc;
    return DWARF_CB_OK;
}

static bool is_what_ran(Dwfl_Module *module, const Etch__Image *image)
{
    const unsigned char *id;
    GElf_Addr at;
    int size = dwfl_module_build_id(module, &id, &at);

    return size <= 0 || !image->build_id.len ||
           ((size_t)size == image->build_id.len && memcmp(id, image->build_id.data, (size_t)size) == 0);
}

/* Returns false where a file is not the one that ran any more. */
static bool report_images(Dwfl *dwfl, const struct etch_recording *r, struct etch_symbols *symbols)
{
    for (size_t i = 0; i < r->images.n; i++) {
        const Etch__Image *image = r->images.v[i];
        struct etch_location location;
        bool known = false;
        Dwfl_Module *module;
        int fd;

        for (size_t k = 0; k < i; k++)
            known |= (r->images.v[k]->prot & 4) && strcmp(r->images.v[k]->path, image->path) == 0;
        fd = known || !(image->prot & 4) || image->path[0] != '/' ? -1 : etch_input_open(image->path);
        if (fd < 0)
            continue;
        etch_symbols_find(symbols, image, image->start, &location);
        module = dwfl_report_elf(dwfl, image->path, image->path, fd, image->start - location.module_offset, true);
        if (!module)
            close(fd); /* else it is the module's */
        if (module && !is_what_ran(module, image))
            return false;
    }
    return true;
}

/* The chain of frame pointers misses the caller of a function that keeps none, as most of libc's; where it goes on
 * beyond what the tables know it is the better one. */
static void replace(Etch__ThreadState *state, const struct unwinding *u)
{
    bool better = u->n > 1 && (state->frames_scanned || u->n >= state->n_frames);
    uint64_t *frames = better ? malloc(u->n * sizeof(*frames)) : NULL;

    if (!frames)
        return;
    memcpy(frames, u->frames, u->n * sizeof(*frames));
    free(state->frames);
    state->frames = frames;
    state->n_frames = u->n;
    state->frames_scanned = false;
}

static void unwind(Dwfl *dwfl, Etch__ThreadState *state, struct unwinding *u)
{
    *u = (struct unwinding){.state = state};
    dwfl_getthread_frames(dwfl, (pid_t)state->tid, on_frame, u);
    replace(state, u);
}

static bool is_stub(const struct etch_recording *r, struct etch_symbols *symbols, uint64_t address)
{
    struct etch_location location;

    for (size_t i = 0; i < r->images.n; i++) {
        const Etch__Image *image = r->images.v[i];

        if (!(image->prot & 4) || address < image->start || address - image->start >= image->size)
            continue;
        etch_symbols_find(symbols, image, address, &location);
        return location.is_plt;
    }
    return false;
}

/* What leads from one function to another is no place in the program. */
static void drop_stubs(const struct etch_recording *r, struct etch_symbols *symbols, Etch__ThreadState *state)
{
    size_t n = 0;

    for (size_t i = 0; i < state->n_frames; i++)
        if (!is_stub(r, symbols, state->frames[i] - (i > 0)))
            state->frames[n++] = state->frames[i];
    state->n_frames = n;
}

/* The unwind tables are in the file itself. libdwfl's own search would open whatever a file names as its debug file, a
 * pipe say, and ask servers. */
static int find_nothing(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, const char *file,
                        const char *link, GElf_Word crc, char **found)
{
    (void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)crc, (void)found;
    return -1;
}

static int find_no_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, char **file, Elf **elf)
{
    (void)module, (void)data, (void)name, (void)base, (void)file, (void)elf;
    return -1;
}

Dwfl *etch_unwind_open(const struct etch_recording *r, struct etch_symbols *symbols)
{
    static const Dwfl_Callbacks callbacks = {
        .find_elf = find_no_elf, .find_debuginfo = find_nothing, .section_address = dwfl_offline_section_address};
    Dwfl *dwfl = dwfl_begin(&callbacks);

    if (!dwfl)
        return NULL;
    dwfl_report_begin(dwfl);
    if (report_images(dwfl, r, symbols) && dwfl_report_end(dwfl, NULL, NULL) == 0)
        return dwfl;
    dwfl_end(dwfl);
    return NULL;
}

/* One look at a recording's code for all its threads. */
struct unwinder {
    const struct etch_recording *recording;
    struct etch_symbols *symbols;
    Dwfl *dwfl;
    bool tried;
    struct unwinding u;
};

static Dwfl *dwfl_of(struct unwinder *w, pid_t tid)
{
    static const Dwfl_Thread_Callbacks threads = {
        .next_thread = next_thread, .memory_read = read_stack, .set_initial_registers = set_registers};

    if (w->tried)
        return w->dwfl;
    w->tried = true;
    w->dwfl = etch_unwind_open(w->recording, w->symbols);
    if (w->dwfl && !dwfl_attach_state(w->dwfl, NULL, tid, &threads, &w->u)) {
        dwfl_end(w->dwfl);
        w->dwfl = NULL;
    }
    return w->dwfl;
}

static void unwind_state(struct unwinder *w, Etch__ThreadState *state)
{
    Dwfl *dwfl;

    if (state->n_registers >= ETCH_UNWIND_REGISTERS && state->stack.len && state->tid) {
        w->u.state = state;
        dwfl = dwfl_of(w, (pid_t)state->tid);
        if (!dwfl)
            return;
        unwind(dwfl, state, &w->u);
    }
    drop_stubs(w->recording, w->symbols, state);
}

void etch_unwind_failure(struct etch_recording *r, struct etch_symbols *symbols)
{
    Etch__Exception *e = r->failure ? r->failure->exception : NULL;
    struct unwinder w = {.recording = r, .symbols = symbols};

    for (size_t i = 0; r->failure && i < r->failure->n_threads; i++)
        unwind_state(&w, r->failure->threads[i]);
    if (e && e->thrown && e->thrown->state)
        unwind_state(&w, e->thrown->state);
    for (size_t i = 0; e && i < e->n_again; i++)
        if (e->again[i]->state)
            unwind_state(&w, e->again[i]->state);
    if (w.dwfl)
        dwfl_end(w.dwfl);
}
