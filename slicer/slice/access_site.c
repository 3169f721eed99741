/* SPDX-License-Identifier: MIT */
/* From an access in the bitcode to the instruction of the binary that makes it. The line table gives the machine code
 * of the access' line and column. The right instruction there has a memory operand that fits. */
#include "base/log.h"
#include "proto/soft_layout.h"
#include "slicer/slice/frame_slot.h"
#include "slicer/slice/machine_code.h"
#include "slicer/slice/operand_fit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct looking {
    struct etch_operand_fit *fit;
    struct etch_access_site *site;
};

static bool look_at(void *context, uint64_t at, const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *ops)
{
    struct looking *l = context;

    for (int i = 0; i < insn->operand_count; i++) {
        int score = etch_operand_fitness(l->fit, insn, &ops[i], at);

        if (score <= l->fit->best)
            continue;
        l->fit->best = score;
        l->site->address = at;
        l->site->size = l->fit->mention->size ? l->fit->mention->size : ops[i].size / 8u;
        snprintf(l->site->operand, sizeof(l->site->operand), "%s,%s,%u,%" PRId64, etch_register_name(ops[i].mem.base),
                 etch_register_name(ops[i].mem.index), ops[i].mem.scale ? ops[i].mem.scale : 1u, ops[i].mem.disp.value);
    }
    return true;
}

/* ---- Accesses by library code ---- */

#define CALLS_MAX 16u

struct calls {
    uint64_t wanted[4]; /* targets: the function itself, its recorded code, its stub, its guard */
    uint64_t found;     /* the call of that */
    uint64_t all[CALLS_MAX];
    unsigned n;
};

static bool look_for_call(void *context, uint64_t at, const ZydisDecodedInstruction *insn,
                          const ZydisDecodedOperand *ops)
{
    struct calls *c = context;
    ZyanU64 target = 0;

    if (insn->meta.category != ZYDIS_CATEGORY_CALL)
        return true;
    if (c->n < CALLS_MAX)
        c->all[c->n] = at;
    c->n++;
    if (ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(insn, &ops[0], at, &target)) && target &&
        (target == c->wanted[0] || target == c->wanted[1] || target == c->wanted[2] || target == c->wanted[3]))
        c->found = at;
    return true;
}

/* Which of the calls at one place in the source an instruction is, and how many there are. */
static unsigned number_of_call(const struct etch_model *m, uint32_t insn, unsigned *n)
{
    const struct etch_function *f = &m->functions.v[etch_insn_function(m, insn)];
    const struct etch_insn *here = &m->insns.v[insn];
    unsigned number = 0;

    *n = 0;
    for (uint32_t b = f->first_block; b < f->first_block + f->n_blocks; b++)
        for (uint32_t i = m->blocks.v[b].first; i < m->blocks.v[b].first + m->blocks.v[b].n; i++) {
            const struct etch_insn *at = &m->insns.v[i];

            if (!etch_is_call(at->value) || at->file != here->file || at->line != here->line ||
                at->column != here->column || strncmp(etch_called_name(at->value), "llvm.", 5) == 0)
                continue;
            number = i == insn ? *n : number;
            ++*n;
        }
    return number;
}

/* The call itself: there the object's address is in a register. */
static void find_call(struct etch_model *m, const struct etch_mention *mention, struct etch_access_site *site)
{
    const struct etch_insn *insn = &m->insns.v[mention->insn];
    LLVMValueRef callee = insn->callee == ETCH_NONE ? etch_called(insn->value) : m->functions.v[insn->callee].value;
    ZydisRegister reg =
        callee ? etch_register_of(callee, LLVMGetParam(callee, mention->parameter)) : ZYDIS_REGISTER_NONE;
    uint64_t starts[64], ends[64];
    struct calls calls = {0};
    unsigned number, of;
    size_t length, n;

    if (insn->file == ETCH_NONE || reg == ZYDIS_REGISTER_NONE)
        return;
    if (insn->callee != ETCH_NONE) {
        calls.wanted[0] = etch_code_symbol(m, callee, LLVMGetValueName2(callee, &length));
        calls.wanted[1] = etch_code_entry(m, callee);
    }
    calls.wanted[2] = etch_code_symbol_with(m, callee, ETCH_SOFT_STUB_SUFFIX);
    calls.wanted[3] = etch_code_symbol_with(m, callee, ETCH_SOFT_GUARD_SUFFIX);
    n = etch_code_ranges(m, m->files.all.v[insn->file], insn->line, insn->column, starts, ends, 64);
    for (size_t i = 0; i < n; i++)
        if (etch_code_is_watched(m, starts[i]))
            etch_code_visit(m, starts[i], ends[i], look_for_call, &calls);
    number = number_of_call(m, mention->insn, &of);
    if (!calls.found && number >= CALLS_MAX)
        etch_log(ETCH_LOG_SLICE, ETCH_LOG_INFO, "line %u has %u calls: those behind the first %u have no access site",
                 insn->line, of, CALLS_MAX);
    site->address = calls.found ? calls.found : calls.n == of && number < CALLS_MAX ? calls.all[number] : 0;
    if (site->address)
        snprintf(site->operand, sizeof(site->operand), "%s,,1,%" PRId64, etch_register_name(reg), mention->offset);
}

/* True if code of a header was inlined into the line of an instruction. */
static bool is_of_line(struct etch_model *m, uint64_t address, const struct etch_insn *outer)
{
    struct etch_line_row row;

    return etch_line_table_own(m->lines, address, &row) && row.line == outer->line &&
           strcmp(etch_line_table_file(m->lines, row.file), m->files.all.v[outer->file]) == 0;
}

/* The access of the library's code: in its own function, or, where `inlined`, in the user's line. */
static void find_inner(struct etch_model *m, const struct etch_mention *mention, bool inlined,
                       struct etch_access_site *site)
{
    const struct etch_insn *inner = &m->insns.v[mention->inner], *outer = &m->insns.v[mention->insn];
    struct etch_mention access = {
        .insn = mention->inner, .write = mention->write, .size = mention->size, .shared = true};
    struct etch_operand_fit fit = {.mention = &access,
                                   .frame_pointer = etch_code_keeps_frame_pointer(m, mention->inner)};
    struct looking looking = {&fit, site};
    uint64_t starts[64], ends[64];
    size_t n;

    for (int pass = 0; pass < 2 && !site->address && inner->file != ETCH_NONE && outer->file != ETCH_NONE; pass++) {
        n = etch_code_ranges(m, m->files.all.v[inner->file], inner->line, pass == 0 ? inner->column : 0, starts, ends,
                             64);
        for (size_t i = 0; i < n; i++)
            if (etch_code_is_watched(m, starts[i]) &&
                (inlined ? is_of_line(m, starts[i], outer) : etch_code_is_of(m, starts[i], mention->inner)))
                etch_code_visit(m, starts[i], ends[i], look_at, &looking);
    }
}

static void find_library(struct etch_model *m, const struct etch_mention *mention, struct etch_access_site *site)
{
    struct etch_access_site inner = {.size = mention->size};

    find_call(m, mention, site);
    if (site->address) {
        site->call = true;
        if (mention->inner != ETCH_NONE)
            find_inner(m, mention, false, &inner);
        site->inner = inner.address;
    } else if (mention->inner != ETCH_NONE) {
        find_inner(m, mention, true, site);
    }
    if (!site->address)
        site->unmapped = "in a register, or merged with another access";
}

/* ---- Any access ---- */

void etch_access_site_find(struct etch_model *m, const struct etch_mention *mention, struct etch_access_site *site)
{
    const struct etch_insn *insn = &m->insns.v[mention->insn];
    const char *file = insn->file == ETCH_NONE ? "" : m->files.all.v[insn->file];
    struct etch_operand_fit fit = {.mention = mention};
    struct looking looking = {&fit, site};
    uint64_t starts[64], ends[64];
    LLVMValueRef base = etch_constant_offset(m, mention->insn, mention->pointer, &fit.offset, &fit.constant);
    size_t n = 0;

    memset(site, 0, sizeof(*site));
    site->size = mention->size;
    if (LLVMIsAGlobalVariable(base) && fit.constant && mention->library)
        site->global = etch_code_variable(m, base, fit.offset + mention->offset);
    if (mention->library) {
        find_library(m, mention, site);
        return;
    }
    fit.frame_pointer = etch_code_keeps_frame_pointer(m, mention->insn);
    if (LLVMIsAGlobalVariable(base) && fit.constant)
        fit.global = site->global = etch_code_variable(m, base, fit.offset);
    if (LLVMIsAAllocaInst(base))
        fit.slot = etch_frame_slot_of(m, base);
    for (int pass = 0; pass < 2 && !site->address; pass++) {
        n = etch_code_ranges(m, file, insn->line, pass == 0 ? insn->column : 0, starts, ends, 64);
        for (size_t i = 0; i < n; i++)
            if (etch_code_is_watched(m, starts[i]))
                etch_code_visit(m, starts[i], ends[i], look_at, &looking);
    }
    if (!site->address)
        site->unmapped = n ? "in a register, or merged with another access" : "optimised away";
}
