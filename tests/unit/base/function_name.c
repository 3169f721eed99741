/* SPDX-License-Identifier: MIT */
/* Names of functions, whole and short. */
#include "base/function_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void check_whole(const char *linkage, const char *name, uint32_t line, const char *expected)
{
    char *whole = etch_function_name(linkage, name, line);

    if (expected)
        assert_string_equal(whole, expected);
    else
        assert_null(whole);
    free(whole);
}

static void whole_cases(void **state)
{
    (void)state;
    check_whole(NULL, "main", 3, "main");
    check_whole("_ZL1fPi", "f", 1, "f(int*)");
    check_whole("renamed_for_the_linker", "f", 1, "f");
    check_whole("only_symbol", NULL, 0, "only_symbol");
    check_whole("_Z4taskv.resume", "task", 7, "task()");
    check_whole("_Zbroken", "f", 1, "f");
    check_whole("__cxx_global_var_init.1", "__cxx_global_var_init.1", 58, "{static init:58}");
    check_whole(NULL, NULL, 0, NULL);
    check_whole("", "", 0, NULL);
}

static void whole_lambda(void **state)
{
    (void)state;
    check_whole("_ZZ4mainENK3$_0clEv", "operator()", 34, "main::{lambda:34}::operator()() const");
    check_whole("_ZZ4mainENK3$_0clEv", "operator()", 0, "main::$_0::operator()() const");
    check_whole("_ZZ3ifnvENKUliE_clEi", "operator()", 9, "ifn()::{lambda:9}::operator()(int) const");
    check_whole("_ZNK1AclEv", "operator()", 9, "A::operator()() const");
}

static void check_short(const char *whole, const char *expected)
{
    char text[256];

    assert_string_equal(etch_function_short(whole, text, sizeof(text)), expected);
}

static void short_cases(void **state)
{
    (void)state;
    check_short("main", "main");
    check_short("f(int*)", "f");
    check_short("a_very_long_name_of_a_c_function_that_nobody_would_cut_short",
                "a_very_long_name_of_a_c_function_that_nobody_would_cut_short");
    check_short("(anonymous namespace)::A::f(int) const", "A::f");
    check_short("int Q<std::vector<int, std::allocator<int> > >::push<double>(double)", "Q::push");
    check_short("std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >::size() const",
                "std::basic_string::size");
    check_short("make[abi:cxx11](int)", "make");
    check_short("A::~A()", "A::~A");
    check_short("void f<&(g(int)), (3)>(2)>(int)", "f");
    check_short("outer(int)::Local::run(A const&)", "outer::Local::run");
    check_short("unfinished<int", "unfinished");
    check_short("", "");
    check_short("{static init:58}", "{static init:58}");
    check_short("<>", "<>");
}

static void short_operator(void **state)
{
    (void)state;
    check_short("A::operator<(A const&) const", "A::operator<");
    check_short("bool operator< <int>(A<int> const&, A<int> const&)", "operator<");
    check_short("std::ostream& operator<<(std::ostream&, A const&)", "operator<<");
    check_short("A::operator()(int)", "A::operator()");
    check_short("A::operator[](unsigned long)", "A::operator[]");
    check_short("A::operator->() const", "A::operator->");
    check_short("A::operator bool() const", "A::operator bool");
    check_short("operator new(unsigned long)", "operator new");
    check_short("cooperator::f()", "cooperator::f");
}

static void short_lambda(void **state)
{
    (void)state;
    check_short("main::{lambda:34}::operator()() const", "main::{lambda:34}");
    check_short("main::$_0::operator()() const", "main::{lambda}");
    check_short("ifn()::{lambda(int)#1}::operator()(int) const", "ifn::{lambda}");
    check_short("main::$_0::operator()() const::{lambda:40}::operator()() const", "main::{lambda}::{lambda:40}");
}

static void short_scopes(void **state)
{
    (void)state;
    check_short("company::product::transport::detail::connection_pool::acquire(int)", "connection_pool::acquire");
}

static void short_room(void **state)
{
    char text[4];

    (void)state;
    assert_string_equal(etch_function_short("main", text, sizeof(text)), "mai");
    assert_string_equal(etch_function_short("f<int>(int)", text, 1), "");
}

static void symbol_cases(void **state)
{
    (void)state;
    assert_true(etch_symbol_is("counter", "counter"));
    assert_true(etch_symbol_is("_ZL5queue", "queue"));
    assert_true(etch_symbol_is("_ZN3app5countE", "app::count"));
    assert_true(etch_symbol_is("_ZN12_GLOBAL__N_15countE", "count"));
    assert_true(etch_symbol_is("_Z1fPi", "f"));
    assert_true(etch_symbol_is("_Z1fPi", "f(int*)"));
    assert_false(etch_symbol_is("_ZN3app5countE", "count"));
    assert_false(etch_symbol_is("counter", "count"));
}

static void system_files(void **state)
{
    (void)state;
    assert_true(etch_file_is_system("/usr/include/c++/12/bits/std_thread.h"));
    assert_true(etch_file_is_system("/opt/gcc/include/c++/13/vector"));
    assert_false(etch_file_is_system("/home/somebody/queue.h"));
    assert_false(etch_file_is_system("src/include/queue.h"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_cases),    cmocka_unit_test(whole_lambda), cmocka_unit_test(short_cases),
        cmocka_unit_test(short_operator), cmocka_unit_test(short_lambda), cmocka_unit_test(short_scopes),
        cmocka_unit_test(short_room),     cmocka_unit_test(symbol_cases), cmocka_unit_test(system_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
