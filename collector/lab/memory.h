/* SPDX-License-Identifier: MIT */
/* Private: weak memory in the lab. The memory itself always has the newest value. A load may be answered with an older
 * one where the model allows it. */
#ifndef ETCH_COLLECTOR_LAB_MEMORY_H
#define ETCH_COLLECTOR_LAB_MEMORY_H

#include "collector/lab/layout.h"

#include <stddef.h>

/* True if loads may be answered with old values in this run. */
bool lab_memory_is_weak(void);

/* An atomic load of `newest`, which memory has. Returns the value that the program gets. */
uint64_t lab_memory_load(uint64_t at, size_t size, uint64_t newest, int order);

/* An atomic store of `value` follows. `before` is what memory has. */
void lab_memory_store(uint64_t at, size_t size, uint64_t before, uint64_t value, int order);

/* An atomic read-modify-write, which reads the newest value, `before`. `write`: it stored `value`. */
void lab_memory_update(uint64_t at, size_t size, uint64_t before, uint64_t value, bool write, int order);

void lab_memory_fence(int order);

/* A plain access of the program follows. A read that may be old gets its value by way of memory, until
 * lab_memory_settle(). */
void lab_memory_plain(const void *at, size_t size, bool write);

/* The thread is in the lab again: the value of its last plain write is known, and memory has the newest values. */
void lab_memory_settle(void);

/* A call that synchronises: everything before such calls of other threads happened before. */
void lab_memory_meet(void);

/* The point of an access, which synchronises nothing by itself. */
void lab_memory_point(struct etch_lab_op op, uint64_t site);

/* True if lab_memory_point() made the call. */
bool lab_memory_is_quiet(void);

/* Nothing is known of this memory any more. */
void lab_memory_forget(uint64_t at, size_t size);

#endif
