/* SPDX-License-Identifier: MIT */
/* Functions that return values; see returns.h. */
#include "binary/returns.h"

#include "binary/debug_file.h"
#include "binary/debug_info.h"
#include "binary/find_binary.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <unistd.h>

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
static bool has_type(Dwarf *dwarf, uint64_t address)
{
    Dwarf_Attribute type;
    Dwarf_Die unit, *scopes = NULL;
    bool found = false, has = false;
    int n = find_unit(dwarf, address, &unit) ? dwarf_getscopes(&unit, address, &scopes) : 0;

    for (int i = 0; i < n && !found; i++) {
        int tag = dwarf_tag(&scopes[i]);

        found = tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
        has = found && dwarf_attr_integrate(&scopes[i], DW_AT_type, &type);
    }
    free(scopes);
    return has;
}

bool etch_returns_value(const Etch__Image *image, uint64_t address)
{
    static const struct etch_binary_places places = {0};
    struct etch_error ignored;
    struct etch_debug debug;
    char path[PATH_MAX];
    bool has;

    if (etch_find_binary(image, &places, path) < ETCH_BINARY_UNCHECKED)
        return false;
    has = etch_debug_open(&debug, path, &ignored) == 0 && has_type(debug.dwarf, address);
    etch_debug_close(&debug);
    return has;
}
