/* SPDX-License-Identifier: MIT */
/* States that must hold while etch is right, checked in every build. A state that does not hold ends etch at once,
 * because an answer that is computed from a wrong state is worse than none. Input never reaches here: a file, a name or
 * a program that is not as expected is a struct etch_error.
 *
 * The parts of etch that run inside a recorded program (collector/soft, collector/sync, collector/lab, collector/vpt)
 * must not include this header: the program must not die of a fault of etch. */
#ifndef ETCH_BASE_ASSERT_H
#define ETCH_BASE_ASSERT_H

#define ETCH_ASSERT(condition)                                                                                         \
    ((condition) ? (void)0 : etch_assert_failed(__FILE__, __LINE__, __func__, #condition, "%s", ""))

/* The same with a printf format and its arguments: the values that the condition is about. */
#define ETCH_ASSERT_MSG(condition, ...)                                                                                \
    ((condition) ? (void)0 : etch_assert_failed(__FILE__, __LINE__, __func__, #condition, __VA_ARGS__))

/* Says on standard error which condition does not hold, where, and that a report is welcome. Aborts. */
__attribute__((noreturn, cold, format(printf, 5, 6))) void
etch_assert_failed(const char *file, int line, const char *function, const char *condition, const char *fmt, ...);

#endif
