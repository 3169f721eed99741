/* SPDX-License-Identifier: MIT */
/* What functions of the C and C++ library write, by their names. A function that is not listed may write everything. */
#include "decoder/backward.h"

#include <string.h>

struct row {
    const char *name;
    struct etch_library_effect effect;
};

#define PURE(name) {name, {.unseen = ETCH_UNSEEN_QUIET}},
#define NEW(name) {name, {.unseen = ETCH_UNSEEN_LIBRARY, .allocates = true}},
#define SAME(name) {name, {.unseen = ETCH_UNSEEN_QUIET, .same = true}},
#define OWN(name) {name, {.unseen = ETCH_UNSEEN_LIBRARY}},
#define FIXED(name, which, size) {name, {.unseen = ETCH_UNSEEN_LIBRARY, .pointer = which, .bytes = size}},
#define COUNTED(name, which, count) {name, {.unseen = ETCH_UNSEEN_QUIET, .pointer = which, .length = count}},
#define COUNTED_OWN(name, which, count) {name, {.unseen = ETCH_UNSEEN_LIBRARY, .pointer = which, .length = count}},
#define BOTH(name, which, other_, size)                                                                                \
    {name, {.unseen = ETCH_UNSEEN_LIBRARY, .pointer = which, .other = other_, .bytes = size}},
#define STRING "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE"
#define CONST_STRING "_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE"
#define STRING_BYTES 32

/* Standard output and its buffers are the library's. The recorder's own functions write the ring. */
static const struct row rows[] = {
    /* Functions that look at memory. */
    PURE("memcmp") PURE("bcmp") PURE("memchr") PURE("memrchr") PURE("rawmemchr") PURE("memmem") PURE("strlen")
        PURE("strnlen") PURE("strcmp") PURE("strncmp") PURE("strcasecmp") PURE("strncasecmp") PURE("strchr")
            PURE("strrchr") PURE("strchrnul") PURE("strstr") PURE("strpbrk") PURE("strspn") PURE("strcspn")
                PURE("strcspn") PURE("isalpha") PURE("isdigit") PURE("isalnum") PURE("isspace") PURE("isupper")
                    PURE("islower") PURE("ispunct") PURE("isxdigit") PURE("isprint") PURE("toupper") PURE("tolower")
                        PURE("abs") PURE("labs") PURE("pthread_equal")
                            PURE("_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base")
                                PURE("_ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base")
                                    PURE("_ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base")
                                        PURE("_ZSt18_Rb_tree_decrementPKSt18_Rb_tree_node_base")
    /* Functions that write memory of their own: the heap, errno, buffers of files. */
    NEW("malloc") NEW("calloc") NEW("realloc") OWN("free") NEW("aligned_alloc") NEW("strdup") NEW("strndup")
        NEW("_Znwm") NEW("_ZnwmRKSt9nothrow_t") NEW("_ZnwmSt11align_val_t") NEW("_Znam") OWN("_ZdlPv") OWN("_ZdlPvm")
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
            COUNTED("strncpy", 1, 3) COUNTED_OWN("fgets", 1, 2) COUNTED_OWN("read", 2, 3) COUNTED_OWN("recv", 2, 3)
    /* A format is taken to have no %n. */
    COUNTED_OWN("snprintf", 1, 2) COUNTED_OWN("vsnprintf", 1, 2) COUNTED_OWN("__snprintf_chk", 1, 2)
        COUNTED_OWN("__vsnprintf_chk", 1, 2) OWN("printf") OWN("fprintf") OWN("__printf_chk") OWN("__fprintf_chk")
            OWN("perror") OWN("fopen") OWN("fclose")
    /* Functions that return the same every time. */
    SAME("__errno_location") SAME("__ctype_b_loc") SAME("__ctype_toupper_loc") SAME("__ctype_tolower_loc")
        SAME("getpid") SAME("pthread_self")
    /* Members of std::string and std::allocator. A string has its own bytes, and perhaps memory of the heap. */
    PURE("_ZNSaIcEC1Ev") PURE("_ZNSaIcEC2Ev") PURE("_ZNSaIcED1Ev") PURE("_ZNSaIcED2Ev") PURE("_ZNSaIcEC1ERKS_")
        PURE(CONST_STRING "4sizeEv") PURE(CONST_STRING "6lengthEv") PURE(CONST_STRING "5emptyEv")
            PURE(CONST_STRING "5c_strEv") PURE(CONST_STRING "4dataEv") PURE(CONST_STRING "7_M_dataEv")
                PURE(CONST_STRING "13_M_local_dataEv") PURE(STRING "13_M_local_dataEv") PURE(STRING "5beginEv") PURE(
                    STRING "3endEv") PURE(CONST_STRING "5beginEv") PURE(CONST_STRING "3endEv")
                    PURE(CONST_STRING "7compareERKS4_") PURE(CONST_STRING "7compareEPKc") OWN(STRING "D1Ev") OWN(
                        STRING "D2Ev") FIXED(STRING "C1Ev", 1, STRING_BYTES) FIXED(STRING "C2Ev", 1, STRING_BYTES)
                        FIXED(STRING "C1ERKS4_", 1, STRING_BYTES) FIXED(STRING "C1EPKcRKS3_", 1, STRING_BYTES)
                            FIXED(STRING "12_Alloc_hiderC1EPcRKS3_", 1, 8) FIXED(STRING "12_Alloc_hiderC1EPcOS3_", 1, 8)
                                BOTH(STRING "C1EOS4_", 1, 2, STRING_BYTES) BOTH(STRING "aSEOS4_", 1, 2, STRING_BYTES)};

const struct etch_library_effect *etch_library_effect_of(const char *symbol)
{
    static const struct etch_library_effect all = {.unseen = ETCH_UNSEEN_CALL};
    size_t length = symbol ? strcspn(symbol, "@") : 0; /* without a version, or "@plt" */

    for (size_t i = 0; length && i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strlen(rows[i].name) == length && memcmp(rows[i].name, symbol, length) == 0)
            return &rows[i].effect;
    return &all;
}
