/* SPDX-License-Identifier: MIT */
/* C++ exceptions, in the preloaded library. A throw leaves its stack in the thread's ring, because the stack may be
 * unwound before the program ends; std::terminate leaves what the active exception is. This library jumps to the
 * functions of the C++ library, so that the program's stack is the same as without this library. None of the program's
 * own code is called, and memory that the C++ library did not make itself is asked for before it is read. */
#include "collector/sync/shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define PAGE 4096u
#define MAIN_STACK (64u << 20)    /* below the first thread's stack Linux leaves at least twice that empty */
#define VERBOSE_HANDLER_MAX 1024u /* bytes of code */
#define BASES_MAX 16u             /* of a class, and of depth */

/* ---- The real functions ---- */

enum real { ALLOCATE, THROW, RETHROW, RETHROW_POINTER, TERMINATE, ABORT, REALS };

static const char *const names[REALS] = {"__cxa_allocate_exception",
                                         "__cxa_throw",
                                         "__cxa_rethrow",
                                         "_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE",
                                         "_ZSt9terminatev",
                                         "abort"};
static void *reals[REALS];
static int (*real_fputs)(const char *, FILE *);

/* As the Itanium C++ ABI and both C++ libraries have them on x86-64. */
struct globals {
    const uint8_t *caught; /* the innermost exception that is being handled */
    unsigned uncaught;
};

/* Of the C++ library; NULL and 0: not known. */
static struct {
    struct globals *(*globals)(void);
    uint64_t verbose_handler;            /* its own handler of std::terminate */
    uint64_t single_base, several_bases; /* the type_info of a class with bases begins with this */
} library;

/* A library that was loaded for itself alone is not among the next ones: it is asked by its name. So is the caller's
 * own file, which may have a C++ library within it. */
static void *find(const char *name, uint64_t caller)
{
    static const char *const libraries[] = {"libstdc++.so.6", "libc++abi.so.1"};
    void *found = dlsym(RTLD_NEXT, name), *loaded;
    Dl_info own;

    for (size_t i = 0; !found && i < sizeof(libraries) / sizeof(libraries[0]); i++)
        if ((loaded = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD)))
            found = dlsym(loaded, name);
    if (!found && caller && dladdr((void *)(uintptr_t)caller, &own) &&
        (loaded = dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD)))
        found = dlsym(loaded, name);
    return found;
}

static uint64_t find_table(const char *name, uint64_t caller)
{
    uint64_t at = (uint64_t)(uintptr_t)find(name, caller);

    return at ? at + 16 : 0;
}

/* At the first exception, and not later: when the program ends, another thread may hold malloc's lock. */
static void find_library(uint64_t caller)
{
    library.verbose_handler = (uint64_t)(uintptr_t)find("_ZN9__gnu_cxx27__verbose_terminate_handlerEv", caller);
    library.single_base = find_table("_ZTVN10__cxxabiv120__si_class_type_infoE", caller);
    library.several_bases = find_table("_ZTVN10__cxxabiv121__vmi_class_type_infoE", caller);
    *(void **)&library.globals = find("__cxa_get_globals", caller);
}

static void *real(enum real which, uint64_t caller)
{
    void *found = __atomic_load_n(&reals[which], __ATOMIC_RELAXED);
    int saved = errno;

    if (found)
        return found;
    found = find(names[which], caller);
    if (!found)
        _exit(127); /* the dynamic linker would have ended the program at its start */
    if (!library.globals && which != ABORT)
        find_library(caller);
    __atomic_store_n(&reals[which], found, __ATOMIC_RELAXED);
    errno = saved;
    return found;
}

/* These are called with locks held, perhaps malloc's. */
__attribute__((constructor(101))) static void begin(void)
{
    real(ABORT, 0);
    *(void **)&real_fputs = find("fputs", 0);
}

/* ---- The stack ---- */

/* The entries below leave these registers on the stack, lowest address first. */
struct entry {
    uint64_t r15, r14, r13, r12, bp, bx, dx, si, di, back;
};

static __thread uint64_t stack_low __attribute__((tls_model("initial-exec")));
static __thread uint64_t stack_high __attribute__((tls_model("initial-exec")));

extern void *__libc_stack_end;

static __attribute__((noinline, cold)) void find_stack(uint32_t tid)
{
    pthread_attr_t attributes;
    void *low;
    size_t size;

    stack_high = 1; /* asked once */
    if (tid == (uint32_t)getpid()) {
        stack_high = (uint64_t)(uintptr_t)__libc_stack_end;
        stack_low = stack_high - MAIN_STACK;
        return;
    }
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    if (pthread_attr_getstack(&attributes, &low, &size) == 0) {
        stack_low = (uint64_t)(uintptr_t)low;
        stack_high = stack_low + size;
    }
    pthread_attr_destroy(&attributes);
}

/* Bytes from `sp` up that are sure to be there. If the program made the stack itself, only the rest of the page is
 * sure. */
static size_t stack_size(uint64_t sp)
{
    uint64_t end = sp >= stack_low && sp < stack_high ? stack_high : (sp | (PAGE - 1)) + 1;

    return end - sp < ETCH_THROW_STACK ? end - sp : ETCH_THROW_STACK;
}

/* ---- Throws ---- */

/* The newest calls of __cxa_allocate_exception. An optimising compiler lets several throws of a function share one call
 * of __cxa_throw, which then has no line of its own; the call that made the exception still has. */
#define MADE_MAX 4u

static __thread struct {
    uint64_t sp, back;
} made[MADE_MAX] __attribute__((tls_model("initial-exec")));
static __thread unsigned made_next __attribute__((tls_model("initial-exec")));

/* A function has one stack pointer for all its calls. Other exceptions may have come and gone since, in functions that
 * it called for the exception's arguments. */
static uint64_t made_at(uint64_t sp)
{
    for (unsigned i = 1; i <= MADE_MAX; i++)
        if (made[(made_next - i) % MADE_MAX].sp == sp)
            return made[(made_next - i) % MADE_MAX].back;
    return 0;
}

static void record(const struct entry *e, uint64_t object, uint64_t type, bool again)
{
    struct etch_throw_ring *ring;
    struct etch_throw *to;
    int saved = errno;
    uint64_t index;
    uint32_t tid;

    ring = etch_shim_throws(&tid);
    if (!ring)
        return;
    if (!stack_high)
        find_stack(tid);
    index = ring->next++;
    to = &ring->throws[index % ETCH_THROWS];
    /* A reader that finds 0, or another lap's number, before or after its copy throws the copy away. */
    __atomic_store_n(&to->sequence, 0, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* x86 keeps stores in order; the compiler must as well */
    to->tsc = etch_shim_stamp();
    to->tid = tid;
    to->object = object;
    to->type = type;
    to->again = again;
    to->bx = e->bx;
    to->bp = e->bp;
    to->sp = (uint64_t)(uintptr_t)(e + 1);
    to->ip = e->back;
    to->made = again ? 0 : made_at(to->sp);
    to->r12 = e->r12;
    to->r13 = e->r13;
    to->r14 = e->r14;
    to->r15 = e->r15;
    to->stack_size = (uint16_t)stack_size(to->sp);
    memcpy(to->stack, e + 1, to->stack_size);
    /* Release: pairs with the reader's acquire of the sequence. */
    __atomic_store_n(&to->sequence, index + 1, __ATOMIC_RELEASE);
    errno = saved;
}

/* ---- What the C++ library knows of the active exception ---- */

#define UNWIND_HEADER 80u /* within an exception's header */
#define HEADER 112u       /* and the object behind it */
#define CLASS_GNU 0x474e5543432b2b00ull
#define CLASS_LLVM 0x434c4e47432b2b00ull

/* rt_sigprocmask reads the set before it finds that the first argument is none of its own. */
static bool probe(uint64_t address)
{
    errno = 0;
    return syscall(SYS_rt_sigprocmask, ~0, address, NULL, sizeof(uint64_t)) < 0 && errno != EFAULT;
}

static bool is_readable(uint64_t address, size_t size)
{
    if (!address || address + size < address || probe(PAGE / 2)) /* if that page can be read, the probe shows nothing */
        return false;
    for (uint64_t at = address & ~(uint64_t)7; at < address + size; at = (at | (PAGE - 1)) + 1)
        if (!probe(at))
            return false;
    return true;
}

static bool read_word(uint64_t address, uint64_t *word)
{
    if (!is_readable(address, sizeof(*word)))
        return false;
    memcpy(word, (const void *)(uintptr_t)address, sizeof(*word));
    return true;
}

/* The text at an address, up to its end or to the first page that is not there. */
static bool copy_text(char *to, size_t size, uint64_t from, uint64_t length)
{
    size_t n = 0;

    while (n < size - 1 && n < length) {
        if ((n == 0 || (from + n) % PAGE == 0) && !is_readable(from + n, 1))
            break;
        to[n] = *(const char *)(uintptr_t)(from + n);
        if (!to[n++])
            break;
    }
    to[n < size ? n : size - 1] = '\0';
    return n > 0 || length == 0;
}

/* The object, of an exception that is thrown anew and of one that refers to another. */
static bool find_object(const uint8_t *header, uint64_t *object)
{
    uint64_t class;

    memcpy(&class, header + UNWIND_HEADER, sizeof(class));
    *object = (uint64_t)(uintptr_t)header + HEADER;
    if (class == CLASS_GNU + 1 || class == CLASS_LLVM + 1)
        memcpy(object, header, sizeof(*object));
    return (class & ~(uint64_t)1) == CLASS_GNU || (class & ~(uint64_t)1) == CLASS_LLVM;
}

/* The innermost exception that is being handled; false: there is none that is C++'s. */
static bool active(uint64_t *object, const struct globals **all)
{
    *all = library.globals ? library.globals() : NULL;
    return *all && (*all)->caught && find_object((*all)->caught, object);
}

static uint64_t type_of(uint64_t object)
{
    return *(const uint64_t *)(uintptr_t)(object - HEADER);
}

/* ---- What an exception says ---- */

/* The message of a std::runtime_error or std::logic_error lies behind the vtable's address in the object. Both C++
 * libraries have a pointer to the text there. */
static bool is_named(uint64_t type, const char *name)
{
    char own[32];
    uint64_t at;

    return read_word(type + 8, &at) && copy_text(own, sizeof(own), at, UINT64_MAX) &&
           strcmp(own[0] == '*' ? own + 1 : own, name) == 0;
}

static bool has_message(uint64_t type)
{
    return is_named(type, "St13runtime_error") || is_named(type, "St11logic_error");
}

static bool is_kind(uint64_t type, uint64_t table)
{
    uint64_t own;

    return table && read_word(type, &own) && own == table;
}

static bool find_message(uint64_t type, uint64_t object, unsigned depth, uint64_t *at);

static bool find_in_bases(uint64_t type, uint64_t object, unsigned depth, uint64_t *at)
{
    uint64_t counts, base, how, vtable, offset;

    if (!read_word(type + 16, &counts))
        return false;
    for (uint64_t i = 0; i < counts >> 32 && i < BASES_MAX; i++) {
        if (!read_word(type + 24 + i * 16, &base) || !read_word(type + 32 + i * 16, &how))
            return false;
        offset = (uint64_t)((int64_t)how >> 8);
        if ((how & 1) && (!read_word(object, &vtable) || !read_word(vtable + offset, &offset)))
            continue;
        if (find_message(base, object + offset, depth + 1, at))
            return true;
    }
    return false;
}

static bool find_message(uint64_t type, uint64_t object, unsigned depth, uint64_t *at)
{
    uint64_t base;

    if (depth > BASES_MAX)
        return false;
    if (has_message(type))
        return read_word(object + 8, at);
    if (is_kind(type, library.single_base))
        return read_word(type + 16, &base) && find_message(base, object, depth + 1, at);
    return is_kind(type, library.several_bases) && find_in_bases(type, object, depth, at);
}

static void take_words(struct etch_terminate *t, uint64_t type, uint64_t object)
{
    uint64_t at, length = UINT64_MAX;
    bool text = strcmp(t->type, "PKc") == 0 || strcmp(t->type, "Pc") == 0;

    if (strcmp(t->type, "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE") == 0)
        text = read_word(object + 8, &length);
    if (text ? read_word(object, &at) : find_message(type, object, 0, &at))
        if (copy_text(t->what, sizeof(t->what), at, length))
            t->known |= text ? ETCH_TERMINATE_TEXT : ETCH_TERMINATE_MESSAGE;
}

static void describe(struct etch_terminate *t, uint64_t object, const struct globals *all)
{
    uint64_t type = type_of(object), name;

    t->object = object;
    t->on_their_way = all->uncaught;
    if (read_word(object, &t->value))
        t->known |= ETCH_TERMINATE_VALUE;
    if (type && read_word(type + 8, &name) && copy_text(t->type, sizeof(t->type), name, UINT64_MAX))
        take_words(t, type, object);
}

/* The program is on its way to its end: what is noted first stays, an abort follows std::terminate. */
static struct etch_terminate *note_end(bool terminate)
{
    const struct globals *all;
    struct etch_throw_ring *ring;
    struct etch_terminate *t;
    uint64_t object;
    uint32_t tid, state = ETCH_TERMINATE_NONE;
    int saved = errno;

    ring = etch_shim_throws(&tid);
    if (!ring)
        return NULL;
    t = &ring->terminate;
    if (t->tid == tid && t->state != ETCH_TERMINATE_NOT)
        return t;
    __atomic_store_n(&t->state, ETCH_TERMINATE_NOT, __ATOMIC_RELAXED);
    memset(t, 0, sizeof(*t));
    t->tid = tid;
    t->tsc = etch_shim_stamp();
    t->known = terminate ? 0 : ETCH_TERMINATE_ABORT;
    if (active(&object, &all)) {
        describe(t, object, all);
        state = ETCH_TERMINATE_ACTIVE;
    } else if (all && all->caught) {
        state = ETCH_TERMINATE_OTHER;
    }
    if (terminate || state != ETCH_TERMINATE_NONE) /* release: the members are written before the state is */
        __atomic_store_n(&t->state, state, __ATOMIC_RELEASE);
    errno = saved;
    return t;
}

/* ---- Entries ---- */

/* Each is called by its entry in assembler with what that left on the stack, and says where to go on. */
__attribute__((used)) void *etch_shim_allocate(const struct entry *e);
__attribute__((used)) void *etch_shim_throw(const struct entry *e);
__attribute__((used)) void *etch_shim_rethrow(const struct entry *e);
__attribute__((used)) void *etch_shim_rethrow_pointer(const struct entry *e);
__attribute__((used)) void *etch_shim_terminate(const struct entry *e);
__attribute__((used)) void *etch_shim_abort(const struct entry *e);

/* The verbose terminate handler throws the exception again to call what(), and catches it. */
static bool is_handler(uint64_t caller)
{
    return library.verbose_handler && caller - library.verbose_handler < VERBOSE_HANDLER_MAX;
}

void *etch_shim_allocate(const struct entry *e)
{
    unsigned at = made_next++ % MADE_MAX;

    made[at].sp = (uint64_t)(uintptr_t)(e + 1);
    made[at].back = e->back;
    return real(ALLOCATE, e->back);
}

void *etch_shim_throw(const struct entry *e)
{
    void *next = real(THROW, e->back);

    record(e, e->di, e->si, false);
    return next;
}

void *etch_shim_rethrow(const struct entry *e)
{
    void *next = real(RETHROW, e->back);
    const struct globals *all;
    uint64_t object;

    if (!is_handler(e->back) && active(&object, &all))
        record(e, object, type_of(object), true);
    return next;
}

/* Its argument is the address of a std::exception_ptr, which holds the object's address. */
void *etch_shim_rethrow_pointer(const struct entry *e)
{
    uint64_t object = *(const uint64_t *)(uintptr_t)e->di;

    if (object)
        record(e, object, type_of(object), true);
    return real(RETHROW_POINTER, e->back);
}

void *etch_shim_terminate(const struct entry *e)
{
    void *next = real(TERMINATE, e->back);

    note_end(true);
    return next;
}

void *etch_shim_abort(const struct entry *e)
{
    note_end(false);
    return real(ABORT, e->back);
}

/* The arguments and all registers that a function keeps for its caller are saved and given back; the note's result is
 * the function to go on with. Nine words keep the stack aligned. */
#define ENTRY(name, note)                                                                                              \
    __asm__(".pushsection .text\n.globl " name "\n.type " name ", @function\n" name ":\n.cfi_startproc\nendbr64\n"     \
            "push %rdi\n.cfi_adjust_cfa_offset 8\npush %rsi\n.cfi_adjust_cfa_offset 8\n"                               \
            "push %rdx\n.cfi_adjust_cfa_offset 8\npush %rbx\n.cfi_adjust_cfa_offset 8\n"                               \
            "push %rbp\n.cfi_adjust_cfa_offset 8\npush %r12\n.cfi_adjust_cfa_offset 8\n"                               \
            "push %r13\n.cfi_adjust_cfa_offset 8\npush %r14\n.cfi_adjust_cfa_offset 8\n"                               \
            "push %r15\n.cfi_adjust_cfa_offset 8\n"                                                                    \
            "mov %rsp, %rdi\ncall " note "\n"                                                                          \
            "add $48, %rsp\n.cfi_adjust_cfa_offset -48\npop %rdx\n.cfi_adjust_cfa_offset -8\n"                         \
            "pop %rsi\n.cfi_adjust_cfa_offset -8\npop %rdi\n.cfi_adjust_cfa_offset -8\n"                               \
            "jmp *%rax\n.cfi_endproc\n.size " name ", .-" name "\n.popsection\n")

ENTRY("__cxa_allocate_exception", "etch_shim_allocate");
ENTRY("__cxa_throw", "etch_shim_throw");
ENTRY("__cxa_rethrow", "etch_shim_rethrow");
ENTRY("_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE", "etch_shim_rethrow_pointer");
ENTRY("_ZSt9terminatev", "etch_shim_terminate");
ENTRY("abort", "etch_shim_abort");

static bool is_library(uint64_t caller)
{
    Dl_info own, theirs;

    return library.verbose_handler && dladdr((void *)(uintptr_t)library.verbose_handler, &own) &&
           dladdr((void *)(uintptr_t)caller, &theirs) && own.dli_fbase == theirs.dli_fbase;
}

/* The C++ library's own handler of std::terminate prints the type's name and then what what() returns. So the text is
 * known without a call to the program's own what(). The second part of the handler may be in another place of the
 * library than the first. */
static void note_printed(const char *text, uint64_t caller, unsigned *printed)
{
    struct etch_terminate *t;

    if (*printed ? !is_library(caller) : !is_handler(caller))
        return;
    t = note_end(true);
    if (!t || t->state != ETCH_TERMINATE_ACTIVE || ++*printed != 2)
        return;
    copy_text(t->what, sizeof(t->what), (uint64_t)(uintptr_t)text, UINT64_MAX);
    t->known = (t->known & ~(uint32_t)(ETCH_TERMINATE_MESSAGE | ETCH_TERMINATE_TEXT)) | ETCH_TERMINATE_WHAT;
}

EXPORT int fputs(const char *text, FILE *stream)
{
    static __thread unsigned printed __attribute__((tls_model("initial-exec"))); /* by the handler */
    uint64_t caller = (uint64_t)(uintptr_t)__builtin_return_address(0);

    if (__builtin_expect(!real_fputs, 0)) /* by another library's constructor */
        begin();
    if (__builtin_expect(printed || is_handler(caller), 0))
        note_printed(text, caller, &printed);
    return real_fputs(text, stream);
}
