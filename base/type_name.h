/* SPDX-License-Identifier: MIT */
/* The name of a C++ type. */
#ifndef ETCH_BASE_TYPE_NAME_H
#define ETCH_BASE_TYPE_NAME_H

/* Converts the name in a type_info ("St13runtime_error") to the type's name in C++, to be freed. NULL: no such name, or
 * memory is short. */
char *etch_type_name(const char *encoded);

#endif
