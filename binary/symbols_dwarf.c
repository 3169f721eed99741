/* SPDX-License-Identifier: MIT */
/* DWARF made flat: which unit holds an address, found out once per module; lines, functions and inlined calls of a
 * unit, found out when the first address in it is asked for. A module's lock is held where its libdw is used.
 */
#include "binary/debug_info.h"
#include "binary/symbols_module.h"

#include <dwarf.h>
#include <string.h>

enum { DEEPEST = 512, RANGES_PER_DIE = 65536, SPLIT_UNIT_DIES = 1 << 24 };

/* ---- Units --------------------------------------------------------------------------------------------------------
 */

typedef ETCH_ARRAY(struct module_unit) unit_list;
typedef ETCH_ARRAY(struct etch_span_range) range_list;

/* The ranges of a DIE that lie in code: what the linker dropped is left at 0 or beyond the end. */
static bool add_ranges(const struct etch_symbols_module *module, Dwarf_Die *die, uint32_t rank, uint32_t value,
                       range_list *ranges, uint64_t *entry)
{
    Dwarf_Addr base, start, end;
    ptrdiff_t at = 0;
    bool first = true;

    for (int n = 0; n < RANGES_PER_DIE && (at = dwarf_ranges(die, at, &base, &start, &end)) > 0; n++) {
        struct etch_span_range range = {start, end, rank, value};

        if (start >= end || !etch_symbols_module_is_code(module, start) ||
            !etch_symbols_module_is_code(module, end - 1))
            continue;
        if (first && entry)
            *entry = start;
        first = false;
        if (!etch_array_push(ranges, range))
            return false;
    }
    return true;
}

static bool list_units(struct etch_symbols_module *module, unit_list *units, range_list *ranges)
{
    Dwarf_CU *cu = NULL;
    struct module_unit unit = {0};
    Dwarf_Die split;
    uint8_t type;
    Dwarf_Half version;

    while (dwarf_get_units(module->dwarf, cu, &cu, &version, &type, &unit.die, &split) == 0) {
        unit.offset = dwarf_dieoffset(&unit.die);
        unit.size = SPLIT_UNIT_DIES;
        unit.has_split = type == DW_UT_skeleton && split.addr != NULL;
        if (unit.has_split)
            unit.split = split;
        if (units->n && unit.offset > units->v[units->n - 1].offset && !units->v[units->n - 1].has_split)
            units->v[units->n - 1].size = unit.offset - units->v[units->n - 1].offset;
        if (units->n && unit.offset <= units->v[units->n - 1].offset)
            break;
        if (!add_ranges(module, &unit.die, 0, (uint32_t)units->n, ranges, NULL) || !etch_array_push(units, unit))
            return false;
    }
    return true;
}

bool etch_symbols_module_read_units(struct etch_symbols_module *module)
{
    unit_list units = {0};
    range_list ranges = {0};
    bool done;

    done = list_units(module, &units, &ranges) && etch_spans_make(&module->unit_spans, ranges.v, ranges.n);
    module->units = units.v;
    module->n_units = units.n;
    etch_array_free(&ranges);
    return done;
}

/* ---- Functions and inlined calls of a unit ------------------------------------------------------------------------
 */

struct name_entry {
    const void *die; /* of the function itself */
    const char *name;
};

struct walk {
    struct etch_symbols_module *module;
    struct unit_table *table;
    range_list ranges;
    Dwarf_Files *files;
    size_t n_files;
    uint64_t budget; /* a DIE has at least a byte: more visits than bytes is a loop in damaged data */
    struct name_entry *names;
    size_t names_used, names_size;
    bool short_of_memory;
};

static const char *read_name(struct walk *walk, Dwarf_Die *die)
{
    const char *linkage = etch_debug_linkage_name(die), *name = etch_debug_text(die, DW_AT_name);
    int line = 0;

    if ((!linkage || !linkage[0]) && (!name || !name[0]))
        return NULL;
    if (dwarf_decl_line(die, &line) != 0 || line < 0)
        line = 0;
    name = etch_symbols_module_name(walk->module, linkage, name, (uint32_t)line);
    walk->short_of_memory |= !name;
    return name;
}

static struct name_entry *name_place(struct name_entry *names, size_t size, const void *die)
{
    size_t at = ((uintptr_t)die * 0x9e3779b97f4a7c15u >> 20) & (size - 1);

    while (names[at].die && names[at].die != die)
        at = (at + 1) & (size - 1);
    return &names[at];
}

static bool grow_names(struct walk *walk)
{
    size_t size = walk->names_size ? walk->names_size * 2 : 256;
    struct name_entry *grown = calloc(size, sizeof(*grown));

    if (!grown)
        return false;
    for (size_t i = 0; i < walk->names_size; i++)
        if (walk->names[i].die)
            *name_place(grown, size, walk->names[i].die) = walk->names[i];
    free(walk->names);
    walk->names = grown;
    walk->names_size = size;
    return true;
}

/* A function that was inlined a thousand times is demangled once. */
static const char *function_name(struct walk *walk, Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    Dwarf_Die origin;
    struct name_entry *entry;

    if (!dwarf_attr(die, DW_AT_abstract_origin, &attribute) || !dwarf_formref_die(&attribute, &origin))
        return read_name(walk, die);
    if (walk->names_used * 2 >= walk->names_size && !grow_names(walk)) {
        walk->short_of_memory = true;
        return NULL;
    }
    entry = name_place(walk->names, walk->names_size, origin.addr);
    if (!entry->die) {
        entry->name = read_name(walk, &origin);
        entry->die = origin.addr;
        walk->names_used++;
    }
    return entry->name;
}

static void read_call_site(struct walk *walk, Dwarf_Die *die, struct etch_frame *caller)
{
    Dwarf_Attribute attribute;
    Dwarf_Word file;

    if (dwarf_attr(die, DW_AT_call_file, &attribute) && dwarf_formudata(&attribute, &file) == 0 && walk->files &&
        file < walk->n_files)
        caller->file = dwarf_filesrc(walk->files, file, NULL, NULL);
    caller->line = etch_debug_number(die, DW_AT_call_line);
    caller->column = etch_debug_number(die, DW_AT_call_column);
}

/* Enters a function or an inlined call; returns its number, or `parent` where it has no code. */
static uint32_t enter_function(struct walk *walk, Dwarf_Die *die, bool inlined, uint32_t parent, uint32_t depth)
{
    struct unit_function function = {.parent = ETCH_SPAN_NONE};
    uint32_t number = (uint32_t)walk->table->functions.n;
    size_t before = walk->ranges.n;

    if (inlined && parent == ETCH_SPAN_NONE)
        return parent;
    if (!add_ranges(walk->module, die, depth, number, &walk->ranges, &function.entry)) {
        walk->short_of_memory = true;
        return parent;
    }
    if (walk->ranges.n == before)
        return parent;
    function.name = function_name(walk, die);
    if (inlined) {
        function.parent = parent;
        function.entry = walk->table->functions.v[parent].entry;
        read_call_site(walk, die, &function.caller);
    }
    walk->short_of_memory |= !etch_array_push(&walk->table->functions, function);
    return number;
}

static void walk_children(struct walk *walk, Dwarf_Die *parent_die, uint32_t parent, uint32_t depth)
{
    Dwarf_Die die;

    if (depth > DEEPEST || dwarf_child(parent_die, &die) != 0)
        return;
    do {
        int tag = dwarf_tag(&die);
        uint32_t inside = parent;

        if (walk->budget == 0 || walk->short_of_memory)
            return;
        walk->budget--;
        if (tag == DW_TAG_subprogram)
            inside = enter_function(walk, &die, false, ETCH_SPAN_NONE, depth);
        else if (tag == DW_TAG_inlined_subroutine)
            inside = enter_function(walk, &die, true, parent, depth);
        if (dwarf_haschildren(&die) == 1)
            walk_children(walk, &die, inside, depth + 1);
    } while (dwarf_siblingof(&die, &die) == 0);
}

/* Frames point at each other only once the array has stopped moving. A parent comes before its children. */
static void link_callers(struct unit_table *table)
{
    for (size_t i = 0; i < table->functions.n; i++) {
        struct unit_function *function = &table->functions.v[i];
        const struct unit_function *parent;

        if (function->parent == ETCH_SPAN_NONE)
            continue;
        parent = &table->functions.v[function->parent];
        function->caller.function = parent->name;
        function->caller.caller = parent->parent == ETCH_SPAN_NONE ? NULL : &parent->caller;
    }
}

static bool read_functions(struct etch_symbols_module *module, struct module_unit *unit, struct unit_table *table)
{
    struct walk walk = {.module = module, .table = table, .budget = unit->size};
    Dwarf_Die *root = unit->has_split ? &unit->split : &unit->die;
    bool done;

    if (dwarf_getsrcfiles(root, &walk.files, &walk.n_files) != 0)
        walk.files = NULL;
    walk_children(&walk, root, ETCH_SPAN_NONE, 0);
    link_callers(table);
    done = !walk.short_of_memory && etch_spans_make(&table->spans, walk.ranges.v, walk.ranges.n);
    etch_array_free(&walk.ranges);
    free(walk.names);
    return done;
}

/* ---- Lines --------------------------------------------------------------------------------------------------------
 */

/* Rows come sorted by address. The last row at an address counts, but the end of a sequence never replaces a row. */
static bool add_row(struct unit_table *table, const struct unit_row *row)
{
    struct unit_row *last = table->rows.n ? &table->rows.v[table->rows.n - 1] : NULL;

    if (last && last->address == row->address) {
        if (row->file)
            *last = *row;
        return true;
    }
    return etch_array_push(&table->rows, *row); /* NOLINT(clang-analyzer-core.NullDereference): reserved by then */
}

static bool read_rows(struct etch_symbols_module *module, struct module_unit *unit, struct unit_table *table)
{
    Dwarf_Lines *lines;
    size_t n;

    if (dwarf_getsrclines(&unit->die, &lines, &n) != 0)
        return true;
    for (size_t i = 0; i < n; i++) {
        struct etch_debug_line line;
        struct unit_row row;

        if (!etch_debug_line_read(lines, i, &line) || (!line.end && !etch_symbols_module_is_code(module, line.address)))
            continue;
        row = (struct unit_row){.address = line.address};
        if (!line.end)
            row = (struct unit_row){line.address, line.source, line.line, line.column};
        if (!add_row(table, &row))
            return false;
    }
    return true;
}

void etch_symbols_unit_table_free(struct unit_table *table)
{
    if (!table)
        return;
    etch_array_free(&table->functions);
    etch_array_free(&table->rows);
    etch_spans_release(&table->spans);
    free(table);
}

static struct unit_table *make_table(struct etch_symbols_module *module, struct module_unit *unit)
{
    struct unit_table *table = calloc(1, sizeof(*table));

    if (table && read_functions(module, unit, table) && read_rows(module, unit, table))
        return table;
    etch_symbols_unit_table_free(table);
    return NULL;
}

struct unit_table *etch_symbols_unit_table_of(struct etch_symbols_module *module, struct module_unit *unit)
{
    /* Pairs with the release below: who sees the pointer sees the table. */
    struct unit_table *table = atomic_load_explicit(&unit->table, memory_order_acquire);

    if (table)
        return table;
    pthread_mutex_lock(&module->lock);
    table = atomic_load_explicit(&unit->table, memory_order_relaxed);
    if (!table) {
        table = make_table(module, unit);
        atomic_store_explicit(&unit->table, table, memory_order_release);
    }
    pthread_mutex_unlock(&module->lock);
    return table;
}
