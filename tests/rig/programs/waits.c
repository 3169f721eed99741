/* SPDX-License-Identifier: MIT */
/* waits WORD...: waits for a byte on standard input before each WORD, then does what it says:
 *   work   some arithmetic
 *   maps   many mappings of code, each a record of perf's
 *   spin   works until one more byte comes
 * Says "ready" first, and each WORD when it is done. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile long sink;

static __attribute__((noinline)) void work(int rounds)
{
    for (int i = 0; i < rounds; i++)
        sink = sink & 1 ? sink * 3 + 1 : sink / 2 + i;
}

static void map(void)
{
    for (int i = 0; i < 400; i++) {
        void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        work(5);
        munmap(p, 4096);
    }
}

static void spin(void)
{
    struct pollfd in = {.fd = 0, .events = POLLIN};
    char byte;

    do
        work(1000);
    while (poll(&in, 1, 0) == 0);
    if (read(0, &byte, 1) != 1)
        _exit(1);
}

int main(int argc, char **argv)
{
    char byte;

    setvbuf(stdout, NULL, _IONBF, 0);
    puts("ready");
    for (int i = 1; i < argc; i++) {
        if (read(0, &byte, 1) != 1)
            return 1;
        if (!strcmp(argv[i], "work"))
            work(20000);
        else if (!strcmp(argv[i], "maps"))
            map();
        else if (!strcmp(argv[i], "spin"))
            spin();
        puts(argv[i]);
    }
    return 0;
}
