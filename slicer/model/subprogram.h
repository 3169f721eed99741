/* SPDX-License-Identifier: MIT */
/* Private to slicer/: the name of a function from LLVM's debug node of it. */
#ifndef ETCH_SLICER_MODEL_SUBPROGRAM_H
#define ETCH_SLICER_MODEL_SUBPROGRAM_H

#include <llvm-c/Core.h>

/* The whole name (base/function_name.h), to be freed. The binary's debug information has the same name. NULL when
 * memory is short, or without a name. */
char *etch_subprogram_name(LLVMContextRef context, LLVMMetadataRef subprogram);

#endif
