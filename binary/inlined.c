/* SPDX-License-Identifier: MIT */
/* See inlined.h. */
#include "binary/inlined.h"

#include "base/function_name.h"
#include "base/path.h"
#include "binary/debug_info.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEPTH_MAX = 1000 }; /* of a tree from a stranger */

/* The walk through a unit. */
struct walk {
    struct etch_inlined *in;
    uint64_t base;
    ETCH_ARRAY(uint32_t) own; /* by the unit's number of a file: ours; ETCH_NONE for a system header */
};

uint32_t etch_unit_file(struct etch_strings *files, Dwarf_Die *unit, const char *source)
{
    Dwarf_Attribute attr;
    const char *folder = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attr));
    char path[4096];

    if (source[0] == '/' || !folder)
        snprintf(path, sizeof(path), "%s", source);
    else
        snprintf(path, sizeof(path), "%s/%s", folder, source);
    etch_path_normalise(path);
    return etch_strings_add(files, path);
}

static bool number_files(struct walk *w, struct etch_strings *files, Dwarf_Die *unit)
{
    Dwarf_Files *all;
    size_t n;

    w->own.n = 0;
    if (dwarf_getsrcfiles(unit, &all, &n) != 0)
        return true;
    for (size_t i = 0; i < n; i++) {
        const char *source = dwarf_filesrc(all, i, NULL, NULL);
        uint32_t file = source ? etch_unit_file(files, unit, source) : ETCH_NONE;

        if (file != ETCH_NONE && etch_file_is_system(files->all.v[file]))
            file = ETCH_NONE;
        if (!etch_array_push(&w->own, file))
            return false;
    }
    return true;
}

static bool add_call(struct walk *w, Dwarf_Die *die, uint32_t depth)
{
    uint32_t file = etch_debug_number(die, DW_AT_call_file);
    struct etch_line_row call = {.line = etch_debug_number(die, DW_AT_call_line),
                                 .column = etch_debug_number(die, DW_AT_call_column)};
    Dwarf_Addr unit_base, start, end;
    ptrdiff_t offset = 0;

    call.file = file < w->own.n ? w->own.v[file] : ETCH_NONE;
    if (call.file == ETCH_NONE || !call.line)
        return true;
    if (!etch_array_push(&w->in->calls, call))
        return false;
    while ((offset = dwarf_ranges(die, offset, &unit_base, &start, &end)) > 0) {
        struct etch_span_range range = {start + w->base, end + w->base, depth, (uint32_t)w->in->calls.n - 1};

        if (!etch_array_push(&w->in->ranges, range))
            return false;
    }
    return true;
}

static bool walk(struct walk *w, Dwarf_Die *parent, uint32_t depth)
{
    Dwarf_Die die;

    if (depth == DEPTH_MAX || dwarf_child(parent, &die) != 0)
        return true;
    do {
        if ((dwarf_tag(&die) == DW_TAG_inlined_subroutine && !add_call(w, &die, depth)) || !walk(w, &die, depth + 1))
            return false;
    } while (dwarf_siblingof(&die, &die) == 0);
    return true;
}

bool etch_inlined_read(struct etch_inlined *in, struct etch_strings *files, Dwarf *dwarf, uint64_t base)
{
    struct walk w = {.in = in, .base = base};
    Dwarf_CU *cursor = NULL;
    Dwarf_Die unit;
    bool fine = true;

    while (fine && etch_debug_next_unit(dwarf, &cursor, &unit)) {
        etch_debug_whole_unit(&unit);
        fine = number_files(&w, files, &unit) && walk(&w, &unit, 0);
    }
    etch_array_free(&w.own);
    return fine;
}

bool etch_inlined_finish(struct etch_inlined *in)
{
    bool done = etch_spans_make(&in->spans, in->ranges.v, in->ranges.n);

    etch_array_free(&in->ranges);
    return done;
}

const struct etch_line_row *etch_inlined_find(const struct etch_inlined *in, uint64_t address)
{
    uint64_t until;
    uint32_t number = etch_spans_find(&in->spans, address, &until);

    return number == ETCH_SPAN_NONE ? NULL : &in->calls.v[number];
}

void etch_inlined_release(struct etch_inlined *in)
{
    etch_array_free(&in->calls);
    etch_array_free(&in->ranges);
    etch_spans_release(&in->spans);
}
