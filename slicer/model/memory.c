/* SPDX-License-Identifier: MIT */
/* Which accesses may be of the same location, without alias analysis: accesses by the same variable, the same field of
 * the same type, or the same pointer expression. Watching at run time finds the accesses that this analysis misses. The
 * keys are described in model.h. */
#include "slicer/model/model.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool is_gep(LLVMValueRef v)
{
    return LLVMIsAGetElementPtrInst(v) || (LLVMIsAConstantExpr(v) && LLVMGetConstOpcode(v) == LLVMGetElementPtr);
}

static LLVMValueRef strip(LLVMValueRef v)
{
    while (LLVMIsABitCastInst(v) || LLVMIsAAddrSpaceCastInst(v))
        v = LLVMGetOperand(v, 0);
    return v;
}

LLVMValueRef etch_memory_local(LLVMValueRef pointer)
{
    for (pointer = strip(pointer); is_gep(pointer);)
        pointer = strip(LLVMGetOperand(pointer, 0));
    return LLVMIsAAllocaInst(pointer) ? pointer : NULL;
}

/* "struct.queue.12" -> "queue": the number is LLVM's, for types of one name in two modules. */
static void struct_name(LLVMTypeRef type, char *text, size_t size)
{
    const char *name = LLVMIsLiteralStruct(type) ? NULL : LLVMGetStructName(type);
    const char *dot = name ? strchr(name, '.') : NULL;
    const char *colon;
    size_t n;

    if (!name) {
        snprintf(text, size, "?");
        return;
    }
    name = dot ? dot + 1 : name;
    if (!strchr(name, '<'))
        while ((colon = strstr(name, "::")) != NULL)
            name = colon + 2;
    snprintf(text, size, "%s", name);
    n = strlen(text);
    while (n && isdigit((unsigned char)text[n - 1]))
        n--;
    if (n > 1 && text[n - 1] == '.' && text[n])
        text[n - 1] = '\0';
}

struct path {
    char base[ETCH_KEY_SIZE];
    char steps[128];
    char field[ETCH_KEY_SIZE - 8]; /* "T.2" and array steps behind it; empty where no struct was stepped into */
    char owner[200];               /* the outermost struct stepped into */
    LLVMTypeRef type;              /* of what is pointed to, as far as the walk knows; NULL: not known */
    bool variable;                 /* base is a: or g: */
};

static void add(char *text, size_t size, const char *more)
{
    size_t used = strlen(text);

    snprintf(text + used, size - used, "%s", more);
}

static bool base_of(struct etch_model *m, LLVMValueRef v, struct path *path, int depth);

/* Into field k of a struct, or an element of an array. */
static void step_into(struct path *path, LLVMTypeRef type, unsigned k)
{
    char name[200], step[16];

    if (LLVMGetTypeKind(type) == LLVMStructTypeKind) {
        struct_name(type, name, sizeof(name));
        snprintf(step, sizeof(step), ".%u", k);
        snprintf(path->field, sizeof(path->field), "%s%s", name, step);
        add(path->steps, sizeof(path->steps), step);
        if (!path->owner[0])
            snprintf(path->owner, sizeof(path->owner), "%s", name);
        path->type = LLVMStructGetTypeAtIndex(type, k);
    } else {
        add(path->steps, sizeof(path->steps), "[]");
        if (path->field[0])
            add(path->field, sizeof(path->field), "[]");
        path->type = LLVMGetElementType(type);
    }
}

static void walk_gep(LLVMValueRef gep, struct path *path)
{
    int n = LLVMGetNumOperands(gep);

    path->type = LLVMGetGEPSourceElementType(gep);
    for (int i = 2; i < n; i++) {
        LLVMValueRef index = LLVMGetOperand(gep, (unsigned)i);

        step_into(path, path->type, LLVMIsAConstantInt(index) ? (unsigned)LLVMConstIntGetZExtValue(index) : 0);
    }
}

static bool is_aggregate(LLVMTypeRef type)
{
    return type && ((LLVMGetTypeKind(type) == LLVMStructTypeKind && LLVMCountStructElementTypes(type)) ||
                    LLVMGetTypeKind(type) == LLVMArrayTypeKind);
}

/* The address of a struct is that of its first field, and LLVM writes it so: an access of a single value through a
 * pointer to a struct is one of that field. */
static void step_to_value(struct path *path, LLVMTypeRef access)
{
    while (access && !is_aggregate(access) && is_aggregate(path->type))
        step_into(path, path->type, 0);
}

/* The only value that a local pointer ever gets; NULL if it gets several, or if other code may set it. */
static LLVMValueRef only_value(LLVMValueRef variable)
{
    LLVMValueRef value = NULL;

    for (LLVMUseRef use = LLVMGetFirstUse(variable); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);

        if (LLVMIsAStoreInst(user)) {
            if (value || LLVMGetOperand(user, 1) != variable)
                return NULL;
            value = LLVMGetOperand(user, 0);
        } else if (!LLVMIsALoadInst(user) &&
                   !(etch_is_call(user) && strncmp(etch_called_name(user), "llvm.", 5) == 0)) {
            return NULL;
        }
    }
    return value;
}

static bool base_of_load(struct etch_model *m, LLVMValueRef load, struct path *path, int depth)
{
    LLVMValueRef from = LLVMGetOperand(load, 0);
    LLVMValueRef only = LLVMIsAAllocaInst(from) ? only_value(from) : NULL;
    struct path inner = {0};

    if (only && !LLVMIsAConstantPointerNull(only) && base_of(m, strip(only), path, depth + 1))
        return true;
    memset(path, 0, sizeof(*path));
    if (!base_of(m, strip(from), &inner, depth + 1))
        return false;
    if (inner.field[0] && !inner.variable)
        snprintf(path->base, sizeof(path->base), "d:f:%.200s", inner.field);
    else
        snprintf(path->base, sizeof(path->base), "d:%.180s%.100s", inner.base, inner.steps);
    return true;
}

static void base_of_global(struct etch_model *m, LLVMValueRef v, struct path *path)
{
    LLVMLinkage linkage = LLVMGetLinkage(v);
    size_t n;

    path->variable = true;
    path->type = LLVMGlobalGetValueType(v);
    if (linkage != LLVMInternalLinkage && linkage != LLVMPrivateLinkage) {
        snprintf(path->base, sizeof(path->base), "g:%.250s", LLVMGetValueName2(v, &n));
        return;
    }
    for (size_t i = 0; i < m->modules.n; i++)
        if (m->modules.v[i].module == LLVMGetGlobalParent(v))
            snprintf(path->base, sizeof(path->base), "g:%.250s@%zu", LLVMGetValueName2(v, &n), i);
}

static uint32_t argument_index(LLVMValueRef argument)
{
    LLVMValueRef function = LLVMGetParamParent(argument);
    uint32_t i = 0;

    while (LLVMGetParam(function, i) != argument)
        i++;
    return i;
}

/* The location that a call's result points to, if the called function has a single return: an element, a member, a
 * static variable. Most C++ code reaches its data in this way. */
static bool base_of_call(struct etch_model *m, LLVMValueRef call, struct path *path, int depth)
{
    uint32_t insn = etch_model_insn(m, call), callee = insn == ETCH_NONE ? ETCH_NONE : m->insns.v[insn].callee;
    uint32_t last = callee == ETCH_NONE ? ETCH_NONE : m->functions.v[callee].only_return, function, index;
    LLVMValueRef value = last == ETCH_NONE ? NULL : m->insns.v[last].value;

    memset(path, 0, sizeof(*path));
    if (!value || !LLVMGetNumOperands(value) || !base_of(m, strip(LLVMGetOperand(value, 0)), path, depth + 1))
        return false;
    if (path->field[0] || strncmp(path->base, "g:", 2) == 0 || strncmp(path->base, "d:f:", 4) == 0 ||
        strncmp(path->base, "d:g:", 4) == 0)
        return true;
    if (sscanf(path->base, "p:%u.%u", &function, &index) != 2 || function != callee ||
        index >= LLVMGetNumArgOperands(call))
        return false;
    memset(path, 0, sizeof(*path));
    return base_of(m, strip(LLVMGetOperand(call, index)), path, depth + 1);
}

static bool base_of(struct etch_model *m, LLVMValueRef v, struct path *path, int depth)
{
    if (depth > 10)
        return false;
    if (is_gep(v)) {
        if (!base_of(m, strip(LLVMGetOperand(v, 0)), path, depth + 1))
            return false;
        walk_gep(v, path);
        return true;
    }
    if (LLVMIsAAllocaInst(v)) {
        path->variable = true;
        path->type = LLVMGetAllocatedType(v);
        snprintf(path->base, sizeof(path->base), "a:%u", etch_model_insn(m, v));
    } else if (LLVMIsAGlobalVariable(v)) {
        base_of_global(m, v, path);
    } else if (LLVMIsALoadInst(v)) {
        return base_of_load(m, v, path, depth);
    } else if (LLVMIsAArgument(v)) {
        snprintf(path->base, sizeof(path->base), "p:%u.%u", etch_pointers_get(&m->function_of, LLVMGetParamParent(v)),
                 argument_index(v));
    } else if (etch_is_call(v)) {
        if (base_of_call(m, v, path, depth))
            return true;
        memset(path, 0, sizeof(*path));
        snprintf(path->base, sizeof(path->base), "c:%u", etch_model_insn(m, v));
    } else {
        return false;
    }
    return true;
}

bool etch_memory_key(struct etch_model *m, LLVMValueRef pointer, LLVMTypeRef access, char key[ETCH_KEY_SIZE])
{
    struct path path = {0};

    if (!base_of(m, strip(pointer), &path, 0))
        return false;
    step_to_value(&path, access);
    if (path.variable)
        snprintf(key, ETCH_KEY_SIZE, "%.180s%s", path.base, path.steps);
    else if (path.field[0])
        snprintf(key, ETCH_KEY_SIZE, "f:%s", path.field);
    else
        snprintf(key, ETCH_KEY_SIZE, "%s", path.base);
    return true;
}

bool etch_memory_owner_key(struct etch_model *m, LLVMValueRef pointer, char key[ETCH_KEY_SIZE])
{
    struct path path = {0};

    if (!base_of(m, strip(pointer), &path, 0) || path.variable || !path.owner[0])
        return false;
    snprintf(key, ETCH_KEY_SIZE, "t:%s", path.owner);
    return true;
}

bool etch_memory_field_key(struct etch_model *m, LLVMValueRef pointer, LLVMTypeRef access, char key[ETCH_KEY_SIZE])
{
    struct path path = {0};
    LLVMValueRef local = etch_memory_local(pointer);

    if (!base_of(m, strip(pointer), &path, 0) || !path.variable)
        return false;
    step_to_value(&path, access);
    if (!path.field[0])
        return false;
    if (local ? !etch_memory_escapes(local) : etch_strings_find(&m->shared, path.base) == ETCH_NONE)
        return false;
    snprintf(key, ETCH_KEY_SIZE, "f:%s", path.field);
    return true;
}

bool etch_memory_text_key(struct etch_model *m, LLVMValueRef pointer, char key[ETCH_KEY_SIZE])
{
    struct path path = {0};
    bool text = false;

    if (!base_of(m, strip(pointer), &path, 0) || !is_aggregate(path.type))
        return false;
    while (is_aggregate(path.type)) {
        text = LLVMGetTypeKind(path.type) == LLVMArrayTypeKind;
        step_into(&path, path.type, 0);
    }
    if (!text || !path.field[0] || LLVMGetTypeKind(path.type) != LLVMIntegerTypeKind)
        return false;
    snprintf(key, ETCH_KEY_SIZE, "f:%s", path.field);
    return true;
}

/* ---- Who has the address ---- */

static bool escapes(LLVMValueRef v, int depth)
{
    if (depth > 6)
        return true;
    for (LLVMUseRef use = LLVMGetFirstUse(v); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);

        if (LLVMIsALoadInst(user) || (LLVMIsAStoreInst(user) && LLVMGetOperand(user, 0) != v))
            continue;
        if (LLVMIsAAtomicRMWInst(user) || LLVMIsAAtomicCmpXchgInst(user) || LLVMIsAICmpInst(user))
            continue;
        if (etch_is_call(user) && strncmp(etch_called_name(user), "llvm.", 5) == 0)
            continue;
        if ((is_gep(user) || LLVMIsABitCastInst(user)) && !escapes(user, depth + 1))
            continue;
        return true;
    }
    return false;
}

bool etch_memory_escapes(LLVMValueRef variable)
{
    return escapes(variable, 0);
}

static bool note_shared(struct etch_model *m)
{
    for (size_t i = 0; i < m->modules.n; i++) {
        for (LLVMValueRef g = LLVMGetFirstGlobal(m->modules.v[i].module); g; g = LLVMGetNextGlobal(g)) {
            struct path path = {0};

            if (!escapes(g, 0))
                continue;
            base_of_global(m, g, &path);
            if (etch_strings_add(&m->shared, path.base) == ETCH_NONE)
                return false;
        }
    }
    return true;
}

/* ---- Calls of code that we do not have ---- */

static bool one_of(const char *name, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(name, *list) == 0)
            return true;
    return false;
}

static bool synchronises(const char *name)
{
    return strncmp(name, "pthread_", 8) == 0 || strncmp(name, "sem_", 4) == 0 || strncmp(name, "mtx_", 4) == 0 ||
           strncmp(name, "cnd_", 4) == 0 || strncmp(name, "thrd_", 5) == 0;
}

bool etch_call_only_reads(const char *name, unsigned argument)
{
    static const char *const all[] = {
#define READING(name) name,
#include "slicer/model/reading_calls.def"
#undef READING
        NULL};
    static const char *const but_first[] = {"strcpy",  "strncpy",  "strcat",    "strncat", "memcpy",  "memmove",
                                            "sprintf", "snprintf", "vsnprintf", "stpcpy",  "fprintf", NULL};

    if (strcmp(name, "pthread_join") == 0 || strcmp(name, "thrd_join") == 0)
        return argument == 0;
    if (strcmp(name, "pthread_create") == 0 || strcmp(name, "thrd_create") == 0)
        return argument != 0;
    if (strncmp(name, "llvm.mem", 8) == 0 || one_of(name, but_first))
        return argument != 0;
    if (strncmp(name, "_ZNK", 4) == 0) /* a const method, and its object */
        return argument == 0;
    return one_of(name, all);
}

static bool add_writer(struct etch_model *m, const char *key, uint32_t insn)
{
    uint32_t number = etch_strings_add(&m->keys, key);

    if (number == ETCH_NONE || (number == m->writers.n && !etch_array_push(&m->writers, (etch_numbers){0})))
        return false;
    if (m->writers.v[number].n && m->writers.v[number].v[m->writers.v[number].n - 1] == insn)
        return true;
    return etch_array_push(&m->writers.v[number], insn);
}

static bool add_writer_through(struct etch_model *m, LLVMValueRef pointer, LLVMTypeRef access, uint32_t insn)
{
    char key[ETCH_KEY_SIZE];

    if (etch_memory_key(m, pointer, access, key) && !add_writer(m, key, insn))
        return false;
    return !etch_memory_field_key(m, pointer, access, key) || add_writer(m, key, insn);
}

/* The whole object, where the source says what struct it is. */
static bool add_object_writer(struct etch_model *m, LLVMValueRef pointer, uint32_t insn)
{
    char name[256], key[ETCH_KEY_SIZE];
    LLVMValueRef local = etch_memory_local(pointer);
    struct path path = {0};

    /* A variable of which nobody has the address is no other object of its type. */
    if (local ? !etch_memory_escapes(local)
              : base_of(m, strip(pointer), &path, 0) && path.variable &&
                    etch_strings_find(&m->shared, path.base) == ETCH_NONE)
        return true;
    if (!etch_name_pointee_struct(m, pointer, name, sizeof(name)))
        return true;
    snprintf(key, sizeof(key), "t:%s", name);
    return add_writer(m, key, insn);
}

static bool add_call_writers(struct etch_model *m, uint32_t insn)
{
    LLVMValueRef call = m->insns.v[insn].value;
    const char *name = etch_called_name(call);

    if (m->insns.v[insn].callee != ETCH_NONE || strncmp(name, "llvm.lifetime", 13) == 0)
        return true;
    if (!etch_called(call)) /* by a pointer: its targets' own stores count */
        return true;
    for (unsigned i = 0; i < LLVMGetNumArgOperands(call); i++) {
        LLVMValueRef argument = LLVMGetOperand(call, i);

        if (LLVMGetTypeKind(LLVMTypeOf(argument)) != LLVMPointerTypeKind || LLVMIsAConstantPointerNull(argument) ||
            LLVMIsAFunction(argument) || etch_call_only_reads(name, i))
            continue;
        if (!add_writer_through(m, argument, NULL, insn))
            return false;
        if (!synchronises(name) && !add_object_writer(m, argument, insn))
            return false;
    }
    return true;
}

int etch_memory_index(struct etch_model *m, struct etch_error *err)
{
    bool ok = note_shared(m);

    for (uint32_t i = 0; ok && i < m->insns.n; i++) {
        LLVMValueRef v = m->insns.v[i].value;
        LLVMOpcode op = LLVMGetInstructionOpcode(v);

        if (op == LLVMStore) {
            m->n_stores++;
            ok = add_writer_through(m, LLVMGetOperand(v, 1), LLVMTypeOf(LLVMGetOperand(v, 0)), i);
        } else if (op == LLVMAtomicRMW || op == LLVMAtomicCmpXchg) {
            m->n_stores++;
            ok = add_writer_through(m, LLVMGetOperand(v, 0), LLVMTypeOf(LLVMGetOperand(v, 1)), i);
        } else if (op == LLVMCall || op == LLVMInvoke) {
            ok = add_call_writers(m, i);
        }
    }
    return ok ? 0 : etch_error_no_memory(err);
}

const etch_numbers *etch_memory_writers(const struct etch_model *m, const char *key)
{
    uint32_t number = etch_strings_find(&m->keys, key);

    return number == ETCH_NONE ? NULL : &m->writers.v[number];
}

/* ---- What may change a local variable ---- */

static bool add_defs(struct etch_model *m, LLVMValueRef v, bool all, etch_defs *defs, int depth)
{
    for (LLVMUseRef use = LLVMGetFirstUse(v); use && depth < 6; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        struct etch_def def = {.insn = etch_model_insn(m, user), .pointer = v, .whole = all};
        bool counts = false;

        if ((is_gep(user) || LLVMIsABitCastInst(user)) && !add_defs(m, user, false, defs, depth + 1))
            return false;
        if (LLVMIsAStoreInst(user))
            counts = LLVMGetOperand(user, 1) == v;
        else if (LLVMIsAAtomicRMWInst(user) || LLVMIsAAtomicCmpXchgInst(user))
            counts = LLVMGetOperand(user, 0) == v;
        else if (etch_is_call(user)) {
            const char *name = etch_called_name(user);

            def.call = true;
            def.whole = false;
            counts = strncmp(name, "llvm.lifetime", 13) != 0 && strncmp(name, "llvm.dbg", 8) != 0;
            if (strncmp(name, "llvm.mem", 8) == 0)
                counts = LLVMGetOperand(user, 0) == v;
        }
        if (counts && def.insn != ETCH_NONE && !etch_array_push(defs, def))
            return false;
    }
    return true;
}

static int compare_defs(const void *a, const void *b)
{
    const struct etch_def *x = a, *y = b;

    return x->insn < y->insn ? -1 : x->insn > y->insn;
}

bool etch_memory_defs(struct etch_model *m, LLVMValueRef variable, etch_defs *defs)
{
    if (!add_defs(m, variable, true, defs, 0))
        return false;
    if (defs->n)
        qsort(defs->v, defs->n, sizeof(*defs->v), compare_defs);
    return true;
}
