/* SPDX-License-Identifier: MIT */
/* The name of a function. The whole name is the function's identity: debug information and bitcode of a function give
 * the same whole name, so names from both can be compared. The short name is for people. All code that names a function
 * takes the name from here. */
#ifndef ETCH_BASE_FUNCTION_NAME_H
#define ETCH_BASE_FUNCTION_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The whole name, to be freed: "queue<int>::push(int const&)". `linkage` is the linker's name of the function, `name`
 * is the source's name, `line` is the line of its declaration; NULL or 0: not known. A lambda has no name of its own,
 * so its line stands in: "main::{lambda:34}::operator()() const". The same holds for code that initialises a global
 * variable: "{static init:58}". Returns NULL when memory is short, or without any name. */
char *etch_function_name(const char *linkage, const char *name, uint32_t line);

/* Writes the short name of a whole one: no parameters, no template arguments, no anonymous namespace, and of many
 * enclosing scopes the innermost two. "queue<int>::push(int const&)" becomes "queue::push". Returns `text`. */
const char *etch_function_short(const char *whole, char *text, size_t size);

/* Is `wanted` a name of the linker's symbol: the whole name, the short name, or the linker's own? Also for variables:
 * "_ZN3app5countE" is "app::count". */
bool etch_symbol_is(const char *linkage, const char *wanted);

/* Does a source file belong to the system rather than to the user: a header below /usr/include, the C++ library? */
bool etch_file_is_system(const char *path);

#endif
