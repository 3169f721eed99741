/* SPDX-License-Identifier: MIT */
/* Names of types; see type_name.h. */
#include "base/type_name.h"

#include <libiberty/demangle.h>
#include <string.h>

#define ENCODED_MAX 16384u /* Real names are shorter. The demangler's work may grow faster than its input. */

char *etch_type_name(const char *encoded)
{
    /* As everybody writes them. */
    static const char *const usual[][2] = {{"PKc", "const char*"},
                                           {"NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE", "std::string"}};

    for (unsigned i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
        if (strcmp(encoded, usual[i][0]) == 0)
            return strdup(usual[i][1]);
    if (strnlen(encoded, ENCODED_MAX) == ENCODED_MAX)
        return NULL;
    return cplus_demangle_v3(encoded, DMGL_TYPES | DMGL_PARAMS | DMGL_ANSI);
}
