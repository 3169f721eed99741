/* SPDX-License-Identifier: MIT */
/* From an access in the bitcode to the instruction of the binary that makes it: the line table gives the machine code
 * of its line and column, and the right instruction there is the one whose memory operand fits. */
#include "base/function_name.h"
#include "proto/soft_layout.h"
#include "slicer/slice/effects.h"
#include "slicer/slice/slicing.h"

#include <Zydis/Zydis.h>
#include <inttypes.h>
#include <llvm-c/Target.h>
#include <stdio.h>
#include <string.h>

LLVMTargetDataRef etch_layout_of(const struct etch_model *m, uint32_t insn)
{
    return LLVMGetModuleDataLayout(m->modules.v[m->functions.v[etch_insn_function(m, insn)].module].module);
}

/* ---- What an instruction accesses ---- */

/* clang has a thread-local variable's address from an intrinsic. */
static LLVMValueRef thread_local_base(LLVMValueRef base)
{
    LLVMValueRef called = LLVMIsACallInst(base) ? LLVMGetCalledValue(base) : NULL;
    size_t size;
    const char *name = called && LLVMIsAFunction(called) ? LLVMGetValueName2(called, &size) : "";

    return strncmp(name, "llvm.threadlocal.address", 24) == 0 ? LLVMGetOperand(base, 0) : base;
}

static bool add_mention(struct etch_model *m, uint32_t insn, LLVMValueRef pointer, LLVMTypeRef type, bool write,
                        etch_mentions *mentions)
{
    struct etch_mention mention = {.insn = insn, .pointer = pointer, .write = write};
    LLVMValueRef local = etch_memory_local(pointer), base = pointer;

    if (!etch_name_object(m, pointer, type, mention.name, sizeof(mention.name))) {
        if (local)
            return true; /* a temporary of the compiler's */
        snprintf(mention.name, sizeof(mention.name), "*?");
    }
    while (LLVMIsAGetElementPtrInst(base) || (LLVMIsAConstantExpr(base) && LLVMGetNumOperands(base)))
        base = LLVMGetOperand(base, 0);
    base = thread_local_base(base);
    mention.shared =
        !local && !(LLVMIsAGlobalVariable(base) && (LLVMIsThreadLocal(base) || LLVMIsGlobalConstant(base)));
    mention.size = type && LLVMTypeIsSized(type) ? (uint32_t)LLVMStoreSizeOfType(etch_layout_of(m, insn), type) : 0;
    return etch_array_push(mentions, mention);
}

/* Which argument a method of the C++ library gets its object in; ETCH_NONE: the call is of no such method. */
static uint32_t object_argument(LLVMValueRef call)
{
    const char *name = etch_called_name(call);
    LLVMValueRef function = etch_called(call);
    unsigned kind = LLVMGetEnumAttributeKindForName("sret", 4);
    bool returned = function && LLVMGetEnumAttributeAtIndex(function, 1, kind);

    if (strncmp(name, "_ZNSt", 5) != 0 && strncmp(name, "_ZNKSt", 6) != 0)
        return ETCH_NONE;
    return returned ? 1 : 0;
}

/* A method whose code is in a library. It may read all that its object holds, and write it unless it is const. */
static bool add_outside(struct etch_model *m, uint32_t insn, etch_mentions *mentions)
{
    LLVMValueRef call = m->insns.v[insn].value;
    uint32_t argument = object_argument(call);
    bool writes = strncmp(etch_called_name(call), "_ZNK", 4) != 0;
    struct etch_members members = {.n = 0};

    if (argument < LLVMGetNumArgOperands(call))
        etch_name_members(m, LLVMGetOperand(call, argument), &members);
    for (size_t i = 0; i < members.n * (writes ? 2 : 1); i++) {
        struct etch_mention mention = {.insn = insn,
                                       .write = i >= members.n,
                                       .size = 8,
                                       .library = true,
                                       .parameter = argument,
                                       .offset = (int64_t)members.offset[i % members.n],
                                       .inner = ETCH_NONE,
                                       .pointer = LLVMGetOperand(call, argument)};

        mention.shared = !etch_memory_local(mention.pointer);
        if (etch_name_within(m, mention.pointer, mention.offset, mention.name, sizeof(mention.name)) &&
            !etch_array_push(mentions, mention))
            return false;
    }
    return true;
}

/* What a call of library code does to the objects that it is given, by the user's names for them. */
static bool add_library(struct etch_model *m, uint32_t insn, etch_mentions *mentions)
{
    const struct etch_insn *call = &m->insns.v[insn];
    const etch_effects *effects = call->callee == ETCH_NONE ? NULL : etch_effects_of(m, call->callee);

    if (call->callee == ETCH_NONE)
        return add_outside(m, insn, mentions);
    for (size_t i = 0; effects && i < effects->n; i++) {
        const struct etch_effect *e = &effects->v[i];
        struct etch_mention mention = {.insn = insn,
                                       .write = e->write,
                                       .size = e->size,
                                       .library = true,
                                       .parameter = e->parameter,
                                       .offset = e->offset,
                                       .inner = e->insn};

        if (e->parameter >= LLVMGetNumArgOperands(call->value))
            continue;
        mention.pointer = LLVMGetOperand(call->value, e->parameter);
        if (!etch_name_within(m, mention.pointer, e->offset, mention.name, sizeof(mention.name)))
            continue;
        mention.shared = !etch_memory_local(mention.pointer);
        if (!etch_array_push(mentions, mention))
            return false;
    }
    return true;
}

bool etch_mentions_of(struct etch_model *m, uint32_t insn, etch_mentions *mentions)
{
    LLVMValueRef v = m->insns.v[insn].value;
    LLVMValueRef op0 = LLVMGetNumOperands(v) ? LLVMGetOperand(v, 0) : NULL;

    switch (LLVMGetInstructionOpcode(v)) {
    case LLVMLoad:
        return add_mention(m, insn, op0, LLVMTypeOf(v), false, mentions);
    case LLVMStore:
        return add_mention(m, insn, LLVMGetOperand(v, 1), LLVMTypeOf(op0), true, mentions);
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg: {
        LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(v, 1));

        return add_mention(m, insn, op0, type, false, mentions) && add_mention(m, insn, op0, type, true, mentions);
    }
    case LLVMInvoke:
        return add_library(m, insn, mentions);
    case LLVMCall:
        if (strncmp(etch_called_name(v), "llvm.mem", 8) != 0)
            return add_library(m, insn, mentions);
        if (strncmp(etch_called_name(v), "llvm.memset", 11) != 0 &&
            !add_mention(m, insn, LLVMGetOperand(v, 1), NULL, false, mentions))
            return false;
        return add_mention(m, insn, op0, NULL, true, mentions);
    default:
        return true;
    }
}

/* ---- Where it is ---- */

LLVMValueRef etch_constant_offset(const struct etch_model *m, uint32_t insn, LLVMValueRef pointer, int64_t *offset,
                                  bool *constant)
{
    LLVMTargetDataRef layout = etch_layout_of(m, insn);

    *offset = 0;
    *constant = true;
    while (LLVMIsAGetElementPtrInst(pointer) ||
           (LLVMIsAConstantExpr(pointer) && LLVMGetConstOpcode(pointer) == LLVMGetElementPtr)) {
        LLVMTypeRef type = LLVMGetGEPSourceElementType(pointer);

        for (int i = 1; i < LLVMGetNumOperands(pointer); i++) {
            LLVMValueRef index = LLVMGetOperand(pointer, (unsigned)i);

            if (i > 1 && LLVMGetTypeKind(type) == LLVMStructTypeKind) {
                unsigned k = (unsigned)LLVMConstIntGetZExtValue(index);

                *offset += (int64_t)LLVMOffsetOfElement(layout, type, k);
                type = LLVMStructGetTypeAtIndex(type, k);
                continue;
            }
            if (i > 1)
                type = LLVMGetElementType(type);
            if (LLVMIsAConstantInt(index))
                *offset += LLVMConstIntGetSExtValue(index) * (int64_t)LLVMABISizeOfType(layout, type);
            else
                *constant = false;
        }
        pointer = LLVMGetOperand(pointer, 0);
    }
    return pointer;
}

static uint32_t image_of(const struct etch_model *m, LLVMValueRef global)
{
    LLVMModuleRef module = LLVMGetGlobalParent(global);

    for (size_t i = 0; i < m->modules.n; i++)
        if (m->modules.v[i].module == module)
            return m->modules.v[i].image;
    return ETCH_NONE;
}

static uint64_t symbol_address(const struct etch_model *m, LLVMValueRef global, const char *name)
{
    LLVMLinkage linkage = LLVMGetLinkage(global);
    bool local = linkage == LLVMInternalLinkage || linkage == LLVMPrivateLinkage;
    bool own = local || LLVMIsAFunction(global);
    size_t n;
    const char *source = LLVMGetSourceFileName(LLVMGetGlobalParent(global), &n), *base = strrchr(source, '/');
    uint64_t address, size;

    return etch_line_table_symbol(m->lines, name, local ? (base ? base + 1 : source) : NULL,
                                  own ? image_of(m, global) : ETCH_NONE, &address, &size)
               ? address
               : 0;
}

static uint64_t static_address(const struct etch_model *m, LLVMValueRef global, int64_t offset)
{
    size_t n;
    uint64_t address = LLVMIsThreadLocal(global) ? 0 : symbol_address(m, global, LLVMGetValueName2(global, &n));

    return address ? address + (uint64_t)offset : 0;
}

struct fit {
    const struct etch_mention *mention;
    int64_t offset; /* of the field */
    bool constant;
    bool frame_pointer;
    const struct etch_ir_slot *slot; /* of a variable on the stack; NULL: not asked for */
    uint64_t global;
    int best; /* how well the found one fits; 0: none */
};

static const char *register_name(ZydisRegister reg)
{
    const char *name = reg == ZYDIS_REGISTER_NONE ? "" : ZydisRegisterGetString(reg);

    return name ? name : "";
}

/* rbp is the frame's only where the function keeps a frame pointer; else it is a register like any other. */
static bool keeps_frame_pointer(const struct etch_model *m, uint32_t insn)
{
    LLVMValueRef function = m->functions.v[etch_insn_function(m, insn)].value;
    LLVMAttributeRef attribute =
        LLVMGetStringAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, "frame-pointer", 13);
    unsigned n = 0;

    return attribute && strncmp(LLVMGetStringAttributeValue(attribute, &n), "none", 4) != 0;
}

static bool on_stack(const struct fit *fit, const ZydisDecodedOperand *op)
{
    return op->mem.base == ZYDIS_REGISTER_RSP || (fit->frame_pointer && op->mem.base == ZYDIS_REGISTER_RBP);
}

/* 0: not this one; more is better. */
static int fitness(const struct fit *fit, const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *op,
                   uint64_t address)
{
    ZyanU8 action = fit->mention->write ? ZYDIS_OPERAND_ACTION_MASK_WRITE : ZYDIS_OPERAND_ACTION_MASK_READ;
    ZyanU64 target = 0;
    int score = 1;

    if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->mem.type != ZYDIS_MEMOP_TYPE_MEM || !(op->actions & action) ||
        op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN)
        return 0;
    if (fit->mention->size && op->size / 8 == fit->mention->size)
        score += 2;
    if (fit->global) {
        bool known = ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(insn, op, address, &target));

        return known && target == fit->global ? score + 4 : known ? 0 : score;
    }
    if (fit->mention->shared && op->mem.base == ZYDIS_REGISTER_RIP)
        return 0;
    if (fit->mention->shared == on_stack(fit, op))
        return 0;
    if (fit->slot)
        return fit->slot->known && (!fit->constant || op->mem.disp.value == fit->slot->displacement + fit->offset)
                   ? score + 4
                   : 0;
    if (fit->constant && op->mem.disp.value == fit->offset)
        score += 2;
    return score;
}

/* Hands out the instructions of a piece of code, one after another, until one is enough. */
typedef bool insn_visitor(void *context, uint64_t address, const ZydisDecodedInstruction *insn,
                          const ZydisDecodedOperand *ops);

static void visit_code(const struct etch_model *m, uint64_t start, uint64_t end, insn_visitor *visit, void *context)
{
    ZydisDecoder decoder;
    size_t size;
    const uint8_t *code = etch_line_table_code(m->lines, start, &size);

    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    for (uint64_t at = start; code && at < end && at - start < size;) {
        ZydisDecodedInstruction insn;
        ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];

        if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code + (at - start), size - (at - start), &insn, ops)) ||
            !visit(context, at, &insn, ops))
            return;
        at += insn.length;
    }
}

struct looking {
    struct fit *fit;
    struct etch_site *site;
};

static bool look_at(void *context, uint64_t at, const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *ops)
{
    struct looking *l = context;

    for (int i = 0; i < insn->operand_count; i++) {
        int score = fitness(l->fit, insn, &ops[i], at);

        if (score <= l->fit->best)
            continue;
        l->fit->best = score;
        l->site->address = at;
        l->site->size = l->fit->mention->size ? l->fit->mention->size : ops[i].size / 8u;
        snprintf(l->site->operand, sizeof(l->site->operand), "%s,%s,%u,%" PRId64, register_name(ops[i].mem.base),
                 register_name(ops[i].mem.index), ops[i].mem.scale ? ops[i].mem.scale : 1u, ops[i].mem.disp.value);
    }
    return true;
}

/* etch has programs run their recorded code where it watches, so an instruction is looked for there. */
static bool is_watched(const struct etch_model *m, uint64_t address)
{
    const struct etch_line_row *row = etch_line_table_at(m->lines, address);

    return !row || !row->plain;
}

/* ---- Variables on the stack ---- */

/* The displacements of the stack operands in a piece of code that fit an access by size and direction. */
struct seen {
    const struct fit *fit;
    int64_t displacement[8];
    size_t n;
};

static void see_operand(struct seen *seen, int64_t displacement)
{
    for (size_t i = 0; i < seen->n; i++)
        if (seen->displacement[i] == displacement)
            return;
    if (seen->n < sizeof(seen->displacement) / sizeof(seen->displacement[0]))
        seen->displacement[seen->n++] = displacement;
}

static bool see_code(void *context, uint64_t at, const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *ops)
{
    struct seen *seen = context;

    for (int i = 0; i < insn->operand_count; i++)
        if (fitness(seen->fit, insn, &ops[i], at) && ops[i].size / 8 == seen->fit->mention->size)
            see_operand(seen, ops[i].mem.disp.value);
    return true;
}

/* What one access of the variable says: its displacement, where its own line and column have one candidate only. */
static bool vote(struct etch_model *m, LLVMValueRef access, int64_t *displacement)
{
    uint32_t number = etch_model_insn(m, access);
    bool write = LLVMIsAStoreInst(access) != NULL;
    LLVMTypeRef type = LLVMTypeOf(write ? LLVMGetOperand(access, 0) : access);
    struct etch_mention mention = {.insn = number, .write = write};
    struct fit fit = {.mention = &mention};
    struct seen seen = {.fit = &fit};
    uint64_t starts[16], ends[16];
    size_t n;

    if (number == ETCH_NONE || m->insns.v[number].file == ETCH_NONE || !LLVMTypeIsSized(type))
        return false;
    mention.size = (uint32_t)LLVMStoreSizeOfType(etch_layout_of(m, number), type);
    fit.frame_pointer = keeps_frame_pointer(m, number);
    n = etch_line_table_find(m->lines, m->files.all.v[m->insns.v[number].file], m->insns.v[number].line,
                             m->insns.v[number].column, starts, ends, 16);
    for (size_t i = 0; i < n; i++)
        if (is_watched(m, starts[i]))
            visit_code(m, starts[i], ends[i], see_code, &seen);
    *displacement = seen.displacement[0];
    return seen.n == 1;
}

static bool is_access_of(LLVMValueRef user, LLVMValueRef pointer)
{
    return LLVMIsALoadInst(user) || (LLVMIsAStoreInst(user) && LLVMGetOperand(user, 1) == pointer);
}

/* The votes of all accesses through a pointer to the variable, or to a part of it. */
static void gather_votes(struct etch_model *m, LLVMValueRef pointer, struct etch_ir_slot *slot, bool *agreed)
{
    for (LLVMUseRef use = LLVMGetFirstUse(pointer); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        int64_t displacement, offset;
        bool constant;

        if (LLVMIsAGetElementPtrInst(user) && LLVMGetOperand(user, 0) == pointer) {
            gather_votes(m, user, slot, agreed);
        } else if (is_access_of(user, pointer) && vote(m, user, &displacement)) {
            etch_constant_offset(m, etch_model_insn(m, user), pointer, &offset, &constant);
            if (!constant)
                continue;
            *agreed &= !slot->known || slot->displacement == displacement - offset;
            *slot = (struct etch_ir_slot){displacement - offset, true};
        }
    }
}

/* Which register a parameter comes in, where all before it are numbers and pointers too; NONE: another way. */
static ZydisRegister register_of(LLVMValueRef function, LLVMValueRef parameter)
{
    static const ZydisRegister registers[] = {ZYDIS_REGISTER_RDI, ZYDIS_REGISTER_RSI, ZYDIS_REGISTER_RDX,
                                              ZYDIS_REGISTER_RCX, ZYDIS_REGISTER_R8,  ZYDIS_REGISTER_R9};

    for (unsigned i = 0; i < LLVMCountParams(function) && i < 6; i++) {
        LLVMTypeKind kind = LLVMGetTypeKind(LLVMTypeOf(LLVMGetParam(function, i)));

        if (kind != LLVMIntegerTypeKind && kind != LLVMPointerTypeKind)
            return ZYDIS_REGISTER_NONE;
        if (LLVMGetParam(function, i) == parameter)
            return registers[i];
    }
    return ZYDIS_REGISTER_NONE;
}

/* What the recorder made of a function goes by its name and one of several endings. */
static uint64_t symbol_with(const struct etch_model *m, LLVMValueRef function, const char *ending)
{
    char name[512];
    size_t n;

    snprintf(name, sizeof(name), "%s%s", LLVMGetValueName2(function, &n), ending);
    return symbol_address(m, function, name);
}

/* Where a function's code begins; with a recorder that is behind the symbol that everyone else calls. */
static uint64_t entry_of(const struct etch_model *m, LLVMValueRef function)
{
    static const char *const endings[] = {ETCH_SOFT_GUARDED_CODE_SUFFIX, ETCH_SOFT_CODE_SUFFIX, ""};
    uint64_t address = 0;

    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]) && !address; i++)
        address = symbol_with(m, function, endings[i]);
    return address;
}

#define ENTRY_BYTES 96u /* within which parameters are put away */

struct entry {
    ZydisRegister reg;
    struct etch_ir_slot *slot;
    bool *agreed;
};

/* Unoptimised code puts its parameters away first of all, each from its register. */
static bool look_at_entry(void *context, uint64_t at, const ZydisDecodedInstruction *insn,
                          const ZydisDecodedOperand *ops)
{
    const struct entry *e = context;

    (void)at;
    if (insn->meta.category == ZYDIS_CATEGORY_CALL || insn->meta.category == ZYDIS_CATEGORY_RET)
        return false;
    if (insn->mnemonic != ZYDIS_MNEMONIC_MOV || ops[0].type != ZYDIS_OPERAND_TYPE_MEMORY ||
        ops[0].mem.base != ZYDIS_REGISTER_RBP || ops[1].type != ZYDIS_OPERAND_TYPE_REGISTER ||
        ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, ops[1].reg.value) != e->reg)
        return true;
    *e->agreed &= !e->slot->known || e->slot->displacement == ops[0].mem.disp.value;
    *e->slot = (struct etch_ir_slot){ops[0].mem.disp.value, true};
    return false;
}

static void gather_parameter(struct etch_model *m, LLVMValueRef variable, struct etch_ir_slot *slot, bool *agreed)
{
    for (LLVMUseRef use = LLVMGetFirstUse(variable); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use), function;
        struct entry entry = {.slot = slot, .agreed = agreed};
        uint64_t start;

        if (!LLVMIsAStoreInst(user) || LLVMGetOperand(user, 1) != variable || !LLVMIsAArgument(LLVMGetOperand(user, 0)))
            continue;
        function = LLVMGetBasicBlockParent(LLVMGetInstructionParent(user));
        entry.reg = register_of(function, LLVMGetOperand(user, 0));
        start = entry.reg == ZYDIS_REGISTER_NONE ? 0 : entry_of(m, function);
        if (start)
            visit_code(m, start, start + ENTRY_BYTES, look_at_entry, &entry);
    }
}

/* All accesses that say something must say the same: an optimised variable has no one place, and what is on the stack
 * near its line is something else. */
static const struct etch_ir_slot *slot_of(struct etch_model *m, LLVMValueRef variable)
{
    uint32_t number = etch_pointers_get(&m->slot_of, variable);
    struct etch_ir_slot slot = {0};
    bool agreed = true;

    if (number != ETCH_NONE)
        return &m->slots.v[number];
    gather_votes(m, variable, &slot, &agreed);
    gather_parameter(m, variable, &slot, &agreed);
    slot.known &= agreed;
    number = (uint32_t)m->slots.n;
    if (!etch_array_push(&m->slots, slot) || !etch_pointers_set(&m->slot_of, variable, number))
        return NULL;
    return &m->slots.v[number];
}

/* ---- Accesses by library code ---- */

#define CALLS_MAX 16u

struct calls {
    uint64_t wanted[4]; /* what is called: as it is, with a recorder, by the recorder's way out, and by a guard */
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
static void find_call(struct etch_model *m, const struct etch_mention *mention, struct etch_site *site)
{
    const struct etch_insn *insn = &m->insns.v[mention->insn];
    LLVMValueRef callee = insn->callee == ETCH_NONE ? etch_called(insn->value) : m->functions.v[insn->callee].value;
    ZydisRegister reg = callee ? register_of(callee, LLVMGetParam(callee, mention->parameter)) : ZYDIS_REGISTER_NONE;
    uint64_t starts[64], ends[64];
    struct calls calls = {0};
    unsigned number, of;
    size_t length, n;

    if (insn->file == ETCH_NONE || reg == ZYDIS_REGISTER_NONE)
        return;
    if (insn->callee != ETCH_NONE) {
        calls.wanted[0] = symbol_address(m, callee, LLVMGetValueName2(callee, &length));
        calls.wanted[1] = entry_of(m, callee);
    }
    calls.wanted[2] = symbol_with(m, callee, ETCH_SOFT_STUB_SUFFIX);
    calls.wanted[3] = symbol_with(m, callee, ETCH_SOFT_GUARD_SUFFIX);
    n = etch_line_table_find(m->lines, m->files.all.v[insn->file], insn->line, insn->column, starts, ends, 64);
    for (size_t i = 0; i < n; i++)
        if (is_watched(m, starts[i]))
            visit_code(m, starts[i], ends[i], look_for_call, &calls);
    number = number_of_call(m, mention->insn, &of);
    site->address = calls.found ? calls.found : calls.n == of && number < CALLS_MAX ? calls.all[number] : 0;
    if (site->address)
        snprintf(site->operand, sizeof(site->operand), "%s,,1,%" PRId64, register_name(reg), mention->offset);
}

/* Whether code of a header was inlined into the line of an instruction. */
static bool is_of_line(struct etch_model *m, uint64_t address, const struct etch_insn *outer)
{
    struct etch_line_row row;

    return etch_line_table_own(m->lines, address, &row) && row.line == outer->line &&
           strcmp(etch_line_table_file(m->lines, row.file), m->files.all.v[outer->file]) == 0;
}

/* Whether code is of the very function that an instruction is in: instances of a template have the same lines. */
static bool is_of(const struct etch_model *m, uint64_t address, uint32_t insn)
{
    static const char *const endings[] = {ETCH_SOFT_GUARDED_CODE_SUFFIX, ETCH_SOFT_CODE_SUFFIX, ""};
    LLVMValueRef function = m->functions.v[etch_insn_function(m, insn)].value;
    bool found = false;
    char name[512];
    uint64_t start = 0, size = 0;
    size_t n;

    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]) && !found; i++) {
        snprintf(name, sizeof(name), "%s%s", LLVMGetValueName2(function, &n), endings[i]);
        found = etch_line_table_symbol(m->lines, name, NULL, ETCH_NONE, &start, &size);
    }
    return found && address >= start && address - start < size;
}

/* The access of the library's code: in its own function, or, where `inlined`, in the user's line. */
static void find_inner(struct etch_model *m, const struct etch_mention *mention, bool inlined, struct etch_site *site)
{
    const struct etch_insn *inner = &m->insns.v[mention->inner], *outer = &m->insns.v[mention->insn];
    struct etch_mention access = {
        .insn = mention->inner, .write = mention->write, .size = mention->size, .shared = true};
    struct fit fit = {.mention = &access, .frame_pointer = keeps_frame_pointer(m, mention->inner)};
    struct looking looking = {&fit, site};
    uint64_t starts[64], ends[64];
    size_t n;

    for (int pass = 0; pass < 2 && !site->address && inner->file != ETCH_NONE && outer->file != ETCH_NONE; pass++) {
        n = etch_line_table_find(m->lines, m->files.all.v[inner->file], inner->line, pass == 0 ? inner->column : 0,
                                 starts, ends, 64);
        for (size_t i = 0; i < n; i++)
            if (is_watched(m, starts[i]) &&
                (inlined ? is_of_line(m, starts[i], outer) : is_of(m, starts[i], mention->inner)))
                visit_code(m, starts[i], ends[i], look_at, &looking);
    }
}

static void find_library(struct etch_model *m, const struct etch_mention *mention, struct etch_site *site)
{
    struct etch_site inner = {.size = mention->size};

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

void etch_site_find(struct etch_model *m, const struct etch_mention *mention, struct etch_site *site)
{
    const struct etch_insn *insn = &m->insns.v[mention->insn];
    const char *file = insn->file == ETCH_NONE ? "" : m->files.all.v[insn->file];
    struct fit fit = {.mention = mention};
    struct looking looking = {&fit, site};
    uint64_t starts[64], ends[64];
    LLVMValueRef base = etch_constant_offset(m, mention->insn, mention->pointer, &fit.offset, &fit.constant);
    size_t n = 0;

    memset(site, 0, sizeof(*site));
    site->size = mention->size;
    if (LLVMIsAGlobalVariable(base) && fit.constant && mention->library)
        site->global = static_address(m, base, fit.offset + mention->offset);
    if (mention->library) {
        find_library(m, mention, site);
        return;
    }
    fit.frame_pointer = keeps_frame_pointer(m, mention->insn);
    if (LLVMIsAGlobalVariable(base) && fit.constant)
        fit.global = site->global = static_address(m, base, fit.offset);
    if (LLVMIsAAllocaInst(base))
        fit.slot = slot_of(m, base);
    for (int pass = 0; pass < 2 && !site->address; pass++) {
        n = etch_line_table_find(m->lines, file, insn->line, pass == 0 ? insn->column : 0, starts, ends, 64);
        for (size_t i = 0; i < n; i++)
            if (is_watched(m, starts[i]))
                visit_code(m, starts[i], ends[i], look_at, &looking);
    }
    if (!site->address)
        site->unmapped = n ? "in a register, or merged with another access" : "optimised away";
}
