/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* Following an execve; see exec.h. This file runs inside QEMU as part of the plugin, and the plugin links no library of
 * etch. The file therefore checks the ELF header by itself instead of using binary/. */
#include "collector/vpt/exec.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The first bytes of an executable file; 0 where it is none, or where it would run as someone else. */
static size_t read_start(const char *path, char *bytes, size_t size)
{
    struct stat st;
    ssize_t got = 0;
    int fd;

    if (access(path, X_OK) < 0)
        return 0;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && !(st.st_mode & (S_ISUID | S_ISGID)))
        got = pread(fd, bytes, size, 0);
    close(fd);
    return got > 0 ? (size_t)got : 0;
}

static bool is_program(const char *bytes, size_t size)
{
    Elf64_Ehdr header;

    if (size < sizeof(header))
        return false;
    memcpy(&header, bytes, sizeof(header));
    return memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
           header.e_machine == EM_X86_64 && (header.e_type == ET_EXEC || header.e_type == ET_DYN);
}

/* "#! interpreter argument" */
static bool parse_script(char *line, struct etch_vpt_exec *exec)
{
    char *word = line + 2 + strspn(line + 2, " \t");
    char *rest;

    line[strcspn(line, "\n")] = '\0';
    rest = word + strcspn(word, " \t");
    if (*rest)
        *rest++ = '\0';
    rest += strspn(rest, " \t");
    rest[strcspn(rest, "\r")] = '\0';
    if (!*word || strlen(rest) >= sizeof(exec->argument))
        return false;
    snprintf(exec->interpreter, sizeof(exec->interpreter), "%s", word);
    snprintf(exec->argument, sizeof(exec->argument), "%s", rest);
    return true;
}

bool etch_vpt_exec_can_follow(const char *path, struct etch_vpt_exec *exec)
{
    char bytes[512];
    size_t size = read_start(path, bytes, sizeof(bytes) - 1);

    memset(exec, 0, sizeof(*exec));
    if (!size || strlen(path) >= sizeof(exec->program) || strncmp(path, "/proc/self/", 11) == 0)
        return false;
    bytes[size] = '\0';
    snprintf(exec->program, sizeof(exec->program), "%s", path);
    if (size > 2 && memcmp(bytes, "#!", 2) == 0) {
        if (!parse_script(bytes, exec))
            return false;
        size = read_start(exec->interpreter, bytes, sizeof(bytes));
    }
    return is_program(bytes, size);
}

struct words {
    const char **v;
    size_t n, capacity;
};

/* False without memory; the list stays as it was, and ends in NULL. */
static bool add(struct words *w, const char *word)
{
    if (w->n + 1 >= w->capacity) {
        size_t capacity = w->capacity ? 2 * w->capacity : 64;
        const char **grown = realloc((void *)w->v, capacity * sizeof(*grown));

        if (!grown)
            return false;
        w->v = grown;
        w->capacity = capacity;
    }
    if (word)
        w->v[w->n++] = word;
    w->v[w->n] = NULL;
    return true;
}

static const char *guest_string(uint64_t base, uint64_t array, size_t i)
{
    uint64_t address = 0;

    if (array)
        memcpy(&address, (const void *)(uintptr_t)(base + array + 8 * i), sizeof(address));
    return address ? (const char *)(uintptr_t)(base + address) : NULL;
}

/* The target's LD_ variables are for its own dynamic linker, not for QEMU's. */
static void add_environment(struct words *qemu, struct words *environment, uint64_t base, uint64_t envp)
{
    const char *s;

    for (size_t i = 0; (s = guest_string(base, envp, i)); i++) {
        if (strncmp(s, "LD_", 3) == 0) {
            add(qemu, "-E");
            add(qemu, s);
        } else {
            add(environment, s);
        }
    }
}

void etch_vpt_exec_follow(const struct etch_vpt_exec *exec, uint64_t base, uint64_t argv, uint64_t envp,
                          const char *folder, uint64_t tsc)
{
    struct words words = {0}, environment = {0};
    char self[VPT_EXEC_TEXT] = "", option[2 * VPT_EXEC_TEXT];
    const char *first = guest_string(base, argv, 0), *s;
    bool script = exec->interpreter[0];
    Dl_info about;

    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0 ||
        !dladdr((void *)(uintptr_t)etch_vpt_exec_follow, &about))
        return;
    snprintf(option, sizeof(option), "file=%s,dir=%s,after=%" PRIu64, about.dli_fname, folder, tsc);
    add(&words, self);
    add(&words, "-plugin");
    add(&words, option);
    add_environment(&words, &environment, base, envp);
    add(&words, "-0");
    add(&words, script || !first ? (script ? exec->interpreter : exec->program) : first);
    add(&words, script ? exec->interpreter : exec->program);
    if (script && exec->argument[0])
        add(&words, exec->argument);
    if (script)
        add(&words, exec->program);
    for (size_t i = 1; first && (s = guest_string(base, argv, i)); i++)
        add(&words, s);
    if (add(&words, NULL) && add(&environment, NULL))
        execve(self, (char **)(uintptr_t)words.v, (char **)(uintptr_t)environment.v);
    free((void *)words.v);
    free((void *)environment.v);
}
