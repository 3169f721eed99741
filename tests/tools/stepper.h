/* SPDX-License-Identifier: MIT */
/* Runs a program instruction by instruction until it dies, and keeps what its last instructions did. One thread runs at
 * a time, so that what an instruction read and wrote is known. */
#ifndef ETCH_TESTS_STEPPER_H
#define ETCH_TESTS_STEPPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#define STEPPER_OPERANDS 3u
#define STEPPER_WIDEST 64u

struct stepper_operand {
    uint64_t address;
    uint8_t size; /* 0: unknown size */
    bool read, write;
    uint8_t before[STEPPER_WIDEST], after[STEPPER_WIDEST];
};

struct stepper_record {
    struct user_regs_struct registers; /* before the instruction */
    uint8_t code[16];
    uint8_t size;
    uint8_t n;
    struct stepper_operand operands[STEPPER_OPERANDS];
};

struct stepper_end {
    pid_t pid, tid;
    int signal;
    bool threads;    /* there was more than one */
    bool incomplete; /* the last instruction faulted */
    bool stop;       /* set before the run: it ends after the most instructions, as if by a signal */
    struct user_regs_struct registers;
    struct stepper_record *records; /* of the thread that failed, oldest first */
    size_t n;
    char *maps;        /* as /proc/PID/maps has them */
    const char *saved; /* memory, of a run that was loaded; NULL: the process still has it */
};

/* Runs `argv` for at most `most` instructions, and keeps the last `last` of each thread. `seed` decides when threads
 * alternate. Returns 0 if the program died of a signal: it is then stopped, and killed by stepper_close(). 1: it did
 * not die. -1: it could not be run. */
int stepper_run(char **argv, size_t most, size_t last, unsigned seed, struct stepper_end *end);

/* Reads memory at the end. Returns how many bytes of `size` were read. */
size_t stepper_read(const struct stepper_end *end, uint64_t address, void *to, size_t size);

/* A run in a file. 0, or -1: it cannot be written, or is not of this build. */
int stepper_save(const struct stepper_end *end, const char *path);
int stepper_load(const char *path, struct stepper_end *end);

/* Of stepper_file.c, for stepper.c. */
char *stepper_maps(pid_t pid);
size_t stepper_read_saved(const struct stepper_end *end, uint64_t address, void *to, size_t size);

void stepper_close(struct stepper_end *end);

#endif
