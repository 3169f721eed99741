/* SPDX-License-Identifier: MIT */
/* value_truth [-s SEED] [-n INSTRUCTIONS] [-k INSTRUCTIONS] [-v] [-w FILE] PROGRAM [ARGUMENT...]: runs a program
 * instruction by instruction until it dies, recovers values backwards from its end, and compares every recovered value
 * with what really happened. Twice: with all instructions, and with those of the program alone, as the software
 * recorder has them. Prints a line for each. Exit status: 0 if nothing was wrong, 1 if something was, 77 if the program
 * did not die. -w writes the run to a file, and -r FILE takes it from there. -k ends the first thread after so many
 * instructions: any program will do. */
#include "binary/symbols.h"
#include "decoder/backward.h"
#include "decoder/values/private_frame.h"
#include "tests/tools/stepper.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_MAPPINGS 256
#define STATEMENTS 1000u
#define PAGE 4096u

struct mapping {
    uint64_t start, end, offset;
    bool write, execute, program, has_file, stack, moves;
};

struct page {
    uint64_t number;
    bool there, known;
    uint8_t bytes[PAGE];
};

/* Of an instruction: a cache. */
struct function {
    uint64_t address;
    enum etch_stack_frame frame;
};

struct truth {
    struct stepper_end end;
    struct mapping mappings[MOST_MAPPINGS];
    size_t n_mappings;
    struct page *pages; /* a cache */
    struct function *functions;
    struct etch_symbols *symbols;
    Etch__Image image; /* the program's code */
    bool verbose;
    const char *name;
};

#define PAGES 1024u

/* ---- Memory at the end ---- */

static size_t read_memory(void *context, uint64_t address, void *to, size_t size)
{
    struct truth *t = context;
    struct page *p = &t->pages[address / PAGE % PAGES];

    if (address % PAGE + size > PAGE)
        return stepper_read(&t->end, address, to, size);
    if (!p->known || p->number != address / PAGE) {
        p->known = true;
        p->number = address / PAGE;
        p->there = stepper_read(&t->end, address / PAGE * PAGE, p->bytes, PAGE) == PAGE;
    }
    if (!p->there)
        return 0;
    memcpy(to, p->bytes + address % PAGE, size);
    return size;
}

static void parse_mapping(struct truth *t, const char *line, const char *program)
{
    struct mapping *m = &t->mappings[t->n_mappings], *before = t->n_mappings ? m - 1 : NULL;
    char permissions[8] = "", path[4096] = "";

    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %4095[^\n]", &m->start, &m->end, permissions,
               &m->offset, path) < 4)
        return;
    m->write = permissions[1] == 'w';
    m->execute = permissions[2] == 'x';
    m->has_file = path[0] == '/' || strcmp(path, "[vdso]") == 0;
    m->moves = strncmp(path, "[vvar", 5) == 0;
    /* Zeroed variables follow the program's file without a name. */
    m->program = strcmp(path, program) == 0 || (!path[0] && before && before->program && before->end == m->start);
    m->stack = m->start <= t->end.registers.rsp && t->end.registers.rsp < m->end;
    t->n_mappings++;
}

static void read_mappings(struct truth *t, const char *program)
{
    const char *newline = NULL;
    char line[4352];

    for (const char *at = t->end.maps; at && *at && t->n_mappings < MOST_MAPPINGS; at = newline ? newline + 1 : "") {
        newline = strchr(at, '\n');
        (void)snprintf(line, sizeof(line), "%.*s", newline ? (int)(newline - at) : (int)strlen(at), at);
        parse_mapping(t, line, program);
    }
}

static const struct mapping *mapping_of(const struct truth *t, uint64_t address)
{
    for (size_t i = 0; i < t->n_mappings; i++)
        if (t->mappings[i].start <= address && address < t->mappings[i].end)
            return &t->mappings[i];
    return NULL;
}

static enum etch_memory_kind kind_of(void *context, uint64_t address)
{
    const struct truth *t = context;
    const struct mapping *m = mapping_of(t, address);

    if (!m || m->moves)
        return ETCH_MEMORY_SHARED;
    if (!m->write)
        return m->has_file ? ETCH_MEMORY_CONSTANT : ETCH_MEMORY_SHARED;
    if (m->stack)
        return ETCH_MEMORY_STACK;
    if (t->end.threads)
        return ETCH_MEMORY_SHARED;
    return m->program ? ETCH_MEMORY_STATIC : ETCH_MEMORY_PLAIN;
}

/* ---- The question ---- */

struct sequence {
    struct etch_backward_instruction *v;
    size_t *record; /* of each */
    size_t n;
    struct etch_backward_question q;
};

static void find(struct truth *t, uint64_t address, struct etch_location *l)
{
    bool inside = address >= t->image.start && address - t->image.start < t->image.size;

    etch_symbols_find(t->symbols, inside ? &t->image : NULL, address, l);
}

static bool is_seen(struct truth *t, uint64_t address, bool all)
{
    struct etch_location l = {0};

    if (all)
        return true;
    if (address < t->image.start || address - t->image.start >= t->image.size)
        return false;
    find(t, address, &l);
    return l.symbol && !l.is_plt; /* the head of the table of stubs has no symbol */
}

static void end_registers(const struct user_regs_struct *r, uint64_t out[ETCH_BACKWARD_REGISTERS])
{
    const uint64_t values[ETCH_BACKWARD_REGISTERS] = {
        [0] = r->rax,  [1] = r->rbx,  [2] = r->rcx,  [3] = r->rdx,    [4] = r->rsi,  [5] = r->rdi,
        [6] = r->rbp,  [7] = r->rsp,  [8] = r->rip,  [9] = r->eflags, [16] = r->r8,  [17] = r->r9,
        [18] = r->r10, [19] = r->r11, [20] = r->r12, [21] = r->r13,   [22] = r->r14, [23] = r->r15};

    memcpy(out, values, sizeof(values));
}

/* The registers that unwinding finds at a call: those that functions keep. */
#define KEPT (1u << 1 | 1u << 6 | 1u << 7 | 1u << 20 | 1u << 21 | 1u << 22 | 1u << 23)

/* What the unseen code at an address writes: a function of a library, by the name of its stub. */
static const struct etch_library_effect *effect_of(struct truth *t, uint64_t address)
{
    struct etch_location l = {0};

    find(t, address, &l);
    return etch_library_effect_of(l.is_plt ? l.symbol : NULL);
}

#define FUNCTIONS 4096u
#define FUNCTION_MAX 65536u

/* The frame of the function at an address of the program. */
static enum etch_stack_frame frame_of(struct truth *t, uint64_t address)
{
    static uint8_t bytes[FUNCTION_MAX];
    struct function *f = &t->functions[address % FUNCTIONS];
    struct etch_location l = {0}, next = {0};
    uint64_t start, end;

    if (f->address == address)
        return f->frame;
    *f = (struct function){address, ETCH_FRAME_OPEN};
    find(t, address, &l);
    if (!l.symbol)
        return f->frame;
    start = address - l.offset;
    for (end = l.until; end - start < FUNCTION_MAX; end = next.until) {
        find(t, end, &next);
        if (next.symbol != l.symbol)
            break;
    }
    if (end - start < FUNCTION_MAX && stepper_read(&t->end, start, bytes, (size_t)(end - start)) == end - start)
        f->frame = etch_frame_of(bytes, (size_t)(end - start));
    return f->frame;
}

static bool make_sequence(struct truth *t, struct sequence *s, bool all)
{
    const struct etch_library_effect *effect = NULL;
    bool gap = false;

    s->v = calloc(t->end.n + 1, sizeof(*s->v));
    s->record = calloc(t->end.n + 1, sizeof(*s->record));
    if (!s->v || !s->record)
        return false;
    for (size_t i = 0; i < t->end.n; i++) {
        const struct stepper_record *r = &t->end.records[i];

        if (is_seen(t, r->registers.rip, all)) {
            s->record[s->n] = i;
            s->v[s->n++] = (struct etch_backward_instruction){
                .address = r->registers.rip,
                .bytes = r->code,
                .size = r->size,
                .frame = (uint8_t)frame_of(t, r->registers.rip),
                .unseen = gap ? (uint8_t)effect->unseen : ETCH_UNSEEN_NOTHING,
                .effect = gap ? effect : NULL,
                .incomplete = i + 1 == t->end.n && t->end.incomplete,
            };
            gap = false;
        } else if (!gap) {
            effect = effect_of(t, r->registers.rip);
            gap = true;
        }
    }
    s->q = (struct etch_backward_question){
        .instructions = s->v,
        .n = s->n,
        .unseen_after = gap ? effect->unseen : ETCH_UNSEEN_NOTHING,
        .effect_after = gap ? effect : NULL,
        .masked = gap ? ~KEPT : 0,
        .fs_base_known = true,
        .fs_base = t->end.registers.fs_base,
        .read = read_memory,
        .kind = kind_of,
        .context = t,
    };
    end_registers(gap && s->n ? &t->end.records[s->record[s->n - 1]].registers : &t->end.registers, s->q.registers);
    return s->n > 0;
}

/* ---- The comparison ---- */

struct score {
    size_t accesses, known, wrong; /* of the last statements of the program */
    size_t all_accesses, all_known, registers, known_registers, statements;
    size_t how[ETCH_HOW_EXECUTED + 1], why[ETCH_WHY_COUNT];
};

static bool fits(const struct stepper_operand *o, const struct etch_backward_access *a, uint64_t address)
{
    uint64_t from = address - o->address;

    return o->size && (a->write ? o->write : o->read) && from + a->size <= o->size &&
           memcmp((a->write ? o->after : o->before) + from, &a->value, a->size) == 0;
}

/* Whether one operand of the instruction had this value at this place. Without a place, any part of it will do. */
static bool is_true(const struct stepper_record *r, const struct etch_backward_access *a)
{
    for (unsigned k = 0; k < r->n; k++)
        if (!r->operands[k].size)
            return true; /* memory of the kernel's, which the stepper cannot read */
    for (unsigned k = 0; k < r->n; k++)
        for (uint64_t part = 0; part + a->size <= STEPPER_WIDEST; part += a->size)
            if (fits(&r->operands[k], a, a->address_known ? a->address : r->operands[k].address + part))
                return true;
    return false;
}

static bool place_is_true(const struct stepper_record *r, const struct etch_backward_access *a)
{
    for (unsigned k = 0; k < r->n; k++)
        if (!r->operands[k].size || a->address - r->operands[k].address < r->operands[k].size)
            return true;
    return false;
}

static void say_wrong(const struct truth *t, const struct stepper_record *r, const char *what, uint64_t claimed,
                      uint64_t truth)
{
    printf("%s: wrong %s at %#llx: %#" PRIx64 ", in truth %#" PRIx64 "; code", t->name, what, r->registers.rip, claimed,
           truth);
    for (unsigned i = 0; i < r->size; i++)
        printf(" %02x", r->code[i]);
    printf("\n");
}

static void compare_access(const struct truth *t, const struct stepper_record *r, const struct etch_backward_access *a,
                           struct score *score)
{
    uint64_t truth = 0;

    if (a->address_known && !place_is_true(r, a)) {
        score->wrong++;
        say_wrong(t, r, "address", a->address, r->operands[0].address);
    }
    if (a->how == ETCH_HOW_UNKNOWN || is_true(r, a))
        return;
    memcpy(&truth, a->write ? r->operands[0].after : r->operands[0].before, a->size);
    score->wrong++;
    say_wrong(t, r, a->write ? "value written" : "value read", a->value, truth);
}

static void compare_registers(const struct truth *t, const struct etch_backward *b, const struct sequence *s, size_t i,
                              struct score *score)
{
    const struct stepper_record *r = &t->end.records[s->record[i]];
    uint64_t registers[ETCH_BACKWARD_REGISTERS], value;

    end_registers(&r->registers, registers);
    for (unsigned k = 0; k < ETCH_BACKWARD_REGISTERS; k++) {
        if (k >= 8 && k < 16)
            continue;
        score->registers++;
        if (etch_backward_register(b, i, k, &value) == ETCH_HOW_UNKNOWN)
            continue;
        score->known_registers++;
        if (value == registers[k])
            continue;
        score->wrong++;
        if (t->verbose)
            say_wrong(t, r, "register", value, registers[k]);
    }
}

/* Which instructions belong to the last statements of the program: true in `of_statement`. A statement is a run of
 * instructions of one line. */
static void find_statements(struct truth *t, const struct sequence *s, bool *of_statement, struct score *score)
{
    uint64_t function = 0;
    uint32_t line = 0;

    for (size_t i = s->n; i-- > 0;) {
        struct etch_location l = {0};

        find(t, s->v[i].address, &l);
        if (!l.frame.line || l.is_plt || !is_seen(t, s->v[i].address, false))
            continue;
        if (l.frame.line != line || l.function_id != function)
            if (score->statements++ == STATEMENTS) {
                score->statements--;
                return;
            }
        line = l.frame.line;
        function = l.function_id;
        of_statement[i] = true;
    }
}

/* Counts why a value is unknown, and says where the reason lies. */
static void ask_why(struct truth *t, const struct sequence *s, struct etch_backward *b, size_t access,
                    struct score *score)
{
    struct etch_location l = {0};
    uint32_t at;
    enum etch_why_unknown why = etch_backward_why(b, access, &at);

    score->why[why]++;
    if (!t->verbose)
        return;
    find(t, s->v[at].address, &l);
    printf("       %s: %u %s:%u %#" PRIx64, etch_why_unknown_name(why), at, l.symbol ? l.symbol : "?", l.frame.line,
           s->v[at].address);
    for (unsigned i = 0; i < t->end.records[s->record[at]].size; i++)
        printf(" %02x", s->v[at].bytes[i]);
    l = (struct etch_location){0};
    if (at && s->record[at] > s->record[at - 1] + 1) {
        find(t, t->end.records[s->record[at - 1] + 1].registers.rip, &l);
        printf(" behind %s", l.symbol ? l.symbol : "?");
    }
    printf("\n");
}

static void say_access(struct truth *t, const struct sequence *s, const struct etch_backward_access *a)
{
    struct etch_location l = {0};

    find(t, s->v[a->instruction].address, &l);
    printf("%6u %s:%u %#" PRIx64 " %s%u %s%#" PRIx64 " %s %#" PRIx64 "\n", a->instruction, l.symbol ? l.symbol : "?",
           l.frame.line, s->v[a->instruction].address, a->write ? "write" : "read", a->size,
           a->address_known ? "" : "?", a->address, etch_how_known_name(a->how), a->value);
}

static void compare(struct truth *t, struct etch_backward *b, const struct sequence *s, struct score *score)
{
    bool *of_statement = calloc(s->n + 1, sizeof(*of_statement));

    if (!of_statement)
        return;
    find_statements(t, s, of_statement, score);
    for (size_t i = 0; i < etch_backward_accesses(b); i++) {
        struct etch_backward_access a;

        etch_backward_access(b, i, &a);
        if (!a.size)
            continue;
        compare_access(t, &t->end.records[s->record[a.instruction]], &a, score);
        score->all_accesses++;
        score->all_known += a.how != ETCH_HOW_UNKNOWN;
        if (!of_statement[a.instruction] || a.implicit)
            continue;
        if (t->verbose)
            say_access(t, s, &a);
        score->accesses++;
        score->known += a.how != ETCH_HOW_UNKNOWN;
        score->how[a.how]++;
        if (a.how == ETCH_HOW_UNKNOWN)
            ask_why(t, s, b, i, score);
    }
    for (size_t i = 0; i < s->n; i++)
        compare_registers(t, b, s, i, score);
    free(of_statement);
}

static double percent(size_t part, size_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 100;
}

static int judge(struct truth *t, bool all)
{
    struct sequence s = {0};
    struct score score = {0};
    struct etch_backward *b = NULL;
    struct etch_error err = {0};
    struct etch_backward_count count;
    int result = 1;

    if (make_sequence(t, &s, all) && etch_backward_solve(&b, &s.q, &err) == 0) {
        count = etch_backward_count(b);
        compare(t, b, &s, &score);
        printf("%-20s %-8s %7zu %6zu %7zu %6.1f%% %6zu   %6.1f%% %6.1f%% %6zu %4zu%s", t->name, all ? "all" : "program",
               s.n, score.statements, score.accesses, percent(score.known, score.accesses), score.wrong,
               percent(score.all_known, score.all_accesses), percent(score.known_registers, score.registers),
               count.rounds, count.contradictions, count.gave_up ? " gave up" : "");
        for (int h = ETCH_HOW_CORE; h <= ETCH_HOW_EXECUTED; h++)
            printf(" %s %zu", etch_how_known_name((enum etch_how_known)h), score.how[h]);
        for (int w = 0; w < ETCH_WHY_COUNT; w++)
            if (score.why[w])
                printf(" %s %zu", etch_why_unknown_name((enum etch_why_unknown)w), score.why[w]);
        printf("\n");
        result = score.wrong != 0;
    }
    etch_backward_free(b);
    free(s.v);
    free(s.record);
    return result;
}

static int usage(void)
{
    fprintf(stderr, "usage: value_truth [-s SEED] [-n INSTRUCTIONS] [-k INSTRUCTIONS] [-v] [-w FILE | -r FILE] PROGRAM "
                    "[ARGUMENT...]\n");
    return 2;
}

int main(int argc, char **argv)
{
    struct truth t = {0};
    struct etch_symbols_options options = {.mangled = true};
    size_t last = 100000, most = 400000;
    unsigned seed = 1;
    int option, result;
    char program[4096];
    const char *save = NULL, *load = NULL;

    while ((option = getopt(argc, argv, "+s:n:vw:r:k:")) != -1) {
        if (option == 's')
            seed = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 'n')
            last = strtoul(optarg, NULL, 10);
        else if (option == 'v')
            t.verbose = true;
        else if (option == 'k') {
            most = strtoul(optarg, NULL, 10);
            t.end.stop = true;
        } else if (option == 'w')
            save = optarg;
        else if (option == 'r')
            load = optarg;
        else
            return usage();
    }
    if (optind >= argc || !last || last > ETCH_BACKWARD_LIMIT || !realpath(argv[optind], program))
        return usage();
    argv[optind] = program;
    t.name = strrchr(program, '/') + 1;
    result = load ? stepper_load(load, &t.end) : stepper_run(argv + optind, most, last, seed, &t.end);
    if (save && result == 0)
        result = stepper_save(&t.end, save);
    t.pages = calloc(PAGES, sizeof(*t.pages));
    t.functions = calloc(FUNCTIONS, sizeof(*t.functions));
    t.symbols = etch_symbols_new(&options);
    if (result == 0 && t.pages && t.functions && t.symbols) {
        read_mappings(&t, program);
        etch__image__init(&t.image);
        t.image.path = program;
        for (size_t i = 0; i < t.n_mappings; i++)
            if (t.mappings[i].program && t.mappings[i].execute) {
                t.image.start = t.mappings[i].start;
                t.image.size = t.mappings[i].end - t.mappings[i].start;
                t.image.file_offset = t.mappings[i].offset;
            }
        result = judge(&t, true) | judge(&t, false);
    } else
        result = result == 1 ? 77 : 2;
    etch_symbols_free(t.symbols);
    free(t.functions);
    free(t.pages);
    stepper_close(&t.end);
    return result;
}
