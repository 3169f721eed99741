/* SPDX-License-Identifier: MIT */
/* A worker process crashes; the program that forked it says so by its status alone. */
#include "turn.h"

#include <sys/wait.h>
#include <unistd.h>

static int *work;

static int worker(void)
{
    return *work; //@crash
}

int main(void)
{
    int value = 0, status = 0;
    pid_t pid;

    work = &value;
    if (turn() % 2)
        work = NULL; //@null
    pid = fork();
    if (pid == 0)
        _exit(worker());
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) ? 1 : 0;
}
