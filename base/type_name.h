/* SPDX-License-Identifier: MIT */
/* What a C++ type is called. */
#ifndef ETCH_BASE_TYPE_NAME_H
#define ETCH_BASE_TYPE_NAME_H

/* The name in C++ of a type by the one in its type_info ("St13runtime_error"), to be freed. NULL: it has none, or
 * memory is short. */
char *etch_type_name(const char *encoded);

#endif
