/* SPDX-License-Identifier: MIT */
/* See library.h. */
#include "slicer/lab/library.h"

#include "base/input.h"
#include "binary/object.h"
#include "slicer/bitcode.h"
#include "slicer/lab/mapped.h"
#include "slicer/lab_build.h"
#include "slicer/model/libraries.h"

#include <llvm-c/BitReader.h>
#include <stdio.h>
#include <string.h>

/* ---- Names ---- */

struct names {
    struct etch_lab_library *library;
    struct etch_strings exported;
    bool full; /* memory was short */
};

static void take_export(void *context, const char *name)
{
    struct names *n = context;

    n->full |= etch_strings_add(&n->exported, name) == ETCH_NONE;
}

/* Definitions of other kinds are the same in each file that has them, or known to their file only. */
static bool is_strong_definition(LLVMValueRef value)
{
    return !LLVMIsDeclaration(value) && LLVMGetLinkage(value) == LLVMExternalLinkage;
}

static void take_definition(void *context, LLVMValueRef value)
{
    struct names *n = context;
    size_t length;
    const char *name = LLVMGetValueName2(value, &length);

    if (is_strong_definition(value) && length && etch_strings_find(&n->exported, name) == ETCH_NONE)
        n->full |= etch_strings_add(&n->library->inner, name) == ETCH_NONE;
}

/* Functions, variables and aliases. */
static void each_value(LLVMModuleRef module, void (*visit)(void *context, LLVMValueRef value), void *context)
{
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        visit(context, f);
    for (LLVMValueRef g = LLVMGetFirstGlobal(module); g; g = LLVMGetNextGlobal(g))
        visit(context, g);
    for (LLVMValueRef a = LLVMGetFirstGlobalAlias(module); a; a = LLVMGetNextGlobalAlias(a))
        visit(context, a);
}

static int read_module(struct names *n, const uint8_t *bytes, size_t size, struct etch_error *err)
{
    LLVMContextRef context = LLVMContextCreate();
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRangeCopy((const char *)bytes, size, "the embedded bitcode");
    LLVMModuleRef module = NULL;
    int status = 0;

    if (LLVMParseBitcodeInContext2(context, buffer, &module))
        status = etch_error_set(err, "cannot read the bitcode in %s", n->library->path);
    else
        each_value(module, take_definition, n);
    if (module)
        LLVMDisposeModule(module);
    LLVMDisposeMemoryBuffer(buffer);
    LLVMContextDispose(context);
    return status;
}

static int read_section(void *context, const uint8_t *section, size_t size, struct etch_error *err)
{
    etch_bitcode_modules modules = {0};
    int status = etch_bitcode_split(section, size, &modules, err);

    for (size_t i = 0; status == 0 && i < modules.n; i++)
        status = read_module(context, section + modules.v[i].offset, modules.v[i].size, err);
    etch_array_free(&modules);
    return status;
}

static int read_names(struct etch_lab_library *library, struct etch_error *err)
{
    struct names n = {.library = library};
    struct etch_object *object;
    int status = etch_object_open(&object, library->path, err);

    if (status < 0)
        return -1;
    etch_object_each_export(object, take_export, &n);
    etch_object_free(object);
    status = etch_bitcode_sections(library->bytes, library->size, read_section, &n, err);
    etch_strings_release(&n.exported);
    return status < 0 ? -1 : n.full ? etch_error_no_memory(err) : 0;
}

/* ---- Changes ---- */

static void adapt_value(void *context, LLVMValueRef value)
{
    const struct etch_lab_library *library = context;
    char other[4096];
    size_t length;
    const char *name = LLVMGetValueName2(value, &length);

    if (!length || LLVMGetLinkage(value) == LLVMInternalLinkage || LLVMGetLinkage(value) == LLVMPrivateLinkage)
        return;
    if (etch_strings_find(&library->inner, name) != ETCH_NONE) {
        int n = snprintf(other, sizeof(other), "%s.library%u", name, library->number);

        if (n < (int)sizeof(other))
            LLVMSetValueName2(value, other, (size_t)n);
    } else if (is_strong_definition(value)) {
        LLVMSetLinkage(value, LLVMWeakAnyLinkage);
    }
}

void etch_lab_library_adapt(const struct etch_lab_library *library, LLVMModuleRef module)
{
    each_value(module, adapt_value, (void *)(uintptr_t)library);
}

/* ---- All libraries ---- */

static void close_library(struct etch_lab_library *library)
{
    struct etch_lab_mapped m = {library->bytes, library->size};

    if (library->bytes)
        etch_lab_unmap(&m);
    etch_link_note_release(&library->note);
    etch_strings_release(&library->inner);
    free(library->path);
}

/* A library that does not say how it was linked stays outside of the lab build. Returns 1 if `library` is set. */
static int open_library(struct etch_lab_library *library, const char *path)
{
    struct etch_lab_mapped m;
    struct etch_error ignored;

    *library = (struct etch_lab_library){0};
    if (!etch_lab_map(&m, path))
        return 0;
    library->bytes = m.bytes;
    library->size = m.size;
    library->path = strdup(path);
    if (library->path && etch_link_note_read(&library->note, m.bytes, m.size, &ignored) == 0)
        return 1;
    close_library(library);
    return 0;
}

int etch_lab_libraries_open(etch_lab_libraries *libraries, const char *program, struct etch_error *err)
{
    etch_paths paths = {0};
    int status = etch_libraries_find(program, &paths) ? 0 : etch_error_no_memory(err);

    for (size_t i = 0; status == 0 && i < paths.n; i++) {
        struct etch_lab_library library;

        if (!open_library(&library, paths.v[i]))
            continue;
        library.number = (unsigned)libraries->n + 1;
        if (!etch_array_push(libraries, library)) {
            close_library(&library);
            status = etch_error_no_memory(err);
        } else {
            status = read_names(&libraries->v[libraries->n - 1], err);
        }
    }
    etch_paths_release(&paths);
    if (status < 0)
        etch_lab_libraries_close(libraries);
    return status;
}

void etch_lab_libraries_close(etch_lab_libraries *libraries)
{
    for (size_t i = 0; i < libraries->n; i++)
        close_library(&libraries->v[i]);
    etch_array_free(libraries);
}

int etch_lab_build_each_library(const char *program, int (*visit)(void *context, const char *path, struct etch_error *),
                                void *context, struct etch_error *err)
{
    etch_paths paths = {0};
    int status = etch_libraries_find(program, &paths) ? 0 : etch_error_no_memory(err);

    for (size_t i = 0; status == 0 && i < paths.n; i++)
        status = visit(context, paths.v[i], err);
    etch_paths_release(&paths);
    return status;
}
