/* SPDX-License-Identifier: MIT */
/* tracer: lets itself be traced, as programs do that want no debugger. */
#include <stdio.h>
#include <sys/ptrace.h>

int main(void)
{
    printf("%ld\n", ptrace(PTRACE_TRACEME, 0, NULL, NULL));
    return 0;
}
