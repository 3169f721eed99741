/* SPDX-License-Identifier: MIT */
/* The start of a slice: by file and line, or from a recorded failure. */
#include "base/function_name.h"
#include "base/path.h"
#include "slicer/slice/exits.h"
#include "slicer/slice/slicing.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void etch_criterion_free(struct etch_criterion *criterion)
{
    if (criterion)
        etch_array_free(&criterion->insns);
    free(criterion);
}

static bool ends_with_path(const char *path, const char *tail)
{
    size_t n = strlen(path), k = strlen(tail);

    return n >= k && strcmp(path + n - k, tail) == 0 && (n == k || path[n - k - 1] == '/' || tail[0] == '/');
}

/* Adds the instructions of a place; column 0: any column. Returns how many there were. */
static size_t add_place(struct etch_criterion *c, const struct etch_model *m, uint32_t file, uint32_t line,
                        uint32_t column)
{
    size_t before = c->insns.n;

    for (uint32_t i = 0; i < m->insns.n; i++) {
        const struct etch_insn *insn = &m->insns.v[i];

        if (insn->file == file && insn->line == line && (!column || insn->column == column) &&
            LLVMGetInstructionOpcode(insn->value) != LLVMAlloca && !etch_array_push(&c->insns, i))
            break;
    }
    return c->insns.n - before;
}

/* ---- By hand ---- */

struct place {
    char file[4096];
    uint32_t line, column;
};

static bool number(const char *text, uint32_t *value)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);

    *value = (uint32_t)n;
    return text[0] >= '0' && text[0] <= '9' && !*end && n > 0 && n < UINT32_MAX;
}

static int parse_place(struct place *place, const char *text, struct etch_error *err)
{
    char *colon;
    uint32_t last;

    *place = (struct place){0};
    snprintf(place->file, sizeof(place->file), "%s", text);
    colon = strrchr(place->file, ':');
    if (!colon || !number(colon + 1, &last))
        return etch_error_set(err, "'%s' is no place (try: file.c:12 or file.c:12:7)", text);
    *colon = '\0';
    place->line = last;
    colon = strrchr(place->file, ':');
    if (colon && number(colon + 1, &place->line)) {
        *colon = '\0';
        place->column = last;
    }
    return 0;
}

/* The nearest lines with code, in words. */
static int no_code(const struct etch_model *m, uint32_t file, const struct place *place, struct etch_error *err)
{
    uint32_t before = 0, after = UINT32_MAX;

    for (size_t i = 0; i < m->insns.n; i++) {
        uint32_t line = m->insns.v[i].line;

        if (m->insns.v[i].file != file)
            continue;
        if (line < place->line && line > before)
            before = line;
        if (line > place->line && line < after)
            after = line;
    }
    if (place->column)
        etch_error_set(err, "there is no code at %s:%u:%u", place->file, place->line, place->column);
    else
        etch_error_set(err, "there is no code on line %u of %s", place->line, place->file);
    if (before && after != UINT32_MAX)
        return etch_error_advise(err, "line %u or %u, the nearest with code", before, after);
    if (before || after != UINT32_MAX)
        return etch_error_advise(err, "line %u, the nearest with code", before ? before : after);
    return -1;
}

static int no_file(const struct etch_model *m, const struct place *place, struct etch_error *err)
{
    const char *base = etch_path_name(place->file);

    etch_error_set(err, "%s has no code from a file %s", m->path, place->file);
    for (size_t i = 0; i < m->files.all.n; i++)
        if (ends_with_path(m->files.all.v[i], base))
            return etch_error_advise(err, "%.400s", m->files.all.v[i]);
    return -1;
}

static int resolve_file(const struct etch_model *m, const struct place *place, uint32_t *file, struct etch_error *err)
{
    *file = ETCH_NONE;
    for (uint32_t i = 0; i < m->files.all.n; i++) {
        if (!ends_with_path(m->files.all.v[i], place->file))
            continue;
        if (*file != ETCH_NONE) {
            etch_error_set(err, "%s may be two files", place->file);
            return etch_error_advise(err, "%.200s or %.200s", m->files.all.v[*file], m->files.all.v[i]);
        }
        *file = i;
    }
    return *file == ETCH_NONE ? no_file(m, place, err) : 0;
}

int etch_criterion_at(struct etch_criterion **criterion, struct etch_model *m, const char *text, struct etch_error *err)
{
    struct etch_criterion *c = calloc(1, sizeof(*c));
    struct place place;
    uint32_t file;

    if (!c)
        return etch_error_no_memory(err);
    if (parse_place(&place, text, err) < 0 || resolve_file(m, &place, &file, err) < 0)
        goto failed;
    if (!add_place(c, m, file, place.line, place.column)) {
        no_code(m, file, &place, err);
        goto failed;
    }
    *criterion = c;
    return 0;
failed:
    etch_criterion_free(c);
    return -1;
}

/* ---- From a failure ---- */

struct run {
    const Etch__Failure *failure;
    const Etch__Program *program;
    Etch__Image *const *images;
    size_t n_images;
};

static void hex(const uint8_t *bytes, size_t n, char *text, size_t size)
{
    text[0] = '\0';
    for (size_t i = 0; i < n && i * 2 + 3 <= size; i++)
        snprintf(text + i * 2, 3, "%02x", bytes[i]);
}

static int check_build(const struct etch_model *m, const struct run *run, struct etch_error *err)
{
    size_t n;
    const uint8_t *id = etch_line_table_build_id(m->lines, 0, &n);
    const ProtobufCBinaryData *theirs = run->program ? &run->program->build_id : NULL;
    char mine_text[64], theirs_text[64];

    if (!theirs || theirs->len == 0 || n == 0)
        return 0;
    if (theirs->len == n && memcmp(theirs->data, id, n) == 0)
        return 0;
    for (size_t i = 0; i < run->n_images; i++) /* the recorded command may have started the program */
        if (run->images[i]->build_id.len == n && memcmp(run->images[i]->build_id.data, id, n) == 0)
            return 0;
    hex(id, n, mine_text, sizeof(mine_text));
    hex(theirs->data, theirs->len, theirs_text, sizeof(theirs_text));
    etch_error_set(err, "the failure is of another build: %s has build-id %s, the recorded program %s", m->path,
                   mine_text, theirs_text);
    return etch_error_advise(err, "the binary that was recorded, or record this one");
}

static bool is_image(const struct etch_model *m, const struct run *run, uint32_t number, const Etch__Image *image)
{
    size_t n;
    const uint8_t *id = etch_line_table_build_id(m->lines, number, &n);
    const char *path = number == 0 && run->program && run->program->exe[0] ? run->program->exe : m->images.v[number];

    if (n && image->build_id.len)
        return image->build_id.len == n && memcmp(image->build_id.data, id, n) == 0;
    return strcmp(image->path, path) == 0;
}

/* Which of the model's binaries was mapped there; ETCH_NONE: none. */
static uint32_t which_image(const struct etch_model *m, const struct run *run, const Etch__Image *image)
{
    for (uint32_t i = 0; i < m->images.n; i++)
        if (is_image(m, run, i, image))
            return i;
    return ETCH_NONE;
}

/* An address of the run as one of the model's. */
static bool to_binary(const struct etch_model *m, const struct run *run, uint64_t address, uint64_t *own)
{
    for (size_t i = 0; i < run->n_images; i++) {
        const Etch__Image *image = run->images[i];
        uint32_t number;

        if ((run->failure && run->failure->pid && image->pid && image->pid != run->failure->pid) ||
            address < image->start || address - image->start >= image->size)
            continue;
        number = which_image(m, run, image);
        if (number != ETCH_NONE)
            return etch_line_table_address(m->lines, number, address - image->start + image->file_offset, own);
    }
    return false;
}

/* The innermost frame within the user's own code; where there is none, the innermost within the program. The first is
 * the instruction itself, the others are where calls return to. */
static bool row_of(const struct etch_model *m, const struct run *run, const uint64_t *frames, size_t n,
                   struct etch_line_row *found)
{
    bool any = false;

    for (size_t i = 0; i < n; i++) {
        struct etch_line_row row;
        uint64_t own;

        if (!to_binary(m, run, frames[i], &own) || !etch_line_table_own(m->lines, i == 0 ? own : own - 1, &row))
            continue;
        if (!any)
            *found = row;
        any = true;
        if (!etch_file_is_system(etch_line_table_file(m->lines, row.file))) {
            *found = row;
            return true;
        }
    }
    return any;
}

#define LINES_BACK 3u
#define ROWS_ON 8u

/* True if the code of a row sets up a frame: a push of a register, a subtraction from the stack pointer, or the mark of
 * a branch's target. */
static bool begins_function(const struct etch_model *m, const struct etch_line_row *row)
{
    size_t n;
    const uint8_t *code = etch_line_table_code(m->lines, row->start, &n);

    if (!code || n < 4)
        return false;
    return (code[0] >= 0x50 && code[0] <= 0x57) || (code[0] == 0x41 && code[1] >= 0x50 && code[1] <= 0x57) ||
           (code[0] == 0x48 && (code[1] == 0x83 || code[1] == 0x81) && code[2] == 0xec) ||
           (code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e && code[3] == 0xfa);
}

/* The opening line of a function has machine code but no bitcode: its first statement counts. */
static bool add_first_statement(struct etch_criterion *c, const struct etch_model *m, const struct etch_line_row *row,
                                uint32_t file)
{
    size_t n;
    const struct etch_line_row *rows = etch_line_table_rows(m->lines, &n),
                               *at = etch_line_table_at(m->lines, row->start);

    for (unsigned i = 0; at && i < ROWS_ON && at + 1 < rows + n && at[1].start == at->end; i++, at++)
        if (at[1].file == row->file && at[1].line > row->line && add_place(c, m, file, at[1].line, 0))
            return true;
    return false;
}

static bool add_row(struct etch_criterion *c, const struct etch_model *m, const struct etch_line_row *row)
{
    uint32_t file = etch_strings_find(&m->files, etch_line_table_file(m->lines, row->file));

    if (file == ETCH_NONE)
        return false;
    if ((row->column && add_place(c, m, file, row->line, row->column)) || add_place(c, m, file, row->line, 0))
        return true;
    if (begins_function(m, row) && add_first_statement(c, m, row, file))
        return true;
    /* The closing brace of a function has machine code but no bitcode: the line before it counts. */
    for (uint32_t back = 1; back <= LINES_BACK && back < row->line; back++)
        if (add_place(c, m, file, row->line - back, 0))
            return true;
    return false;
}

static bool add_thread(struct etch_criterion *c, const struct etch_model *m, const struct run *run,
                       const Etch__ThreadState *thread)
{
    const Etch__Exception *e = run->failure->exception;
    struct etch_line_row row;

    if (!row_of(m, run, thread->frames, thread->n_frames, &row))
        return false;
    if (e && !e->none && !e->handled)
        row.column = 0; /* making the exception, from its arguments, is another call of the line than throwing it */
    return add_row(c, m, &row);
}

static bool comes_behind(LLVMBasicBlockRef block, LLVMBasicBlockRef other)
{
    while (block && block != other)
        block = LLVMGetNextBasicBlock(block);
    return block != NULL;
}

/* True if some branch leads to `block` or past it, to code that follows. A branch around a check in the middle of a
 * function does so. */
static bool is_passed_by(LLVMBasicBlockRef block)
{
    LLVMBasicBlockRef at = block;

    for (unsigned steps = 0; at && steps < 8; steps++) {
        LLVMBasicBlockRef from = NULL;

        for (LLVMUseRef use = LLVMGetFirstUse(LLVMBasicBlockAsValue(at)); use; use = LLVMGetNextUse(use)) {
            LLVMValueRef branch = LLVMGetUser(use);

            if (LLVMIsABranchInst(branch) && LLVMIsConditional(branch) &&
                (comes_behind(LLVMGetNextBasicBlock(block), LLVMGetSuccessor(branch, 0)) ||
                 comes_behind(LLVMGetNextBasicBlock(block), LLVMGetSuccessor(branch, 1))))
                return true;
            from = LLVMIsAInvokeInst(branch) ? LLVMGetInstructionParent(branch) : NULL;
        }
        at = from; /* a call that may throw ends a block, and nothing else */
    }
    return false;
}

/* In unoptimised code, clang puts a trap at the end of a function that should have returned a value. No code follows
 * this trap. After a __builtin_trap(), the code continues. */
static bool is_missing_return(LLVMValueRef trap)
{
    LLVMValueRef next = LLVMGetNextInstruction(trap);

    return next && LLVMGetInstructionOpcode(next) == LLVMUnreachable && !is_passed_by(LLVMGetInstructionParent(trap));
}

static bool ends_without_value(const struct etch_criterion *c, const struct etch_model *m)
{
    size_t traps = 0;

    for (size_t i = 0; i < c->insns.n; i++) {
        LLVMValueRef v = m->insns.v[c->insns.v[i]].value;

        if (!etch_is_call(v) || strcmp(etch_called_name(v), "llvm.trap") != 0)
            continue;
        if (!is_missing_return(v))
            return false;
        traps++;
    }
    return traps > 0;
}

static bool is_hang(const Etch__Failure *failure)
{
    return failure->kind == ETCH__FAILURE_KIND__FAILURE_HANG || failure->kind == ETCH__FAILURE_KIND__FAILURE_TIMEOUT;
}

/* The line that the failing thread was at; false: not known. */
static bool failing_row(const struct etch_model *m, const struct run *run, struct etch_line_row *row)
{
    for (size_t i = 0; i < run->failure->n_threads; i++)
        if (run->failure->threads[i]->tid == run->failure->tid &&
            row_of(m, run, run->failure->threads[i]->frames, run->failure->threads[i]->n_frames, row))
            return true;
    return run->failure->ip && row_of(m, run, &run->failure->ip, 1, row);
}

static bool is_at(const struct etch_model *m, uint32_t insn, const struct etch_line_row *row)
{
    return row && m->insns.v[insn].line == row->line &&
           m->insns.v[insn].file == etch_strings_find(&m->files, etch_line_table_file(m->lines, row->file));
}

/* An exit status begins where its value was made: at the statement that is known to have, else at all that can have.
 * Wrong output begins at all statements that write: which of them wrote the wrong part is not known. */
static bool add_exits(struct etch_criterion *c, struct etch_model *m, const struct run *run, bool *found)
{
    struct etch_line_row place;
    const struct etch_line_row *row = failing_row(m, run, &place) ? &place : NULL;
    struct etch_exits exits = {0};
    bool ok = etch_exits_find(m, run->failure->code, &exits), known = false;

    for (size_t i = 0; run->failure->code && i < exits.n; i++)
        known |= exits.v[i].origin && is_at(m, exits.v[i].insn, row);
    for (size_t i = 0; ok && i < exits.n; i++) {
        uint32_t insn = exits.v[i].insn;
        const struct etch_insn *at = &m->insns.v[insn];

        if (exits.v[i].origin && (!known || is_at(m, insn, row)))
            *found |= add_place(c, m, at->file, at->line, at->column) > 0;
    }
    etch_array_free(&exits);
    return ok;
}

static int add_failure(struct etch_criterion *c, struct etch_model *m, const struct run *run, struct etch_error *err)
{
    const Etch__Failure *failure = run->failure;
    bool found = false;

    if ((failure->kind == ETCH__FAILURE_KIND__FAILURE_EXIT || failure->kind == ETCH__FAILURE_KIND__FAILURE_CHECK) &&
        !add_exits(c, m, run, &found))
        return etch_error_no_memory(err);
    for (size_t i = 0; i < failure->n_threads; i++)
        if (is_hang(failure) || (!found && failure->threads[i]->tid == failure->tid))
            found = add_thread(c, m, run, failure->threads[i]) || found;
    if (!found && failure->ip && !is_hang(failure)) {
        struct etch_line_row row;

        found = row_of(m, run, &failure->ip, 1, &row) && add_row(c, m, &row);
    }
    c->ends_without_value = found && failure->signal == SIGILL && ends_without_value(c, m);
    if (found)
        return 0;
    etch_error_set(err, "no frame of the failure is in %s, or none has a line", m->path);
    return etch_error_advise(err, "--at FILE:LINE");
}

int etch_criterion_failure(struct etch_criterion **criterion, struct etch_model *m, const Etch__Failure *failure,
                           const Etch__Program *program, Etch__Image *const *images, size_t n_images,
                           struct etch_error *err)
{
    struct run run = {failure, program, images, n_images};
    struct etch_criterion *c = calloc(1, sizeof(*c));

    if (!c)
        return etch_error_no_memory(err);
    if (check_build(m, &run, err) < 0 || add_failure(c, m, &run, err) < 0) {
        etch_criterion_free(c);
        return -1;
    }
    *criterion = c;
    return 0;
}

/* ---- Calls through pointers, as they were ---- */

struct real_call {
    uint32_t insn, function;
};
typedef ETCH_ARRAY(struct real_call) real_calls;

/* The function that begins at an address of the binary. */
static uint32_t function_at(const struct etch_model *m, uint64_t address)
{
    for (uint32_t i = 0; i < m->functions.n; i++) {
        const struct etch_function *f = &m->functions.v[i];
        LLVMLinkage linkage = LLVMGetLinkage(f->value);
        bool local = linkage == LLVMInternalLinkage || linkage == LLVMPrivateLinkage;
        size_t n;
        const char *source = LLVMGetSourceFileName(m->modules.v[f->module].module, &n);
        uint64_t start, size;

        if (etch_line_table_symbol(m->lines, f->symbol, local ? etch_path_name(source) : NULL,
                                   etch_function_image(m, i), &start, &size) &&
            start == address)
            return i;
    }
    return ETCH_NONE;
}

static bool is_indirect(const struct etch_model *m, uint32_t insn)
{
    LLVMValueRef v = m->insns.v[insn].value;

    return etch_is_call(v) && !etch_called(v);
}

/* Adds the calls of the bitcode that a call of the run may be, with its target (ETCH_NONE: outside the program). */
static bool add_real(const struct etch_model *m, const struct run *run, const struct etch_indirect_call *call,
                     real_calls *real)
{
    struct etch_criterion at = {0};
    const struct etch_line_row *row;
    uint64_t site, target;
    uint32_t function = to_binary(m, run, call->target, &target) ? function_at(m, target) : ETCH_NONE;
    bool ok = true;

    row = to_binary(m, run, call->site, &site) ? etch_line_table_at(m->lines, site) : NULL;
    if (row)
        add_row(&at, m, row);
    for (size_t i = 0; ok && i < at.insns.n; i++)
        if (is_indirect(m, at.insns.v[i]))
            ok = etch_array_push(real, ((struct real_call){at.insns.v[i], function}));
    etch_array_free(&at.insns);
    return ok;
}

static bool was_made(const real_calls *real, uint32_t insn)
{
    for (size_t i = 0; i < real->n; i++)
        if (real->v[i].insn == insn)
            return true;
    return false;
}

static bool was_target(const real_calls *real, uint32_t insn, uint32_t function)
{
    for (size_t i = 0; i < real->n; i++)
        if (real->v[i].insn == insn && real->v[i].function == function)
            return true;
    return false;
}

static void keep_real(struct etch_model *m, const real_calls *real)
{
    for (uint32_t i = 0; i < m->functions.n; i++) {
        struct etch_function *f = &m->functions.v[i];
        size_t kept = 0;

        for (size_t k = 0; k < f->callers.n; k++) {
            uint32_t insn = f->callers.v[k].insn;

            if (f->callers.v[k].edge != ETCH_EDGE_CALL || !is_indirect(m, insn) || !was_made(real, insn) ||
                was_target(real, insn, i))
                f->callers.v[kept++] = f->callers.v[k];
        }
        f->callers.n = kept;
    }
}

int etch_model_narrow(struct etch_model *m, const Etch__Program *program, Etch__Image *const *images, size_t n_images,
                      const struct etch_indirect_call *calls, size_t n_calls, struct etch_error *err)
{
    struct run run = {NULL, program, images, n_images};
    real_calls real = {0};
    int narrowed = 0;

    for (size_t i = 0; i < n_calls; i++) {
        if (!add_real(m, &run, &calls[i], &real)) {
            etch_array_free(&real);
            return etch_error_no_memory(err);
        }
    }
    for (uint32_t i = 0; i < m->insns.n && real.n; i++)
        narrowed += was_made(&real, i);
    keep_real(m, &real);
    etch_array_free(&real);
    return etch_model_index_targets(m) ? narrowed : etch_error_no_memory(err);
}
