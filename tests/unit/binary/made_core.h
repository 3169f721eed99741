/* SPDX-License-Identifier: MIT */
/* A small core file made by hand: two threads, one mapped file with a build-id, a stack with arguments. */
#ifndef ETCH_TESTS_UNIT_BINARY_MADE_CORE_H
#define ETCH_TESTS_UNIT_BINARY_MADE_CORE_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/user.h>

#define MADE_CODE 0x400000u
#define MADE_STACK 0x7ff000u
#define MADE_ARGC (MADE_STACK + 64) /* where the number of arguments is */

struct made_note {
    Elf64_Nhdr header;
    char name[8];
};

/* Packed: a note of 20 bytes is followed by its description at once. */
struct __attribute__((packed)) made_core {
    Elf64_Ehdr header;
    Elf64_Phdr segments[4];
    struct made_note status_note;
    struct elf_prstatus status;
    struct made_note process_note;
    struct elf_prpsinfo process;
    struct made_note signal_note;
    struct __attribute__((packed)) {
        int32_t number, error, code, pad;
        uint64_t address;
    } signal;
    struct made_note auxv_note;
    uint64_t auxv[8];
    struct made_note files_note;
    uint64_t files[2 + 2 * 3];
    char names[32];
    struct made_note other_note;
    struct elf_prstatus other;
    struct __attribute__((packed)) {
        Elf64_Ehdr header;
        Elf64_Phdr note;
        struct made_note id_note;
        uint8_t id[20];
        uint8_t rest[12];
    } code;
    struct __attribute__((packed)) {
        uint8_t frames[64];
        uint64_t argc, argv[2], argv_end, environment[1], environment_end, auxv[8];
        char random[16], words[48];
    } stack;
};

#define MADE_NOTE(type, size) ((struct made_note){{5, (Elf64_Word)(size), (type)}, "CORE"})

static inline void made_core_notes(struct made_core *m)
{
    struct user_regs_struct registers = {
        .rip = MADE_CODE + 0x1234, .rsp = MADE_STACK, .rax = 7, .r15 = 15, .fs_base = 0xf5, .orig_rax = UINT64_MAX};

    m->status_note = MADE_NOTE(NT_PRSTATUS, sizeof(m->status));
    m->status.pr_cursig = 11;
    m->status.pr_pid = 41;
    memcpy(&m->status.pr_reg, &registers, sizeof(registers));
    m->process_note = MADE_NOTE(NT_PRPSINFO, sizeof(m->process));
    m->process.pr_pid = 41;
    memcpy(m->process.pr_fname, "prog", 5);
    memcpy(m->process.pr_psargs, "./prog one", 11);
    m->signal_note = MADE_NOTE(NT_SIGINFO, sizeof(m->signal));
    m->signal.number = 11;
    m->signal.code = 1;
    m->signal.address = 0x18;
    m->auxv_note = MADE_NOTE(NT_AUXV, sizeof(m->auxv));
    m->files_note = MADE_NOTE(NT_FILE, sizeof(m->files) + sizeof(m->names));
    m->other_note = MADE_NOTE(NT_PRSTATUS, sizeof(m->other));
    m->other.pr_pid = 42;
    registers.orig_rax = 202;
    registers.rip = MADE_CODE + 0x777;
    memcpy(&m->other.pr_reg, &registers, sizeof(registers));
}

static inline void made_core_memory(struct made_core *m)
{
    const uint64_t stack_offset = offsetof(struct made_core, stack);
    const uint64_t auxv[8] = {AT_PAGESZ, 4096,
                              AT_ENTRY,  MADE_CODE + 0x100,
                              AT_RANDOM, MADE_STACK + offsetof(struct made_core, stack.random) - stack_offset,
                              AT_NULL,   0};
    const uint64_t files[] = {2, 4096, MADE_CODE, MADE_CODE + 0x1000, 0, MADE_CODE + 0x1000, MADE_CODE + 0x2000, 1};
    const uint64_t words = MADE_STACK + offsetof(struct made_core, stack.words) - stack_offset;

    memcpy(m->auxv, auxv, sizeof(auxv));
    memcpy(m->stack.auxv, auxv, sizeof(auxv));
    memcpy(m->files, files, sizeof(files));
    memcpy(m->names, "/opt/prog\0/opt/prog", 20);
    m->code.header = (Elf64_Ehdr){.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                                  .e_phoff = sizeof(Elf64_Ehdr),
                                  .e_phentsize = sizeof(Elf64_Phdr),
                                  .e_phnum = 1};
    m->code.note = (Elf64_Phdr){.p_type = PT_NOTE,
                                .p_offset = offsetof(struct made_core, code.id_note) - offsetof(struct made_core, code),
                                .p_filesz = 16 + 20};
    m->code.id_note = (struct made_note){{4, 20, NT_GNU_BUILD_ID}, "GNU"};
    memmove((char *)&m->code.id_note + 16, "0123456789abcdefghij", 20);
    m->stack.argc = 2;
    m->stack.argv[0] = words;
    m->stack.argv[1] = words + 7;
    m->stack.environment[0] = words + 11;
    memcpy(m->stack.words, "./prog\0one\0HOME=/", 18);
}

static inline void made_core(struct made_core *m)
{
    memset(m, 0, sizeof(*m));
    m->header = (Elf64_Ehdr){.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                             .e_type = ET_CORE,
                             .e_machine = EM_X86_64,
                             .e_phoff = offsetof(struct made_core, segments),
                             .e_phentsize = sizeof(Elf64_Phdr),
                             .e_phnum = 4};
    m->segments[0] =
        (Elf64_Phdr){.p_type = PT_NOTE,
                     .p_offset = offsetof(struct made_core, status_note),
                     .p_filesz = offsetof(struct made_core, code) - offsetof(struct made_core, status_note)};
    m->segments[1] = (Elf64_Phdr){.p_type = PT_LOAD,
                                  .p_flags = PF_R,
                                  .p_offset = offsetof(struct made_core, code),
                                  .p_vaddr = MADE_CODE,
                                  .p_filesz = sizeof(m->code),
                                  .p_memsz = 0x1000};
    m->segments[2] = (Elf64_Phdr){
        .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = MADE_CODE + 0x1000, .p_filesz = 0, .p_memsz = 0x1000};
    m->segments[3] = (Elf64_Phdr){.p_type = PT_LOAD,
                                  .p_flags = PF_R | PF_W,
                                  .p_offset = offsetof(struct made_core, stack),
                                  .p_vaddr = MADE_STACK,
                                  .p_filesz = sizeof(m->stack),
                                  .p_memsz = sizeof(m->stack)};
    made_core_notes(m);
    made_core_memory(m);
}

#endif
