/* SPDX-License-Identifier: MIT */
/* Parts of variables by libdw; see variable.h. */
#include "binary/variable.h"

#include "binary/debug_file.h"
#include "binary/debug_info.h"

#include <ctype.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool etch_variable_has_parts(const char *text)
{
    return isalpha((unsigned char)*text) || *text == '_' ? strpbrk(text, ".[") || strstr(text, "->") : false;
}

/* ---- Types ---- */

static bool type_of(Dwarf_Die *die, Dwarf_Die *type)
{
    Dwarf_Attribute attribute;
    Dwarf_Die any;

    return dwarf_attr_integrate(die, DW_AT_type, &attribute) && dwarf_formref_die(&attribute, &any) &&
           dwarf_peel_type(&any, type) == 0;
}

static bool constant(Dwarf_Die *die, unsigned name, uint64_t *value)
{
    Dwarf_Attribute attribute;
    Dwarf_Word word;

    if (!dwarf_attr_integrate(die, name, &attribute) || dwarf_formudata(&attribute, &word) != 0)
        return false;
    *value = word;
    return true;
}

/* A member by name, those of members without a name included. */
static bool find_member(Dwarf_Die *type, const char *name, size_t n, Dwarf_Die *found, uint64_t *offset)
{
    Dwarf_Die member;

    if (dwarf_child(type, &member) != 0)
        return false;
    do {
        const char *own = dwarf_diename(&member);
        Dwarf_Die inner;
        uint64_t at = 0, inside = 0;

        if (dwarf_tag(&member) != DW_TAG_member)
            continue;
        constant(&member, DW_AT_data_member_location, &at); /* a union's have none: 0 */
        if (own && strlen(own) == n && strncmp(own, name, n) == 0) {
            *found = member;
            *offset = at;
            return true;
        }
        if (!own && type_of(&member, &inner) && find_member(&inner, name, n, found, &inside)) {
            *offset = at + inside;
            return true;
        }
    } while (dwarf_siblingof(&member, &member) == 0);
    return false;
}

/* ---- Steps ---- */

struct walk {
    struct etch_variable *v;
    Dwarf_Die type;
    const char *text; /* all of it, for messages */
    struct etch_error *err;
};

static int step_member(struct walk *w, const char **at)
{
    size_t n = strspn(*at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    Dwarf_Die member;
    uint64_t offset = 0, bits;

    if (!n || !find_member(&w->type, *at, n, &member, &offset))
        return etch_error_set(w->err, "cannot watch '%s': there is no field '%.*s'", w->text, (int)n, *at);
    if (constant(&member, DW_AT_bit_size, &bits))
        return etch_error_set(w->err, "cannot watch '%s': it is a field of bits", w->text);
    if (!type_of(&member, &w->type))
        return etch_error_set(w->err, "cannot watch '%s': its type is not known", w->text);
    w->v->offset += offset;
    *at += n;
    return 0;
}

static uint64_t elements(Dwarf_Die *array)
{
    Dwarf_Die range;
    uint64_t n;

    if (dwarf_child(array, &range) != 0)
        return 0;
    if (constant(&range, DW_AT_count, &n))
        return n;
    return constant(&range, DW_AT_upper_bound, &n) ? n + 1 : 0;
}

static int step_element(struct walk *w, const char **at)
{
    char *end;
    uint64_t index = strtoull(*at, &end, 0), n;
    Dwarf_Word size;

    if (end == *at || *end != ']' || dwarf_tag(&w->type) != DW_TAG_array_type)
        return etch_error_set(w->err, "cannot watch '%s': this is no element of an array", w->text);
    n = elements(&w->type);
    if (index >= n)
        return etch_error_set(w->err, "cannot watch '%s': the array has %" PRIu64 " elements", w->text, n);
    if (!type_of(&w->type, &w->type) || dwarf_aggregate_size(&w->type, &size) != 0)
        return etch_error_set(w->err, "cannot watch '%s': the size of an element is not known", w->text);
    w->v->offset += index * size;
    *at = end + 1;
    return 0;
}

static int step_pointer(struct walk *w)
{
    if (dwarf_tag(&w->type) != DW_TAG_pointer_type || !type_of(&w->type, &w->type))
        return etch_error_set(w->err, "cannot watch '%s': this is no pointer to something", w->text);
    if (w->v->dereference || w->v->offset)
        return etch_error_set(w->err, "cannot watch '%s': one pointer, the global itself, can be followed", w->text);
    w->v->dereference = true;
    return 0;
}

static int walk_parts(struct walk *w, const char *at)
{
    Dwarf_Word size;

    while (*at && *at != ':') {
        int status;

        if (*at == '.') {
            at++;
            status = step_member(w, &at);
        } else if (*at == '[') {
            at++;
            status = step_element(w, &at);
        } else if (at[0] == '-' && at[1] == '>') {
            at += 2;
            status = step_pointer(w) < 0 ? -1 : step_member(w, &at);
        } else {
            return etch_error_set(w->err, "cannot watch '%s': '%s' is not understood", w->text, at);
        }
        if (status < 0)
            return -1;
    }
    if (dwarf_aggregate_size(&w->type, &size) != 0)
        return etch_error_set(w->err, "cannot watch '%s': its size is not known", w->text);
    w->v->size = size;
    return 0;
}

/* ---- The global ---- */

static bool is_global(Dwarf_Die *die, const char *name)
{
    const char *own = dwarf_diename(die);

    return dwarf_tag(die) == DW_TAG_variable && own && strcmp(own, name) == 0 &&
           dwarf_hasattr_integrate(die, DW_AT_location);
}

static bool find_global(Dwarf *dwarf, const char *name, Dwarf_Die *type)
{
    Dwarf_CU *unit = NULL;
    Dwarf_Die top, die;

    while (dwarf_get_units(dwarf, unit, &unit, NULL, NULL, &top, NULL) == 0) {
        etch_debug_whole_unit(&top);
        if (dwarf_child(&top, &die) != 0)
            continue;
        do
            if (is_global(&die, name))
                return type_of(&die, type);
        while (dwarf_siblingof(&die, &die) == 0);
    }
    return false;
}

int etch_variable_find(struct etch_variable *variable, const char *path, const char *text, struct etch_error *err)
{
    struct walk w = {.v = variable, .text = text, .err = err};
    size_t n = strcspn(text, ".[-:");
    struct etch_debug debug;
    int status;

    memset(variable, 0, sizeof(*variable));
    memcpy(variable->name, text, n < sizeof(variable->name) ? n : 0);
    status = etch_debug_open(&debug, path, err);
    if (status < 0) {
        etch_error_prefix(err, "cannot watch '%s'", text);
    } else if (n >= sizeof(variable->name)) {
        status = etch_error_set(err, "cannot watch '%s': the name is too long", text);
    } else if (!find_global(debug.dwarf, variable->name, &w.type)) {
        status =
            etch_error_set(err, "cannot watch '%s': the debug information has no global '%s'", text, variable->name);
    } else {
        status = walk_parts(&w, text + n);
    }
    etch_debug_close(&debug);
    return status;
}
