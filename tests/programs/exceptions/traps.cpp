// SPDX-License-Identifier: MIT
// traps CASE: a program that ends at a trap, each time for another reason.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

static int plain(int n)
{
    if (n > 100)
        return 1;
    if (n < 0)
        return -1;
}

static int tried(int n)
{
    std::string s = "x";
    std::vector<int> v(3);
    for (int i = 0; i < n; i++) {
        std::string t = s + std::to_string(i);
        if (t.size() > 100)
            return 3;
    }
    try {
        if (v.at(1) == 7)
            return 1;
    } catch (const std::exception &e) {
        std::puts(e.what());
        return 2;
    }
}

template <class T> static T generic(T x)
{
    if (x > 100)
        return x;
    std::puts("almost");
}

struct shape {
    int k;
    int method(int x) const
    {
        switch (x) {
        case 100:
            return k;
        case 2:
            std::puts("two");
        default:
            break;
        }
    }
};

static std::string object(int x)
{
    if (x > 100)
        return "big";
}

static int loop(int x)
{
    while (x < 10) {
        x++;
        if (x == 50)
            return x;
    }
}

// These return something wherever they end.
static int asked(int x)
{
    if (x < 100)
        __builtin_trap();
    return x;
}

#define STOP_UNLESS(x)                                                                                                 \
    do {                                                                                                               \
        if (!(x))                                                                                                      \
            __builtin_trap();                                                                                          \
    } while (0)
#define CHECK(x)                                                                                                       \
    do {                                                                                                               \
        if (!(x)) {                                                                                                    \
            std::fputs(std::string("failed: " #x "\n").c_str(), stderr);                                               \
            __builtin_trap();                                                                                          \
            __builtin_unreachable();                                                                                   \
        }                                                                                                              \
    } while (0)

static int stopped(int x)
{
    STOP_UNLESS(x > 100);
    return x;
}

static int checked(int x)
{
    std::string s("destroyed at the end");
    CHECK(x > 100);
    return x;
}

static void nothing(int x)
{
    if (x < 100)
        __builtin_trap();
}

int main(int argc, char **argv)
{
    std::string which = argc > 1 ? argv[1] : "";

    if (which == "plain")
        return plain(argc);
    if (which == "tried")
        return tried(argc);
    if (which == "generic")
        return generic(argc);
    if (which == "method")
        return shape{1}.method(argc);
    if (which == "object")
        return static_cast<int>(object(argc).size());
    if (which == "loop")
        return loop(argc);
    if (which == "asked")
        return asked(argc);
    if (which == "stopped")
        return stopped(argc);
    if (which == "checked")
        return checked(argc);
    if (which == "nothing")
        nothing(argc);
}
