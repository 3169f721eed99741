/* SPDX-License-Identifier: MIT */
/* See core_notes.h. */
#include "binary/core_notes.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/user.h>

#define FILES_MAX ((uint64_t)16 << 20) /* bytes of the note with the mapped files; the kernel writes at most 4 MiB */
#define MAPPED_NOTES_MAX ((uint64_t)64 << 10)
#define SEGMENTS_MAX 128u /* of a mapped ELF file */

/* ---- A sequence of notes ---- */

struct note {
    uint32_t type;
    char name[8];
    uint64_t position; /* of the description */
    uint64_t size;
};

struct notes {
    const struct etch_core_reader *reader;
    uint64_t at, end;
    bool cut;
};

static bool next_note(struct notes *notes, struct note *note)
{
    Elf64_Nhdr header;
    uint64_t left = notes->end - notes->at, name, all;

    if (left < sizeof(header))
        return false;
    if (notes->reader->read(notes->reader->context, notes->at, &header, sizeof(header)) != sizeof(header)) {
        notes->cut = true;
        return false;
    }
    name = ((uint64_t)header.n_namesz + 3) & ~(uint64_t)3;
    all = sizeof(header) + name + (((uint64_t)header.n_descsz + 3) & ~(uint64_t)3);
    *note =
        (struct note){.type = header.n_type, .position = notes->at + sizeof(header) + name, .size = header.n_descsz};
    if (header.n_namesz <= sizeof(note->name))
        notes->reader->read(notes->reader->context, notes->at + sizeof(header), note->name, header.n_namesz);
    note->name[sizeof(note->name) - 1] = '\0';
    if (sizeof(header) + name + note->size > left) {
        notes->cut = true;
        return false;
    }
    notes->at += all < left ? all : left;
    return true;
}

static bool read_note(struct notes *notes, const struct note *note, void *into, size_t size)
{
    if (note->size < size)
        return false;
    if (notes->reader->read(notes->reader->context, note->position, into, size) == size)
        return true;
    notes->cut = true;
    return false;
}

/* ---- Threads ---- */

static void order_registers(const struct user_regs_struct *r, uint64_t out[ETCH_CORE_REGISTERS])
{
    const uint64_t ordered[ETCH_CORE_REGISTERS] = {
        r->rax, r->rbx, r->rcx,     r->rdx,     r->rsi, r->rdi, r->rbp, r->rsp, r->rip, r->eflags, r->cs,  r->ss,
        r->ds,  r->es,  r->fs_base, r->gs_base, r->r8,  r->r9,  r->r10, r->r11, r->r12, r->r13,    r->r14, r->r15};

    memcpy(out, ordered, sizeof(ordered));
}

static bool take_thread(struct etch_core_contents *c, struct notes *notes, const struct note *note)
{
    struct elf_prstatus status;
    struct user_regs_struct registers;
    struct etch_core_thread thread = {0};

    if (!read_note(notes, note, &status, sizeof(status)))
        return true;
    memcpy(&registers, &status.pr_reg, sizeof(registers));
    thread.tid = (uint32_t)status.pr_pid;
    thread.signal = status.pr_cursig;
    thread.system_call = registers.orig_rax;
    order_registers(&registers, thread.registers);
    return etch_array_push(&c->threads, thread);
}

/* The kernel writes one for the core, behind its first thread; a debugger writes one behind each thread. */
static void take_signal(struct etch_core_contents *c, struct notes *notes, const struct note *note)
{
    struct etch_core_thread *thread = c->threads.n ? &c->threads.v[c->threads.n - 1] : NULL;
    uint8_t info[24];
    int32_t number;

    if (!thread || thread->signal_known || !read_note(notes, note, info, sizeof(info)))
        return;
    memcpy(&number, info, 4);
    memcpy(&thread->signal_code, info + 8, 4);
    memcpy(&thread->signal_address, info + 16, 8);
    thread->signal_known = number != 0;
    if (number > 0 && number < 65 && !thread->signal)
        thread->signal = number;
}

static void copy_text(char *to, const char *from, size_t size)
{
    memcpy(to, from, size);
    to[size] = '\0';
}

static void take_process(struct etch_core_contents *c, struct notes *notes, const struct note *note)
{
    struct elf_prpsinfo info;

    if (!read_note(notes, note, &info, sizeof(info)))
        return;
    c->pid = (uint32_t)info.pr_pid;
    copy_text(c->name, info.pr_fname, sizeof(info.pr_fname));
    copy_text(c->arguments, info.pr_psargs, sizeof(info.pr_psargs));
}

static void take_auxv(struct etch_core_vector *auxv, struct notes *notes, const struct note *note)
{
    size_t n = note->size / sizeof(auxv->entries[0]);

    if (n > ETCH_CORE_AUXV_MAX)
        n = ETCH_CORE_AUXV_MAX;
    auxv->n = read_note(notes, note, auxv->entries, n * sizeof(auxv->entries[0])) ? n : 0;
}

/* ---- Files ---- */

static bool add_file(struct etch_core_contents *c, const uint64_t numbers[3], uint64_t page, const char *path)
{
    struct etch_core_file file = {.start = numbers[0], .end = numbers[1], .offset = numbers[2] * page};

    if (file.start >= file.end)
        return true;
    file.path = strdup(path);
    if (file.path && etch_array_push(&c->files, file))
        return true;
    free(file.path);
    return false;
}

/* Count, page size, three numbers for each file, the names. */
static bool parse_files(struct etch_core_contents *c, const uint8_t *bytes, size_t size)
{
    uint64_t head[2], numbers[3];
    const char *name, *end = (const char *)bytes + size;

    if (size < sizeof(head))
        return true;
    memcpy(head, bytes, sizeof(head));
    if (head[0] > (size - sizeof(head)) / sizeof(numbers)) {
        c->notes_cut = true;
        return true;
    }
    name = (const char *)bytes + sizeof(head) + head[0] * sizeof(numbers);
    for (uint64_t i = 0; i < head[0]; i++) {
        size_t length = strnlen(name, (size_t)(end - name));

        if (length == (size_t)(end - name)) {
            c->notes_cut = true;
            return true;
        }
        memcpy(numbers, bytes + sizeof(head) + i * sizeof(numbers), sizeof(numbers));
        if (!add_file(c, numbers, head[1], name))
            return false;
        name += length + 1;
    }
    return true;
}

static bool take_files(struct etch_core_contents *c, struct notes *notes, const struct note *note)
{
    size_t size = (size_t)(note->size < FILES_MAX ? note->size : FILES_MAX), got;
    uint8_t *bytes;
    bool good;

    if (c->files.n || !size)
        return true;
    bytes = malloc(size);
    if (!bytes)
        return false;
    got = notes->reader->read(notes->reader->context, note->position, bytes, size);
    notes->cut |= got < note->size;
    good = parse_files(c, bytes, got);
    free(bytes);
    return good;
}

/* ---- All ---- */

bool etch_core_notes_take(struct etch_core_contents *contents, struct etch_core_vector *auxv,
                          const struct etch_core_reader *core, uint64_t offset, uint64_t size)
{
    struct notes notes = {core, offset, offset + size < offset ? UINT64_MAX : offset + size, false};
    struct note note;
    bool good = true;

    while (good && next_note(&notes, &note)) {
        if (strcmp(note.name, "CORE") != 0)
            continue;
        if (note.type == NT_PRSTATUS)
            good = take_thread(contents, &notes, &note);
        else if (note.type == NT_SIGINFO)
            take_signal(contents, &notes, &note);
        else if (note.type == NT_PRPSINFO)
            take_process(contents, &notes, &note);
        else if (note.type == NT_AUXV)
            take_auxv(auxv, &notes, &note);
        else if (note.type == NT_FILE)
            good = take_files(contents, &notes, &note);
    }
    contents->notes_cut |= notes.cut;
    return good;
}

static int by_start(const void *x, const void *y)
{
    const struct etch_core_file *a = x, *b = y;

    return a->start < b->start ? -1 : a->start > b->start;
}

void etch_core_notes_end(struct etch_core_contents *contents)
{
    size_t segment = 0;

    if (contents->files.n)
        qsort(contents->files.v, contents->files.n, sizeof(*contents->files.v), by_start);
    for (size_t i = 0; i < contents->files.n; i++) {
        struct etch_core_file *file = &contents->files.v[i];

        while (segment < contents->segments.n && contents->segments.v[segment].start < file->start &&
               file->start - contents->segments.v[segment].start >= contents->segments.v[segment].size)
            segment++;
        if (segment < contents->segments.n && contents->segments.v[segment].start <= file->start)
            file->prot = contents->segments.v[segment].prot;
    }
}

/* ---- Build-ids ---- */

static size_t find_build_id(const struct etch_core_reader *memory, uint64_t at, uint64_t size,
                            uint8_t id[ETCH_BUILD_ID_MAX])
{
    struct notes notes = {memory, at, at + (size < MAPPED_NOTES_MAX ? size : MAPPED_NOTES_MAX), false};
    struct note note;

    if (notes.end < at)
        return 0;
    while (next_note(&notes, &note))
        if (note.type == NT_GNU_BUILD_ID && strcmp(note.name, "GNU") == 0 && note.size <= ETCH_BUILD_ID_MAX)
            return read_note(&notes, &note, id, (size_t)note.size) ? (size_t)note.size : 0;
    return 0;
}

size_t etch_core_notes_build_id(const struct etch_core_reader *memory, const struct etch_core_file *file,
                                uint8_t id[ETCH_BUILD_ID_MAX])
{
    Elf64_Ehdr header;
    Elf64_Phdr p;
    size_t n = 0;

    if (file->offset || memory->read(memory->context, file->start, &header, sizeof(header)) != sizeof(header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_phentsize != sizeof(p))
        return 0;
    for (unsigned i = 0; !n && i < header.e_phnum && i < SEGMENTS_MAX; i++) {
        if (memory->read(memory->context, file->start + header.e_phoff + i * sizeof(p), &p, sizeof(p)) != sizeof(p))
            break;
        if (p.p_type == PT_NOTE && p.p_offset < file->end - file->start)
            n = find_build_id(memory, file->start + p.p_offset, p.p_filesz, id);
    }
    return n;
}
