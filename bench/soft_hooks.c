/* SPDX-License-Identifier: MIT */
/* What the peers of the software recorder call: nothing is done, so their least cost is what remains. */
#include <stdint.h>

void __sanitizer_cov_trace_pc_guard_init(uint32_t *start, uint32_t *stop);
void __sanitizer_cov_trace_pc_guard(uint32_t *guard);
void __cyg_profile_func_enter(void *function, void *caller);
void __cyg_profile_func_exit(void *function, void *caller);

void __sanitizer_cov_trace_pc_guard_init(uint32_t *start, uint32_t *stop)
{
    (void)start;
    (void)stop;
}

void __sanitizer_cov_trace_pc_guard(uint32_t *guard)
{
    (void)guard;
}

void __cyg_profile_func_enter(void *function, void *caller)
{
    (void)function;
    (void)caller;
}

void __cyg_profile_func_exit(void *function, void *caller)
{
    (void)function;
    (void)caller;
}
