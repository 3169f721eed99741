/* SPDX-License-Identifier: MIT */
/* A run under gdb. etch starts the program as in each other run, so that the program has the same memory; the program
 * waits, and gdb attaches to it. See halt.c. */
#include "collector/lab/shared.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* gdb's commands until the program has halted. Signals that the program sends to itself do not halt it, except deadly
 * ones. If the thread is right before an access of its own, it goes on to the very instruction; else the caller of the
 * runtime is selected. */
static void write_script(FILE *out, const struct etch_lab_shared *s, const struct etch_lab_debugger *d)
{
    fprintf(out, "set confirm off\n"
                 "handle all nostop noprint pass\n"
                 "handle SIGSEGV SIGABRT SIGBUS SIGFPE SIGILL SIGSYS stop print pass\n");
    if (d->signal)
        fprintf(out, "handle SIG%s stop print pass\n", sigabbrev_np(d->signal));
    fprintf(out,
            "define etch-frame\n"
            "  while (unsigned long) $pc >= 0x%" PRIx64 " && (unsigned long) $pc < 0x%" PRIx64 "\n"
            "    up-silently\n"
            "  end\n"
            "  frame\n"
            "end\n"
            "document etch-frame\n"
            "Select and print the innermost frame that is not of etch's runtime.\n"
            "end\n",
            s->halt_first, s->halt_last);
    fprintf(out, "break *0x%" PRIx64 "\n", s->halt_here);
    if (d->at_exit)
        fprintf(out, "catch syscall exit_group\n");
    fprintf(out, "set var {int}0x%" PRIx64 " = 1\n", s->halt_attached_at);
    fprintf(out, "continue\n");
    fprintf(out,
            "if (unsigned long) $pc == 0x%" PRIx64 " && {int}0x%" PRIx64 " != 0\n"
            "  tbreak *{unsigned long}0x%" PRIx64 "\n"
            "  continue\n"
            "else\n"
            "  etch-frame\n"
            "end\n",
            s->halt_here, s->halt_plain_at, s->halt_site_at);
}

/* A file in memory that gdb inherits. Returns -1 with `err` set. */
static int make_script(const struct etch_lab_shared *s, const struct etch_lab_debugger *d, struct etch_error *err)
{
    int fd = memfd_create("etch-gdb", 0);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    bool good = false;

    if (out) {
        write_script(out, s, d);
        good = fclose(out) == 0 && fd >= 0 && write(fd, text, size) == (ssize_t)size;
    }
    free(text);
    if (good)
        return fd;
    etch_error_set_errno(err, errno, "cannot write the commands for gdb");
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Waits until the program waits for the debugger. False if the program ended first. */
static bool await_program(pid_t pid, const struct etch_lab_shared *s)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    bool waits;

    while (!(waits = __atomic_load_n(&s->halt_waits, __ATOMIC_ACQUIRE)) && poll(&p, 1, 2) == 0) /* pairs with halt.c */
        ;
    if (fd >= 0)
        close(fd);
    return waits || __atomic_load_n(&s->halt_waits, __ATOMIC_ACQUIRE);
}

static void become_gdb(const struct etch_lab_debugger *d, pid_t pid, int script, const char *program)
{
    char number[32], path[64];
    size_t n = 0;
    char **argv;

    while (d->arguments && d->arguments[n])
        n++;
    argv = calloc(n + 10, sizeof(*argv));
    if (!argv)
        _exit(126);
    snprintf(number, sizeof(number), "%d", (int)pid);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", script);
    argv[0] = (char *)"gdb";
    argv[1] = (char *)"-q";
    argv[2] = (char *)"-p";
    argv[3] = number;
    argv[4] = (char *)"-x";
    argv[5] = path;
    for (size_t i = 0; i < n; i++)
        argv[6 + i] = d->arguments[i];
    argv[6 + n] = (char *)program;
    execv(d->gdb, argv);
    _exit(127);
}

/* Runs gdb to its end. Ctrl-C is for gdb. */
static int run_gdb(const struct etch_lab_debugger *d, pid_t pid, int script, const char *program,
                   struct etch_error *err)
{
    struct sigaction ignored = {.sa_handler = SIG_IGN}, before_int, before_quit;
    int status = 0;
    pid_t gdb;

    sigaction(SIGINT, &ignored, &before_int);
    sigaction(SIGQUIT, &ignored, &before_quit);
    gdb = fork();
    if (gdb == 0) {
        sigaction(SIGINT, &before_int, NULL);
        sigaction(SIGQUIT, &before_quit, NULL);
        become_gdb(d, pid, script, program);
    }
    while (gdb > 0 && waitpid(gdb, &status, 0) < 0 && errno == EINTR)
        ;
    sigaction(SIGINT, &before_int, NULL);
    sigaction(SIGQUIT, &before_quit, NULL);
    if (gdb < 0)
        return etch_error_set_errno(err, errno, "cannot run %s", d->gdb);
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 126 || WEXITSTATUS(status) == 127))
        return etch_error_set(err, "cannot run %s", d->gdb);
    return 0;
}

int etch_lab_debug(pid_t pid, const struct etch_lab_request *r, struct etch_lab_shared *s, struct etch_error *err)
{
    int script, status;

    if (!await_program(pid, s))
        return 0; /* etch_lab_run() says that the program ended too soon */
    script = make_script(s, r->debugger, err);
    status = script < 0 ? -1 : run_gdb(r->debugger, pid, script, r->program, err);
    if (script >= 0)
        close(script);
    kill(pid, SIGKILL); /* not reaped yet: the number is still the program's */
    if (status < 0 || s->halt_attached)
        return status;
    etch_error_set(err, "gdb could not take hold of the program");
    return etch_error_advise(err, "allow it: sysctl kernel.yama.ptrace_scope=1, in a container --cap-add=SYS_PTRACE");
}
