/* SPDX-License-Identifier: MIT */
/* Building the program model: modules, functions, blocks and instructions by number, and who enters which function. */
#include "base/function_name.h"
#include "base/path.h"
#include "slicer/model/model.h"
#include "slicer/model/subprogram.h"

#include <llvm-c/DebugInfo.h>
#include <stdio.h>
#include <string.h>

uint32_t etch_model_insn(const struct etch_model *m, LLVMValueRef value)
{
    return etch_pointers_get(&m->insn_of, value);
}

bool etch_is_call(LLVMValueRef value)
{
    return LLVMIsACallInst(value) || LLVMIsAInvokeInst(value);
}

LLVMValueRef etch_called(LLVMValueRef call)
{
    LLVMValueRef callee = LLVMGetCalledValue(call);

    for (int i = 0; callee && i < 8; i++) {
        if (LLVMIsAFunction(callee))
            return callee;
        if (LLVMIsAGlobalAlias(callee))
            callee = LLVMAliasGetAliasee(callee);
        else if (LLVMIsAConstantExpr(callee) && LLVMGetConstOpcode(callee) == LLVMBitCast)
            callee = LLVMGetOperand(callee, 0);
        else
            return NULL;
    }
    return NULL;
}

const char *etch_called_name(LLVMValueRef call)
{
    LLVMValueRef callee = etch_called(call);
    size_t n;

    return callee ? LLVMGetValueName2(callee, &n) : "";
}

/* ---- Places ---- */

/* DWARF 5's checksum, which is the third operand of LLVM's node; LLVM-C has no accessor for it. */
static void take_checksum(struct etch_model *m, LLVMContextRef context, LLVMMetadataRef file, uint32_t number)
{
    LLVMValueRef node = LLVMMetadataAsValue(context, file), operands[8];
    unsigned n = LLVMGetMDNodeNumOperands(node), size = 0;
    const char *text;

    while (m->checksums.n <= number)
        if (!etch_array_push(&m->checksums, NULL))
            return;
    if (n < 3 || n > 8 || m->checksums.v[number])
        return;
    LLVMGetMDNodeOperands(node, operands);
    text = operands[2] && LLVMIsAMDString(operands[2]) ? LLVMGetMDString(operands[2], &size) : NULL;
    if (text && size == 32)
        m->checksums.v[number] = strndup(text, size);
}

const char *etch_model_checksum(const struct etch_model *m, const char *file)
{
    uint32_t number = etch_strings_find(&m->files, file);

    return number < m->checksums.n ? m->checksums.v[number] : NULL;
}

static uint32_t file_of(struct etch_model *m, LLVMContextRef context, LLVMMetadataRef scope)
{
    LLVMMetadataRef file = scope ? LLVMDIScopeGetFile(scope) : NULL;
    uint32_t number = etch_pointers_get(&m->file_of, file);
    unsigned folder_size = 0, name_size = 0;
    const char *folder, *name;
    char path[4096];

    if (!file || number != ETCH_NONE)
        return number;
    folder = LLVMDIFileGetDirectory(file, &folder_size);
    name = LLVMDIFileGetFilename(file, &name_size);
    if (name_size && name[0] == '/')
        snprintf(path, sizeof(path), "%.*s", (int)name_size, name);
    else
        snprintf(path, sizeof(path), "%.*s/%.*s", (int)folder_size, folder, (int)name_size, name);
    etch_path_normalise(path);
    number = etch_strings_add(&m->files, path);
    etch_pointers_set(&m->file_of, file, number);
    if (number != ETCH_NONE)
        take_checksum(m, context, file, number);
    return number;
}

static void set_place(struct etch_model *m, struct etch_insn *insn)
{
    LLVMMetadataRef at = LLVMInstructionGetDebugLoc(insn->value);

    insn->file = ETCH_NONE;
    if (!at || LLVMDILocationGetLine(at) == 0)
        return;
    insn->line = LLVMDILocationGetLine(at);
    insn->column = LLVMDILocationGetColumn(at);
    insn->file = file_of(m, LLVMGetTypeContext(LLVMTypeOf(insn->value)), LLVMDILocationGetScope(at));
    insn->own = insn->file != ETCH_NONE && !etch_file_is_system(m->files.all.v[insn->file]);
}

/* ---- Functions and instructions ---- */

/* Positions of operands in LLVM's node of a function; LLVM-C has no accessors for them. */
enum { NAME_OF_FUNCTION = 2, LINKAGE_NAME_OF_FUNCTION = 3, FUNCTION_OPERANDS_MAX = 64 };

/* A string operand of a debug node, to be freed; NULL: it has none. */
static char *node_text(LLVMContextRef context, LLVMMetadataRef node, unsigned index)
{
    LLVMValueRef value = LLVMMetadataAsValue(context, node), operands[FUNCTION_OPERANDS_MAX];
    unsigned count = LLVMGetMDNodeNumOperands(value), size = 0;
    const char *text;

    if (count <= index || count > FUNCTION_OPERANDS_MAX)
        return NULL;
    LLVMGetMDNodeOperands(value, operands);
    text = operands[index] && LLVMIsAMDString(operands[index]) ? LLVMGetMDString(operands[index], &size) : NULL;
    return text ? strndup(text, size) : NULL;
}

char *etch_subprogram_name(LLVMContextRef context, LLVMMetadataRef subprogram)
{
    char *linkage = node_text(context, subprogram, LINKAGE_NAME_OF_FUNCTION);
    char *name = node_text(context, subprogram, NAME_OF_FUNCTION);
    char *whole = etch_function_name(linkage, name, LLVMDISubprogramGetLine(subprogram));

    free(linkage);
    free(name);
    return whole;
}

static char *source_name(LLVMContextRef context, LLVMValueRef function)
{
    LLVMMetadataRef subprogram = LLVMGetSubprogram(function);
    char *whole = subprogram ? etch_subprogram_name(context, subprogram) : NULL;
    size_t n;

    return whole ? whole : etch_function_name(LLVMGetValueName2(function, &n), NULL, 0);
}

/* dbg.declare(variable's place, variable, expression) */
static bool note_variable(struct etch_model *m, LLVMValueRef call)
{
    LLVMValueRef place = LLVMGetOperand(call, 0), target = NULL;

    if (strcmp(etch_called_name(call), "llvm.dbg.declare") != 0)
        return true;
    if (LLVMGetMDNodeNumOperands(place) != 1)
        return true;
    LLVMGetMDNodeOperands(place, &target);
    if (!target)
        return true;
    return etch_pointers_set(&m->variable_of, target, (uint32_t)m->variables.n) &&
           etch_array_push(&m->variables, LLVMValueAsMetadata(LLVMGetOperand(call, 1)));
}

static bool is_debug_call(LLVMValueRef value)
{
    return etch_is_call(value) && strncmp(etch_called_name(value), "llvm.dbg.", 9) == 0;
}

/* A function with several return statements has a single return in the bitcode, at the closing brace. This return
 * loads the result from a variable of the compiler's. The return statements count as statements, the brace does not. */
static void hide_brace(struct etch_model *m, uint32_t last)
{
    LLVMValueRef ret = m->insns.v[last].value;
    LLVMValueRef load = LLVMIsAReturnInst(ret) && LLVMGetNumOperands(ret) ? LLVMGetOperand(ret, 0) : NULL;
    uint32_t insn;

    if (!load || !LLVMIsALoadInst(load) || !LLVMIsAAllocaInst(LLVMGetOperand(load, 0)) ||
        etch_pointers_get(&m->variable_of, LLVMGetOperand(load, 0)) != ETCH_NONE)
        return;
    insn = etch_model_insn(m, load);
    if (insn == ETCH_NONE || m->insns.v[insn].line != m->insns.v[last].line)
        return;
    m->insns.v[insn].file = m->insns.v[last].file = ETCH_NONE;
    m->insns.v[insn].own = m->insns.v[last].own = false;
}

static void note_return(struct etch_model *m, uint32_t function, uint32_t last)
{
    struct etch_function *f = &m->functions.v[function];

    if (!LLVMIsAReturnInst(m->insns.v[last].value))
        return;
    f->only_return = f->returns++ ? ETCH_NONE : last;
}

static void hide(struct etch_model *m, LLVMValueRef value)
{
    uint32_t insn = etch_model_insn(m, value);

    if (insn == ETCH_NONE)
        return;
    m->insns.v[insn].file = ETCH_NONE;
    m->insns.v[insn].own = false;
}

static bool is_unnamed(const struct etch_model *m, LLVMValueRef pointer)
{
    return LLVMIsAAllocaInst(pointer) && etch_pointers_get(&m->variable_of, pointer) == ETCH_NONE;
}

/* A scope with destructors may be left in several ways. The bitcode has a single exit at the closing brace: a switch
 * over a number that the compiler keeps. The statements that leave the scope are elsewhere, so the switch does not
 * count. */
static void hide_dispatch(struct etch_model *m, uint32_t last)
{
    LLVMValueRef branch = m->insns.v[last].value, load;

    if (!LLVMIsASwitchInst(branch))
        return;
    load = LLVMGetOperand(branch, 0);
    if (!LLVMIsALoadInst(load) || !is_unnamed(m, LLVMGetOperand(load, 0)))
        return;
    hide(m, load);
    hide(m, branch);
}

/* A landing pad puts the exception away, at no place that anybody wrote. */
static void hide_landing(struct etch_model *m, const struct etch_ir_block *block)
{
    bool landing = false;

    for (uint32_t i = block->first; i < block->first + block->n; i++) {
        LLVMValueRef v = m->insns.v[i].value;
        bool puts = LLVMIsAStoreInst(v) && is_unnamed(m, LLVMGetOperand(v, 1));

        landing |= LLVMIsALandingPadInst(v) != NULL;
        if (landing && (LLVMIsALandingPadInst(v) || LLVMIsAExtractValueInst(v) || puts ||
                        (LLVMIsABranchInst(v) && !LLVMIsConditional(v))))
            hide(m, v);
    }
}

static bool add_block(struct etch_model *m, uint32_t function, LLVMBasicBlockRef bb)
{
    struct etch_ir_block block = {.function = function, .first = (uint32_t)m->insns.n};
    uint32_t number = (uint32_t)m->blocks.n;

    if (!etch_pointers_set(&m->block_of, bb, number))
        return false;
    for (LLVMValueRef v = LLVMGetFirstInstruction(bb); v; v = LLVMGetNextInstruction(v)) {
        struct etch_insn insn = {.value = v, .block = number, .callee = ETCH_NONE};

        if (is_debug_call(v)) {
            if (!note_variable(m, v))
                return false;
            continue;
        }
        set_place(m, &insn);
        if (!etch_pointers_set(&m->insn_of, v, (uint32_t)m->insns.n) || !etch_array_push(&m->insns, insn))
            return false;
        block.n++;
    }
    if (block.n) {
        hide_brace(m, block.first + block.n - 1);
        hide_dispatch(m, block.first + block.n - 1);
        hide_landing(m, &block);
        note_return(m, function, block.first + block.n - 1);
    }
    return etch_array_push(&m->blocks, block);
}

static bool is_internal(LLVMValueRef global)
{
    LLVMLinkage linkage = LLVMGetLinkage(global);

    return linkage == LLVMInternalLinkage || linkage == LLVMPrivateLinkage;
}

/* The name in the object file. LLVM marks a name that the source itself gave by a first byte of 1. */
static const char *symbol_of(LLVMValueRef value)
{
    size_t n;
    const char *name = LLVMGetValueName2(value, &n);

    return name[0] == '\1' ? name + 1 : name;
}

/* Ranks a definition among several definitions of a name: the linker takes the strongest. */
static int strength(LLVMValueRef function)
{
    switch (LLVMGetLinkage(function)) {
    case LLVMAvailableExternallyLinkage:
        return 0; /* for the optimiser only */
    case LLVMLinkOnceAnyLinkage:
    case LLVMLinkOnceODRLinkage:
    case LLVMWeakAnyLinkage:
    case LLVMWeakODRLinkage:
        return 1; /* the linker takes the first of these */
    default:
        return 2;
    }
}

/* A library's own definition of a name that an image before it has too; the library's calls go to its own. */
static void own_symbol(uint32_t image, const char *symbol, char *text, size_t size)
{
    snprintf(text, size, "#%u:%s", image, symbol);
}

/* Notes a definition under a name: of several in one image the strongest, else that of the first image. */
static uint32_t note_copy(struct etch_model *m, const char *name, LLVMValueRef f, uint32_t image)
{
    struct etch_copy copy = {f, image};
    uint32_t number = etch_strings_add(&m->symbols, name);

    if (number == ETCH_NONE || (number == m->copies.n && !etch_array_push(&m->copies, copy)))
        return ETCH_NONE;
    if (m->copies.v[number].image == image && strength(f) > strength(m->copies.v[number].value))
        m->copies.v[number].value = f;
    return number;
}

/* Finds the definition that the linker kept of each name, before any is added. */
static bool choose_copies(struct etch_model *m)
{
    char own[1024];

    for (size_t i = 0; i < m->modules.n; i++) {
        for (LLVMValueRef f = LLVMGetFirstFunction(m->modules.v[i].module); f; f = LLVMGetNextFunction(f)) {
            uint32_t number, image = m->modules.v[i].image;

            if (!LLVMCountBasicBlocks(f) || is_internal(f))
                continue;
            number = note_copy(m, symbol_of(f), f, image);
            if (number == ETCH_NONE)
                return false;
            own_symbol(image, symbol_of(f), own, sizeof(own));
            if (m->copies.v[number].image != image && strength(f) == 2 && note_copy(m, own, f, image) == ETCH_NONE)
                return false;
        }
    }
    for (size_t i = 0; i < m->copies.n; i++)
        if (!etch_array_push(&m->symbol_function, ETCH_NONE))
            return false;
    return true;
}

/* The number of the definition that a name means in an image; ETCH_NONE: it is outside. */
static uint32_t find_symbol(const struct etch_model *m, uint32_t image, const char *symbol)
{
    char own[1024];
    uint32_t number;

    own_symbol(image, symbol, own, sizeof(own));
    number = image ? etch_strings_find(&m->symbols, own) : ETCH_NONE;
    return number != ETCH_NONE ? number : etch_strings_find(&m->symbols, symbol);
}

static bool add_function(struct etch_model *m, uint32_t module, LLVMValueRef value)
{
    struct etch_function f = {
        .value = value, .module = module, .first_block = (uint32_t)m->blocks.n, .only_return = ETCH_NONE};
    LLVMMetadataRef subprogram = LLVMGetSubprogram(value);
    uint32_t number = (uint32_t)m->functions.n;
    const char *symbol = symbol_of(value);

    if (!is_internal(value)) {
        uint32_t copy = find_symbol(m, m->modules.v[module].image, symbol);

        if (copy == ETCH_NONE || m->copies.v[copy].value != value)
            return true; /* the linker kept another */
        m->symbol_function.v[copy] = number;
    }
    f.name = source_name(m->modules.v[module].context, value);
    f.symbol = strdup(symbol);
    f.line = subprogram ? LLVMDISubprogramGetLine(subprogram) : 0;
    f.file = file_of(m, LLVMGetTypeContext(LLVMTypeOf(value)), subprogram);
    if (!f.name || !f.symbol || !etch_pointers_set(&m->function_of, value, number) ||
        !etch_array_push(&m->functions, f)) {
        free(f.name);
        free(f.symbol);
        return false;
    }
    for (LLVMBasicBlockRef bb = LLVMGetFirstBasicBlock(value); bb; bb = LLVMGetNextBasicBlock(bb))
        if (!add_block(m, number, bb))
            return false;
    m->functions.v[number].n_blocks = (uint32_t)m->blocks.n - f.first_block;
    return true;
}

static bool add_globals(struct etch_model *m, LLVMModuleRef module)
{
    for (LLVMValueRef g = LLVMGetFirstGlobal(module); g; g = LLVMGetNextGlobal(g)) {
        size_t n = 0;
        LLVMValueMetadataEntry *entries = LLVMGlobalCopyAllMetadata(g, &n);
        bool ok = true;

        for (size_t i = 0; i < n && ok; i++) {
            LLVMMetadataRef md = LLVMValueMetadataEntriesGetMetadata(entries, (unsigned)i);

            if (LLVMGetMetadataKind(md) == LLVMDIGlobalVariableExpressionMetadataKind)
                ok = etch_pointers_set(&m->variable_of, g, (uint32_t)m->variables.n) &&
                     etch_array_push(&m->variables, LLVMDIGlobalVariableExpressionGetVariable(md));
        }
        LLVMDisposeValueMetadataEntries(entries);
        if (!ok)
            return false;
    }
    return true;
}

/* A name that is a second one of a function: clang makes one of a class's two constructors that way. */
static bool add_aliases(struct etch_model *m, LLVMModuleRef module)
{
    for (LLVMValueRef a = LLVMGetFirstGlobalAlias(module); a; a = LLVMGetNextGlobalAlias(a)) {
        LLVMValueRef target = LLVMAliasGetAliasee(a);
        uint32_t function = LLVMIsAFunction(target) ? etch_pointers_get(&m->function_of, target) : ETCH_NONE, number;

        if (function == ETCH_NONE || is_internal(a))
            continue;
        number = etch_strings_add(&m->symbols, symbol_of(a));
        if (number == ETCH_NONE || (number == m->symbol_function.n && !etch_array_push(&m->symbol_function, function)))
            return false;
    }
    return true;
}

/* A declaration stands for the definition of that name in another module. */
static bool resolve_declarations(struct etch_model *m)
{
    for (size_t i = 0; i < m->modules.n; i++) {
        for (LLVMValueRef f = LLVMGetFirstFunction(m->modules.v[i].module); f; f = LLVMGetNextFunction(f)) {
            uint32_t symbol;

            if (etch_pointers_get(&m->function_of, f) != ETCH_NONE)
                continue;
            symbol = find_symbol(m, m->modules.v[i].image, symbol_of(f));
            if (symbol != ETCH_NONE && m->symbol_function.v[symbol] != ETCH_NONE &&
                !etch_pointers_set(&m->function_of, f, m->symbol_function.v[symbol]))
                return false;
        }
    }
    return true;
}

/* ---- Does the bitcode belong to this code? ---- */

static int stale(const struct etch_model *m, const struct etch_function *f, uint32_t line, struct etch_error *err)
{
    const char *file = f->file == ETCH_NONE ? "a file without a name" : m->files.all.v[f->file];
    char name[100];

    etch_error_set(err, "%.120s: its bitcode is stale: %s of %.160s is on line %u there, on line %u in the code",
                   m->images.v[m->modules.v[f->module].image], etch_function_short(f->name, name, sizeof(name)), file,
                   f->line, line);
    return etch_error_advise(err, "compile %.300s anew with etch cc or etch c++, then link again", file);
}

/* Functions are compared by their names for the linker: a header's overloads and instances have one name in the source.
 * Both lines are those of the same unit, so that it does not matter whose copy of an inline function was kept. */
static int check_match(const struct etch_model *m, struct etch_error *err)
{
    for (size_t i = 0; i < m->functions.n; i++) {
        const struct etch_function *f = &m->functions.v[i];
        size_t n;
        const char *source = LLVMGetSourceFileName(m->modules.v[f->module].module, &n);
        uint32_t line = etch_line_table_declared(m->lines, source, f->symbol);

        if (line && f->line && line != f->line)
            return stale(m, f, line, err);
    }
    return 0;
}

static bool fill(struct etch_model *m)
{
    if (!choose_copies(m))
        return false;
    for (size_t i = 0; i < m->modules.n; i++) {
        if (!add_globals(m, m->modules.v[i].module))
            return false;
        for (LLVMValueRef f = LLVMGetFirstFunction(m->modules.v[i].module); f; f = LLVMGetNextFunction(f))
            if (LLVMCountBasicBlocks(f) && !add_function(m, (uint32_t)i, f))
                return false;
    }
    for (size_t i = 0; i < m->modules.n; i++)
        if (!add_aliases(m, m->modules.v[i].module))
            return false;
    return resolve_declarations(m) && etch_model_find_callers(m);
}

static int open_model(struct etch_model *m, const char *const *more, size_t n_more, struct etch_error *err)
{
    if (etch_model_load(m, more, n_more, err) < 0)
        return -1;
    if (!fill(m))
        return etch_error_no_memory(err);
    if (etch_memory_index(m, err) < 0)
        return -1;
    return check_match(m, err);
}

int etch_model_open(struct etch_model **model, const char *path, const char *const *more, size_t n_more,
                    struct etch_error *err)
{
    struct etch_model *m = calloc(1, sizeof(*m));

    if (!m || !(m->path = strdup(path))) {
        free(m);
        return etch_error_no_memory(err);
    }
    if (open_model(m, more, n_more, err) < 0) {
        etch_model_free(m);
        return -1;
    }
    *model = m;
    return 0;
}

void etch_model_free(struct etch_model *m)
{
    if (!m)
        return;
    etch_effect_table_free(m->effects);
    for (size_t i = 0; i < m->functions.n; i++) {
        free(m->functions.v[i].name);
        free(m->functions.v[i].symbol);
        etch_array_free(&m->functions.v[i].callers);
        etch_cfg_free(m->functions.v[i].cfg);
        if (m->functions.v[i].throws)
            etch_array_free(m->functions.v[i].throws);
        free(m->functions.v[i].throws);
    }
    for (size_t i = 0; i < m->writers.n; i++)
        etch_array_free(&m->writers.v[i]);
    for (size_t i = 0; i < m->modules.n; i++)
        etch_module_release(&m->modules.v[i]);
    etch_array_free(&m->writers);
    etch_array_free(&m->functions);
    etch_array_free(&m->blocks);
    etch_array_free(&m->insns);
    etch_array_free(&m->modules);
    etch_array_free(&m->variables);
    etch_array_free(&m->targets);
    etch_array_free(&m->symbol_function);
    etch_array_free(&m->copies);
    etch_pointers_release(&m->insn_of);
    etch_pointers_release(&m->block_of);
    etch_pointers_release(&m->function_of);
    etch_pointers_release(&m->variable_of);
    etch_pointers_release(&m->slot_of);
    etch_array_free(&m->slots);
    etch_pointers_release(&m->file_of);
    etch_strings_release(&m->symbols);
    etch_strings_release(&m->files);
    for (size_t i = 0; i < m->checksums.n; i++)
        free(m->checksums.v[i]);
    etch_array_free(&m->checksums);
    etch_strings_release(&m->keys);
    etch_strings_release(&m->shared);
    etch_line_table_free(m->lines);
    etch_paths_release(&m->images);
    etch_paths_release(&m->notes);
    free(m->path);
    free(m);
}

void etch_model_measure(const struct etch_model *m, struct etch_model_size *size)
{
    *size = (struct etch_model_size){m->modules.n, m->functions.n, m->insns.n, m->n_stores, m->n_calls};
}

const uint8_t *etch_model_build_id(const struct etch_model *m, size_t *size)
{
    return etch_line_table_build_id(m->lines, 0, size);
}

const char *etch_model_note(const struct etch_model *m, size_t i)
{
    return i < m->notes.n ? m->notes.v[i] : NULL;
}

bool etch_model_covers(const struct etch_model *m, const char *path, const uint8_t *build_id, size_t size)
{
    for (uint32_t i = 0; i < m->images.n; i++) {
        size_t n;
        const uint8_t *id = etch_line_table_build_id(m->lines, i, &n);

        if (n && size ? n == size && memcmp(id, build_id, n) == 0 : strcmp(m->images.v[i], path) == 0)
            return true;
    }
    return !etch_library_has_bitcode(path);
}
