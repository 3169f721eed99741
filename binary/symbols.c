/* SPDX-License-Identifier: MIT */
/* Modules by image, and the lookup; see symbols.h. */
#include "base/function_name.h"
#include "binary/debug_file.h"
#include "binary/find_binary.h"
#include "binary/symbols_module.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct image_module {
    const Etch__Image *image;
    struct etch_symbols_module *module;
};

struct etch_symbols {
    struct etch_symbols_options options;
    char *sysroot, *debug_dir, *beside;
    pthread_mutex_t lock; /* what follows */
    ETCH_ARRAY(struct etch_symbols_module *) modules;
    struct image_module *images; /* hashed by address */
    size_t images_used, images_size;
    atomic_bool starved; /* something is left out for want of memory, here or in libdw */
};

/* ---- Names --------------------------------------------------------------------------------------------------------
 */

const char *etch_symbols_module_keep(struct etch_symbols_module *module, const char *text)
{
    char *copy = strdup(text);

    if (copy && !etch_array_push(&module->strings, copy)) {
        free(copy);
        return NULL;
    }
    return copy;
}

const char *etch_symbols_module_name(struct etch_symbols_module *module, const char *linkage, const char *name,
                                     uint32_t line)
{
    char *whole = module->mangled ? NULL : etch_function_name(linkage, name, line);
    const char *kept = etch_symbols_module_keep(module, whole ? whole : linkage ? linkage : name);

    free(whole);
    return kept;
}

/* The demangler does not know "NAME@plt". */
static const char *stub_name(struct etch_symbols_module *module, const char *name)
{
    char stem[1024];
    const char *at = strrchr(name, '@'), *target;
    char *whole;

    if (!at || snprintf(stem, sizeof(stem), "%.*s", (int)(at - name), name) >= (int)sizeof(stem))
        return name;
    target = etch_symbols_module_name(module, stem, NULL, 0);
    if (!target || asprintf(&whole, "%s@plt", target) < 0)
        return NULL;
    target = etch_symbols_module_keep(module, whole);
    free(whole);
    return target;
}

static const char *symbol_shown(struct etch_symbols_module *module, struct module_symbol *symbol)
{
    /* Pairs with the release below. */
    const char *shown = atomic_load_explicit(&symbol->shown, memory_order_acquire);

    if (shown)
        return shown;
    pthread_mutex_lock(&module->lock);
    shown = atomic_load_explicit(&symbol->shown, memory_order_relaxed);
    if (!shown) {
        shown = symbol->plt ? stub_name(module, symbol->name) : etch_symbols_module_name(module, symbol->name, NULL, 0);
        shown = shown ? shown : symbol->name;
        atomic_store_explicit(&symbol->shown, shown, memory_order_release);
    }
    pthread_mutex_unlock(&module->lock);
    return shown;
}

/* ---- Modules ------------------------------------------------------------------------------------------------------
 */

static bool read_loads(struct etch_symbols_module *module)
{
    size_t n;

    if (elf_getphdrnum(module->file.elf, &n) != 0)
        return true;
    for (size_t i = 0; i < n && i < 65536; i++) {
        GElf_Phdr header;
        struct module_load load;

        if (!gelf_getphdr(module->file.elf, (int)i, &header))
            break;
        if (header.p_type != PT_LOAD || header.p_filesz == 0)
            continue;
        load = (struct module_load){header.p_offset, header.p_filesz, header.p_vaddr, header.p_flags & PF_X};
        if (!etch_array_push(&module->loads, load))
            return false;
    }
    return true;
}

static bool open_file(struct etch_symbols_module *module, const struct etch_symbols_options *options)
{
    const struct etch_binary_places places = {.sysroot = options->sysroot, .beside = options->beside};
    struct etch_error ignored;
    char path[PATH_MAX];

    module->why = "it is code of no file";
    if (module->path[0] == '\0' || module->path[0] == '[')
        return false;
    switch (etch_find_binary(module->image, &places, path)) {
    case ETCH_BINARY_MISSING:
        module->why = "there is no such file";
        return false;
    case ETCH_BINARY_OTHER:
        module->why = "the file has another build-id than the one that ran";
        return false;
    case ETCH_BINARY_UNCHECKED: /* a recording without build-ids must be taken at its word */
    case ETCH_BINARY_SAME:
        break;
    }
    if (etch_elf_file_open(&module->file, path, &ignored) == 0)
        return true;
    module->why = "the file is not an ELF file";
    etch_elf_file_close(&module->file);
    return false;
}

static bool open_elf(struct etch_symbols_module *module, const struct etch_symbols_options *options)
{
    const ProtobufCBinaryData *code = &module->image->code;

    if (code->len == 0)
        return open_file(module, options);
    module->file.elf = elf_memory((char *)code->data, code->len);
    if (module->file.elf && elf_kind(module->file.elf) == ELF_K_ELF)
        return true;
    etch_elf_file_close(&module->file);
    module->why = "it is generated code";
    return false;
}

static bool read_module(struct etch_symbols_module *module, const struct etch_symbols_options *options)
{
    Elf *debug;

    if (!open_elf(module, options))
        return true;
    module->why = NULL;
    if (module->file.fd >= 0)
        etch_debug_file_find(&module->debug, module->file.elf, module->path, options->sysroot, options->debug_dir);
    if (!read_loads(module) || !etch_symbols_module_read_symbols(module))
        return false;
    debug = module->debug.elf ? module->debug.elf : module->file.elf;
    if (etch_elf_has_contents(debug, ".debug_info"))
        module->dwarf = dwarf_begin_elf(debug, DWARF_C_READ, NULL);
    return !module->dwarf || etch_symbols_module_read_units(module);
}

/* A module outlives the recording that it was first seen in. */
static Etch__Image *copy_image(const Etch__Image *image)
{
    size_t size = etch__image__get_packed_size(image);
    uint8_t *bytes = malloc(size + 1);
    Etch__Image *copy = bytes ? etch__image__unpack(NULL, etch__image__pack(image, bytes), bytes) : NULL;

    free(bytes);
    return copy;
}

static void module_free(struct etch_symbols_module *module)
{
    if (!module)
        return;
    for (size_t i = 0; i < module->n_units; i++)
        etch_symbols_unit_table_free(atomic_load_explicit(&module->units[i].table, memory_order_relaxed));
    free(module->units);
    etch_spans_release(&module->unit_spans);
    etch_spans_release(&module->symbol_spans);
    etch_array_free(&module->symbols);
    etch_array_free(&module->loads);
    for (size_t i = 0; i < module->strings.n; i++)
        free(module->strings.v[i]);
    etch_array_free(&module->strings);
    dwarf_end(module->dwarf);
    etch_elf_file_close(&module->debug);
    etch_elf_file_close(&module->file);
    pthread_mutex_destroy(&module->lock);
    if (module->image)
        etch__image__free_unpacked(module->image, NULL);
    free(module->path);
    free(module);
}

/* Opens the file behind `image` and makes all tables but those of the units. Returns NULL when memory is short. */
static struct etch_symbols_module *module_new(const Etch__Image *image, const struct etch_symbols_options *options,
                                              uint64_t number)
{
    struct etch_symbols_module *module = calloc(1, sizeof(*module));

    if (!module)
        return NULL;
    module->file.fd = module->debug.fd = -1;
    module->number = number;
    module->mangled = options->mangled;
    pthread_mutex_init(&module->lock, NULL);
    module->image = copy_image(image);
    module->path = strdup(image->path ? image->path : "");
    if (module->image && module->path && read_module(module, options))
        return module;
    module_free(module);
    return NULL;
}

/* ---- Images -------------------------------------------------------------------------------------------------------
 */

struct etch_symbols *etch_symbols_new(const struct etch_symbols_options *options)
{
    struct etch_symbols *symbols = calloc(1, sizeof(*symbols));

    if (!symbols)
        return NULL;
    elf_version(EV_CURRENT);
    pthread_mutex_init(&symbols->lock, NULL);
    symbols->sysroot = options->sysroot ? strdup(options->sysroot) : NULL;
    symbols->debug_dir = options->debug_dir ? strdup(options->debug_dir) : NULL;
    symbols->beside = options->beside ? strdup(options->beside) : NULL;
    if ((options->sysroot && !symbols->sysroot) || (options->debug_dir && !symbols->debug_dir) ||
        (options->beside && !symbols->beside)) {
        etch_symbols_free(symbols);
        return NULL;
    }
    symbols->options =
        (struct etch_symbols_options){symbols->sysroot, symbols->debug_dir, symbols->beside, options->mangled};
    return symbols;
}

void etch_symbols_free(struct etch_symbols *symbols)
{
    if (!symbols)
        return;
    for (size_t i = 0; i < symbols->modules.n; i++)
        module_free(symbols->modules.v[i]);
    etch_array_free(&symbols->modules);
    free(symbols->images);
    free(symbols->sysroot);
    free(symbols->debug_dir);
    free(symbols->beside);
    pthread_mutex_destroy(&symbols->lock);
    free(symbols);
}

void etch_symbols_forget_images(struct etch_symbols *symbols)
{
    pthread_mutex_lock(&symbols->lock);
    free(symbols->images);
    symbols->images = NULL;
    symbols->images_used = symbols->images_size = 0;
    pthread_mutex_unlock(&symbols->lock);
}

size_t etch_symbols_loaded(struct etch_symbols *symbols)
{
    size_t n = 0;

    pthread_mutex_lock(&symbols->lock);
    for (size_t i = 0; i < symbols->modules.n; i++)
        n += symbols->modules.v[i]->dwarf != NULL;
    pthread_mutex_unlock(&symbols->lock);
    return n;
}

static bool same_bytes(const ProtobufCBinaryData *a, const ProtobufCBinaryData *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

static struct etch_symbols_module *module_of(struct etch_symbols *symbols, const Etch__Image *image)
{
    struct etch_symbols_module *module;

    for (size_t i = 0; i < symbols->modules.n; i++) {
        const Etch__Image *known = symbols->modules.v[i]->image;

        if (strcmp(symbols->modules.v[i]->path, image->path ? image->path : "") == 0 &&
            same_bytes(&known->build_id, &image->build_id) && same_bytes(&known->code, &image->code))
            return symbols->modules.v[i];
    }
    module = module_new(image, &symbols->options, symbols->modules.n + 1);
    if (module && !etch_array_push(&symbols->modules, module)) {
        module_free(module);
        return NULL;
    }
    return module;
}

static struct image_module *image_place(struct image_module *images, size_t size, const Etch__Image *image)
{
    size_t at = ((uintptr_t)image * 0x9e3779b97f4a7c15u >> 24) & (size - 1);

    while (images[at].image && images[at].image != image)
        at = (at + 1) & (size - 1);
    return &images[at];
}

static bool grow_images(struct etch_symbols *symbols)
{
    size_t size = symbols->images_size ? symbols->images_size * 2 : 64;
    struct image_module *grown = calloc(size, sizeof(*grown));

    if (!grown)
        return false;
    for (size_t i = 0; i < symbols->images_size; i++)
        if (symbols->images[i].image)
            *image_place(grown, size, symbols->images[i].image) = symbols->images[i];
    free(symbols->images);
    symbols->images = grown;
    symbols->images_size = size;
    return true;
}

static struct etch_symbols_module *find_module(struct etch_symbols *symbols, const Etch__Image *image)
{
    struct image_module *place;
    struct etch_symbols_module *module = NULL;

    pthread_mutex_lock(&symbols->lock);
    if (symbols->images_used * 2 >= symbols->images_size && !grow_images(symbols))
        goto out;
    place = image_place(symbols->images, symbols->images_size, image);
    if (!place->image) {
        place->module = module_of(symbols, image);
        place->image = image;
        symbols->images_used++;
    }
    module = place->module;
out:
    pthread_mutex_unlock(&symbols->lock);
    return module;
}

const char *etch_symbols_why_unknown(struct etch_symbols *symbols, const Etch__Image *image)
{
    struct etch_symbols_module *module = image ? find_module(symbols, image) : NULL;

    return module ? module->why : "the address is in no known mapping";
}

/* ---- Lookup -------------------------------------------------------------------------------------------------------
 */

/* The address as the file's own symbols count it. Goes by the segment that holds the byte, since segments need not be
 * as far apart in memory as in the file. */
static const struct module_load *load_of(const struct etch_symbols_module *module, uint64_t file_offset)
{
    const struct module_load *found = NULL;

    for (size_t i = 0; i < module->loads.n; i++) {
        const struct module_load *load = &module->loads.v[i];

        if (file_offset >= load->offset && file_offset - load->offset < load->size && (!found || load->executable))
            found = load;
    }
    return found;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t function_id(const struct etch_symbols_module *module, uint64_t entry)
{
    return module->number << 48 ^ entry;
}

/* Returns the address of the function's recorded copy where the address is in its plain one; else 0. */
static uint64_t find_symbol(struct etch_symbols_module *module, uint64_t address, struct etch_location *location)
{
    uint64_t until;
    uint32_t index = etch_spans_find(&module->symbol_spans, address, &until);
    struct module_symbol *symbol;

    location->until = min_u64(location->until, until);
    if (index == ETCH_SPAN_NONE)
        return 0;
    symbol = &module->symbols.v[index];
    location->source = ETCH_LOCATION_ELF;
    location->symbol = location->frame.function = symbol_shown(module, symbol);
    location->offset = address - symbol->start;
    location->is_plt = symbol->plt;
    location->is_entry = address == symbol->start && symbol->entry == symbol->start;
    location->function_id = function_id(module, symbol->entry);
    return symbol->twin;
}

static void find_function(const struct etch_symbols_module *module, const struct unit_table *table, uint64_t address,
                          struct etch_location *location)
{
    uint64_t until;
    uint32_t index = etch_spans_find(&table->spans, address, &until);
    const struct unit_function *function;

    location->until = min_u64(location->until, until);
    if (index == ETCH_SPAN_NONE)
        return;
    function = &table->functions.v[index];
    location->source = ETCH_LOCATION_DWARF;
    location->frame.function = function->name;
    location->frame.caller = function->parent == ETCH_SPAN_NONE ? NULL : &function->caller;
    location->is_entry = address == function->entry;
    location->function_id = function_id(module, function->entry);
    if (!location->symbol) {
        const struct etch_frame *outer = &location->frame;

        while (outer->caller)
            outer = outer->caller;
        location->symbol = outer->function;
        location->offset = address - function->entry;
    }
}

static void find_row(const struct unit_table *table, uint64_t address, struct etch_location *location)
{
    size_t lo = 0, hi = table->rows.n;

    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;

        if (table->rows.v[middle].address <= address)
            lo = middle + 1;
        else
            hi = middle;
    }
    if (lo < table->rows.n)
        location->until = min_u64(location->until, table->rows.v[lo].address);
    if (lo == 0 || !table->rows.v[lo - 1].file)
        return;
    location->source = ETCH_LOCATION_DWARF;
    location->frame.file = table->rows.v[lo - 1].file;
    location->frame.line = table->rows.v[lo - 1].line;
    location->frame.column = table->rows.v[lo - 1].column;
}

/* The first row at or behind an address. */
static size_t row_from(const struct unit_table *table, uint64_t address)
{
    size_t lo = 0, hi = table->rows.n;

    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;

        if (table->rows.v[middle].address < address)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

/* The address of a location's line in the recorded copy; the copy's first address if the copy lacks the line. */
static uint64_t same_place(const struct unit_table *table, uint64_t twin, uint64_t end,
                           const struct etch_location *location)
{
    const struct etch_frame *f = &location->frame;
    uint64_t found = twin;

    for (size_t i = row_from(table, twin); i < table->rows.n && table->rows.v[i].address < end; i++) {
        const struct unit_row *row = &table->rows.v[i];

        if (!row->file || !f->file || row->line != f->line || strcmp(row->file, f->file) != 0)
            continue;
        if (row->column == f->column)
            return row->address;
        found = found == twin ? row->address : found;
    }
    return found;
}

/* A plain copy has line rows only. The recorded copy was made from the same code, so its debug information shows the
 * inlined calls. */
static void find_by_twin(struct etch_symbols_module *module, uint64_t twin, struct etch_location *location)
{
    const struct unit_table *table;
    uint64_t until;
    uint32_t symbol = etch_spans_find(&module->symbol_spans, twin, &until);
    uint32_t unit = etch_spans_find(&module->unit_spans, twin, &until), function;

    if (unit == ETCH_SPAN_NONE || symbol == ETCH_SPAN_NONE ||
        !(table = etch_symbols_unit_table_of(module, &module->units[unit])))
        return;
    function = etch_spans_find(&table->spans, same_place(table, twin, module->symbols.v[symbol].end, location), &until);
    if (function == ETCH_SPAN_NONE || !table->functions.v[function].name)
        return;
    location->frame.function = table->functions.v[function].name;
    location->frame.caller =
        table->functions.v[function].parent == ETCH_SPAN_NONE ? NULL : &table->functions.v[function].caller;
    if (!location->frame.caller)
        location->symbol = location->frame.function;
}

static void find_in_module(struct etch_symbols_module *module, uint64_t address, struct etch_location *location)
{
    const struct unit_table *table;
    uint64_t until, twin;
    uint32_t unit;

    twin = find_symbol(module, address, location);
    unit = etch_spans_find(&module->unit_spans, address, &until);
    location->until = min_u64(location->until, until);
    if (unit == ETCH_SPAN_NONE || !(table = etch_symbols_unit_table_of(module, &module->units[unit])))
        return;
    find_function(module, table, address, location);
    find_row(table, address, location);
    if (twin)
        find_by_twin(module, twin, location);
}

static void find(struct etch_symbols *symbols, const Etch__Image *image, uint64_t address,
                 struct etch_location *location)
{
    struct etch_symbols_module *module = image ? find_module(symbols, image) : NULL;
    const struct module_load *load;
    uint64_t bias;

    *location = (struct etch_location){.module = "", .module_offset = address, .until = UINT64_MAX};
    if (!module)
        return;
    location->module = module->path;
    location->until = image->start + image->size > address ? image->start + image->size : UINT64_MAX;
    location->module_offset = address - image->start + image->file_offset;
    load = load_of(module, location->module_offset);
    if (!load)
        return;
    bias = address - (location->module_offset - load->offset + load->address);
    location->module_offset = address - bias;
    location->until -= bias;
    location->until = min_u64(location->until, load->address + load->size);
    find_in_module(module, location->module_offset, location);
    location->until += bias;
    if (location->until <= address)
        location->until = address + 1;
}

/* A failed allocation leaves ENOMEM behind, whoever made it; libdw says no more than that it found nothing. */
void etch_symbols_find(struct etch_symbols *symbols, const Etch__Image *image, uint64_t address,
                       struct etch_location *location)
{
    errno = 0;
    find(symbols, image, address, location);
    if (errno == ENOMEM)
        symbols->starved = true;
}

bool etch_symbols_starved(const struct etch_symbols *symbols)
{
    return symbols->starved;
}
