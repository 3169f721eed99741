/* SPDX-License-Identifier: MIT */
/* What is known of library functions, by their whole names: a program's own function may begin as any of them does. */
#include "slicer/instrument/model.h"

#include <string.h>

struct waiting {
    const char *name;
    unsigned parameters; /* those with a name, where there may be more */
};

/* What may wait for other threads or processes, and what they may wait for. */
static const struct waiting waiting[] = {
    /* POSIX threads. */
    {"pthread_create", 4},
    {"pthread_join", 2},
    {"pthread_tryjoin_np", 2},
    {"pthread_timedjoin_np", 3},
    {"pthread_clockjoin_np", 4},
    {"pthread_exit", 1},
    {"pthread_cancel", 1},
    {"pthread_kill", 2},
    {"pthread_sigqueue", 3},
    {"pthread_once", 2},
    {"pthread_yield", 0},
    {"pthread_mutex_init", 2},
    {"pthread_mutex_destroy", 1},
    {"pthread_mutex_lock", 1},
    {"pthread_mutex_trylock", 1},
    {"pthread_mutex_timedlock", 2},
    {"pthread_mutex_clocklock", 3},
    {"pthread_mutex_unlock", 1},
    {"pthread_rwlock_init", 2},
    {"pthread_rwlock_destroy", 1},
    {"pthread_rwlock_rdlock", 1},
    {"pthread_rwlock_wrlock", 1},
    {"pthread_rwlock_tryrdlock", 1},
    {"pthread_rwlock_trywrlock", 1},
    {"pthread_rwlock_timedrdlock", 2},
    {"pthread_rwlock_timedwrlock", 2},
    {"pthread_rwlock_clockrdlock", 3},
    {"pthread_rwlock_clockwrlock", 3},
    {"pthread_rwlock_unlock", 1},
    {"pthread_cond_init", 2},
    {"pthread_cond_destroy", 1},
    {"pthread_cond_wait", 2},
    {"pthread_cond_timedwait", 3},
    {"pthread_cond_clockwait", 4},
    {"pthread_cond_signal", 1},
    {"pthread_cond_broadcast", 1},
    {"pthread_spin_lock", 1},
    {"pthread_spin_trylock", 1},
    {"pthread_spin_unlock", 1},
    {"pthread_barrier_init", 3},
    {"pthread_barrier_destroy", 1},
    {"pthread_barrier_wait", 1},
    {"sem_init", 3},
    {"sem_destroy", 1},
    {"sem_wait", 1},
    {"sem_trywait", 1},
    {"sem_timedwait", 2},
    {"sem_clockwait", 3},
    {"sem_post", 1},
    /* C11 threads. */
    {"thrd_create", 3},
    {"thrd_join", 2},
    {"thrd_sleep", 2},
    {"thrd_yield", 0},
    {"thrd_exit", 1},
    {"call_once", 2},
    {"mtx_init", 2},
    {"mtx_destroy", 1},
    {"mtx_lock", 1},
    {"mtx_trylock", 1},
    {"mtx_timedlock", 2},
    {"mtx_unlock", 1},
    {"cnd_init", 1},
    {"cnd_destroy", 1},
    {"cnd_wait", 2},
    {"cnd_timedwait", 3},
    {"cnd_signal", 1},
    {"cnd_broadcast", 1},
    /* Input and output. */
    {"read", 3},
    {"__read_chk", 4},
    {"write", 3},
    {"pread", 4},
    {"pread64", 4},
    {"__pread_chk", 5},
    {"__pread64_chk", 5},
    {"pwrite", 4},
    {"pwrite64", 4},
    {"readv", 3},
    {"writev", 3},
    {"preadv", 4},
    {"preadv64", 4},
    {"pwritev", 4},
    {"pwritev64", 4},
    {"open", 2},
    {"open64", 2},
    {"__open_2", 2},
    {"__open64_2", 2},
    {"openat", 3},
    {"openat64", 3},
    {"__openat_2", 3},
    {"__openat64_2", 3},
    {"creat", 2},
    {"creat64", 2},
    {"close", 1},
    {"fsync", 1},
    {"fdatasync", 1},
    {"msync", 3},
    {"flock", 2},
    {"lockf", 3},
    {"lockf64", 3},
    {"fcntl", 2},
    {"fcntl64", 2},
    {"poll", 3},
    {"__poll_chk", 4},
    {"ppoll", 4},
    {"__ppoll_chk", 5},
    {"select", 5},
    {"pselect", 6},
    {"epoll_ctl", 4},
    {"epoll_wait", 4},
    {"epoll_pwait", 5},
    {"epoll_pwait2", 5},
    {"accept", 3},
    {"accept4", 4},
    {"connect", 3},
    {"recv", 4},
    {"__recv_chk", 5},
    {"recvfrom", 6},
    {"__recvfrom_chk", 7},
    {"recvmsg", 3},
    {"recvmmsg", 5},
    {"send", 4},
    {"sendto", 6},
    {"sendmsg", 3},
    {"sendmmsg", 4},
    {"sendfile", 4},
    {"sendfile64", 4},
    {"splice", 6},
    {"aio_suspend", 3},
    {"getaddrinfo", 4},
    {"mq_receive", 4},
    {"mq_timedreceive", 5},
    {"mq_send", 4},
    {"mq_timedsend", 5},
    {"msgrcv", 5},
    {"msgsnd", 4},
    {"semop", 3},
    {"semtimedop", 4},
    /* Time, signals, processes. */
    {"nanosleep", 2},
    {"clock_nanosleep", 4},
    {"usleep", 1},
    {"sleep", 1},
    {"pause", 0},
    {"sched_yield", 0},
    {"sigsuspend", 1},
    {"sigwait", 2},
    {"sigwaitinfo", 2},
    {"sigtimedwait", 3},
    {"wait", 1},
    {"waitpid", 3},
    {"wait3", 3},
    {"wait4", 4},
    {"waitid", 4},
    {"system", 1},
    {"pclose", 1},
    {"syscall", 1},
    /* The C++ runtime's own: libstdc++, then libc++. */
    {"__cxa_guard_acquire", 1},
    {"__cxa_guard_release", 1},
    {"_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE", 3},
    {"_ZNSt6thread4joinEv", 1},
    {"_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE", 2},
    {"_ZNSt18condition_variable10notify_oneEv", 1},
    {"_ZNSt18condition_variable10notify_allEv", 1},
    {"_ZNSt28__atomic_futex_unsigned_base19_M_futex_notify_allEPj", 1},
    {"_ZNSt3__16thread4joinEv", 1},
    {"_ZNSt3__15mutex4lockEv", 1},
    {"_ZNSt3__15mutex8try_lockEv", 1},
    {"_ZNSt3__15mutex6unlockEv", 1},
    {"_ZNSt3__115recursive_mutex4lockEv", 1},
    {"_ZNSt3__115recursive_mutex6unlockEv", 1},
    {"_ZNSt3__118condition_variable4waitERNS_11unique_lockINS_5mutexEEE", 2},
    {"_ZNSt3__118condition_variable10notify_oneEv", 1},
    {"_ZNSt3__118condition_variable10notify_allEv", 1},
};

/* A declaration of old C does not say which parameters there are. */
static bool fits(LLVMTypeRef type, unsigned parameters)
{
    unsigned n = LLVMCountParamTypes(type);

    return n == parameters || (n == 0 && LLVMIsFunctionVarArg(type));
}

bool etch_may_wait(const char *name, LLVMTypeRef type)
{
    for (size_t i = 0; i < sizeof(waiting) / sizeof(waiting[0]); i++)
        if (strcmp(name, waiting[i].name) == 0)
            return fits(type, waiting[i].parameters);
    return false;
}

/* clang-format off */
static const char *const quiet[] = {
    /* C. */
    "malloc", "calloc", "realloc", "free", "aligned_alloc", "posix_memalign", "memcpy", "memmove", "memset", "memcmp",
    "bcmp", "memchr", "memrchr", "mempcpy", "memmem", "rawmemchr", "strlen", "strnlen", "strcmp", "strncmp",
    "strcasecmp", "strncasecmp", "strcpy", "strncpy", "stpcpy", "strcat", "strncat", "strchr", "strrchr", "strchrnul",
    "strstr", "strpbrk", "strspn", "strcspn", "strtok_r", "strdup", "strndup", "strtol", "strtoul", "strtoll",
    "strtoull", "strtod", "strtof", "atoi", "atol", "atof", "strcoll", "strerror", "isalpha", "isdigit", "isalnum",
    "isspace", "isupper", "islower", "ispunct", "isxdigit", "isprint", "iscntrl", "isgraph", "toupper", "tolower",
    "__ctype_b_loc", "__ctype_toupper_loc", "__ctype_tolower_loc", "__errno_location", "abs", "labs", "llabs", "sin",
    "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "exp", "exp2", "log", "log2", "log10",
    "log1p", "pow", "sqrt", "cbrt", "floor", "ceil", "round", "rint", "trunc", "lrint", "lround", "fmod", "ldexp",
    "frexp", "modf", "fabs", "hypot", "sinf", "cosf", "expf", "logf", "powf", "sqrtf", "floorf", "ceilf", "fmodf",
    "fabsf", "rand", "rand_r", "srand", "random", "time", "gettimeofday", "clock_gettime", "getpid", "putc", "getc",
    "fputc", "fgetc", "putchar", "getchar", "_IO_putc", "_IO_getc", "ungetc", "feof", "ferror", "localeconv",
    "__memcpy_chk", "__memmove_chk", "__memset_chk", "__strcpy_chk", "__strcat_chk", "pthread_self", "pthread_equal",
    /* C++: operator new and delete. */
    "_Znwm", "_ZnwmRKSt9nothrow_t", "_ZnwmSt11align_val_t", "_ZnwmSt11align_val_tRKSt9nothrow_t", "_Znam",
    "_ZnamRKSt9nothrow_t", "_ZnamSt11align_val_t", "_ZnamSt11align_val_tRKSt9nothrow_t", "_ZdlPv", "_ZdlPvm",
    "_ZdlPvRKSt9nothrow_t", "_ZdlPvSt11align_val_t", "_ZdlPvmSt11align_val_t", "_ZdlPvSt11align_val_tRKSt9nothrow_t",
    "_ZdaPv", "_ZdaPvm", "_ZdaPvRKSt9nothrow_t", "_ZdaPvSt11align_val_t", "_ZdaPvmSt11align_val_t",
    "_ZdaPvSt11align_val_tRKSt9nothrow_t",
};
/* clang-format on */

static bool begins_with(const char *text, const char *head)
{
    return strncmp(text, head, strlen(head)) == 0;
}

bool etch_calls_nobody(const char *name)
{
    if (begins_with(name, "llvm.") || begins_with(name, "etch_soft_"))
        return true;
    for (size_t i = 0; i < sizeof(quiet) / sizeof(quiet[0]); i++)
        if (strcmp(name, quiet[i]) == 0)
            return true;
    return false;
}
