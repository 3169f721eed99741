/* SPDX-License-Identifier: MIT */
/* Code that no file holds: written at run time, then written over at the same place. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

int main(void)
{
    static const unsigned char first[] = {0x8d, 0x47, 0x07, 0xc3}; /* lea 7(%rdi), %eax; ret */
    static const unsigned char second[] = {0x89, 0xf8, 0x0f,
                                           0xaf, 0xc7, 0xc3}; /* mov %edi, %eax; imul %edi, %eax; ret */
    void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int (*call)(int), a, b;

    memcpy(code, first, sizeof(first));
    memcpy(&call, &code, sizeof(call));
    a = call(35);
    memcpy(code, second, sizeof(second));
    b = call(12);
    printf("jit %d %d\n", a, b);
    return 0;
}
