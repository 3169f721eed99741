/* SPDX-License-Identifier: MIT */
/* Children: one that only works, one that becomes another program, one whose exec fails. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int child(int which, const char *echo)
{
    unsigned x = 1;

    if (which == 1)
        execl(echo, "echo", "from the child", (char *)NULL);
    if (which == 2)
        execl("/nonexistent/program", "x", (char *)NULL);
    for (unsigned i = 0; i < 1000; i++)
        x = x * 33 + i;
    return (int)(x & 63) + which;
}

int main(void)
{
    int sum = 0;

    for (int i = 0; i < 3; i++) {
        int status = 0;
        pid_t pid = fork();

        if (pid == 0)
            _exit(child(i, "/bin/echo"));
        waitpid(pid, &status, 0);
        sum = sum * 100 + WEXITSTATUS(status);
    }
    printf("forks %d\n", sum);
    return 0;
}
