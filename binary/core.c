/* SPDX-License-Identifier: MIT */
/* See core.h. */
#include "binary/core.h"

#include "base/input.h"
#include "binary/core_notes.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEGMENTS_MAX (1u << 20)

struct etch_core {
    struct etch_core_contents contents;
    struct etch_core_vector auxv;
    const uint8_t *bytes; /* NULL: `fd` */
    int fd;
    uint64_t size;
};

/* ---- The file ---- */

/* Returns fewer bytes than asked for at the end of the file, or if the file cannot be read. */
static size_t read_file(const void *context, uint64_t offset, void *buffer, size_t size)
{
    const struct etch_core *core = context;
    size_t done = 0;

    if (offset >= core->size)
        return 0;
    if (size > core->size - offset)
        size = (size_t)(core->size - offset);
    if (core->bytes) {
        memcpy(buffer, core->bytes + offset, size);
        return size;
    }
    while (done < size) {
        ssize_t n = pread(core->fd, (char *)buffer + done, size - done, (off_t)(offset + done));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    return done;
}

/* ---- Segments ---- */

/* Beyond 65,534 segments, the first section header has the number. */
static uint64_t count_segments(const struct etch_core *core, const Elf64_Ehdr *header)
{
    Elf64_Shdr first;

    if (header->e_phnum != PN_XNUM)
        return header->e_phnum;
    return read_file(core, header->e_shoff, &first, sizeof(first)) == sizeof(first) ? first.sh_info : 0;
}

static bool add_segment(struct etch_core *core, const Elf64_Phdr *p)
{
    struct etch_core_segment segment = {
        .start = p->p_vaddr,
        .size = p->p_memsz,
        .dumped = p->p_filesz < p->p_memsz ? p->p_filesz : p->p_memsz,
        .offset = p->p_offset,
        .prot = (p->p_flags & PF_R ? 1u : 0) | (p->p_flags & PF_W ? 2u : 0) | (p->p_flags & PF_X ? 4u : 0),
    };
    uint64_t there = segment.offset < core->size ? core->size - segment.offset : 0;

    if (!segment.size || segment.start + segment.size < segment.start)
        return true;
    if (segment.dumped > there) {
        uint64_t missing = segment.dumped - there;

        core->contents.missing += core->contents.missing + missing < missing ? 0 : missing;
        segment.dumped = there;
    }
    return etch_array_push(&core->contents.segments, segment);
}

static int by_start(const void *x, const void *y)
{
    const struct etch_core_segment *a = x, *b = y;

    return a->start < b->start ? -1 : a->start > b->start;
}

/* Returns the number of note segments put into `notes`, or -1 for lack of memory. */
static int take_segments(struct etch_core *core, const Elf64_Ehdr *header, uint64_t n, Elf64_Phdr notes[4])
{
    Elf64_Phdr p;
    int found = 0;

    for (uint64_t i = 0; i < n; i++) {
        if (read_file(core, header->e_phoff + i * sizeof(p), &p, sizeof(p)) != sizeof(p)) {
            core->contents.missing += (n - i) * sizeof(p);
            break;
        }
        if (p.p_type == PT_NOTE && found < 4)
            notes[found++] = p;
        if (p.p_type == PT_LOAD && !add_segment(core, &p))
            return -1;
    }
    if (core->contents.segments.n)
        qsort(core->contents.segments.v, core->contents.segments.n, sizeof(*core->contents.segments.v), by_start);
    return found;
}

const struct etch_core_segment *etch_core_segment_at(const struct etch_core *core, uint64_t address)
{
    size_t lo = 0, hi = core->contents.segments.n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const struct etch_core_segment *s = &core->contents.segments.v[mid];

        if (address < s->start)
            hi = mid;
        else if (address - s->start >= s->size)
            lo = mid + 1;
        else
            return s;
    }
    return NULL;
}

static size_t read_memory(const void *context, uint64_t address, void *buffer, size_t size)
{
    return etch_core_read(context, address, buffer, size);
}

size_t etch_core_read(const struct etch_core *core, uint64_t address, void *buffer, size_t size)
{
    size_t done = 0;

    while (done < size && address + done >= address) {
        uint64_t at = address + done;
        const struct etch_core_segment *s = etch_core_segment_at(core, at);
        uint64_t skip = s ? at - s->start : 0;
        size_t piece = size - done, got;

        if (!s || skip >= s->dumped)
            break;
        if (piece > s->dumped - skip)
            piece = (size_t)(s->dumped - skip);
        got = read_file(core, s->offset + skip, (char *)buffer + done, piece);
        done += got;
        if (got < piece)
            break;
    }
    return done;
}

/* ---- Opening ---- */

static int refuse_other(const struct etch_core *core, const char *name, struct etch_error *err)
{
    static const struct {
        const char *magic, *packer;
    } packers[] = {
        {"\x28\xb5\x2f\xfd", "zstd"}, {"\x04\x22\x4d\x18", "lz4"}, {"\xfd\x37zX", "xz"}, {"\x1f\x8b\x08", "gzip"}};
    char bytes[5] = "";

    read_file(core, 0, bytes, 4);
    for (size_t i = 0; i < sizeof(packers) / sizeof(packers[0]); i++)
        if (memcmp(bytes, packers[i].magic, strlen(packers[i].magic)) == 0) {
            etch_error_set(err, "%s is compressed by %s", name, packers[i].packer);
            return etch_error_advise(err, "%s -d < %s > core, and then the core", packers[i].packer, name);
        }
    etch_error_set(err, "%s is not a core file", name);
    return etch_error_advise(err, "the file that the kernel or gdb's generate-core-file wrote");
}

static int check(const struct etch_core *core, const Elf64_Ehdr *h, const char *name, struct etch_error *err)
{
    if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
        return refuse_other(core, name, err);
    if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB || h->e_machine != EM_X86_64)
        return etch_error_set(err, "%s is of another kind of machine than x86-64", name);
    if (h->e_type != ET_CORE) {
        etch_error_set(err, "%s is an ELF file, but not a core file", name);
        return etch_error_advise(err, "the core as FILE, and the program before it");
    }
    return 0;
}

static int take_all(struct etch_core *core, const char *name, struct etch_error *err)
{
    Elf64_Ehdr header = {0};
    Elf64_Phdr notes[4];
    uint64_t n;
    int found;

    read_file(core, 0, &header, sizeof(header));
    if (check(core, &header, name, err) < 0)
        return -1;
    n = count_segments(core, &header);
    if (header.e_phentsize != sizeof(Elf64_Phdr) || n > SEGMENTS_MAX)
        return etch_error_set(err, "%s is damaged: its table of segments cannot be read", name);
    found = take_segments(core, &header, n, notes);
    for (int i = 0; i < found; i++) {
        const struct etch_core_reader reader = {core, read_file};

        if (!etch_core_notes_take(&core->contents, &core->auxv, &reader, notes[i].p_offset, notes[i].p_filesz))
            found = -1;
    }
    if (found < 0)
        return etch_error_no_memory(err);
    etch_core_notes_end(&core->contents);
    if (core->contents.threads.n)
        return 0;
    etch_error_set(err,
                   core->contents.missing || core->contents.notes_cut ? "%s ends before its first thread"
                                                                      : "%s has no threads",
                   name);
    return etch_error_advise(err, "a core that is whole (ulimit -c unlimited; space on the disk)");
}

static int begin(struct etch_core **core, struct etch_error *err)
{
    *core = calloc(1, sizeof(**core));
    if (!*core)
        return etch_error_no_memory(err);
    (*core)->fd = -1;
    return 0;
}

static int end(struct etch_core **core, const char *name, struct etch_error *err)
{
    if (take_all(*core, name, err) == 0)
        return 0;
    etch_core_free(*core);
    *core = NULL;
    return -1;
}

int etch_core_open(struct etch_core **core, const char *path, struct etch_error *err)
{
    off_t size;

    if (begin(core, err) < 0)
        return -1;
    (*core)->fd = etch_input_open(path);
    size = (*core)->fd >= 0 ? etch_input_size((*core)->fd) : -1;
    if (size < 0) {
        etch_error_set_errno(err, errno, "cannot open the core %s", path);
        if (errno == EACCES)
            etch_error_advise(err, "sudo: a core may be read by its owner, or by root alone");
        etch_core_free(*core);
        *core = NULL;
        return -1;
    }
    (*core)->size = (uint64_t)size;
    return end(core, path, err);
}

int etch_core_open_bytes(struct etch_core **core, const uint8_t *bytes, size_t size, const char *name,
                         struct etch_error *err)
{
    if (begin(core, err) < 0)
        return -1;
    (*core)->bytes = bytes;
    (*core)->size = size;
    return end(core, name, err);
}

void etch_core_free(struct etch_core *core)
{
    if (!core)
        return;
    for (size_t i = 0; i < core->contents.files.n; i++)
        free(core->contents.files.v[i].path);
    etch_array_free(&core->contents.files);
    etch_array_free(&core->contents.threads);
    etch_array_free(&core->contents.segments);
    if (core->fd >= 0)
        close(core->fd);
    free(core);
}

/* ---- Asking ---- */

const struct etch_core_contents *etch_core_contents(const struct etch_core *core)
{
    return &core->contents;
}

const struct etch_core_file *etch_core_file_at(const struct etch_core *core, uint64_t address)
{
    size_t lo = 0, hi = core->contents.files.n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const struct etch_core_file *f = &core->contents.files.v[mid];

        if (address < f->start)
            hi = mid;
        else if (address >= f->end)
            lo = mid + 1;
        else
            return f;
    }
    return NULL;
}

bool etch_core_auxv(const struct etch_core *core, uint64_t type, uint64_t *value)
{
    for (size_t i = 0; i < core->auxv.n; i++)
        if (core->auxv.entries[i].type == type) {
            *value = core->auxv.entries[i].value;
            return true;
        }
    return false;
}

size_t etch_core_build_id(const struct etch_core *core, const struct etch_core_file *file,
                          uint8_t id[ETCH_BUILD_ID_MAX])
{
    const struct etch_core_reader memory = {core, read_memory};

    return etch_core_notes_build_id(&memory, file, id);
}

/* ---- Arguments ---- */

/* The end of a stack, as the kernel made it: argc, the arguments, 0, the environment, 0, the auxiliary vector. */
static uint64_t find_auxv(const struct etch_core *core)
{
    const size_t size = core->auxv.n * sizeof(core->auxv.entries[0]);
    const struct etch_core_segment *stack;
    uint8_t window[8192];
    uint64_t near, at;
    size_t got;

    if (size < 4 * sizeof(core->auxv.entries[0]) || size > sizeof(window) / 2 ||
        (!etch_core_auxv(core, AT_RANDOM, &near) && !etch_core_auxv(core, AT_EXECFN, &near)) ||
        !(stack = etch_core_segment_at(core, near)))
        return 0;
    /* The kernel puts the vector below these bytes; between them are the file names and words, or nothing. */
    for (at = near & ~(uint64_t)15; at > stack->start; at -= at - stack->start < 4096 ? at - stack->start : 4096) {
        uint64_t from = at - stack->start > 4096 ? at - 4096 : stack->start;

        got = etch_core_read(core, from, window, sizeof(window));
        for (size_t i = 0; i + size <= got; i += 8)
            if (memcmp(window + i, core->auxv.entries, size) == 0)
                return from + i;
        if (near - at > 64u << 10)
            break;
    }
    return 0;
}

static bool word_at(const struct etch_core *core, uint64_t address, uint64_t *word)
{
    return etch_core_read(core, address, word, 8) == 8;
}

static char *text_at(const struct etch_core *core, uint64_t address)
{
    char text[4096];
    size_t got = etch_core_read(core, address, text, sizeof(text) - 1);

    text[got] = '\0';
    return got ? strdup(text) : NULL;
}

/* Where argc is: below `auxv` come 0, the environment, 0, the arguments, and their number. */
static uint64_t find_count(const struct etch_core *core, uint64_t auxv, uint64_t *count)
{
    uint64_t word, at = auxv - 8, zeros = 0, since = 0;

    for (size_t i = 0; i < 1u << 16 && word_at(core, at, &word); i++, at -= 8) {
        if (zeros == 2 && word == since) {
            *count = word;
            return at;
        }
        since = zeros == 2 ? since + 1 : 0;
        zeros += word == 0;
        if (zeros > 2)
            break;
    }
    return 0;
}

size_t etch_core_arguments(const struct etch_core *core, char **words, size_t max, uint64_t *top)
{
    uint64_t auxv = find_auxv(core), count = 0, pointer;
    uint64_t at = auxv ? find_count(core, auxv, &count) : 0;
    size_t n = 0;

    *top = at;
    for (; at && n < max && n < count && word_at(core, at + 8 + 8 * n, &pointer); n++)
        if (!(words[n] = text_at(core, pointer)))
            break;
    return n;
}
