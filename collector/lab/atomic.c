/* SPDX-License-Identifier: MIT */
/* Atomic operations in the lab: always points. LLVM's ThreadSanitizer pass calls these in place of the operations. The
 * memory is always changed at once. With weak memory a load may be answered with an older value. */
#include "collector/lab/memory.h"
#include "collector/lab/runtime.h"

static void point_at(const volatile void *at, uint32_t size, bool write, uint64_t site)
{
    lab_memory_point(
        (struct etch_lab_op){
            .object = LAB_OBJECT(at), .write = write, .interesting = true, .bytes = size, .address = LAB_OBJECT(at)},
        site);
}
#define atomic_point(at, write, site) point_at(at, sizeof(*(at)), write, site)

static void update(const volatile void *at, size_t size, uint64_t before, uint64_t value, bool write, int order,
                   uint64_t site)
{
    if (lab_memory_is_weak())
        lab_memory_update(LAB_OBJECT(at), size, before, value, write, order);
    lab_note_atomic(at, size, true, write, value, site);
}

#define ATOMIC_RMW(bits, type, name, function)                                                                         \
    LAB_API type __tsan_atomic##bits##_##name(volatile type *at, type value, int order);                               \
    type __tsan_atomic##bits##_##name(volatile type *at, type value, int order)                                        \
    {                                                                                                                  \
        type before;                                                                                                   \
                                                                                                                       \
        atomic_point(at, true, LAB_SITE);                                                                              \
        before = function(at, value, __ATOMIC_SEQ_CST);                                                                \
        update(at, sizeof(*at), before, *at, true, order, LAB_SITE);                                                   \
        return before;                                                                                                 \
    }
#define ATOMIC_CAS(bits, type, name)                                                                                   \
    LAB_API int __tsan_atomic##bits##_##name(volatile type *at, type *expected, type value, int order, int failing);   \
    int __tsan_atomic##bits##_##name(volatile type *at, type *expected, type value, int order, int failing)            \
    {                                                                                                                  \
        type before;                                                                                                   \
        int done;                                                                                                      \
                                                                                                                       \
        atomic_point(at, *at == *expected, LAB_SITE);                                                                  \
        before = *at;                                                                                                  \
        done = __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);            \
        update(at, sizeof(*at), before, *at, done, done ? order : failing, LAB_SITE);                                  \
        return done;                                                                                                   \
    }
#define ATOMICS(bits, type)                                                                                            \
    LAB_API type __tsan_atomic##bits##_load(const volatile type *at, int order);                                       \
    type __tsan_atomic##bits##_load(const volatile type *at, int order)                                                \
    {                                                                                                                  \
        type value;                                                                                                    \
                                                                                                                       \
        atomic_point(at, false, LAB_SITE);                                                                             \
        value = __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                                 \
        if (lab_memory_is_weak())                                                                                      \
            value = (type)lab_memory_load(LAB_OBJECT(at), sizeof(*at), value, order);                                  \
        lab_note_atomic(at, sizeof(*at), true, false, value, LAB_SITE);                                                \
        return value;                                                                                                  \
    }                                                                                                                  \
    LAB_API void __tsan_atomic##bits##_store(volatile type *at, type value, int order);                                \
    void __tsan_atomic##bits##_store(volatile type *at, type value, int order)                                         \
    {                                                                                                                  \
        atomic_point(at, true, LAB_SITE);                                                                              \
        if (lab_memory_is_weak())                                                                                      \
            lab_memory_store(LAB_OBJECT(at), sizeof(*at), *at, value, order);                                          \
        __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                                                 \
        lab_note_atomic(at, sizeof(*at), false, true, value, LAB_SITE);                                                \
    }                                                                                                                  \
    ATOMIC_RMW(bits, type, exchange, __atomic_exchange_n)                                                              \
    ATOMIC_RMW(bits, type, fetch_add, __atomic_fetch_add)                                                              \
    ATOMIC_RMW(bits, type, fetch_sub, __atomic_fetch_sub)                                                              \
    ATOMIC_RMW(bits, type, fetch_and, __atomic_fetch_and)                                                              \
    ATOMIC_RMW(bits, type, fetch_or, __atomic_fetch_or)                                                                \
    ATOMIC_RMW(bits, type, fetch_xor, __atomic_fetch_xor)                                                              \
    ATOMIC_RMW(bits, type, fetch_nand, __atomic_fetch_nand)                                                            \
    ATOMIC_CAS(bits, type, compare_exchange_strong)                                                                    \
    ATOMIC_CAS(bits, type, compare_exchange_weak)                                                                      \
    LAB_API type __tsan_atomic##bits##_compare_exchange_val(volatile type *at, type expected, type value, int order,   \
                                                            int failing);                                              \
    type __tsan_atomic##bits##_compare_exchange_val(volatile type *at, type expected, type value, int order,           \
                                                    int failing)                                                       \
    {                                                                                                                  \
        type before;                                                                                                   \
        bool done;                                                                                                     \
                                                                                                                       \
        atomic_point(at, *at == expected, LAB_SITE);                                                                   \
        before = *at;                                                                                                  \
        done = __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);           \
        update(at, sizeof(*at), before, *at, done, done ? order : failing, LAB_SITE);                                  \
        return expected;                                                                                               \
    }

ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)

LAB_API void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order)
{
    lab_memory_point((struct etch_lab_op){0}, LAB_SITE);
    if (lab_memory_is_weak())
        lab_memory_fence(order);
}

LAB_API void __tsan_atomic_signal_fence(int order);
void __tsan_atomic_signal_fence(int order)
{
    (void)order;
}
