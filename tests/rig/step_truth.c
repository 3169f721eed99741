/* SPDX-License-Identifier: MIT */
/* step_truth OUT PROG [ARG...]: runs a program of one thread step by step with ptrace, and writes the address of each
 * instruction that it ran to OUT, eight bytes each: what decoding must give, by means that know nothing of Intel PT. A
 * repeated string instruction traps once a turn and counts once. Exit status: the program's. */
#include "tests/rig/module/insn.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_string(pid_t pid, uint64_t ip)
{
    uint8_t bytes[RIG_INSN_MAX] = {0};
    struct iovec to = {bytes, sizeof(bytes)}, from = {(void *)ip, sizeof(bytes)};
    ssize_t n = process_vm_readv(pid, &to, 1, &from, 1, 0);

    return n > 0 && rig_insn_read(bytes, (size_t)n).kind == RIG_STRING;
}

static uint64_t ip_of(pid_t pid)
{
    struct user_regs_struct regs = {0};

    ptrace(PTRACE_GETREGS, pid, NULL, &regs);
    return regs.rip;
}

/* Until the program ends; returns its wait status. */
static int step(pid_t pid, FILE *out)
{
    uint64_t ip = ip_of(pid);
    int signal = 0, status;

    for (;;) {
        uint64_t now;

        ptrace(PTRACE_SINGLESTEP, pid, NULL, signal);
        if (waitpid(pid, &status, 0) < 0 || WIFEXITED(status) || WIFSIGNALED(status))
            break;
        signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
        now = ip_of(pid);
        if (!signal && !(now == ip && is_string(pid, ip)))
            fwrite(&ip, sizeof(ip), 1, out);
        ip = now;
    }
    if (WIFEXITED(status))
        fwrite(&ip, sizeof(ip), 1, out); /* the system call that did it */
    return status;
}

int main(int argc, char **argv)
{
    FILE *out = argc > 2 ? fopen(argv[1], "we") : NULL;
    int status;
    pid_t pid;

    if (!out) {
        fprintf(stderr, "usage: step_truth OUT PROG [ARG...]\n");
        return 2;
    }
    pid = fork();
    if (pid == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        execv(argv[2], argv + 2);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status))
        return 2;
    status = step(pid, out);
    if (fclose(out) != 0)
        return 2;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
