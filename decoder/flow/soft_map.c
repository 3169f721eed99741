/* SPDX-License-Identifier: MIT */
/* See soft_map.h. */
#include "decoder/flow/soft_map.h"

#include "binary/elf_bytes.h"

#include <stdlib.h>
#include <string.h>

/* ---- The file ---- */

struct file {
    struct etch_elf_bytes elf;
    uint64_t bias;
};

/* Section `i`, if its bytes are in the file as they are. */
static bool section_at(const struct file *f, uint32_t i, struct etch_elf_section *section)
{
    return etch_elf_bytes_section(&f->elf, i, section) && section->bytes &&
           !(section->header.sh_flags & SHF_COMPRESSED);
}

/* ---- Functions ---- */

#define FUNCTION_HEAD 20u

static bool makes_sense(const struct etch_soft_function *f)
{
    for (uint32_t i = 0; i < f->nodes; i++) {
        struct etch_soft_map_node n, next;

        memcpy(&n, &f->node[i], sizeof(n));
        if (n.first_edge >= f->edges || n.kind > ETCH_SOFT_RESUME || n.paths > ETCH_SOFT_PATHS)
            return false;
        if (i + 1 == f->nodes)
            continue;
        memcpy(&next, &f->node[i + 1], sizeof(next));
        if (next.first_edge <= n.first_edge)
            return false; /* each has at least one */
    }
    for (uint32_t i = 0; i < f->edges; i++)
        if (f->edge[i].target >= f->nodes && f->edge[i].target != UINT32_MAX)
            return false;
    return f->nodes > (f->dims ? 2u : 0) + (f->rests ? 2u : 0);
}

static bool take_functions(struct etch_soft_map *map, const struct file *file, const struct etch_elf_section *s)
{
    const uint8_t *at = s->bytes, *end = at + s->size;

    while ((size_t)(end - at) >= FUNCTION_HEAD) {
        struct etch_soft_function f = {0};
        uint64_t nodes, edges;

        memcpy(&f.address, at, 8);
        memcpy(&f.nodes, at + 8, 4);
        memcpy(&f.edges, at + 12, 4);
        f.enters = at[16] & ETCH_SOFT_ENTERS;
        f.dims = at[16] & ETCH_SOFT_DIMS;
        f.rests = at[16] & ETCH_SOFT_RESTS;
        at += FUNCTION_HEAD;
        nodes = (uint64_t)f.nodes * sizeof(*f.node);
        edges = (uint64_t)f.edges * sizeof(*f.edge);
        if (nodes + edges > (size_t)(end - at)) {
            map->damaged++;
            return true;
        }
        f.node = (const struct etch_soft_map_node *)(const void *)at;
        f.edge = (const struct etch_soft_map_edge *)(const void *)(at + nodes);
        at += nodes + edges;
        if (!makes_sense(&f)) {
            map->damaged++;
            continue;
        }
        for (uint32_t i = 0; i < f.nodes; i++)
            f.tells += f.node[i].flags & ETCH_SOFT_TELLS;
        if (f.address) { /* 0: the linker left it out */
            f.address += file->bias;
            if (!etch_array_push(&map->functions, f))
                return false;
        }
    }
    return true;
}

/* ---- Marks: the function is its address until all are known ---- */

/* A mark without a function is a stub. A mark with a function is a guard; if the binaries lack the function, the mark
 * is damaged. */
static bool take_stub(struct etch_soft_map *map, const struct file *file, const struct etch_soft_mark *mark)
{
    struct etch_soft_guard guard = {mark->address + file->bias, UINT32_MAX};

    if (mark->function) {
        guard.function = etch_soft_map_function(map, mark->function + file->bias);
        if (guard.function == UINT32_MAX) {
            map->damaged++;
            return true;
        }
        if (!etch_array_push(&map->guards, guard))
            return false;
    }
    return etch_array_push(&map->stubs, guard.address);
}

/* Something of a function that is elsewhere. */
static bool take_other(struct etch_soft_map *map, const struct file *file, const struct etch_soft_mark *mark)
{
    struct etch_soft_guard other = {mark->address + file->bias,
                                    etch_soft_map_function(map, mark->function + file->bias)};

    if (mark->kind == ETCH_SOFT_MARK_PLAIN)
        return etch_array_push(&map->plains, other.address);
    if (other.function == UINT32_MAX) {
        map->damaged++;
        return true;
    }
    return etch_array_push(&map->lits, other);
}

static bool take_marks(struct etch_soft_map *map, const struct file *file, const struct etch_elf_section *s)
{
    for (uint64_t at = 0; s->size - at >= sizeof(struct etch_soft_mark); at += sizeof(struct etch_soft_mark)) {
        struct etch_soft_mark mark;
        struct etch_soft_place place;
        uint32_t function;

        memcpy(&mark, s->bytes + at, sizeof(mark));
        if (mark.address && mark.kind == ETCH_SOFT_MARK_STUB) {
            if (!take_stub(map, file, &mark))
                return false;
            continue;
        }
        if (!mark.address || !mark.function)
            continue;
        if (mark.kind == ETCH_SOFT_MARK_PLAIN || mark.kind == ETCH_SOFT_MARK_LIT) {
            if (!take_other(map, file, &mark))
                return false;
            continue;
        }
        function = etch_soft_map_function(map, mark.function + file->bias);
        if (function == UINT32_MAX || !map->functions.v || mark.node >= map->functions.v[function].nodes) {
            map->damaged++;
            continue;
        }
        place = (struct etch_soft_place){mark.address + file->bias, function, mark.node, (uint32_t)map->places.n};
        if (!(mark.kind == ETCH_SOFT_MARK_FLUSH ? etch_array_push(&map->flushes, place)
                                                : etch_array_push(&map->places, place)))
            return false;
    }
    return true;
}

/* ---- The machine's blocks: LLVM's own section ---- */

struct cursor {
    const uint8_t *at, *end;
    bool bad;
};

static uint64_t take_uleb(struct cursor *c)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (c->at == c->end)
            break;
        value |= (uint64_t)(*c->at & 0x7f) << shift;
        if (!(*c->at++ & 0x80))
            return value;
    }
    c->bad = true;
    return 0;
}

static bool take_begins(struct etch_soft_map *map, const struct file *file, const struct etch_elf_section *s)
{
    struct cursor c = {.at = s->bytes, .end = s->bytes + s->size};

    while (!c.bad && c.end - c.at >= 10) {
        uint8_t version = c.at[0], features = c.at[1];
        uint64_t address, n;

        if (version != 2 || features)
            return true; /* not as etch cc made it */
        memcpy(&address, c.at + 2, 8);
        c.at += 10;
        n = take_uleb(&c);
        address += address ? file->bias : 0;
        for (uint64_t at = address; n > 0 && !c.bad; n--) {
            take_uleb(&c);       /* the block's number */
            at += take_uleb(&c); /* from the end of the one before */
            if (address && !c.bad && !etch_array_push(&map->begins, at))
                return false;
            at += take_uleb(&c);
            take_uleb(&c); /* what kind it is */
        }
    }
    return true;
}

/* ---- The runtime's stamp ---- */

static bool is_named(const struct etch_elf_section *names, uint32_t at, const char *name)
{
    size_t n = strlen(name) + 1;

    return at < names->size && names->size - at >= n && memcmp(names->bytes + at, name, n) == 0;
}

static bool take_symbol(struct etch_soft_map *map, const struct file *file, const struct etch_elf_section *names,
                        const Elf64_Sym *symbol)
{
    static const struct {
        const char *name; /* of the runtime: what compiled code calls */
        uint8_t record;
    } stamps[] = {{"etch_soft_stamp", ETCH_SOFT_TIME}, {"etch_soft_stamp_held", ETCH_SOFT_HELD}};
    struct etch_soft_stamper stamper = {.address = symbol->st_value + file->bias};

    for (size_t i = 0; i < sizeof(stamps) / sizeof(stamps[0]); i++)
        if (is_named(names, symbol->st_name, stamps[i].name))
            stamper.record = stamps[i].record;
    if (!stamper.record || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF)
        return true;
    return etch_array_push(&map->stamps, stamper);
}

static bool take_symbols(struct etch_soft_map *map, const struct file *file, const struct etch_elf_section *s)
{
    struct etch_elf_section names;
    bool whole = true;

    if (s->header.sh_type != SHT_SYMTAB || !section_at(file, s->header.sh_link, &names))
        return true;
    for (uint64_t at = 0; whole && s->size - at >= sizeof(Elf64_Sym); at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;

        memcpy(&symbol, s->bytes + at, sizeof(symbol));
        whole = take_symbol(map, file, &names, &symbol);
    }
    return whole;
}

/* ---- Together ---- */

static int compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_functions(const void *a, const void *b)
{
    return compare(((const struct etch_soft_function *)a)->address, ((const struct etch_soft_function *)b)->address);
}

static int compare_addresses(const void *a, const void *b)
{
    return compare(*(const uint64_t *)a, *(const uint64_t *)b);
}

static int compare_guards(const void *a, const void *b)
{
    return compare(((const struct etch_soft_guard *)a)->address, ((const struct etch_soft_guard *)b)->address);
}

static int compare_marks(const void *a, const void *b)
{
    const struct etch_soft_place *x = a, *y = b;
    int c = compare(x->address, y->address);

    return c ? c : compare(x->order, y->order);
}

static int compare_places(const void *a, const void *b)
{
    const struct etch_soft_place *x = a, *y = b;
    int c = compare(x->function, y->function);

    c = c ? c : compare(x->node, y->node);
    return c ? c : compare(x->address, y->address);
}

static void sort(void *v, size_t n, size_t size, int (*by)(const void *, const void *))
{
    if (n)
        qsort(v, n, size, by);
}

enum pass { FUNCTIONS, MARKS };

static bool add(struct etch_soft_map *map, const struct file *file, enum pass pass)
{
    struct etch_elf_section section;
    size_t stamps = map->stamps.n;
    bool whole = true, recorded = false;

    for (uint32_t i = 1; i < file->elf.header.e_shnum && whole; i++) {
        if (!section_at(file, i, &section))
            continue;
        if (pass == FUNCTIONS && etch_elf_section_is(&file->elf, &section, ETCH_SOFT_MAP_SECTION))
            whole = take_functions(map, file, &section);
        else if (pass == MARKS && etch_elf_section_is(&file->elf, &section, ETCH_SOFT_MARK_SECTION))
            whole = recorded = take_marks(map, file, &section);
        else if (pass == MARKS && etch_elf_section_is(&file->elf, &section, ".llvm_bb_addr_map"))
            whole = take_begins(map, file, &section);
        else if (pass == MARKS && map->functions.n)
            whole = take_symbols(map, file, &section);
    }
    map->unstamped |= recorded && map->stamps.n == stamps;
    return whole;
}

/* Equal ones come from copies of a section: the first stays. */
static void sort_functions(struct etch_soft_map *map)
{
    size_t kept = 0;

    sort(map->functions.v, map->functions.n, sizeof(map->functions.v[0]), compare_functions);
    for (size_t i = 0; i < map->functions.n; i++)
        if (!kept || map->functions.v[kept - 1].address != map->functions.v[i].address)
            map->functions.v[kept++] = map->functions.v[i];
    map->functions.n = kept;
}

/* False for a section that is not of the file's code. */
static bool find_bias(const struct etch_code_section *s, uint64_t *bias)
{
    uint64_t offset = s->image->file_offset;
    struct etch_elf_bytes elf;
    Elf64_Phdr p;

    if (!s->file || !etch_elf_bytes_open(&elf, s->file, s->file_size))
        return false;
    for (uint32_t i = 0; etch_elf_bytes_segment(&elf, i, &p); i++)
        if (p.p_type == PT_LOAD && p.p_flags & PF_X && offset <= p.p_offset + p.p_filesz &&
            offset + s->image->size > p.p_offset) {
            *bias = s->start - (p.p_vaddr - p.p_offset + offset);
            return true;
        }
    return false;
}

static bool add_all(struct etch_soft_map *map, const struct etch_code *code, enum pass pass)
{
    size_t n;
    const struct etch_code_section *s = etch_code_space_sections(etch_code_space_of(code, map->pid), &n);
    bool whole = true;

    for (size_t i = 0; i < n && whole; i++) {
        struct file file;
        uint64_t other;
        bool again = false;

        if (!find_bias(&s[i], &file.bias))
            continue;
        for (size_t k = 0; k < i; k++) /* one file may have several mappings of code */
            again |= s[k].file == s[i].file && find_bias(&s[k], &other) && other == file.bias;
        if (again || !etch_elf_bytes_open(&file.elf, s[i].file, s[i].file_size))
            continue;
        whole = add(map, &file, pass);
    }
    return whole;
}

bool etch_soft_map_add(struct etch_soft_map *map, const uint8_t *bytes, size_t size, uint64_t bias)
{
    struct file file = {.bias = bias};

    if (!etch_elf_bytes_open(&file.elf, bytes, size))
        return true;
    if (!add(map, &file, FUNCTIONS))
        return false;
    sort_functions(map);
    return add(map, &file, MARKS);
}

static uint64_t swapped(uint64_t address)
{
    return address << 32 | address >> 32;
}

bool etch_soft_map_finish(struct etch_soft_map *map)
{
    for (size_t i = 0; i < map->functions.n; i++)
        if (!etch_array_push(&map->halves, swapped(map->functions.v[i].address)))
            return false;
    for (size_t i = 0; i < map->guards.n; i++)
        if (!etch_array_push(&map->halves, swapped(map->guards.v[i].address)))
            return false;
    sort(map->guards.v, map->guards.n, sizeof(map->guards.v[0]), compare_guards);
    sort(map->halves.v, map->halves.n, sizeof(map->halves.v[0]), compare_addresses);
    sort(map->places.v, map->places.n, sizeof(map->places.v[0]), compare_places);
    sort(map->begins.v, map->begins.n, sizeof(map->begins.v[0]), compare_addresses);
    sort(map->stubs.v, map->stubs.n, sizeof(map->stubs.v[0]), compare_addresses);
    sort(map->plains.v, map->plains.n, sizeof(map->plains.v[0]), compare_addresses);
    sort(map->lits.v, map->lits.n, sizeof(map->lits.v[0]), compare_guards);
    if (map->unstamped)
        map->stamps.n = 0;
    sort(map->flushes.v, map->flushes.n, sizeof(map->flushes.v[0]), compare_addresses);
    if (!etch_array_reserve(&map->marks, map->places.n))
        return false;
    map->marks.n = map->places.n;
    if (map->places.n)
        memcpy(map->marks.v, map->places.v, map->places.n * sizeof(map->places.v[0]));
    sort(map->marks.v, map->marks.n, sizeof(map->marks.v[0]), compare_marks);
    for (size_t i = 0; i < map->places.n; i++) {
        struct etch_soft_function *f = &map->functions.v[map->places.v[i].function];

        if (!f->n_marks++)
            f->first_mark = (uint32_t)i;
    }
    return true;
}

struct etch_soft_map *etch_soft_map_new(const struct etch_code *code, uint32_t pid)
{
    struct etch_soft_map *map = calloc(1, sizeof(*map));

    if (!map)
        return NULL;
    map->pid = pid;
    if (add_all(map, code, FUNCTIONS)) {
        sort_functions(map);
        if (add_all(map, code, MARKS) && etch_soft_map_finish(map))
            return map;
    }
    etch_soft_map_free(map);
    return NULL;
}

void etch_soft_map_free(struct etch_soft_map *map)
{
    if (!map)
        return;
    etch_array_free(&map->functions);
    etch_array_free(&map->places);
    etch_array_free(&map->marks);
    etch_array_free(&map->flushes);
    etch_array_free(&map->begins);
    etch_array_free(&map->stubs);
    etch_array_free(&map->guards);
    etch_array_free(&map->plains);
    etch_array_free(&map->lits);
    etch_array_free(&map->stamps);
    etch_array_free(&map->halves);
    free(map);
}

/* ---- Asking ---- */

uint32_t etch_soft_map_function(const struct etch_soft_map *map, uint64_t address)
{
    size_t lo = 0, hi = map->functions.n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (map->functions.v[mid].address < address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < map->functions.n && map->functions.v[lo].address == address ? (uint32_t)lo : UINT32_MAX;
}

uint64_t etch_soft_map_address(const struct etch_soft_map *map, uint32_t half, uint64_t near)
{
    size_t lo = 0, hi = map->halves.n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if ((uint32_t)(map->halves.v[mid] >> 32) < half)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (hi = lo; hi < map->halves.n && map->halves.v[hi] >> 32 == half; hi++)
        if (swapped(map->halves.v[hi]) >> 32 == near >> 32)
            return swapped(map->halves.v[hi]);
    return hi == lo + 1 ? swapped(map->halves.v[lo]) : 0;
}

bool etch_soft_map_is_stub(const struct etch_soft_map *map, uint64_t address)
{
    return map->stubs.n && bsearch(&address, map->stubs.v, map->stubs.n, sizeof(address), compare_addresses);
}

uint32_t etch_soft_map_guarded(const struct etch_soft_map *map, uint64_t address)
{
    const struct etch_soft_guard wanted = {.address = address}, *found;

    if (!map->guards.n)
        return UINT32_MAX;
    found = bsearch(&wanted, map->guards.v, map->guards.n, sizeof(wanted), compare_guards);
    return found ? found->function : UINT32_MAX;
}

/* Each module has one or two. */
uint8_t etch_soft_map_stamp(const struct etch_soft_map *map, uint64_t address)
{
    for (size_t i = 0; i < map->stamps.n; i++)
        if (map->stamps.v[i].address == address)
            return map->stamps.v[i].record;
    return 0;
}

/* The last address at or before one, in a sorted list; 0: there is none. */
static uint64_t last_before(const uint64_t *v, size_t n, uint64_t address)
{
    size_t lo = 0, hi = n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (v[mid] <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo > 0 ? v[lo - 1] : 0;
}

uint64_t etch_soft_map_stub_before(const struct etch_soft_map *map, uint64_t address)
{
    return last_before(map->stubs.v, map->stubs.n, address);
}

bool etch_soft_map_is_plain(const struct etch_soft_map *map, uint64_t address)
{
    return address && etch_soft_map_plain_before(map, address) == address;
}

uint64_t etch_soft_map_plain_before(const struct etch_soft_map *map, uint64_t address)
{
    return last_before(map->plains.v, map->plains.n, address);
}

uint32_t etch_soft_map_edges(const struct etch_soft_function *f, uint32_t node)
{
    uint32_t next = node + 1 < f->nodes ? f->node[node + 1].first_edge : f->edges;

    return next - f->node[node].first_edge;
}

static size_t first_at(const struct etch_soft_place *v, size_t n, uint64_t address)
{
    size_t lo = 0, hi = n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (v[mid].address < address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

size_t etch_soft_map_mark_at(const struct etch_soft_map *map, uint64_t address)
{
    return first_at(map->marks.v, map->marks.n, address);
}

const struct etch_soft_place *etch_soft_map_flush(const struct etch_soft_map *map, uint64_t address)
{
    size_t at = first_at(map->flushes.v, map->flushes.n, address);

    return at < map->flushes.n && map->flushes.v[at].address == address ? &map->flushes.v[at] : NULL;
}

const struct etch_soft_place *etch_soft_map_places(const struct etch_soft_map *map, uint32_t function, uint32_t node,
                                                   size_t *n)
{
    const struct etch_soft_function *f = &map->functions.v[function];
    size_t lo = f->first_mark, end = f->first_mark + f->n_marks, hi = end;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (map->places.v[mid].node < node)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (*n = 0; lo + *n < end && map->places.v[lo + *n].node == node;)
        ++*n;
    return map->places.v + lo;
}

uint64_t etch_soft_map_begin(const struct etch_soft_map *map, uint64_t address)
{
    uint64_t begin = last_before(map->begins.v, map->begins.n, address);

    return begin ? begin : address;
}
