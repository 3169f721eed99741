// SPDX-License-Identifier: MIT
// throws CASE: a program that ends by std::terminate, each time in another way. The line that is to blame ends in
// "// CASE", so that a test finds it.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <future>
#include <memory>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

// An optimising compiler would put all of them into main(), and let them share their calls.
#define APART __attribute__((noinline))

namespace store
{
// what() is its own, and none of the C++ library's messages.
class missing_key : public std::exception
{
  public:
    explicit missing_key(int key) : text("no key " + std::to_string(key)) {}
    const char *what() const noexcept override { return text.c_str(); }

  private:
    std::string text;
};

struct tagged {
    virtual ~tagged() = default;
    int tag = 7;
};

// The message is not at the object's beginning.
class mixed : public tagged, public std::runtime_error
{
  public:
    mixed() : std::runtime_error("mixed up") {}
};
} // namespace store

APART static void plain(int n)
{
    if (n > 0)
        throw std::runtime_error("bad number " + std::to_string(n)); // plain
}

APART static void own(int n)
{
    throw store::missing_key(n); // own
}

APART static void mixed()
{
    throw store::mixed(); // mixed
}

APART static void number(int n)
{
    throw 41 + n; // number
}

APART static void text()
{
    throw "no such thing"; // text
}

APART static void string()
{
    throw std::string("a string that is too long to be kept within the object"); // string
}

APART static int library(const std::vector<int> &v, size_t at)
{
    return v.at(at); // library
}

APART static void stopped(int n)
{
    std::vector<int> v(4, n);
    if (v[2] == n)
        throw std::logic_error("stopped"); // noexcept
}

APART static void never(int n) noexcept
{
    stopped(n);
}

struct guard {
    int n;
    ~guard()
    {
        if (n)
            throw std::runtime_error("in a destructor"); // destructor
    }
};

APART static void unwinding(int n)
{
    guard g{n};
    throw std::logic_error("on its way");
}

APART static void first(int n)
{
    if (n)
        throw std::out_of_range("thrown first"); // again
}

APART static void again(int n)
{
    try {
        first(n);
    } catch (const std::exception &) {
        std::puts("seen");
        throw; // rethrow
    }
}

// Both throws may share one call, of which no line is known.
APART static int shared(int n)
{
    if (n > 100)
        throw std::runtime_error("too many");
    if (n > 0)
        throw std::runtime_error("too few"); // shared
    return n;
}

static std::exception_ptr kept;

APART static void keep(int n)
{
    try {
        if (n)
            throw std::domain_error("of another thread"); // pointer
    } catch (...) {
        kept = std::current_exception();
    }
}

APART static void pointer(int n)
{
    std::thread t(keep, n);
    t.join();
    if (kept)
        std::rethrow_exception(kept);
}

APART static int later(int n)
{
    if (n)
        throw std::range_error("computed later"); // async
    return n;
}

static void *start(void *argument)
{
    plain(*static_cast<int *>(argument));
    return nullptr;
}

APART static void many(int n)
{
    for (int i = 0; i < 1000; i++)
        try {
            throw i;
        } catch (int) {
        }
    if (n)
        throw std::runtime_error("after many"); // many
}

struct shape {
    shape() { draw(); }
    virtual ~shape() = default;
    void draw() { area(); } // pure
    virtual void area() = 0;
};

struct square : shape {
    void area() override {}
};

APART static void joinable(int n)
{
    std::thread t(keep, n ? 0 : 1);
} // joinable

static void quit()
{
    std::fputs("the program's own handler\n", stderr);
    std::abort();
}

APART static void handled(int n)
{
    try {
        plain(n);
    } catch (const std::exception &) {
        std::abort(); // handled
    }
}

APART static void finish(int n)
{
    if (n)
        std::terminate(); // terminate
}

int main(int argc, char **argv)
{
    std::string which = argc > 1 ? argv[1] : "";
    int n = argc - 1;

    if (which == "plain")
        plain(n);
    if (which == "own")
        own(n);
    if (which == "mixed")
        mixed();
    if (which == "number")
        number(n);
    if (which == "text")
        text();
    if (which == "string")
        string();
    if (which == "library")
        return library(std::vector<int>(3), static_cast<size_t>(n) + 9);
    if (which == "noexcept")
        never(n);
    if (which == "destructor")
        try {
            unwinding(n);
        } catch (const std::exception &) {
            std::puts("never reached");
        }
    if (which == "shared")
        return shared(n);
    if (which == "again")
        again(n);
    if (which == "pointer")
        pointer(n);
    if (which == "async")
        return std::async(std::launch::async, later, n).get();
    if (which == "thread")
        std::thread(plain, n).join();
    if (which == "pthread") {
        pthread_t t;
        pthread_create(&t, nullptr, start, &n);
        pthread_join(t, nullptr);
    }
    if (which == "many")
        many(n);
    if (which == "pure")
        square().area();
    if (which == "joinable")
        joinable(n);
    if (which == "handler") {
        std::set_terminate(quit);
        plain(n);
    }
    if (which == "handled")
        handled(n);
    if (which == "terminate")
        finish(n);
    return 0;
}
