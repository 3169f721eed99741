/* SPDX-License-Identifier: MIT */
/* Names as the source writes them, from the address computation in the bitcode and the types in its debug information:
 * field 1 of what `fifo` points to is fifo->mut because the type of fifo says so. */
#include "base/function_name.h"
#include "slicer/model.h"

#include <llvm-c/DebugInfo.h>
#include <llvm-c/Target.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    TAG_ARRAY = 0x01,
    TAG_CLASS = 0x02,
    TAG_MEMBER = 0x0d,
    TAG_POINTER = 0x0f,
    TAG_REFERENCE = 0x10,
    TAG_STRUCT = 0x13,
    TAG_TYPEDEF = 0x16,
    TAG_UNION = 0x17,
    TAG_INHERITANCE = 0x1c,
    TAG_CONST = 0x26,
    TAG_VOLATILE = 0x35,
    TAG_RESTRICT = 0x37,
    TAG_RVALUE_REFERENCE = 0x42,
    TAG_ATOMIC = 0x47,
};

/* Positions of operands in LLVM's debug nodes; LLVM-C has no accessors for them. */
enum {
    NAME_OF_TYPE = 2,
    BASE_OF_TYPE = 3,
    ELEMENTS_OF_TYPE = 4,
    NAME_OF_VARIABLE = 1,
    TYPE_OF_VARIABLE = 3,
    IDENTIFIER_OF_TYPE = 7
};

struct name {
    char text[256];
    LLVMMetadataRef type;   /* of the object; NULL: not known */
    LLVMContextRef context; /* of the type: that of the module which defines the variable */
    bool through;           /* text is a pointer, and the object is what it points to */
};

static LLVMContextRef context_of(LLVMValueRef value)
{
    return LLVMGetTypeContext(LLVMTypeOf(value));
}

static LLVMValueRef operand(LLVMContextRef context, LLVMMetadataRef node, unsigned index)
{
    LLVMValueRef value = LLVMMetadataAsValue(context, node);
    unsigned n = LLVMGetMDNodeNumOperands(value);
    LLVMValueRef small[32], *all = small, result = NULL;

    if (n <= index || (n > 32 && !(all = malloc(n * sizeof(LLVMValueRef)))))
        return NULL;
    LLVMGetMDNodeOperands(value, all);
    result = all[index];
    if (all != small)
        free(all);
    return result;
}

static LLVMMetadataRef node_operand(LLVMContextRef context, LLVMMetadataRef node, unsigned index)
{
    LLVMValueRef value = operand(context, node, index);

    return value ? LLVMValueAsMetadata(value) : NULL;
}

static bool string_operand(LLVMContextRef context, LLVMMetadataRef node, unsigned index, char *text, size_t size)
{
    LLVMValueRef value = operand(context, node, index);
    unsigned n = 0;
    const char *s = value && LLVMIsAMDString(value) ? LLVMGetMDString(value, &n) : NULL;

    if (!s || n == 0)
        return false;
    snprintf(text, size, "%.*s", (int)n, s);
    return true;
}

/* Through typedefs and qualifiers. */
static LLVMMetadataRef plain(LLVMContextRef context, LLVMMetadataRef type)
{
    for (int i = 0; type && i < 32; i++) {
        uint16_t tag = LLVMGetDINodeTag(type);

        if (tag != TAG_TYPEDEF && tag != TAG_CONST && tag != TAG_VOLATILE && tag != TAG_RESTRICT && tag != TAG_ATOMIC)
            break;
        type = node_operand(context, type, BASE_OF_TYPE);
    }
    return type;
}

static bool is_struct(LLVMMetadataRef type)
{
    uint16_t tag = type ? LLVMGetDINodeTag(type) : 0;

    return tag == TAG_STRUCT || tag == TAG_CLASS || tag == TAG_UNION;
}

/* What a pointer or reference of this type points to; NULL for other types and for void. */
static LLVMMetadataRef pointee(LLVMContextRef context, LLVMMetadataRef type)
{
    uint16_t tag;

    type = plain(context, type);
    tag = type ? LLVMGetDINodeTag(type) : 0;
    if (tag != TAG_POINTER && tag != TAG_REFERENCE && tag != TAG_RVALUE_REFERENCE)
        return NULL;
    return node_operand(context, type, BASE_OF_TYPE);
}

static void append(struct name *name, const char *fmt, ...)
{
    size_t used = strlen(name->text);
    va_list args;

    va_start(args, fmt);
    vsnprintf(name->text + used, sizeof(name->text) - used, fmt, args);
    va_end(args);
}

static bool object(const struct etch_model *m, LLVMValueRef pointer, struct name *name, int depth);

/* The text of a value: a variable that was read, a number, or "..." for what would take too long to say. */
static void value_text(const struct etch_model *m, LLVMValueRef value, char *text, size_t size, int depth)
{
    struct name name;

    if (LLVMIsAConstantInt(value)) {
        snprintf(text, size, "%lld", LLVMConstIntGetSExtValue(value));
        return;
    }
    while (LLVMIsASExtInst(value) || LLVMIsAZExtInst(value) || LLVMIsATruncInst(value))
        value = LLVMGetOperand(value, 0);
    if (depth < 8 && LLVMIsALoadInst(value) && object(m, LLVMGetOperand(value, 0), &name, depth + 1)) {
        snprintf(text, size, "%s%s", name.through ? "*" : "", name.text);
        return;
    }
    snprintf(text, size, "...");
}

/* The member of `type` at this byte offset; its name is appended. A member without a name (an anonymous struct) is
 * looked into by the next step of the address. */
static void take_member(struct name *name, uint64_t offset, unsigned index)
{
    LLVMContextRef context = name->context;
    LLVMMetadataRef type = plain(context, name->type);
    LLVMMetadataRef list = is_struct(type) ? node_operand(context, type, ELEMENTS_OF_TYPE) : NULL;
    LLVMValueRef list_value = list ? LLVMMetadataAsValue(context, list) : NULL;
    unsigned n = list ? LLVMGetMDNodeNumOperands(list_value) : 0;
    LLVMMetadataRef found = NULL;
    char member[128];
    LLVMValueRef *all = n ? malloc(n * sizeof(LLVMValueRef)) : NULL;

    if (all)
        LLVMGetMDNodeOperands(list_value, all);
    for (unsigned i = 0; all && i < n && !found; i++) {
        LLVMMetadataRef e = all[i] ? LLVMValueAsMetadata(all[i]) : NULL;
        uint16_t tag = e ? LLVMGetDINodeTag(e) : 0;
        uint64_t at = 0, size = 0;

        if (tag != TAG_MEMBER && tag != TAG_INHERITANCE)
            continue;
        at = LLVMDITypeGetOffsetInBits(e);
        size = LLVMDITypeGetSizeInBits(e);
        if (at / 8 == offset || (size && at / 8 <= offset && offset * 8 < at + size))
            found = e;
    }
    free(all);
    if (!found) {
        append(name, "%s#%u", name->through ? "->" : ".", index);
        name->type = NULL;
    } else {
        if (LLVMGetDINodeTag(found) == TAG_MEMBER &&
            string_operand(context, found, NAME_OF_TYPE, member, sizeof(member))) {
            append(name, "%s%s", name->through ? "->" : ".", member);
            name->through = false;
        }
        name->type = node_operand(context, found, BASE_OF_TYPE);
        return;
    }
    name->through = false;
}

static void take_element(const struct etch_model *m, struct name *name, LLVMValueRef index, int depth)
{
    LLVMContextRef context = name->context;
    LLVMMetadataRef type = plain(context, name->type);
    char text[128];

    value_text(m, index, text, sizeof(text), depth);
    append(name, "[%s]", text);
    name->type = type && LLVMGetDINodeTag(type) == TAG_ARRAY ? node_operand(context, type, BASE_OF_TYPE) : NULL;
    name->through = false;
}

static bool object_of_gep(const struct etch_model *m, LLVMValueRef gep, struct name *name, int depth)
{
    LLVMContextRef context = context_of(gep);
    LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
    LLVMValueRef first = LLVMGetOperand(gep, 1);
    int n = LLVMGetNumOperands(gep);

    if (!object(m, LLVMGetOperand(gep, 0), name, depth + 1))
        return false;
    if (!LLVMIsAConstantInt(first) || LLVMConstIntGetSExtValue(first) != 0 || n == 2) {
        char text[128];
        size_t used = strlen(name->text);

        value_text(m, first, text, sizeof(text), depth);
        if (used > 3 && strcmp(name->text + used - 3, "[0]") == 0) /* an array that became a pointer to its first */
            name->text[used - 3] = '\0';
        append(name, "[%s]", text);
        name->through = false;
    }
    for (int i = 2; i < n; i++) {
        LLVMValueRef index = LLVMGetOperand(gep, (unsigned)i);

        if (LLVMGetTypeKind(type) == LLVMStructTypeKind) {
            unsigned k = (unsigned)LLVMConstIntGetZExtValue(index);
            LLVMModuleRef module = m->modules.v[0].module;

            for (size_t j = 0; j < m->modules.n; j++)
                if (m->modules.v[j].context == context)
                    module = m->modules.v[j].module;
            take_member(name, LLVMOffsetOfElement(LLVMGetModuleDataLayout(module), type, k), k);
            type = LLVMStructGetTypeAtIndex(type, k);
        } else {
            take_element(m, name, index, depth);
            type = LLVMGetElementType(type);
        }
    }
    return true;
}

static bool variable(const struct etch_model *m, LLVMValueRef place, struct name *name)
{
    uint32_t index = etch_pointers_get(&m->variable_of, place);
    LLVMContextRef context = context_of(place);

    if (index == ETCH_NONE)
        return false;
    name->context = context;
    name->type = node_operand(context, m->variables.v[index], TYPE_OF_VARIABLE);
    return string_operand(context, m->variables.v[index], NAME_OF_VARIABLE, name->text, sizeof(name->text));
}

static bool is_reference(LLVMContextRef context, LLVMMetadataRef type)
{
    uint16_t tag;

    type = plain(context, type);
    tag = type ? LLVMGetDINodeTag(type) : 0;
    return tag == TAG_REFERENCE || tag == TAG_RVALUE_REFERENCE;
}

static bool object_of_load(const struct etch_model *m, LLVMValueRef load, struct name *name, int depth)
{
    LLVMMetadataRef type;

    if (!object(m, LLVMGetOperand(load, 0), name, depth + 1))
        return false;
    if (name->through) {
        char copy[200];

        snprintf(copy, sizeof(copy), "%s", name->text);
        snprintf(name->text, sizeof(name->text), "(*%s)", copy);
    }
    type = name->type;
    name->through = !is_reference(name->context, type);
    name->type = pointee(name->context, type);
    return true;
}

/* A module that only declares a variable has no debug information of it; the one that defines it has. */
static bool variable_elsewhere(const struct etch_model *m, LLVMValueRef global, struct name *name)
{
    size_t n;
    const char *symbol = LLVMGetValueName2(global, &n);

    for (size_t i = 0; LLVMIsDeclaration(global) && i < m->modules.n; i++) {
        LLVMValueRef other = LLVMGetNamedGlobal(m->modules.v[i].module, symbol);

        if (other && !LLVMIsDeclaration(other) && LLVMGetLinkage(other) != LLVMInternalLinkage &&
            variable(m, other, name))
            return true;
    }
    return false;
}

static bool object(const struct etch_model *m, LLVMValueRef pointer, struct name *name, int depth)
{
    size_t n;

    memset(name, 0, sizeof(*name));
    name->context = context_of(pointer);
    if (depth > 12)
        return false;
    if (LLVMIsAAllocaInst(pointer))
        return variable(m, pointer, name);
    if (LLVMIsAGlobalVariable(pointer)) {
        if (!variable(m, pointer, name) && !variable_elsewhere(m, pointer, name))
            snprintf(name->text, sizeof(name->text), "%s", LLVMGetValueName2(pointer, &n));
        return true;
    }
    if (LLVMIsAGetElementPtrInst(pointer) ||
        (LLVMIsAConstantExpr(pointer) && LLVMGetConstOpcode(pointer) == LLVMGetElementPtr))
        return object_of_gep(m, pointer, name, depth);
    if (LLVMIsALoadInst(pointer))
        return object_of_load(m, pointer, name, depth);
    if (etch_is_call(pointer) && etch_called(pointer)) {
        uint32_t insn = etch_model_insn(m, pointer);
        uint32_t callee = insn == ETCH_NONE ? ETCH_NONE : m->insns.v[insn].callee;

        char function[128],
            *outside = callee == ETCH_NONE ? etch_function_name(etch_called_name(pointer), NULL, 0) : NULL;

        etch_function_short(callee != ETCH_NONE ? m->functions.v[callee].name
                            : outside           ? outside
                                                : "",
                            function, sizeof(function));
        free(outside);
        snprintf(name->text, sizeof(name->text), "%s()", function);
        name->through = true;
        return true;
    }
    if (LLVMIsAArgument(pointer))
        return variable(m, pointer, name);
    return false;
}

bool etch_name_object(const struct etch_model *m, LLVMValueRef pointer, LLVMTypeRef access, char *text, size_t size)
{
    LLVMTypeKind kind = access ? LLVMGetTypeKind(access) : LLVMStructTypeKind;
    struct name name;

    if (!object(m, pointer, &name, 0))
        return false;
    /* One value at the address of a struct is its first field. */
    for (int i = 0; i < 8 && kind != LLVMStructTypeKind && kind != LLVMArrayTypeKind && name.type; i++) {
        LLVMMetadataRef type = plain(name.context, name.type);

        if (!is_struct(type) || LLVMGetDINodeTag(type) == TAG_UNION)
            break;
        take_member(&name, 0, 0);
    }
    snprintf(text, size, "%s%s", name.through ? "*" : "", name.text);
    return true;
}

bool etch_name_pointee_struct(const struct etch_model *m, LLVMValueRef pointer, char *text, size_t size)
{
    LLVMMetadataRef type, last = NULL;
    LLVMContextRef context;
    struct name name;

    if (!object(m, pointer, &name, 0))
        return false;
    context = name.context;
    type = name.type;
    for (int i = 0; type && i < 32 && !is_struct(type); i++) {
        uint16_t tag = LLVMGetDINodeTag(type);

        if (tag == TAG_TYPEDEF)
            last = type;
        else if (tag != TAG_CONST && tag != TAG_VOLATILE && tag != TAG_ATOMIC && tag != TAG_RESTRICT)
            return false;
        type = node_operand(context, type, BASE_OF_TYPE);
    }
    if (!is_struct(type))
        return false;
    return string_operand(context, type, NAME_OF_TYPE, text, size) ||
           (last && string_operand(context, last, NAME_OF_TYPE, text, size));
}

bool etch_name_pointee_identifier(const struct etch_model *m, LLVMValueRef pointer, char *text, size_t size)
{
    LLVMMetadataRef type;
    struct name name;

    if (!object(m, pointer, &name, 0))
        return false;
    type = plain(name.context, name.type);
    return is_struct(type) && string_operand(name.context, type, IDENTIFIER_OF_TYPE, text, size);
}
