/* SPDX-License-Identifier: MIT */
/* Removes the program's data from a copied stack. Only addresses of code and addresses of the stack itself stay,
 * because unwind tables need no other words. Return addresses and saved frame pointers stay. Strings, numbers and keys
 * of the program do not stay, and its environment does not stay. */
#ifndef ETCH_COLLECTOR_POLICY_STACK_MASK_H
#define ETCH_COLLECTOR_POLICY_STACK_MASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct etch_stack_mask {
    uint64_t start;     /* the address of the first byte */
    uint64_t low, high; /* pointers into [low, high) are the stack's own */
    /* Returns true if the word at `address` is an address of code. Called in the order of addresses. */
    bool (*is_code)(void *context, uint64_t address, uint64_t word);
    void *context;
};

/* Makes every other word 0. Returns how many were not 0 before. */
uint64_t etch_stack_mask(const struct etch_stack_mask *mask, uint8_t *bytes, size_t size);

#endif
