/* SPDX-License-Identifier: MIT */
/* See lab_build.h. */
#include "slicer/lab_build.h"

#include "slicer/bitcode.h"
#include "slicer/lab/generate.h"
#include "slicer/lab/mapped.h"
#include "slicer/lab/relink.h"
#include "slicer/link_note.h"

#include <limits.h>
#include <llvm-c/Analysis.h>
#include <llvm-c/BitReader.h>
#include <llvm-c/Core.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct build {
    const struct etch_lab_build *about;
    const uint8_t *bytes;
    size_t size;
    const char *clang;
    const struct etch_lab_library *library; /* whose modules are compiled; NULL: the program's */
    ETCH_ARRAY(char *) objects;
};

/* ---- One module ---- */

/* The loader calls it before the runtime can be called. */
static bool is_resolver(LLVMModuleRef module, LLVMValueRef function)
{
    for (LLVMValueRef i = LLVMGetFirstGlobalIFunc(module); i; i = LLVMGetNextGlobalIFunc(i))
        if (LLVMGetGlobalIFuncResolver(i) == function)
            return true;
    return false;
}

/* The pass instruments only functions with the attribute. A function with disable_sanitizer_instrumentation is spared.
 * One that the user marked no_sanitize("thread") is not: bitcode that was not compiled for a sanitizer does not say so.
 */
static void ask_for_accesses(LLVMModuleRef module)
{
    static const char name[] = "sanitize_thread";
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMAttributeRef attribute =
        LLVMCreateEnumAttribute(context, LLVMGetEnumAttributeKindForName(name, sizeof(name) - 1), 0);

    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f) && !is_resolver(module, f))
            LLVMAddAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, attribute);
}

static int fail_by_llvm(LLVMErrorRef error, const char *what, struct etch_error *err)
{
    char *message = LLVMGetErrorMessage(error);

    etch_error_set(err, "%s: %s", what, message);
    LLVMDisposeErrorMessage(message);
    return -1;
}

/* Compiled with -O0: clang says so of each function. Passes over the module would still change its globals. */
static bool is_unoptimised(LLVMModuleRef module)
{
    static const char name[] = "optnone";
    unsigned kind = LLVMGetEnumAttributeKindForName(name, sizeof(name) - 1);

    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f) &&
            LLVMGetEnumAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, kind))
            return true;
    return false;
}

/* The pass leaves out the read of `x++`, because a race detector needs only the write. For the lab the read is a moment
 * of its own: another thread can come between the two. */
static void see_all_reads(void)
{
    static const char *const options[] = {"etch", "-tsan-instrument-read-before-write"};
    static bool done;

    if (!done)
        LLVMParseCommandLineOptions(2, options, NULL);
    done = true;
}

static int transform(LLVMModuleRef module, LLVMTargetMachineRef machine, bool optimised, struct etch_error *err)
{
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error;

    see_all_reads();
    error = LLVMRunPasses(module, optimised ? "default<O2>,function(tsan)" : "default<O0>,function(tsan)", machine,
                          options);

    LLVMDisposePassBuilderOptions(options);
    return error ? fail_by_llvm(error, "LLVM's ThreadSanitizer pass", err) : 0;
}

static LLVMTargetMachineRef machine_for(LLVMModuleRef module, struct etch_error *err)
{
    LLVMTargetMachineRef machine = NULL;
    LLVMTargetRef target;
    char *message = NULL;

    if (LLVMGetTargetFromTriple(LLVMGetTarget(module), &target, &message)) {
        etch_error_set(err, "no code for %s: %s", LLVMGetTarget(module), message);
        LLVMDisposeMessage(message);
        return NULL;
    }
    machine = LLVMCreateTargetMachine(target, LLVMGetTarget(module), "x86-64", "", LLVMCodeGenLevelDefault,
                                      LLVMRelocPIC, LLVMCodeModelDefault);
    if (!machine)
        etch_error_set(err, "no code for %s", LLVMGetTarget(module));
    return machine;
}

/* The lab build has the program's own bitcode, so that its runs can be sliced. */
static void embed(LLVMModuleRef module, const uint8_t *bytes, size_t size)
{
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMValueRef content = LLVMConstStringInContext2(context, (const char *)bytes, size, true), global;

    global = LLVMAddGlobal(module, LLVMTypeOf(content), "etch.bitcode");
    LLVMSetInitializer(global, content);
    LLVMSetLinkage(global, LLVMPrivateLinkage);
    LLVMSetGlobalConstant(global, true);
    LLVMSetAlignment(global, 1);
    LLVMSetSection(global, ETCH_BITCODE_OWN);
}

static int emit(const struct build *b, LLVMModuleRef module, const uint8_t *bytes, size_t size, const char *path,
                struct etch_error *err)
{
    const struct etch_lab_generate about = {.clang = b->clang, .object = path, .optimised = !is_unoptimised(module)};
    LLVMTargetMachineRef machine = machine_for(module, err);
    int status = -1;

    if (!machine)
        return -1;
    if (transform(module, machine, about.optimised, err) == 0) {
        embed(module, bytes, size);
        status = etch_lab_generate(module, &about, err);
    }
    LLVMDisposeTargetMachine(machine);
    return status;
}

static int compile(struct build *b, const uint8_t *bytes, size_t size, struct etch_error *err)
{
    LLVMContextRef context = LLVMContextCreate();
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRangeCopy((const char *)bytes, size, "the embedded bitcode");
    LLVMModuleRef module = NULL;
    char path[PATH_MAX], *copy;
    int status = -1;

    snprintf(path, sizeof(path), "%s/%zu.o", b->about->folder, b->objects.n);
    copy = strdup(path);
    if (!copy || !etch_array_push(&b->objects, copy)) {
        free(copy);
        etch_error_no_memory(err);
    } else if (LLVMParseBitcodeInContext2(context, buffer, &module)) {
        etch_error_set(err, "cannot read the bitcode in %s", b->library ? b->library->path : b->about->program);
    } else {
        if (b->library)
            etch_lab_library_adapt(b->library, module);
        ask_for_accesses(module);
        status = emit(b, module, bytes, size, path, err);
    }
    if (module)
        LLVMDisposeModule(module);
    LLVMDisposeMemoryBuffer(buffer);
    LLVMContextDispose(context);
    return status;
}

static int compile_section(void *context, const uint8_t *section, size_t size, struct etch_error *err)
{
    struct build *b = context;
    etch_bitcode_modules modules = {0};
    int status = etch_bitcode_split(section, size, &modules, err);

    for (size_t i = 0; status == 0 && i < modules.n; i++)
        status = compile(b, section + modules.v[i].offset, modules.v[i].size, err);
    etch_array_free(&modules);
    return status;
}

/* ---- All of it ---- */

/* The libraries' objects come first, the last needed at the very first: so they begin in the loader's order. */
static int compile_all(struct build *b, const etch_lab_libraries *libraries, struct etch_error *err)
{
    for (size_t i = libraries->n; i-- > 0;) {
        b->library = &libraries->v[i];
        if (etch_bitcode_sections(b->library->bytes, b->library->size, compile_section, b, err) < 0)
            return -1;
    }
    b->library = NULL;
    return etch_bitcode_sections(b->bytes, b->size, compile_section, b, err) < 0 ? -1 : 0;
}

static int build_with(struct build *b, const struct etch_link_note *note, const etch_lab_libraries *libraries,
                      struct etch_error *err)
{
    struct etch_lab_relink link = {.about = b->about, .note = note, .libraries = libraries};

    if (compile_all(b, libraries, err) < 0)
        return -1;
    link.objects = b->objects.v;
    link.n_objects = b->objects.n;
    return etch_lab_relink(&link, err);
}

static void remove_objects(struct build *b)
{
    for (size_t i = 0; i < b->objects.n; i++) {
        unlink(b->objects.v[i]);
        free(b->objects.v[i]);
    }
    b->objects.n = 0;
}

/* A library that cannot be taken in is no reason to refuse the program. */
static int build_all(struct build *b, const struct etch_link_note *note, struct etch_error *err)
{
    const etch_lab_libraries none = {0};
    etch_lab_libraries libraries = {0};
    int status;

    b->about->note[0] = '\0';
    b->clang = note->words.v[0];
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    if (etch_lab_libraries_open(&libraries, b->about->program, err) < 0)
        return -1;
    status = build_with(b, note, &libraries, err);
    if (status < 0 && libraries.n) {
        snprintf(b->about->note, b->about->note_size, "accesses in the program's libraries are no points: %s",
                 err->what);
        remove_objects(b);
        status = build_with(b, note, &none, err);
    }
    etch_lab_libraries_close(&libraries);
    return status;
}

static int has_any(void *context, const uint8_t *section, size_t size, struct etch_error *err)
{
    (void)section;
    (void)err;
    *(bool *)context = size > 0;
    return 0;
}

static int check_bitcode(const struct build *b, struct etch_error *err)
{
    bool any = false;

    if (etch_bitcode_sections(b->bytes, b->size, has_any, &any, err) < 0)
        return -1;
    if (any)
        return 0;
    etch_error_set(err, "%s has no bitcode", b->about->program);
    return etch_error_advise(err, "build it with etch cc or etch c++");
}

int etch_lab_build(const struct etch_lab_build *about, struct etch_error *err)
{
    struct build b = {.about = about};
    struct etch_link_note note;
    struct etch_lab_mapped m;
    int status;

    if (!etch_lab_map(&m, about->program))
        return etch_error_set(err, "cannot read %s", about->program);
    b.bytes = m.bytes;
    b.size = m.size;
    status = check_bitcode(&b, err);
    if (status == 0)
        status = etch_link_note_read(&note, b.bytes, b.size, err);
    if (status == 0) {
        status = build_all(&b, &note, err);
        etch_link_note_release(&note);
    }
    remove_objects(&b);
    etch_array_free(&b.objects);
    etch_lab_unmap(&m);
    return status;
}
