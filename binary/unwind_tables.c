/* SPDX-License-Identifier: MIT */
/* Unwind tables by libdwfl; see unwind_tables.h. */
#include "binary/unwind_tables.h"

#include "base/input.h"
#include "binary/object.h"
#include "binary/unwind_rules.h"

#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREAD = 1 }; /* libdwfl wants a number; there is one thread at a time */

/* The thread that is walked. */
struct walk {
    const struct etch_unwind_memory *memory;
    const struct etch_unwind_frame *innermost;
    uint64_t *frames;
    size_t n, limit;
};

struct etch_unwind_tables {
    Dwfl *dwfl;
    struct walk walk; /* libdwfl's callbacks get it */
};

/* ---- Files ---- */

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

struct etch_unwind_tables *etch_unwind_tables_new(void)
{
    static const Dwfl_Callbacks callbacks = {
        .find_elf = find_no_elf, .find_debuginfo = find_nothing, .section_address = dwfl_offline_section_address};
    struct etch_unwind_tables *tables = calloc(1, sizeof(*tables));

    if (!tables || !(tables->dwfl = dwfl_begin(&callbacks))) {
        free(tables);
        return NULL;
    }
    dwfl_report_begin(tables->dwfl);
    return tables;
}

void etch_unwind_tables_free(struct etch_unwind_tables *tables)
{
    if (tables)
        dwfl_end(tables->dwfl);
    free(tables);
}

static bool is_what_ran(const Etch__Image *image)
{
    struct etch_error ignored;
    struct etch_elf elf;

    return etch_elf_read(&elf, image->path, &ignored) == 0 &&
           (!image->build_id.len || (elf.build_id_size == image->build_id.len &&
                                     memcmp(elf.build_id, image->build_id.data, elf.build_id_size) == 0));
}

void etch_unwind_tables_add(struct etch_unwind_tables *tables, const Etch__Image *image, uint64_t bias)
{
    int fd = is_what_ran(image) ? etch_input_open(image->path) : -1;

    if (fd >= 0 && !dwfl_report_elf(tables->dwfl, image->path, image->path, fd, bias, true))
        close(fd); /* else the module closes it */
}

/* ---- From frame to frame ---- */

static Dwarf_Frame *rules_of(Dwarf_CFI *cfi, uint64_t address)
{
    Dwarf_Frame *rules = NULL;

    return cfi && dwarf_cfi_addrframe(cfi, address, &rules) == 0 ? rules : NULL;
}

static Dwarf_Frame *rules_at(struct etch_unwind_tables *t, uint64_t pc)
{
    Dwfl_Module *module = dwfl_addrmodule(t->dwfl, pc);
    Dwarf_Addr bias;
    Dwarf_Frame *rules;
    Dwarf_CFI *cfi;

    if (!module)
        return NULL;
    cfi = dwfl_module_eh_cfi(module, &bias);
    rules = rules_of(cfi, pc - bias);
    if (rules)
        return rules;
    cfi = dwfl_module_dwarf_cfi(module, &bias);
    return rules_of(cfi, pc - bias);
}

/* The tables are for the next instruction in the innermost frame, and for the call that was made in all others. */
bool etch_unwind_tables_step(struct etch_unwind_tables *tables, const struct etch_unwind_memory *memory,
                             struct etch_unwind_frame *frame, bool innermost)
{
    Dwarf_Frame *rules = rules_at(tables, frame->r[ETCH_UNWIND_PC] - !innermost);
    bool found = rules && etch_unwind_rules_apply(rules, memory, frame);

    free(rules);
    return found;
}

/* ---- All frames, by libdwfl's own unwinder ---- */

static pid_t next_thread(Dwfl *dwfl, void *context, void **thread_context)
{
    (void)dwfl;
    if (*thread_context)
        return 0;
    *thread_context = context;
    return THREAD;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *word, void *context)
{
    const struct etch_unwind_memory *memory = ((const struct walk *)context)->memory;

    (void)dwfl;
    return memory->read(memory->context, address, word);
}

static bool set_registers(Dwfl_Thread *thread, void *context)
{
    const struct etch_unwind_frame *f = ((const struct walk *)context)->innermost;

    dwfl_thread_state_register_pc(thread, f->r[ETCH_UNWIND_PC]);
    return dwfl_thread_state_registers(thread, 0, 16, f->r);
}

static int on_frame(Dwfl_Frame *frame, void *context)
{
    struct walk *walk = context;
    Dwarf_Addr pc;

    if (walk->n == walk->limit || !dwfl_frame_pc(frame, &pc, NULL))
        return DWARF_CB_ABORT;
    walk->frames[walk->n++] = pc;
    return DWARF_CB_OK;
}

bool etch_unwind_tables_finish(struct etch_unwind_tables *tables)
{
    static const Dwfl_Thread_Callbacks callbacks = {
        .next_thread = next_thread, .memory_read = read_memory, .set_initial_registers = set_registers};

    return dwfl_report_end(tables->dwfl, NULL, NULL) == 0 &&
           dwfl_attach_state(tables->dwfl, NULL, THREAD, &callbacks, &tables->walk);
}

size_t etch_unwind_tables_walk(struct etch_unwind_tables *tables, const struct etch_unwind_memory *memory,
                               const struct etch_unwind_frame *innermost, uint64_t *frames, size_t limit)
{
    tables->walk = (struct walk){.memory = memory, .innermost = innermost, .frames = frames, .limit = limit};
    dwfl_getthread_frames(tables->dwfl, THREAD, on_frame, &tables->walk);
    return tables->walk.n;
}
