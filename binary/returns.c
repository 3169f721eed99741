/* SPDX-License-Identifier: MIT */
/* Functions by debug information; see returns.h. */
#include "binary/returns.h"

#include "binary/debug_file.h"
#include "binary/debug_info.h"
#include "binary/find_binary.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

/* Not dwarf_addrdie(): it needs a table that clang does not write. */
static bool find_unit(Dwarf *dwarf, uint64_t address, Dwarf_Die *die)
{
    Dwarf_CU *unit = NULL;

    while (dwarf_get_units(dwarf, unit, &unit, NULL, NULL, die, NULL) == 0)
        if (dwarf_haspc(die, address) > 0) {
            etch_debug_whole_unit(die);
            return true;
        }
    return false;
}

/* The innermost function, inlined or not. */
static bool find_function(Dwarf *dwarf, uint64_t address, Dwarf_Die *function)
{
    Dwarf_Die unit, *scopes = NULL;
    int n = find_unit(dwarf, address, &unit) ? dwarf_getscopes(&unit, address, &scopes) : 0;
    bool found = false;

    for (int i = 0; i < n && !found; i++) {
        int tag = dwarf_tag(&scopes[i]);

        found = tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
        *function = scopes[i];
    }
    free(scopes);
    return found;
}

/* `debug` is to be closed in either case. */
static bool open_function(struct etch_debug *debug, const Etch__Image *image, uint64_t address, Dwarf_Die *function)
{
    static const struct etch_binary_places places = {0};
    struct etch_error ignored;
    char path[PATH_MAX];

    *debug = (struct etch_debug){.file.fd = -1, .separate.fd = -1};
    if (etch_find_binary(image, &places, path) < ETCH_BINARY_UNCHECKED)
        return false;
    return etch_debug_open(debug, path, &ignored) == 0 && find_function(debug->dwarf, address, function);
}

bool etch_returns_value(const Etch__Image *image, uint64_t address)
{
    Dwarf_Attribute type;
    Dwarf_Die function;
    struct etch_debug debug;
    bool has = open_function(&debug, image, address, &function) && dwarf_attr_integrate(&function, DW_AT_type, &type);

    etch_debug_close(&debug);
    return has;
}

/* An inlined copy has its parameters, or else they are of the function that it is a copy of. */
static const char *parameter_name(Dwarf_Die *die)
{
    Dwarf_Attribute name;

    return dwarf_tag(die) == DW_TAG_formal_parameter ? dwarf_formstring(dwarf_attr_integrate(die, DW_AT_name, &name))
                                                     : NULL;
}

size_t etch_parameters_list(const Etch__Image *image, uint64_t address, char **names, size_t max)
{
    Dwarf_Die function, child;
    struct etch_debug debug;
    size_t n = 0;
    int status = open_function(&debug, image, address, &function) ? dwarf_child(&function, &child) : 1;

    for (; status == 0 && n < max; status = dwarf_siblingof(&child, &child)) {
        const char *name = parameter_name(&child);

        if (name && (names[n] = strdup(name)))
            n++;
    }
    etch_debug_close(&debug);
    return n;
}
