/* SPDX-License-Identifier: MIT */
/* catch_failure OUT PROGRAM [HANG-MS] [BUILD-ID]: runs a program, and where it dies of a signal, or still runs after
 * HANG-MS, writes a bundle with the failure alone: what a recorder would say of it, made the simplest way, for tests of
 * what reads it. Frames are the words on the stack that point behind a call within the program: enough for programs as
 * small as the tests'. */
#include "proto/bundle.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static Etch__Image images[256];
static Etch__Image *image_list[256];
static size_t n_images;
static Etch__ThreadState threads[32];
static Etch__ThreadState *thread_list[32];
static size_t n_threads;
static char exe[4096];
static const char *build_id = "";

static void read_maps(pid_t pid)
{
    char path[64], line[4400];
    FILE *in;

    snprintf(path, sizeof(path), "/proc/%d/maps", pid);
    in = fopen(path, "r");
    while (in && n_images < 256 && fgets(line, sizeof(line), in)) {
        uint64_t start, end, offset;
        char perms[8], name[4096] = "";
        Etch__Image *image = &images[n_images];

        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %4095s", &start, &end, perms, &offset, name) <
            4)
            continue;
        etch__image__init(image);
        image->pid = (uint32_t)pid;
        image->start = start;
        image->size = end - start;
        image->file_offset = offset;
        image->path = strdup(name);
        image->prot = perms[2] == 'x' ? 5 : 1;
        image_list[n_images++] = image;
    }
    if (in)
        fclose(in);
}

static int in_program(uint64_t address)
{
    for (size_t i = 0; i < n_images; i++)
        if (images[i].prot == 5 && address >= images[i].start && address - images[i].start < images[i].size)
            return strcmp(images[i].path, exe) == 0;
    return 0;
}

/* A near call ends before a return address: e8 + 4 bytes, or ff with one of the short forms. */
static int follows_call(pid_t tid, uint64_t address)
{
    union {
        long word;
        unsigned char bytes[8];
    } code;

    errno = 0;
    code.word = ptrace(PTRACE_PEEKTEXT, tid, (void *)(address - 8), NULL);
    return errno == 0 &&
           (code.bytes[3] == 0xe8 || code.bytes[6] == 0xff || code.bytes[5] == 0xff || code.bytes[2] == 0xff);
}

static void add_thread(pid_t tid)
{
    Etch__ThreadState *t = &threads[n_threads];
    struct user_regs_struct regs;

    if (n_threads == 32 || ptrace(PTRACE_GETREGS, tid, NULL, &regs) < 0)
        return;
    etch__thread_state__init(t);
    t->tid = (uint32_t)tid;
    t->frames = calloc(16, sizeof(*t->frames));
    t->frames[t->n_frames++] = regs.rip;
    for (uint64_t at = regs.rsp; at < regs.rsp + 262144 && t->n_frames < 16; at += 8) {
        uint64_t word;

        errno = 0;
        word = (uint64_t)ptrace(PTRACE_PEEKDATA, tid, (void *)at, NULL);
        if (errno)
            break;
        if (in_program(word) && follows_call(tid, word))
            t->frames[t->n_frames++] = word;
    }
    thread_list[n_threads++] = t;
}

static int write_bundle(const char *path, Etch__Failure *failure, pid_t pid)
{
    struct etch_bundle_writer *writer;
    struct etch_error err;
    Etch__Record record = ETCH__RECORD__INIT;
    Etch__Program program = ETCH__PROGRAM__INIT;
    uint8_t id[32];

    if (etch_bundle_create(&writer, path, &err) < 0)
        return 1;
    program.exe = exe;
    program.build_id.data = id;
    for (const char *c = build_id; c[0] && c[1] && program.build_id.len < sizeof(id); c += 2)
        id[program.build_id.len++] = (uint8_t)strtoul((const char[]){c[0], c[1], 0}, NULL, 16);
    program.pid = (uint32_t)pid;
    record.body_case = ETCH__RECORD__BODY_PROGRAM;
    record.program = &program;
    etch_bundle_write(writer, &record, &err);
    record.body_case = ETCH__RECORD__BODY_IMAGE;
    for (size_t i = 0; i < n_images; i++) {
        record.image = &images[i];
        etch_bundle_write(writer, &record, &err);
    }
    failure->n_threads = n_threads;
    failure->threads = thread_list;
    record.body_case = ETCH__RECORD__BODY_FAILURE;
    record.failure = failure;
    etch_bundle_write(writer, &record, &err);
    etch_bundle_finish(writer, &err);
    etch_bundle_writer_free(writer);
    return 0;
}

static void stop_all(pid_t pid)
{
    char path[64];
    struct dirent *entry;
    DIR *dir;

    snprintf(path, sizeof(path), "/proc/%d/task", pid);
    dir = opendir(path);
    while (dir && (entry = readdir(dir)) != NULL) {
        pid_t tid = atoi(entry->d_name);
        int status;

        if (tid <= 0)
            continue;
        ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
        waitpid(tid, &status, __WALL);
        add_thread(tid);
    }
    if (dir)
        closedir(dir);
}

int main(int argc, char **argv)
{
    Etch__Failure failure = ETCH__FAILURE__INIT;
    long limit = argc > 3 ? atol(argv[3]) : 20000;
    struct timespec begin, now, nap = {0, 200000};
    pid_t pid, tid;
    int status, ready[2];
    char go;

    if (argc > 4)
        build_id = argv[4];
    if (argc < 3 || !realpath(argv[2], exe) || pipe(ready) < 0)
        return 125;
    pid = fork();
    if (pid == 0) {
        if (read(ready[0], &go, 1) == 1)
            execl(exe, argv[2], (char *)NULL);
        _exit(125);
    }
    if (ptrace(PTRACE_SEIZE, pid, NULL, (void *)(PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL)) < 0 ||
        write(ready[1], "x", 1) != 1)
        return 125;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (;;) {
        tid = waitpid(-1, &status, __WALL | WNOHANG);
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (tid == 0 && (now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 > limit) {
            read_maps(pid);
            stop_all(pid);
            failure.kind = ETCH__FAILURE_KIND__FAILURE_HANG;
            failure.pid = (uint32_t)pid;
            write_bundle(argv[1], &failure, pid);
            kill(pid, SIGKILL);
            return 137;
        }
        if (tid == 0) {
            nanosleep(&nap, NULL);
            continue;
        }
        if (tid < 0 || (tid == pid && WIFEXITED(status)))
            return tid < 0 ? 125 : WEXITSTATUS(status);
        if (!WIFSTOPPED(status))
            continue;
        int sig = WSTOPSIG(status);
        if (sig == SIGSEGV || sig == SIGABRT || sig == SIGFPE || sig == SIGBUS) {
            struct user_regs_struct regs;

            ptrace(PTRACE_GETREGS, tid, NULL, &regs);
            read_maps(pid);
            add_thread(tid);
            failure.kind = ETCH__FAILURE_KIND__FAILURE_SIGNAL;
            failure.signal = (uint32_t)sig;
            failure.pid = (uint32_t)pid;
            failure.tid = (uint32_t)tid;
            failure.ip = regs.rip;
            write_bundle(argv[1], &failure, pid);
            kill(pid, SIGKILL);
            return 128 + sig;
        }
        ptrace(PTRACE_CONT, tid, NULL, (void *)(long)(status >> 16 || sig == SIGTRAP ? 0 : sig));
    }
}
