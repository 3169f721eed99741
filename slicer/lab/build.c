/* SPDX-License-Identifier: MIT */
/* See lab_build.h. */
#include "slicer/lab_build.h"

#include "base/input.h"
#include "slicer/bitcode.h"
#include "slicer/lab/generate.h"
#include "slicer/link_note.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <llvm-c/Analysis.h>
#include <llvm-c/BitReader.h>
#include <llvm-c/Core.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct build {
    const struct etch_lab_build *about;
    const uint8_t *bytes;
    size_t size;
    const char *clang;
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
        etch_error_set(err, "cannot read the bitcode in %s", b->about->program);
    } else {
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

/* ---- The link ---- */

static bool ends_with(const char *text, const char *tail)
{
    size_t n = strlen(text), k = strlen(tail);

    return n >= k && strcmp(text + n - k, tail) == 0;
}

static bool is_source(const char *word)
{
    static const char *const tails[] = {".c", ".cc", ".cpp", ".cxx", ".C", ".c++", ".cp", ".i", ".ii", ".m", ".mm"};

    for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++)
        if (ends_with(word, tails[i]))
            return true;
    return false;
}

static int has_any(void *context, const uint8_t *section, size_t size, struct etch_error *err)
{
    (void)section;
    (void)err;
    *(bool *)context = size > 0;
    return 0;
}

/* A file in memory. False if it cannot be read. */
struct mapped {
    const uint8_t *bytes;
    size_t size;
};

static bool map_file(struct mapped *m, const char *path)
{
    int fd = etch_input_open(path);
    off_t size = fd >= 0 ? etch_input_size(fd) : -1;
    void *at = MAP_FAILED;

    if (size > 0)
        at = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0)
        close(fd);
    if (at == MAP_FAILED)
        return false;
    m->bytes = at;
    m->size = (size_t)size;
    return true;
}

static void unmap(struct mapped *m)
{
    munmap((void *)(uintptr_t)m->bytes, m->size);
}

/* An object whose code the twin has from its bitcode. */
static bool has_bitcode(const char *folder, const char *word)
{
    struct etch_error ignored;
    char path[PATH_MAX];
    struct mapped m;
    bool found = false;

    snprintf(path, sizeof(path), "%s%s%s", word[0] == '/' ? "" : folder, word[0] == '/' ? "" : "/", word);
    if (!map_file(&m, path))
        return false;
    etch_bitcode_sections(m.bytes, m.size, has_any, &found, &ignored);
    unmap(&m);
    return found;
}

/* Options whose value is the next word, and that say nothing to the linker. */
static bool drops_next(const char *word)
{
    static const char *const options[] = {"-o", "-x", "-MF", "-MT", "-MQ", "-I", "-D", "-U", "-include", "-isystem"};

    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        if (strcmp(word, options[i]) == 0)
            return true;
    return false;
}

static bool drops(const char *folder, const char *word)
{
    static const char *const heads[] = {"-o", "-x", "-M", "-fsanitize", "-W,", "-I", "-D", "-O", "-Werror"};

    if (word[0] != '-')
        return is_source(word) || (ends_with(word, ".o") && has_bitcode(folder, word));
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
        if (strncmp(word, heads[i], strlen(heads[i])) == 0)
            return true;
    return false;
}

typedef ETCH_ARRAY(const char *) words;

static bool link_words(const struct build *b, const struct etch_link_note *note, words *w)
{
    static const char *const tail[] = {"-pthread", "-ldl", "-Wl,--export-dynamic", "-Wno-unused-command-line-argument",
                                       "-o"};
    bool good = etch_array_push(w, note->words.v[0]);

    for (size_t i = 0; i < b->objects.n; i++)
        good = good && etch_array_push(w, b->objects.v[i]);
    good = good && etch_array_push(w, b->about->runtime) && etch_array_push(w, b->about->recorder);
    for (size_t i = 1; i < note->words.n; i++) {
        if (drops_next(note->words.v[i]))
            i++;
        else if (!drops(note->folder, note->words.v[i]))
            good = good && etch_array_push(w, note->words.v[i]);
    }
    for (size_t i = 0; i < sizeof(tail) / sizeof(tail[0]); i++)
        good = good && etch_array_push(w, tail[i]);
    return good && etch_array_push(w, b->about->twin) && etch_array_push(w, NULL);
}

/* Runs the linker in its former folder. Its standard error goes to `log`, from which quote() takes the reason of a
 * failure. */
static int run_link(const struct etch_link_note *note, const words *w, const char *log, struct etch_error *err)
{
    posix_spawn_file_actions_t actions;
    int status = 0, errnum;
    pid_t pid;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_EXCL, 0600);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addchdir_np(&actions, note->folder);
    errnum = posix_spawnp(&pid, w->v[0], &actions, NULL, (char *const *)(uintptr_t)w->v, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (errnum)
        return etch_error_set_errno(err, errnum, "cannot run %s in %s", w->v[0], note->folder);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}

/* The first line that names an error. */
static void quote(const char *log, char *reason, size_t size)
{
    int fd = etch_input_open(log);
    size_t n = 0;
    char *text = fd >= 0 ? etch_input_read(fd, 1 << 20, &n) : NULL, *rest = NULL;

    snprintf(reason, size, "the linker gave no reason");
    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest))
        if ((strstr(line, "error") && !strstr(line, "linker command failed")) || strstr(line, "undefined") ||
            strstr(line, "cannot") || strstr(line, "bad value")) {
            snprintf(reason, size, "%s", line);
            break;
        }
    free(text);
    if (fd >= 0)
        close(fd);
}

static int link_twin(const struct build *b, const struct etch_link_note *note, struct etch_error *err)
{
    char log[PATH_MAX], reason[400];
    words w = {0};
    int status;

    snprintf(log, sizeof(log), "%s/link.log", b->about->folder);
    status = link_words(b, note, &w) ? run_link(note, &w, log, err) : etch_error_no_memory(err);
    if (status > 0) {
        quote(log, reason, sizeof(reason));
        etch_error_set(err, "cannot repeat the link of %s: %s", b->about->program, reason);
        status = etch_error_advise(err, "%s has all of what the linker said", log);
    }
    etch_array_free(&w);
    return status;
}

/* ---- All of it ---- */

static int build_all(struct build *b, const struct etch_link_note *note, struct etch_error *err)
{
    b->clang = note->words.v[0];
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    if (etch_bitcode_sections(b->bytes, b->size, compile_section, b, err) < 0)
        return -1;
    return link_twin(b, note, err);
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
    struct mapped m;
    int status;

    if (!map_file(&m, about->program))
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
    for (size_t i = 0; i < b.objects.n; i++) {
        unlink(b.objects.v[i]);
        free(b.objects.v[i]);
    }
    etch_array_free(&b.objects);
    unmap(&m);
    return status;
}
