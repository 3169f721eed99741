/* SPDX-License-Identifier: MIT */
/* The names that an ELF file itself has: .symtab, .dynsym, and the stubs of the procedure linkage table. */
#include "binary/symbols_module.h"
#include "proto/soft_layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct slot {
    uint64_t address;
    const char *name; /* of what the slot will hold; NULL: ask `target` */
    uint64_t target;
};

/* The symbols and slots that are gathered before the table is made. */
struct gathering {
    ETCH_ARRAY(struct etch_span_range) sized;
    ETCH_ARRAY(struct etch_span_range) unsized; /* `end` is the section's */
    ETCH_ARRAY(struct slot) slots;              /* in the order of the relocations */
};

bool etch_symbols_module_is_code(const struct etch_symbols_module *module, uint64_t address)
{
    for (size_t i = 0; i < module->loads.n; i++) {
        const struct module_load *load = &module->loads.v[i];

        if (load->executable && address >= load->address && address - load->address < load->size)
            return true;
    }
    return false;
}

/* The rank of a name among several names for one address: global, then weak, then local; fewer underscores first. */
static uint32_t rank_of(const GElf_Sym *symbol, const char *name)
{
    unsigned binding = GELF_ST_BIND(symbol->st_info), underscores = 0;
    uint32_t rank = binding == STB_GLOBAL ? 3 : binding == STB_WEAK ? 2 : 1;

    while (underscores < 7 && name[underscores] == '_')
        underscores++;
    return rank * 16 + 8 - underscores;
}

static bool ends_with(const char *name, const char *suffix)
{
    size_t n = strlen(name), k = strlen(suffix);

    return n > k && strcmp(name + n - k, suffix) == 0;
}

/* The software recorder's copies of a function go by the function's own name. */
static const char *own_name(struct etch_symbols_module *module, const char *name)
{
    static const char *const suffixes[] = {
        ETCH_SOFT_REST_SUFFIX,   ETCH_SOFT_GUARDED_PLAIN_SUFFIX, ETCH_SOFT_PLAIN_SUFFIX,
        ETCH_SOFT_TELLER_SUFFIX, ETCH_SOFT_STUB_SUFFIX,          ETCH_SOFT_GUARD_SUFFIX,
        ETCH_SOFT_HERE_SUFFIX,   ETCH_SOFT_GUARDED_CODE_SUFFIX,  ETCH_SOFT_CODE_SUFFIX};

    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        char *own = ends_with(name, suffixes[i]) ? strndup(name, strlen(name) - strlen(suffixes[i])) : NULL;
        const char *kept = own ? etch_symbols_module_keep(module, own) : NULL;

        free(own);
        if (kept)
            return kept;
    }
    return name;
}

static bool add_symbol(struct etch_symbols_module *module, struct gathering *g, Elf *elf, const GElf_Sym *symbol,
                       const char *name)
{
    struct etch_span_range range = {symbol->st_value, symbol->st_value + symbol->st_size, rank_of(symbol, name),
                                    (uint32_t)module->symbols.n};
    struct module_symbol entry = {
        .start = range.start,
        .end = range.end,
        .name = own_name(module, name),
        .entry = range.start,
        .plt = ends_with(name, ETCH_SOFT_STUB_SUFFIX) || ends_with(name, ETCH_SOFT_GUARD_SUFFIX),
        .plain = ends_with(name, ETCH_SOFT_PLAIN_SUFFIX) || ends_with(name, ETCH_SOFT_REST_SUFFIX),
        .recorded = ends_with(name, ETCH_SOFT_CODE_SUFFIX) && GELF_ST_TYPE(symbol->st_info) == STT_FUNC};
    GElf_Shdr header;

    if (range.end < range.start)
        return true;
    if (symbol->st_size == 0) {
        Elf_Scn *section = elf_getscn(elf, symbol->st_shndx);

        if (!section || !gelf_getshdr(section, &header) || range.start < header.sh_addr ||
            range.start - header.sh_addr >= header.sh_size)
            return true;
        range.end = header.sh_addr + header.sh_size;
        return etch_array_push(&module->symbols, entry) && etch_array_push(&g->unsized, range);
    }
    return etch_array_push(&module->symbols, entry) && etch_array_push(&g->sized, range);
}

static bool read_table(struct etch_symbols_module *module, struct gathering *g, Elf *elf, Elf_Scn *section)
{
    GElf_Shdr header;
    Elf_Data *data = elf_getdata(section, NULL);
    size_t n;

    if (!data || !gelf_getshdr(section, &header) || header.sh_entsize == 0)
        return true;
    n = data->d_size / header.sh_entsize;
    for (size_t i = 0; i < n && i < INT32_MAX; i++) {
        GElf_Sym symbol;
        const char *name;
        unsigned type;

        if (!gelf_getsym(data, (int)i, &symbol))
            break;
        type = GELF_ST_TYPE(symbol.st_info);
        if (symbol.st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) ||
            !etch_symbols_module_is_code(module, symbol.st_value))
            continue;
        name = elf_strptr(elf, header.sh_link, symbol.st_name);
        if (name && name[0] && !add_symbol(module, g, elf, &symbol, name))
            return false;
    }
    return true;
}

static Elf_Scn *section_of_type(Elf *elf, uint32_t type)
{
    GElf_Shdr header;

    for (Elf_Scn *s = elf ? elf_nextscn(elf, NULL) : NULL; s; s = elf_nextscn(elf, s))
        if (gelf_getshdr(s, &header) && header.sh_type == type)
            return s;
    return NULL;
}

static bool read_best_table(struct etch_symbols_module *module, struct gathering *g)
{
    Elf_Scn *section;

    if ((section = section_of_type(module->file.elf, SHT_SYMTAB)))
        return read_table(module, g, module->file.elf, section);
    if ((section = section_of_type(module->debug.elf, SHT_SYMTAB)))
        return read_table(module, g, module->debug.elf, section);
    if ((section = section_of_type(module->file.elf, SHT_DYNSYM)))
        return read_table(module, g, module->file.elf, section);
    return true;
}

/* ---- Stubs: a jump through a slot that a relocation fills ---------------------------------------------------------
 */

static const char *relocated_name(Elf *elf, const GElf_Shdr *relocations, uint64_t symbol_index)
{
    Elf_Scn *table = elf_getscn(elf, relocations->sh_link);
    Elf_Data *data = table ? elf_getdata(table, NULL) : NULL;
    GElf_Shdr header;
    GElf_Sym symbol;

    if (!data || symbol_index > INT32_MAX || !gelf_getshdr(table, &header) ||
        (header.sh_type != SHT_DYNSYM && header.sh_type != SHT_SYMTAB) ||
        !gelf_getsym(data, (int)symbol_index, &symbol))
        return NULL;
    return elf_strptr(elf, header.sh_link, symbol.st_name);
}

static bool read_relocations(struct gathering *g, Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
    Elf_Data *data = elf_getdata(section, NULL);
    size_t n = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;

    for (size_t i = 0; i < n && i < INT32_MAX; i++) {
        GElf_Rela rela;
        struct slot slot = {0};
        uint64_t type;

        if (!gelf_getrela(data, (int)i, &rela))
            break;
        type = GELF_R_TYPE(rela.r_info);
        if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT && type != R_X86_64_IRELATIVE)
            continue;
        slot.address = rela.r_offset;
        slot.target = type == R_X86_64_IRELATIVE ? (uint64_t)rela.r_addend : 0;
        slot.name = slot.target ? NULL : relocated_name(elf, header, GELF_R_SYM(rela.r_info));
        if (!etch_array_push(&g->slots, slot))
            return false;
    }
    return true;
}

static int compare_slots(const void *a, const void *b)
{
    const struct slot *x = a, *y = b;

    return x->address < y->address ? -1 : x->address > y->address;
}

static const struct slot *find_slot(const struct gathering *g, uint64_t address)
{
    struct slot key = {.address = address};

    return g->slots.n ? bsearch(&key, g->slots.v, g->slots.n, sizeof(key), compare_slots) : NULL;
}

static const char *slot_name(const struct etch_symbols_module *module, const struct slot *slot)
{
    uint64_t until;
    uint32_t index;

    if (slot->name)
        return slot->name[0] ? slot->name : NULL;
    index = etch_spans_find(&module->symbol_spans, slot->target, &until);
    return index != ETCH_SPAN_NONE && module->symbols.v[index].start == slot->target ? module->symbols.v[index].name
                                                                                     : NULL;
}

/* The slot that the stub at `code` jumps through: [endbr64] [bnd] jmp *disp32(%rip). */
static bool stub_slot(const uint8_t *code, size_t size, uint64_t address, uint64_t *slot)
{
    size_t at = 0;
    int32_t displacement;

    if (size >= 4 && memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0)
        at = 4;
    if (at < size && code[at] == 0xf2)
        at++;
    if (size < at + 6 || code[at] != 0xff || code[at + 1] != 0x25)
        return false;
    memcpy(&displacement, code + at + 2, 4);
    *slot = address + at + 6 + (uint64_t)(int64_t)displacement;
    return true;
}

static bool add_stub(struct etch_symbols_module *module, struct gathering *g, const char *target, uint64_t address,
                     uint64_t size)
{
    char name[1024];
    struct module_symbol symbol = {.start = address, .end = address + size, .entry = address, .plt = true};
    struct etch_span_range range = {address, address + size, 255, (uint32_t)module->symbols.n};

    if (snprintf(name, sizeof(name), "%s@plt", target) >= (int)sizeof(name))
        return true;
    symbol.name = etch_symbols_module_keep(module, name);
    return symbol.name && etch_array_push(&module->symbols, symbol) && etch_array_push(&g->sized, range);
}

/* .plt, .plt.sec and .plt.got alike: entries begin at multiples of 8 and end where the next one begins. */
static bool read_stubs(struct etch_symbols_module *module, struct gathering *g, Elf_Scn *section,
                       const GElf_Shdr *header)
{
    const Elf_Data *data = elf_getdata(section, NULL);
    const uint8_t *code = data ? data->d_buf : NULL;

    for (size_t at = 0; code && at < data->d_size; at += 8) {
        size_t left = data->d_size - at;
        uint64_t address = header->sh_addr + at, slot_address, next;
        const struct slot *slot;
        const char *name;

        if (!stub_slot(code + at, left, address, &slot_address) || !(slot = find_slot(g, slot_address)) ||
            !(name = slot_name(module, slot)))
            continue;
        next = left > 16 ? 16 : left;
        if (left > 8 && stub_slot(code + at + 8, left - 8, address + 8, &slot_address))
            next = 8;
        if (!add_stub(module, g, name, address, next))
            return false;
    }
    return true;
}

static bool for_stub_sections(struct etch_symbols_module *module, struct gathering *g)
{
    size_t names;
    GElf_Shdr header;

    if (elf_getshdrstrndx(module->file.elf, &names) != 0)
        return true;
    for (Elf_Scn *s = elf_nextscn(module->file.elf, NULL); s; s = elf_nextscn(module->file.elf, s)) {
        const char *name;

        if (!gelf_getshdr(s, &header) || header.sh_type != SHT_PROGBITS || !(header.sh_flags & SHF_EXECINSTR))
            continue;
        name = elf_strptr(module->file.elf, names, header.sh_name);
        if (name && (strncmp(name, ".plt", 4) == 0 || strncmp(name, ".iplt", 5) == 0) &&
            !read_stubs(module, g, s, &header))
            return false;
    }
    return true;
}

static bool gather_stubs(struct etch_symbols_module *module, struct gathering *g)
{
    GElf_Ehdr file;
    GElf_Shdr header;

    if (!gelf_getehdr(module->file.elf, &file) || file.e_machine != EM_X86_64)
        return true;
    for (Elf_Scn *s = elf_nextscn(module->file.elf, NULL); s; s = elf_nextscn(module->file.elf, s))
        if (gelf_getshdr(s, &header) && header.sh_type == SHT_RELA && (header.sh_flags & SHF_ALLOC) &&
            !read_relocations(g, module->file.elf, s, &header))
            return false;
    if (g->slots.n)
        qsort(g->slots.v, g->slots.n, sizeof(*g->slots.v), compare_slots);
    return for_stub_sections(module, g);
}

/* ---- The table ----------------------------------------------------------------------------------------------------
 */

static int compare_starts(const void *a, const void *b)
{
    const struct etch_span_range *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->rank > y->rank ? -1 : x->rank < y->rank; /* the best first */
}

/* A symbol without a size (assembler) reaches to the next symbol, and is no symbol within one that has a size. */
static bool add_unsized(struct etch_symbols_module *module, struct gathering *g)
{
    if (g->unsized.n)
        qsort(g->unsized.v, g->unsized.n, sizeof(*g->unsized.v), compare_starts);
    for (size_t i = 0; i < g->unsized.n; i++) {
        struct etch_span_range range = g->unsized.v[i];
        uint64_t until;

        if (i && g->unsized.v[i - 1].start == range.start)
            continue;
        if (etch_spans_find(&module->symbol_spans, range.start, &until) != ETCH_SPAN_NONE)
            continue;
        for (size_t k = i + 1; k < g->unsized.n; k++)
            if (g->unsized.v[k].start > range.start) {
                range.end = range.end < g->unsized.v[k].start ? range.end : g->unsized.v[k].start;
                break;
            }
        range.end = range.end < until ? range.end : until;
        module->symbols.v[range.value].end = range.end;
        if (!etch_array_push(&g->sized, range))
            return false;
    }
    return true;
}

static bool make_spans(struct etch_symbols_module *module, struct gathering *g)
{
    module->symbol_spans.spans.n = 0;
    return etch_spans_make(&module->symbol_spans, g->sized.v, g->sized.n);
}

/* ---- NAME.cold is the part of NAME that the compiler moved away ---------------------------------------------------
 */

typedef ETCH_ARRAY(struct module_symbol *) parts;

/* Order of a name against a part's name up to its ".cold". */
static int compare_to_part(const char *name, const struct module_symbol *part)
{
    size_t n = (size_t)(strstr(part->name, ".cold") - part->name);
    int order = strncmp(name, part->name, n);

    return order ? order : name[n] != '\0';
}

static int compare_parts(const void *a, const void *b)
{
    const struct module_symbol *x = *(struct module_symbol *const *)a, *y = *(struct module_symbol *const *)b;

    return strcmp(x->name, y->name);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

static void join_parts(const parts *cold, const struct module_symbol *whole)
{
    size_t lo = 0, hi = cold->n;

    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;

        if (compare_to_part(whole->name, cold->v[middle]) > 0)
            lo = middle + 1;
        else
            hi = middle;
    }
    for (; lo < cold->n && compare_to_part(whole->name, cold->v[lo]) == 0; lo++) {
        struct module_symbol *part = cold->v[lo];

        /* Static functions of one name: the nearer one is of the same object file. */
        if (part->entry == part->start || distance(whole->start, part->start) < distance(part->entry, part->start))
            part->entry = whole->start;
    }
}

static bool join_cold_parts(struct etch_symbols_module *module)
{
    parts cold = {0};

    for (size_t i = 0; i < module->symbols.n; i++)
        if (strstr(module->symbols.v[i].name, ".cold") && !etch_array_push(&cold, &module->symbols.v[i])) {
            etch_array_free(&cold);
            return false;
        }
    if (cold.n)
        qsort(cold.v, cold.n, sizeof(*cold.v), compare_parts);
    for (size_t i = 0; cold.n && i < module->symbols.n; i++)
        join_parts(&cold, &module->symbols.v[i]);
    etch_array_free(&cold);
    return true;
}

/* ---- NAME.etch.plain is a copy of NAME.etch, and without debug information of its own ----------------------------
 */

static void join_twins(const parts *recorded, struct module_symbol *plain)
{
    size_t lo = 0, hi = recorded->n;

    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;

        if (strcmp(plain->name, recorded->v[middle]->name) > 0)
            lo = middle + 1;
        else
            hi = middle;
    }
    for (; lo < recorded->n && strcmp(plain->name, recorded->v[lo]->name) == 0; lo++) {
        uint64_t start = recorded->v[lo]->start;

        if (!plain->twin || distance(start, plain->start) < distance(plain->twin, plain->start))
            plain->twin = start;
    }
}

static bool join_copies(struct etch_symbols_module *module)
{
    parts recorded = {0};
    bool done = true;

    for (size_t i = 0; done && i < module->symbols.n; i++)
        done = !module->symbols.v[i].recorded || etch_array_push(&recorded, &module->symbols.v[i]);
    if (recorded.n)
        qsort(recorded.v, recorded.n, sizeof(*recorded.v), compare_parts);
    for (size_t i = 0; done && recorded.n && i < module->symbols.n; i++)
        if (module->symbols.v[i].plain)
            join_twins(&recorded, &module->symbols.v[i]);
    etch_array_free(&recorded);
    return done;
}

bool etch_symbols_module_read_symbols(struct etch_symbols_module *module)
{
    struct gathering g = {0};
    bool done = read_best_table(module, &g) && make_spans(module, &g) && gather_stubs(module, &g) &&
                make_spans(module, &g) && add_unsized(module, &g) && make_spans(module, &g) &&
                join_cold_parts(module) && join_copies(module);

    etch_array_free(&g.sized);
    etch_array_free(&g.unsized);
    etch_array_free(&g.slots);
    return done;
}
