/* SPDX-License-Identifier: MIT */
/* What functions of the C and C++ library write, by their names. A function that is not listed may write everything. */
#include "decoder/backward.h"

#include <string.h>

struct row {
    const char *name;
    struct etch_library_effect effect;
};

#define PURE(name) {name, {.unseen = ETCH_UNSEEN_QUIET}},
#define OWN(name) {name, {.unseen = ETCH_UNSEEN_LIBRARY}},
#define FIXED(name, which, size) {name, {.unseen = ETCH_UNSEEN_LIBRARY, .pointer = which, .bytes = size}},
#define COUNTED(name, which, count) {name, {.unseen = ETCH_UNSEEN_QUIET, .pointer = which, .length = count}},

/* Standard output and its buffers are the library's. The recorder's own functions write the ring. */
static const struct row rows[] = {
    /* Functions that look at memory. */
    PURE("memcmp") PURE("bcmp") PURE("memchr") PURE("memrchr") PURE("rawmemchr") PURE("memmem") PURE("strlen")
        PURE("strnlen") PURE("strcmp") PURE("strncmp") PURE("strcasecmp") PURE("strncasecmp") PURE("strchr")
            PURE("strrchr") PURE("strchrnul") PURE("strstr") PURE("strpbrk") PURE("strspn") PURE("strcspn")
                PURE("__errno_location") PURE("__ctype_b_loc") PURE("__ctype_toupper_loc") PURE("__ctype_tolower_loc")
                    PURE("isalpha") PURE("isdigit") PURE("isalnum") PURE("isspace") PURE("isupper") PURE("islower")
                        PURE("ispunct") PURE("isxdigit") PURE("isprint") PURE("toupper") PURE("tolower") PURE("abs")
                            PURE("labs") PURE("getpid") PURE("pthread_self") PURE("pthread_equal")
                                PURE("_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base")
                                    PURE("_ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base")
                                        PURE("_ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base")
                                            PURE("_ZSt18_Rb_tree_decrementPKSt18_Rb_tree_node_base")
    /* Functions that write memory of their own: the heap, errno, buffers of files. */
    OWN("malloc") OWN("calloc") OWN("realloc") OWN("free") OWN("aligned_alloc") OWN("strdup") OWN("strndup")
        OWN("_Znwm") OWN("_ZnwmRKSt9nothrow_t") OWN("_ZnwmSt11align_val_t") OWN("_Znam") OWN("_ZdlPv") OWN("_ZdlPvm")
            OWN("_ZdlPvSt11align_val_t") OWN("_ZdlPvmSt11align_val_t") OWN("_ZdaPv") OWN("_ZdaPvm") OWN("atoi")
                OWN("atol") OWN("atof") OWN("puts") OWN("putchar") OWN("fputs") OWN("fputc") OWN("putc") OWN("fflush")
                    OWN("fwrite") OWN("usleep") OWN("sleep") OWN("sched_yield") OWN("rand") OWN("srand") OWN("random")
                        OWN("getenv") OWN("close") OWN("write") OWN("kill") OWN("raise") OWN("abort")
                            OWN("__assert_fail") OWN("__stack_chk_fail") OWN("__fortify_fail") OWN("__chk_fail")
                                OWN("sqrt") OWN("pow") OWN("exp") OWN("log") OWN("sin") OWN("cos") OWN("floor")
                                    OWN("ceil") OWN("fmod") OWN("_ZSt20__throw_length_errorPKc")
                                        OWN("_ZSt19__throw_logic_errorPKc")
    /* Functions that also write through one pointer: its number, and how many bytes. */
    FIXED("nanosleep", 2, 16) FIXED("clock_gettime", 2, 16) FIXED("time", 1, 8) FIXED("gettimeofday", 1, 16)
        FIXED("rand_r", 1, 4) FIXED("strtol", 2, 8) FIXED("strtoul", 2, 8) FIXED("strtoll", 2, 8)
            FIXED("strtoull", 2, 8) FIXED("strtod", 2, 8) FIXED("pthread_mutex_lock", 1, 40)
                FIXED("pthread_mutex_unlock", 1, 40) FIXED("pthread_mutex_trylock", 1, 40)
                    FIXED("pthread_mutex_init", 1, 40) FIXED("pthread_mutex_destroy", 1, 40)
                        FIXED("pthread_rwlock_rdlock", 1, 56) FIXED("pthread_rwlock_wrlock", 1, 56)
                            FIXED("pthread_rwlock_unlock", 1, 56) FIXED("pthread_cond_signal", 1, 48)
                                FIXED("pthread_cond_broadcast", 1, 48) FIXED("pthread_create", 1, 8)
                                    FIXED("pthread_join", 2, 8) FIXED("sem_wait", 1, 32) FIXED("sem_post", 1, 32)
    /* Functions that write through one pointer as many bytes as another argument says, at most. */
    COUNTED("memcpy", 1, 3) COUNTED("memmove", 1, 3) COUNTED("memset", 1, 3) COUNTED("mempcpy", 1, 3)
        COUNTED("__memcpy_chk", 1, 3) COUNTED("__memmove_chk", 1, 3) COUNTED("__memset_chk", 1, 3)
            COUNTED("strncpy", 1, 3)};

const struct etch_library_effect *etch_library_effect_of(const char *symbol)
{
    static const struct etch_library_effect all = {.unseen = ETCH_UNSEEN_CALL};
    size_t length = symbol ? strcspn(symbol, "@") : 0; /* without a version, or "@plt" */

    for (size_t i = 0; length && i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strlen(rows[i].name) == length && memcmp(rows[i].name, symbol, length) == 0)
            return &rows[i].effect;
    return &all;
}
