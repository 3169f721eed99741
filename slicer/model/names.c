/* SPDX-License-Identifier: MIT */
/* Names as the source writes them, from the address computation in the bitcode and the types in its debug information:
 * field 1 of what `fifo` points to is fifo->mut because the type of fifo says so. */
#include "base/function_name.h"
#include "slicer/model/model.h"

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
    TYPE_OF_FUNCTION = 4,
    IDENTIFIER_OF_TYPE = 7,
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

/* The type that a pointer or reference type points to; NULL for other types and for void. */
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

/* The text of a value: a variable that was read, a number, or "..." for a longer expression. */
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

/* The members and base classes of a struct, to be freed. Returns how many; 0 for other types. */
static unsigned parts_of(LLVMContextRef context, LLVMMetadataRef type, LLVMValueRef **all)
{
    LLVMMetadataRef list = is_struct(type) ? node_operand(context, type, ELEMENTS_OF_TYPE) : NULL;
    LLVMValueRef value = list ? LLVMMetadataAsValue(context, list) : NULL;
    unsigned n = list ? LLVMGetMDNodeNumOperands(value) : 0;

    *all = n ? malloc(n * sizeof(LLVMValueRef)) : NULL;
    if (*all)
        LLVMGetMDNodeOperands(value, *all);
    return *all ? n : 0;
}

/* One of them: its tag, its own type, and where it lies. False for what takes no room in the object. */
struct part {
    LLVMMetadataRef node, type;
    bool base;
    uint64_t at, size;
};

static bool part_of(LLVMContextRef context, LLVMValueRef value, struct part *part)
{
    LLVMMetadataRef node = value ? LLVMValueAsMetadata(value) : NULL;
    uint16_t tag = node ? LLVMGetDINodeTag(node) : 0;
    LLVMMetadataRef type;

    if ((tag != TAG_MEMBER && tag != TAG_INHERITANCE) || !(type = node_operand(context, node, BASE_OF_TYPE)))
        return false;
    *part = (struct part){.node = node, .type = type, .base = tag == TAG_INHERITANCE};
    part->at = LLVMDITypeGetOffsetInBits(node) / 8;
    part->size = (LLVMDITypeGetSizeInBits(plain(context, type)) + 7) / 8;
    return true;
}

/* True for a struct without data. An empty base class lies at the offset of the first member. */
static bool is_empty(LLVMContextRef context, LLVMMetadataRef type)
{
    LLVMValueRef *all;
    unsigned n = parts_of(context, plain(context, type), &all);
    bool empty = is_struct(plain(context, type));
    struct part part;

    for (unsigned i = 0; i < n && empty; i++)
        empty = !part_of(context, all[i], &part) || is_empty(context, part.type);
    free(all);
    return empty;
}

/* The part at an offset. */
static bool find_part(LLVMContextRef context, LLVMMetadataRef type, uint64_t offset, struct part *found)
{
    LLVMValueRef *all;
    unsigned n = parts_of(context, plain(context, type), &all);
    bool is_found = false;

    for (unsigned i = 0; i < n && !is_found; i++)
        is_found = part_of(context, all[i], found) && found->at <= offset &&
                   (found->at == offset || offset - found->at < found->size) && !is_empty(context, found->type);
    free(all);
    return is_found;
}

/* The member of `type` at this byte offset; its name is appended. A member without a name (an anonymous struct) is
 * looked into by the next step of the address; so is a base class, unless it is known that a `value` is wanted. */
static void take_member(struct name *name, uint64_t offset, unsigned index, bool value)
{
    LLVMContextRef context = name->context;
    LLVMMetadataRef type = plain(context, name->type);
    struct part part = {0};
    char member[128], unnamed[8];
    bool found = find_part(context, type, offset, &part);

    for (int i = 0; i < 16 && found && part.base && (value || offset > part.at); i++) {
        type = plain(context, part.type);
        offset -= part.at;
        found = find_part(context, type, offset, &part);
    }
    if (!found) {
        append(name, "%s#%u", name->through ? "->" : ".", index);
        name->type = NULL;
        name->through = false;
        return;
    }
    if (!part.base && string_operand(context, part.node, NAME_OF_TYPE, member, sizeof(member))) {
        if (strcmp(name->text, "this") == 0 && !string_operand(context, type, NAME_OF_TYPE, unnamed, sizeof(unnamed)))
            name->text[0] = '\0'; /* a lambda: what it captured goes by its own name */
        append(name, "%s%s", !name->text[0] ? "" : name->through ? "->" : ".", member);
        name->through = false;
    }
    name->type = part.type;
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
            LLVMTypeRef element = LLVMStructGetTypeAtIndex(type, k);

            take_member(name, LLVMOffsetOfElement(LLVMGetModuleDataLayout(module), type, k), k,
                        LLVMGetTypeKind(element) != LLVMStructTypeKind);
            type = element;
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

/* A module that only declares a variable has no debug information about it. The module that defines the variable
 * has. */
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

/* The type that a function returns; NULL: none, or not known. */
static LLVMMetadataRef returned_type(LLVMContextRef context, LLVMValueRef function)
{
    LLVMMetadataRef subprogram = LLVMGetSubprogram(function);
    LLVMMetadataRef type = subprogram ? node_operand(context, subprogram, TYPE_OF_FUNCTION) : NULL;
    LLVMMetadataRef list = type ? node_operand(context, type, BASE_OF_TYPE) : NULL;

    return list ? node_operand(context, list, 0) : NULL;
}

/* A method of a library's class, as its user writes it: "queue.front()", "table[i]"; a smart pointer is the pointer. */
static bool method_text(const struct etch_model *m, LLVMValueRef call, const char *function, struct name *name,
                        int depth)
{
    const char *method = strstr(function, "::"), *next;
    struct name of;
    char text[128];

    while (method && (next = strstr(method + 2, "::")))
        method = next;
    if (!method || LLVMGetNumArgOperands(call) == 0 || !object(m, LLVMGetOperand(call, 0), &of, depth + 1))
        return false;
    method += 2;
    if (strcmp(method, "operator->") == 0 || strcmp(method, "operator*") == 0) {
        snprintf(name->text, sizeof(name->text), "%s", of.text);
        name->through = true;
    } else if (strcmp(method, "operator[]") == 0 && LLVMGetNumArgOperands(call) == 2) {
        value_text(m, LLVMGetOperand(call, 1), text, sizeof(text), depth + 1);
        snprintf(name->text, sizeof(name->text), "%.100s[%s]", of.text, text);
    } else {
        snprintf(name->text, sizeof(name->text), "%.100s%s%s()", of.text, of.through ? "->" : ".", method);
    }
    return true;
}

/* The variable that a parameter is kept in; the parameter itself where there is none. An object that is passed by value
 * comes as a pointer, which the debug information knows by such a variable only. */
static LLVMValueRef kept_in(LLVMValueRef argument)
{
    for (LLVMUseRef use = LLVMGetFirstUse(argument); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);

        if (LLVMIsAStoreInst(user) && LLVMGetOperand(user, 0) == argument && LLVMIsAAllocaInst(LLVMGetOperand(user, 1)))
            return LLVMGetOperand(user, 1);
    }
    return argument;
}

static bool object_of_call(const struct etch_model *m, LLVMValueRef call, struct name *name, int depth)
{
    uint32_t insn = etch_model_insn(m, call), callee = insn == ETCH_NONE ? ETCH_NONE : m->insns.v[insn].callee;
    const struct etch_function *f = callee == ETCH_NONE ? NULL : &m->functions.v[callee];
    bool library = f && f->file != ETCH_NONE && etch_file_is_system(m->files.all.v[f->file]);
    LLVMContextRef context = f ? context_of(f->value) : name->context;
    LLVMMetadataRef type = f ? returned_type(context, f->value) : NULL;
    char function[128];

    etch_function_short(f ? f->name : etch_called_name(call), function, sizeof(function));
    name->through = !is_reference(context, type);
    if (!library || !method_text(m, call, function, name, depth))
        snprintf(name->text, sizeof(name->text), "%s()", function);
    name->context = context;
    name->type = pointee(context, type);
    return true;
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
    if (etch_is_call(pointer) && etch_called(pointer))
        return object_of_call(m, pointer, name, depth);
    if (LLVMIsAArgument(pointer))
        return variable(m, pointer, name) || variable(m, kept_in(pointer), name);
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
        take_member(&name, 0, 0, false);
    }
    snprintf(text, size, "%s%s", name.through ? "*" : "", name.text);
    return true;
}

/* Members of the C++ library's classes, and what users of the class call them. Other members are shown by their own
 * name. */
static const struct {
    const char *member, *shown;
} members[] = {
    {"_M_ptr", ""},
    {"_M_head_impl", ""},
    {"_M_i", ""},
    {"_M_base", ""},
    {"_M_current", ""},
    {"_M_pi", ".use_count()"},
    {"_M_use_count", ".use_count()"},
    {"_M_string_length", ".size()"},
    {"_M_p", ".data()"},
    {"_M_str", ".data()"},
    {"_M_len", ".size()"},
    {"_M_start", ".begin()"},
    {"_M_finish", ".end()"},
    {"_M_end_of_storage", ".capacity()"},
    {"_M_engaged", ".has_value()"},
    {"_M_node_count", ".size()"},
    {"_M_element_count", ".size()"},
    {"_M_index", ".index()"},
    {"_M_owns", ".owns_lock()"},
    {"_M_thread", ".get_id()"},
};

/* NULL: the table has no such member. */
static const char *shown_member(const char *member)
{
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        if (strcmp(member, members[i].member) == 0)
            return members[i].shown;
    return NULL;
}

/* The name of the innermost member at an offset; false where the type has none there. */
static bool member_at(LLVMContextRef context, LLVMMetadataRef type, uint64_t offset, char *text, size_t size)
{
    bool found = false;
    struct part part;

    for (int i = 0; i < 16 && find_part(context, type, offset, &part); i++) {
        if (!part.base)
            found |= string_operand(context, part.node, NAME_OF_TYPE, text, size);
        offset -= part.at;
        type = part.type;
    }
    return found;
}

/* The offsets of the members that the table above knows. */
static void list_members(LLVMContextRef context, LLVMMetadataRef type, uint64_t at, int depth,
                         struct etch_members *found)
{
    LLVMValueRef *all;
    unsigned n = depth < 16 ? parts_of(context, plain(context, type), &all) : 0;
    struct part part;
    char member[128];

    for (unsigned i = 0; i < n; i++) {
        if (!part_of(context, all[i], &part))
            continue;
        if (is_struct(plain(context, part.type)))
            list_members(context, part.type, at + part.at, depth + 1, found);
        else if (found->n < ETCH_MEMBERS_MAX &&
                 string_operand(context, part.node, NAME_OF_TYPE, member, sizeof(member)) && shown_member(member))
            found->offset[found->n++] = at + part.at;
    }
    if (n)
        free(all);
}

void etch_name_members(const struct etch_model *m, LLVMValueRef pointer, struct etch_members *found)
{
    struct name name;

    found->n = 0;
    if (object(m, pointer, &name, 0) && name.type)
        list_members(name.context, name.type, 0, 0, found);
}

bool etch_name_within(const struct etch_model *m, LLVMValueRef pointer, int64_t offset, char *text, size_t size)
{
    char member[128];
    const char *shown;
    struct name name;

    if (offset < 0 || !object(m, pointer, &name, 0) || !name.type ||
        !member_at(name.context, name.type, (uint64_t)offset, member, sizeof(member)))
        return false;
    shown = shown_member(member);
    if (name.through && (!shown || shown[0]))
        snprintf(text, size, "%s->%s", name.text, shown ? shown + 1 : member);
    else
        snprintf(text, size, "%s%s%s%s", name.through ? "*" : "", name.text, shown ? shown : ".", shown ? "" : member);
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
