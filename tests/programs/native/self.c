/* SPDX-License-Identifier: MIT */
/* self: says what it sees of itself, and what signals do to it; the same with and without a recorder. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static volatile sig_atomic_t got;

static void count(int number)
{
    (void)number;
    got++;
}

static void print_descriptors(void)
{
    for (int fd = 0; fd < 64; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            printf("fd %d\n", fd);
}

int main(int argc, char **argv, char **envp)
{
    struct rlimit files;
    struct sigaction act;
    sigset_t mask;
    char line[64];

    for (int i = 0; i < argc; i++)
        printf("arg %s\n", argv[i]);
    for (char **e = envp; *e; e++)
        printf("env %s\n", *e);
    printf("same environment %d\n", envp == environ);
    print_descriptors();
    getrlimit(RLIMIT_NOFILE, &files);
    printf("files %lu\n", (unsigned long)files.rlim_cur);
    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int i = 1; i < 65; i++) {
        sigaction(i, NULL, &act);
        if (sigismember(&mask, i) == 1 || act.sa_handler != SIG_DFL)
            printf("signal %d %d %d\n", i, sigismember(&mask, i), act.sa_handler == SIG_IGN);
    }
    printf("group of its parent %d, session %d\n", getpgrp() == getpgid(getppid()), getsid(0) == getsid(getppid()));
    signal(SIGUSR1, count);
    signal(SIGSEGV, count);
    for (int i = 0; i < 1000; i++)
        raise(i % 2 ? SIGUSR1 : SIGSEGV);
    printf("handled %d\n", (int)got);
    if (fork() == 0)
        _exit(9);
    wait(&(int){0});
    while (fgets(line, sizeof(line), stdin))
        fputs(line, stdout);
    fprintf(stderr, "to stderr\n");
    return 42;
}
