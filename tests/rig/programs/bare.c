/* SPDX-License-Identifier: MIT */
/* bare PROG [ARG...]: runs PROG without any environment, and itself with a handful of instructions that depend on
 * nothing, so that two runs of PROG by different tools are the same instruction by instruction. Built without a C
 * library. */
__asm__(".globl _start\n"
        "_start:\n"
        "    lea 16(%rsp), %rsi\n" /* argv + 1 */
        "    mov (%rsi), %rdi\n"
        "    push $0\n"
        "    mov %rsp, %rdx\n"
        "    mov $59, %eax\n" /* execve */
        "    syscall\n"
        "    mov $127, %edi\n"
        "    mov $60, %eax\n" /* exit */
        "    syscall\n");
