/* SPDX-License-Identifier: MIT */
/* What every cmocka file includes, in the order that cmocka wants. */
#ifndef ETCH_TESTS_TEST_H
#define ETCH_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
