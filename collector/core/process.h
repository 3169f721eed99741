/* SPDX-License-Identifier: MIT */
/* A process as its core shows it: its mappings, the files that were mapped, memory. A core usually has no code. Code is
 * read from the mapped files, if a file of the same build is there. */
#ifndef ETCH_COLLECTOR_CORE_PROCESS_H
#define ETCH_COLLECTOR_CORE_PROCESS_H

#include "binary/core.h"
#include "collector/native/stack.h"

enum core_id_source { CORE_ID_NONE, CORE_ID_MEMORY, CORE_ID_FILE };

struct core_module {
    const char *path; /* as the process saw it */
    char *file;       /* of the same build, on this machine; NULL: none */
    int fd;           /* of this file; -1: none */
    bool code;        /* is or may be mapped as code */
    uint8_t id[ETCH_BUILD_ID_MAX];
    size_t id_size;
    enum core_id_source id_source;
};

struct core_process {
    struct etch_core *core;
    struct etch_mappings mappings; /* `inode` is 1 for files; paths of the core */
    ETCH_ARRAY(struct core_module) modules;
    size_t program;     /* index of the module that was run; SIZE_MAX: not known */
    uint64_t stack_end; /* arguments and environment of the process begin here; 0: not known */
    bool by_name;       /* nothing but its name says that the program is the one that ran */
};

/* Opens the core. `program` is the file that is said to have run. Returns 0, or -1 with `err` set: also if the core is
 * of another program. Release it in any case. */
int core_process_open(struct core_process *process, const char *core, const char *program, struct etch_error *err);
void core_process_release(struct core_process *process);

/* The module that was run; NULL: not known. */
struct core_module *core_process_program(const struct core_process *process);

/* NULL: no file of that path is mapped. */
const struct core_module *core_process_module(const struct core_process *process, const char *path);

/* Memory of the core, and of the files for mappings that cannot be written to. For struct etch_stack_memory, whose
 * context is the process. */
size_t core_process_read(void *process, uint64_t address, void *buffer, size_t size);

#endif
