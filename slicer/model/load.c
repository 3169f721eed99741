/* SPDX-License-Identifier: MIT */
/* Reading the program: the bitcode and the line table of its file and of its own shared libraries. */
#include "base/input.h"
#include "slicer/bitcode.h"
#include "slicer/model/model.h"

#include <errno.h>
#include <llvm-c/BitReader.h>
#include <llvm-c/DebugInfo.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void etch_module_release(struct etch_ir_module *module)
{
    LLVMDisposeModule(module->module);
    LLVMDisposeMemoryBuffer(module->buffer);
    LLVMContextDispose(module->context);
}

struct mapped {
    void *bytes;
    size_t n;
};

static int map_file(struct mapped *m, const char *path, struct etch_error *err)
{
    int fd = etch_input_open(path);
    struct stat st;

    if (fd < 0)
        return etch_error_set_errno(err, errno, "cannot open %s", path);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0) {
        close(fd);
        return etch_error_set(err, "cannot read %s: not a file with anything in it", path);
    }
    m->n = (size_t)st.st_size;
    m->bytes = mmap(NULL, m->n, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (m->bytes == MAP_FAILED) {
        m->bytes = NULL;
        return etch_error_set_errno(err, errno, "cannot map %s", path);
    }
    return 0;
}

/* LLVM would call exit(): its message goes into the error instead. */
static void take_diagnostic(LLVMDiagnosticInfoRef info, void *context)
{
    char *text = LLVMGetDiagInfoDescription(info);

    snprintf(context, 200, "%s", text);
    LLVMDisposeMessage(text);
}

static int other_llvm(struct etch_error *err, const char *producer)
{
    etch_error_set(err, "its bitcode is of another LLVM: %s, this etch reads LLVM19", producer);
    return etch_error_advise(err, "build it with this etch's etch cc");
}

static int load_module(struct etch_model *m, const uint8_t *bytes, const struct etch_bitcode_module *at,
                       struct etch_error *err)
{
    struct etch_ir_module module = {.context = LLVMContextCreate()};
    char why[200] = "not readable";

    if (at->producer[0] && (strncmp(at->producer, "LLVM19", 6) != 0 || (at->producer[6] && at->producer[6] != '.'))) {
        LLVMContextDispose(module.context);
        return other_llvm(err, at->producer);
    }
    LLVMContextSetDiagnosticHandler(module.context, take_diagnostic, why);
    module.buffer = LLVMCreateMemoryBufferWithMemoryRange((const char *)bytes + at->offset, at->size, "bitcode", 0);
    if (LLVMParseBitcodeInContext2(module.context, module.buffer, &module.module)) {
        LLVMDisposeMemoryBuffer(module.buffer);
        LLVMContextDispose(module.context);
        return etch_error_set(err, "its bitcode is damaged: %s", why);
    }
    LLVMContextSetDiagnosticHandler(module.context, NULL, NULL);
    LLVMSetIsNewDbgInfoFormat(module.module, 0); /* as calls, which LLVM-C can walk; as records it cannot */
    return etch_array_push(&m->modules, module) ? 0 : etch_error_no_memory(err);
}

static int load_section(void *context, const uint8_t *section, size_t size, struct etch_error *err)
{
    struct etch_model *m = context;
    etch_bitcode_modules modules = {0};
    uint8_t *copy = malloc(size + 4); /* LLVM wants its input aligned */
    int result;

    if (!copy)
        return etch_error_no_memory(err);
    memcpy(copy, section, size);
    result = etch_bitcode_split(copy, size, &modules, err);
    for (size_t i = 0; result == 0 && i < modules.n; i++)
        result = load_module(m, copy, &modules.v[i], err);
    etch_array_free(&modules);
    free(copy);
    return result;
}

static int load_sections(struct etch_model *m, const struct mapped *file, struct etch_error *err)
{
    size_t before = m->modules.n;

    if (etch_bitcode_sections(file->bytes, file->n, load_section, m, err) < 0)
        return -1;
    if (m->modules.n > before)
        return 0;
    etch_error_set(err, "it has no bitcode");
    return etch_error_advise(err, "build it with CC=\"etch cc\" and CXX=\"etch c++\"");
}

static void drop_modules(struct etch_model *m, size_t from)
{
    while (m->modules.n > from)
        etch_module_release(&m->modules.v[--m->modules.n]);
}

/* Reads one file's modules and its line table. */
static int load_image(struct etch_model *m, const char *path, struct etch_error *err)
{
    size_t before = m->modules.n;
    char advice[sizeof(err->advice)], *copy;
    struct mapped file = {0};
    int result;

    if (map_file(&file, path, err) < 0)
        return -1;
    result = load_sections(m, &file, err);
    munmap(file.bytes, file.n);
    if (result < 0) {
        memcpy(advice, err->advice, sizeof(advice));
        etch_error_prefix(err, "cannot read the program in %s", path);
        memcpy(err->advice, advice, sizeof(advice));
    } else {
        result = etch_line_table_add(m->lines, path, err);
    }
    copy = result == 0 ? strdup(path) : NULL;
    if (result == 0 && (!copy || !etch_array_push(&m->images, copy))) {
        free(copy);
        result = etch_error_no_memory(err);
    }
    if (result < 0)
        drop_modules(m, before);
    for (size_t i = before; i < m->modules.n; i++)
        m->modules.v[i].image = (uint32_t)m->images.n - 1;
    return result;
}

/* A defect of a library is no reason to refuse the program. */
static int leave_out(struct etch_model *m, const char *path, const struct etch_error *why, struct etch_error *err)
{
    char text[1024], *copy;

    snprintf(text, sizeof(text), "the slice does not go through %.300s: %s", path, why->what);
    copy = strdup(text);
    if (copy && etch_array_push(&m->notes, copy))
        return 0;
    free(copy);
    return etch_error_no_memory(err);
}

int etch_model_load(struct etch_model *m, const char *const *more, size_t n_more, struct etch_error *err)
{
    etch_paths libraries = {0};
    struct etch_error why;
    int result;

    m->lines = etch_line_table_new();
    if (!m->lines)
        return etch_error_no_memory(err);
    result = load_image(m, m->path, err);
    if (result == 0 && !etch_libraries_find(m->path, &libraries))
        result = etch_error_no_memory(err);
    for (size_t i = 0; result == 0 && i < n_more; i++)
        if (!etch_paths_add(&libraries, more[i]))
            result = etch_error_no_memory(err);
    for (size_t i = 0; result == 0 && i < libraries.n; i++)
        if (load_image(m, libraries.v[i], &why) < 0)
            result = leave_out(m, libraries.v[i], &why, err);
    etch_paths_release(&libraries);
    return result == 0 ? etch_line_table_finish(m->lines, err) : -1;
}
