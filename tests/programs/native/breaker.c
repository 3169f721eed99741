/* SPDX-License-Identifier: MIT */
/* breaker: takes all four debug registers, as a debugger or a profiler of memory does; prints how many it got. */
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

volatile long watched[4];

int main(void)
{
    int got = 0;

    for (int i = 0; i < 4; i++) {
        struct perf_event_attr attr = {.type = PERF_TYPE_BREAKPOINT,
                                       .size = sizeof(attr),
                                       .bp_type = HW_BREAKPOINT_W,
                                       .bp_addr = (unsigned long)&watched[i],
                                       .bp_len = HW_BREAKPOINT_LEN_8,
                                       .exclude_kernel = 1};

        got += syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0) >= 0;
        watched[i] = i;
    }
    printf("%d breakpoints\n", got);
    return 0;
}
