/* SPDX-License-Identifier: MIT */
/* A core file, as the kernel or a debugger writes it: the threads with their registers, the signal, the mapped files,
 * and memory by address. x86-64 only. No byte is trusted, and every read is bounded. A cut core is read as far as it
 * goes, and says how much is missing. Uses neither libelf nor libdw. */
#ifndef ETCH_BINARY_CORE_H
#define ETCH_BINARY_CORE_H

#include "base/array.h"
#include "base/error.h"
#include "binary/object.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ETCH_CORE_REGISTERS 24u

struct etch_core_thread {
    uint32_t tid;                            /* as the process itself saw it */
    int signal;                              /* 0: none */
    uint64_t registers[ETCH_CORE_REGISTERS]; /* by Linux's perf x86 register numbers; fs and gs are their bases */
    uint64_t system_call; /* number of the system call that the thread was in; -1 as uint64_t: none */
    bool signal_known;    /* the next two are */
    int32_t signal_code;
    uint64_t signal_address; /* si_addr, for signals that have one */
};

/* A mapping of a file (NT_FILE). */
struct etch_core_file {
    uint64_t start, end, offset; /* offset within the file, in bytes */
    uint32_t prot;               /* PROT_READ 1, PROT_WRITE 2, PROT_EXEC 4 */
    char *path;
};

/* A mapping of any kind (PT_LOAD). The core has the first `dumped` bytes of it; the others are unknown, not zero. */
struct etch_core_segment {
    uint64_t start, size, dumped;
    uint64_t offset; /* in the core */
    uint32_t prot;
};

struct etch_core;

struct etch_core_contents {
    ETCH_ARRAY(struct etch_core_thread) threads;   /* the thread that failed first */
    ETCH_ARRAY(struct etch_core_file) files;       /* by address */
    ETCH_ARRAY(struct etch_core_segment) segments; /* by address */
    uint32_t pid;                                  /* as the process itself saw it; 0: not known */
    char name[17];                                 /* of the process; "": not known */
    char arguments[81];                            /* the first 80 bytes of its arguments, separated by blanks */
    uint64_t missing;                              /* bytes that the core should have and does not: it was cut */
    bool notes_cut;                                /* threads, files or signal may be missing, too */
};

/* Opens a core. Returns 0, or -1 with `err` set: no core, not of x86-64, compressed, without threads. */
int etch_core_open(struct etch_core **core, const char *path, struct etch_error *err);

/* The same over bytes in memory, which must stay. `name` is for messages. */
int etch_core_open_bytes(struct etch_core **core, const uint8_t *bytes, size_t size, const char *name,
                         struct etch_error *err);

/* NULL is fine. */
void etch_core_free(struct etch_core *core);

const struct etch_core_contents *etch_core_contents(const struct etch_core *core);

/* Copies memory of the process. Returns how many bytes the core has, from `address` on. */
size_t etch_core_read(const struct etch_core *core, uint64_t address, void *buffer, size_t size);

/* The mapping that has the address; NULL: none. */
const struct etch_core_segment *etch_core_segment_at(const struct etch_core *core, uint64_t address);
const struct etch_core_file *etch_core_file_at(const struct etch_core *core, uint64_t address);

/* An entry of the auxiliary vector (AT_ENTRY, ...). False: the core has none. */
bool etch_core_auxv(const struct etch_core *core, uint64_t type, uint64_t *value);

/* The build-id of the file that is mapped at `file`, from memory alone. Returns its length; 0: the core does not have
 * the beginning of the file, or the file has none. */
size_t etch_core_build_id(const struct etch_core *core, const struct etch_core_file *file,
                          uint8_t id[ETCH_BUILD_ID_MAX]);

/* The command line as it is in memory, and the address where the first thread's stack ends: arguments, environment and
 * the auxiliary vector lie above. Returns the number of words, each for free(); 0: the core does not have them. `top`
 * is 0 if it is not known. */
size_t etch_core_arguments(const struct etch_core *core, char **words, size_t max, uint64_t *top);

#endif
