/* SPDX-License-Identifier: MIT */
/* The location of a local variable in its function's frame. Debug information does not give it for each access, so the
 * accesses of the variable vote. An access votes if its line and column have a single operand that fits. */
#include "slicer/slice/frame_slot.h"

#include "slicer/slice/operand_fit.h"

/* The displacements of the stack operands in a piece of code that fit an access by size and direction. */
struct seen {
    const struct etch_operand_fit *fit;
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
        if (etch_operand_fitness(seen->fit, insn, &ops[i], at) && ops[i].size / 8 == seen->fit->mention->size)
            see_operand(seen, ops[i].mem.disp.value);
    return true;
}

/* The vote of an access: its displacement, if its own line and column have a single candidate. */
static bool vote(struct etch_model *m, LLVMValueRef access, int64_t *displacement)
{
    uint32_t number = etch_model_insn(m, access);
    bool write = LLVMIsAStoreInst(access) != NULL;
    LLVMTypeRef type = LLVMTypeOf(write ? LLVMGetOperand(access, 0) : access);
    struct etch_mention mention = {.insn = number, .write = write};
    struct etch_operand_fit fit = {.mention = &mention};
    struct seen seen = {.fit = &fit};
    uint64_t starts[16], ends[16];
    size_t n;

    if (number == ETCH_NONE || m->insns.v[number].file == ETCH_NONE || !LLVMTypeIsSized(type))
        return false;
    mention.size = (uint32_t)LLVMStoreSizeOfType(etch_layout_of(m, number), type);
    fit.frame_pointer = etch_code_keeps_frame_pointer(m, number);
    n = etch_code_ranges(m, m->files.all.v[m->insns.v[number].file], m->insns.v[number].line, m->insns.v[number].column,
                         starts, ends, 16);
    for (size_t i = 0; i < n; i++)
        if (etch_code_is_watched(m, starts[i]))
            etch_code_visit(m, starts[i], ends[i], see_code, &seen);
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
        entry.reg = etch_register_of(function, LLVMGetOperand(user, 0));
        start = entry.reg == ZYDIS_REGISTER_NONE ? 0 : etch_code_entry(m, function);
        if (start)
            etch_code_visit(m, start, start + ENTRY_BYTES, look_at_entry, &entry);
    }
}

/* All votes must agree. An optimised variable has no single slot, and other data is on the stack near its line. */
const struct etch_ir_slot *etch_frame_slot_of(struct etch_model *m, LLVMValueRef variable)
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
