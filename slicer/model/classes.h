/* SPDX-License-Identifier: MIT */
/* C++ classes, as their type information and their tables of virtual functions have them (Itanium ABI): which functions
 * a virtual call may reach, and which throws a handler catches. Private to slicer/. */
#ifndef ETCH_SLICER_MODEL_CLASSES_H
#define ETCH_SLICER_MODEL_CLASSES_H

#include "slicer/model/model.h"

struct etch_classes;

/* NULL when memory is short. */
struct etch_classes *etch_classes_new(struct etch_model *m);
void etch_classes_free(struct etch_classes *classes);

/* Sets `is_virtual` for a call of a virtual function, and adds the functions that the call may reach: the functions in
 * that place of the tables of the object's class and of its derived classes. False when memory is short. */
bool etch_classes_targets(const struct etch_classes *classes, LLVMValueRef call, bool *is_virtual,
                          etch_numbers *functions);

/* Calls `visit` with each virtual function and each instruction that makes an object whose table has it. Stops at
 * false. */
bool etch_classes_visit(const struct etch_classes *classes,
                        bool (*visit)(struct etch_model *m, uint32_t function, uint32_t insn), struct etch_model *m);

/* Adds the instructions that may throw what the landing pad catches, when `call` leads there: throws in the functions
 * that the call reaches, and calls of the outside that are there to throw. False when memory is short. */
bool etch_throws_find(struct etch_model *m, uint32_t call, LLVMValueRef landing, etch_numbers *throws);

#endif
