/* SPDX-License-Identifier: MIT */
/* Line rows, symbols and segments of a binary through libdw and libelf; see line_table.h. */
#include "binary/line_table.h"

#include "base/array.h"
#include "base/function_name.h"
#include "base/strings.h"
#include "binary/debug_file.h"
#include "binary/debug_info.h"
#include "binary/elf_file.h"
#include "binary/inlined.h"
#include "proto/soft_layout.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct symbol {
    uint32_t name, source;
    uint32_t image;
    bool local, variable;
    uint64_t address, size;
};

struct declared {
    uint32_t key, line;
};

/* One of the files. */
struct image {
    struct etch_debug debug;
    uint64_t base; /* added to its addresses */
    uint8_t build_id[ETCH_BUILD_ID_MAX];
    size_t build_id_size;
};

struct etch_line_table {
    ETCH_ARRAY(struct image) images;
    struct etch_strings files, names;
    ETCH_ARRAY(struct etch_line_row) rows;
    uint32_t *by_place; /* rows in the order of file, line, address */
    ETCH_ARRAY(struct symbol) symbols;
    ETCH_ARRAY(struct declared) declared;
    struct etch_inlined inlined; /* made when it is first asked for */
    bool has_inlined;
};

static int compare_rows(const void *a, const void *b)
{
    const struct etch_line_row *x = a, *y = b;

    return x->start < y->start ? -1 : x->start > y->start ? 1 : x->end < y->end ? -1 : x->end > y->end;
}

static bool add_unit_rows(struct etch_line_table *t, Dwarf_Die *unit, uint64_t base)
{
    struct etch_line_row row = {.file = ETCH_NONE};
    Dwarf_Lines *lines;
    const char *last_source = NULL;
    uint32_t last_file = ETCH_NONE;
    size_t n;
    bool open = false;

    if (dwarf_getsrclines(unit, &lines, &n) != 0)
        return true;
    for (size_t i = 0; i < n; i++) {
        struct etch_debug_line line;

        if (!etch_debug_line_read(lines, i, &line))
            continue;
        if (open && line.address > row.start && row.line && row.start) { /* address 0: code that the linker dropped */
            row.start += base;
            row.end = line.address + base;
            if (!etch_array_push(&t->rows, row))
                return false;
        }
        open = !line.end;
        if (line.source && line.source != last_source) {
            last_source = line.source;
            last_file = etch_unit_file(&t->files, unit, line.source);
        }
        row = (struct etch_line_row){line.address, 0, last_file, line.line, line.column, line.statement, false};
    }
    return true;
}

/* "unit's file name:linkage name" of each function with code, and its line. */
static bool add_function(struct etch_line_table *t, const char *source, Dwarf_Die *die)
{
    const char *linkage = etch_debug_linkage_name(die), *name = linkage ? linkage : dwarf_diename(die);
    Dwarf_Attribute attr;
    struct declared d;
    size_t size;
    char *key;
    int line = 0;

    if (!name || !dwarf_attr(die, DW_AT_low_pc, &attr) || dwarf_decl_line(die, &line) != 0)
        return true;
    size = strlen(source) + strlen(name) + 2;
    key = malloc(size);
    if (!key)
        return false;
    snprintf(key, size, "%s:%s", source, name);
    d = (struct declared){etch_strings_add(&t->names, key), (uint32_t)line};
    free(key);
    return d.key != ETCH_NONE && etch_array_push(&t->declared, d);
}

#define NAMESPACES_MAX 32

static bool add_functions(struct etch_line_table *t, const char *source, Dwarf_Die *parent, int depth)
{
    Dwarf_Die child;

    if (depth > NAMESPACES_MAX || dwarf_child(parent, &child) != 0)
        return true;
    do {
        int tag = dwarf_tag(&child);

        if (tag == DW_TAG_subprogram && !add_function(t, source, &child))
            return false;
        if (tag == DW_TAG_namespace && !add_functions(t, source, &child, depth + 1))
            return false;
    } while (dwarf_siblingof(&child, &child) == 0);
    return true;
}

static bool add_unit_functions(struct etch_line_table *t, Dwarf_Die *unit)
{
    const char *source = dwarf_diename(unit);

    return !source || add_functions(t, source, unit, 0);
}

static bool add_units(struct etch_line_table *t, const struct image *image)
{
    Dwarf_CU *cursor = NULL;
    Dwarf_Die unit;

    while (etch_debug_next_unit(image->debug.dwarf, &cursor, &unit)) {
        if (!add_unit_rows(t, &unit, image->base))
            return false;
        etch_debug_whole_unit(&unit);
        if (!add_unit_functions(t, &unit))
            return false;
    }
    return true;
}

static int compare_declared(const void *a, const void *b)
{
    const struct declared *x = a, *y = b;

    return x->key < y->key ? -1 : x->key > y->key ? 1 : x->line < y->line ? -1 : x->line > y->line;
}

static int compare_symbols(const void *a, const void *b)
{
    const struct symbol *x = a, *y = b;

    if (x->name != y->name)
        return x->name < y->name ? -1 : 1;
    return x->address < y->address ? -1 : x->address > y->address;
}

/* strip leaves the symbols in the separate debug file. */
static Elf *symbol_file(const struct etch_debug *debug)
{
    return etch_elf_has_contents(debug->separate.elf, ".symtab") ? debug->separate.elf : debug->file.elf;
}

static bool add_symbols_of(struct etch_line_table *t, uint32_t number, Elf_Scn *scn, const GElf_Shdr *head)
{
    const struct image *image = &t->images.v[number];
    Elf_Data *data = elf_getdata(scn, NULL);
    uint32_t source = ETCH_NONE;

    for (size_t i = 0; data && head->sh_entsize && i < head->sh_size / head->sh_entsize; i++) {
        GElf_Sym sym;
        const char *name =
            gelf_getsym(data, (int)i, &sym) ? elf_strptr(symbol_file(&image->debug), head->sh_link, sym.st_name) : NULL;
        struct symbol s;

        if (!name || !name[0])
            continue;
        s = (struct symbol){.name = etch_strings_add(&t->names, name),
                            .source = source,
                            .image = number,
                            .local = GELF_ST_BIND(sym.st_info) == STB_LOCAL,
                            .variable = GELF_ST_TYPE(sym.st_info) == STT_OBJECT,
                            .address = sym.st_value + image->base,
                            .size = sym.st_size};
        if (GELF_ST_TYPE(sym.st_info) == STT_FILE) {
            source = s.name;
            continue;
        }
        if (sym.st_shndx == SHN_UNDEF || !sym.st_value)
            continue;
        if (!etch_array_push(&t->symbols, s))
            return false;
    }
    return true;
}

static bool add_symbols(struct etch_line_table *t, uint32_t number)
{
    Elf *elf = symbol_file(&t->images.v[number].debug);

    for (Elf_Scn *scn = elf_nextscn(elf, NULL); scn; scn = elf_nextscn(elf, scn)) {
        GElf_Shdr head;

        if (gelf_getshdr(scn, &head) && (head.sh_type == SHT_SYMTAB || head.sh_type == SHT_DYNSYM) &&
            !add_symbols_of(t, number, scn, &head))
            return false;
    }
    return true;
}

static void sort_all(struct etch_line_table *t)
{
    if (t->rows.n)
        qsort(t->rows.v, t->rows.n, sizeof(*t->rows.v), compare_rows);
    if (t->symbols.n)
        qsort(t->symbols.v, t->symbols.n, sizeof(*t->symbols.v), compare_symbols);
    if (t->declared.n)
        qsort(t->declared.v, t->declared.n, sizeof(*t->declared.v), compare_declared);
}

static bool ends_with(const char *name, const char *ending)
{
    size_t n = strlen(name), k = strlen(ending);

    return n > k && strcmp(name + n - k, ending) == 0;
}

/* Code that runs while the function is not recorded: a watch there would rarely be reached. */
static bool is_plain(const char *name)
{
    return ends_with(name, ETCH_SOFT_PLAIN_SUFFIX) || ends_with(name, ETCH_SOFT_REST_SUFFIX);
}

/* Before they are put in order by place. */
static void mark_plain(struct etch_line_table *t)
{
    for (size_t i = 0; i < t->symbols.n; i++) {
        const struct symbol *s = &t->symbols.v[i];
        size_t lo = 0, hi = t->rows.n;

        if (!is_plain(t->names.all.v[s->name]))
            continue;
        while (lo < hi) {
            size_t mid = lo + (hi - lo) / 2;

            if (t->rows.v[mid].start < s->address)
                lo = mid + 1;
            else
                hi = mid;
        }
        for (; lo < t->rows.n && t->rows.v[lo].start < s->address + s->size; lo++)
            t->rows.v[lo].plain = true;
    }
}

static int by_place(const void *a, const void *b, void *context)
{
    const struct etch_line_table *t = context;
    const struct etch_line_row *x = &t->rows.v[*(const uint32_t *)a], *y = &t->rows.v[*(const uint32_t *)b];

    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    if (x->plain != y->plain)
        return x->plain ? 1 : -1;
    return x->start < y->start ? -1 : x->start > y->start;
}

static bool index_places(struct etch_line_table *t)
{
    t->by_place = malloc((t->rows.n + 1) * sizeof(*t->by_place));
    if (!t->by_place)
        return false;
    for (size_t i = 0; i < t->rows.n; i++)
        t->by_place[i] = (uint32_t)i;
    qsort_r(t->by_place, t->rows.n, sizeof(*t->by_place), by_place, t);
    return true;
}

static int open_image(struct image *image, const char *path, struct etch_error *err)
{
    if (etch_debug_open(&image->debug, path, err) < 0)
        return -1;
    image->build_id_size = etch_elf_build_id(image->debug.file.elf, image->build_id);
    return 0;
}

struct etch_line_table *etch_line_table_new(void)
{
    return calloc(1, sizeof(struct etch_line_table));
}

int etch_line_table_add(struct etch_line_table *t, const char *path, struct etch_error *err)
{
    uint32_t number = (uint32_t)t->images.n;
    struct image image = {.debug = {.file.fd = -1, .separate.fd = -1}, .base = (uint64_t)number << ETCH_IMAGE_SHIFT};

    if (open_image(&image, path, err) < 0) {
        etch_debug_close(&image.debug);
        return -1;
    }
    if (!etch_array_push(&t->images, image)) {
        etch_debug_close(&image.debug);
        return etch_error_no_memory(err);
    }
    return add_units(t, &t->images.v[number]) && add_symbols(t, number) ? 0 : etch_error_no_memory(err);
}

int etch_line_table_finish(struct etch_line_table *t, struct etch_error *err)
{
    sort_all(t);
    mark_plain(t);
    return index_places(t) ? 0 : etch_error_no_memory(err);
}

void etch_line_table_free(struct etch_line_table *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->images.n; i++)
        etch_debug_close(&t->images.v[i].debug);
    etch_array_free(&t->images);
    etch_strings_release(&t->files);
    etch_strings_release(&t->names);
    etch_array_free(&t->rows);
    etch_array_free(&t->symbols);
    etch_array_free(&t->declared);
    etch_inlined_release(&t->inlined);
    free(t->by_place);
    free(t);
}

const struct etch_line_row *etch_line_table_rows(const struct etch_line_table *t, size_t *n)
{
    *n = t->rows.n;
    return t->rows.v;
}

const char *etch_line_table_file(const struct etch_line_table *t, uint32_t file)
{
    return file < t->files.all.n ? t->files.all.v[file] : "";
}

const struct etch_line_row *etch_line_table_at(const struct etch_line_table *t, uint64_t address)
{
    size_t lo = 0, hi = t->rows.n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (t->rows.v[mid].start <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo && address < t->rows.v[lo - 1].end ? &t->rows.v[lo - 1] : NULL;
}

static bool read_inlined(struct etch_line_table *t)
{
    bool fine = true;

    if (t->has_inlined)
        return true;
    for (size_t i = 0; i < t->images.n && fine; i++)
        fine = etch_inlined_read(&t->inlined, &t->files, t->images.v[i].debug.dwarf, t->images.v[i].base);
    fine = fine && etch_inlined_finish(&t->inlined);
    if (!fine) {
        etch_inlined_release(&t->inlined);
        t->inlined = (struct etch_inlined){0};
    }
    t->has_inlined = fine;
    return fine;
}

bool etch_line_table_own(struct etch_line_table *t, uint64_t address, struct etch_line_row *row)
{
    const struct etch_line_row *at = etch_line_table_at(t, address), *call;

    if (!at)
        return false;
    *row = *at;
    call = etch_file_is_system(etch_line_table_file(t, at->file)) && read_inlined(t)
               ? etch_inlined_find(&t->inlined, address)
               : NULL;
    if (call) {
        row->file = call->file;
        row->line = call->line;
        row->column = call->column;
    }
    return true;
}

size_t etch_line_table_find(const struct etch_line_table *t, const char *file, uint32_t line, uint32_t column,
                            uint64_t *starts, uint64_t *ends, size_t limit)
{
    uint32_t number = etch_strings_find(&t->files, file);
    size_t lo = 0, hi = t->rows.n, n = 0;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const struct etch_line_row *row = &t->rows.v[t->by_place[mid]];

        if (row->file < number || (row->file == number && row->line < line))
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < t->rows.n && n < limit; lo++) {
        const struct etch_line_row *row = &t->rows.v[t->by_place[lo]];

        if (row->file != number || row->line != line)
            break;
        if (column && row->column != column)
            continue;
        starts[n] = row->start;
        ends[n++] = row->end;
    }
    return n;
}

/* How well a symbol fits what is asked for; 0: not at all. */
static int fits(const struct symbol *s, uint32_t source, bool local, uint32_t image)
{
    if (image != ETCH_NONE && s->image != image)
        return 0;
    return 1 + (local ? s->local && s->source == source : !s->local);
}

bool etch_line_table_symbol(const struct etch_line_table *t, const char *name, const char *source, uint32_t image,
                            uint64_t *address, uint64_t *size)
{
    uint32_t number = etch_strings_find(&t->names, name), from = source ? etch_strings_find(&t->names, source) : 0;
    const struct symbol *best = NULL;
    size_t lo = 0, hi = t->symbols.n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (t->symbols.v[mid].name < number)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; number != ETCH_NONE && lo < t->symbols.n && t->symbols.v[lo].name == number; lo++) {
        const struct symbol *s = &t->symbols.v[lo];
        int fit = fits(s, from, source != NULL, image);

        if (fit && (!best || fit > fits(best, from, source != NULL, image)))
            best = s;
    }
    if (!best)
        return false;
    *address = best->address;
    *size = best->size;
    return true;
}

bool etch_line_table_is_variable(const struct etch_line_table *t, uint64_t address, uint64_t size)
{
    for (size_t i = 0; i < t->symbols.n; i++) {
        const struct symbol *s = &t->symbols.v[i];

        if (s->variable && address >= s->address && address - s->address < s->size &&
            s->size - (address - s->address) >= size)
            return true;
    }
    return false;
}

uint32_t etch_line_table_declared(const struct etch_line_table *t, const char *source, const char *function)
{
    size_t length = strlen(source) + strlen(function) + 2, lo = 0, hi = t->declared.n;
    char *text = malloc(length);
    struct declared want = {.key = ETCH_NONE};

    if (text) {
        snprintf(text, length, "%s:%s", source, function);
        want.key = etch_strings_find(&t->names, text);
    }
    free(text);
    if (want.key == ETCH_NONE)
        return 0;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (t->declared.v[mid].key < want.key)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo >= t->declared.n || t->declared.v[lo].key != want.key)
        return 0;
    for (size_t i = lo; i < t->declared.n && t->declared.v[i].key == want.key; i++)
        if (t->declared.v[i].line != t->declared.v[lo].line)
            return 0; /* units of one name: nothing sure */
    return t->declared.v[lo].line;
}

static bool segment(const struct image *image, size_t i, GElf_Phdr *head)
{
    return gelf_getphdr(image->debug.file.elf, (int)i, head) && head->p_type == PT_LOAD;
}

bool etch_line_table_address(const struct etch_line_table *t, uint32_t number, uint64_t file_offset, uint64_t *address)
{
    const struct image *image = &t->images.v[number];
    size_t n = 0;
    GElf_Phdr head;

    elf_getphdrnum(image->debug.file.elf, &n);
    for (size_t i = 0; i < n; i++) {
        if (segment(image, i, &head) && file_offset >= head.p_offset && file_offset - head.p_offset < head.p_filesz) {
            *address = head.p_vaddr + (file_offset - head.p_offset) + image->base;
            return true;
        }
    }
    return false;
}

const uint8_t *etch_line_table_code(const struct etch_line_table *t, uint64_t address, size_t *size)
{
    uint64_t number = address >> ETCH_IMAGE_SHIFT;
    const struct image *image = number < t->images.n ? &t->images.v[number] : NULL;
    size_t n = 0, raw_size = 0;
    const char *raw = image ? elf_rawfile(image->debug.file.elf, &raw_size) : NULL;
    GElf_Phdr head;

    *size = 0;
    if (!raw)
        return NULL;
    address -= image->base;
    elf_getphdrnum(image->debug.file.elf, &n);
    for (size_t i = 0; i < n; i++) {
        if (segment(image, i, &head) && address >= head.p_vaddr && address - head.p_vaddr < head.p_filesz &&
            head.p_offset <= raw_size && head.p_filesz <= raw_size - head.p_offset) {
            *size = head.p_filesz - (address - head.p_vaddr);
            return (const uint8_t *)raw + head.p_offset + (address - head.p_vaddr);
        }
    }
    return NULL;
}

const uint8_t *etch_line_table_build_id(const struct etch_line_table *t, uint32_t number, size_t *size)
{
    *size = t->images.v[number].build_id_size;
    return t->images.v[number].build_id;
}
