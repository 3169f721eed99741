/* SPDX-License-Identifier: MIT */
/* See debug_info.h. */
#include "binary/debug_info.h"

#include <dwarf.h>

bool etch_debug_next_unit(Dwarf *dwarf, Dwarf_CU **cursor, Dwarf_Die *unit)
{
    while (dwarf_get_units(dwarf, *cursor, cursor, NULL, NULL, unit, NULL) == 0)
        if (dwarf_tag(unit) == DW_TAG_compile_unit)
            return true;
    return false;
}

void etch_debug_whole_unit(Dwarf_Die *unit)
{
    Dwarf_Die split;
    uint8_t type;

    if (dwarf_cu_info(unit->cu, NULL, &type, NULL, &split, NULL, NULL, NULL) == 0 && type == DW_UT_skeleton &&
        split.addr)
        *unit = split;
}

uint32_t etch_debug_number(Dwarf_Die *die, unsigned attribute)
{
    Dwarf_Attribute found;
    Dwarf_Word value;

    if (!dwarf_attr(die, attribute, &found) || dwarf_formudata(&found, &value) != 0 || value > UINT32_MAX)
        return 0;
    return (uint32_t)value;
}

const char *etch_debug_text(Dwarf_Die *die, unsigned attribute)
{
    Dwarf_Attribute found;

    return dwarf_attr_integrate(die, attribute, &found) ? dwarf_formstring(&found) : NULL;
}

const char *etch_debug_linkage_name(Dwarf_Die *die)
{
    const char *name = etch_debug_text(die, DW_AT_linkage_name);

    return name ? name : etch_debug_text(die, DW_AT_MIPS_linkage_name);
}

bool etch_debug_line_read(Dwarf_Lines *lines, size_t i, struct etch_debug_line *line)
{
    Dwarf_Line *row = dwarf_onesrcline(lines, i);
    int number = 0, column = 0;

    *line = (struct etch_debug_line){0};
    if (!row || dwarf_lineaddr(row, &line->address) != 0 || dwarf_lineendsequence(row, &line->end) != 0)
        return false;
    line->source = dwarf_linesrc(row, NULL, NULL);
    line->line = dwarf_lineno(row, &number) == 0 && number > 0 ? (uint32_t)number : 0;
    line->column = dwarf_linecol(row, &column) == 0 && column > 0 ? (uint32_t)column : 0;
    dwarf_linebeginstatement(row, &line->statement);
    return true;
}
