// SPDX-License-Identifier: MIT
// Keeps secrets where a C++ program has them, and ends by an exception: in a local array and a string of the function that
// throws, in another thread's stack, in what the exception says.
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

static std::mutex m;
static std::condition_variable c;
static bool there;

static void __attribute__((noinline)) use(const void *p)
{
    __asm__ volatile("" : : "r"(p) : "memory");
}

static void wait_for_ever()
{
    std::string mine = std::string("t") + getenv("LEAK"); // short: on the stack itself
    std::unique_lock<std::mutex> lock(m);

    use(&mine);
    there = true;
    c.notify_all();
    for (;;)
        c.wait(lock);
}

static int __attribute__((noinline)) fail(int depth)
{
    char local[64];

    std::snprintf(local, sizeof(local), "%s-local", getenv("LEAK"));
    use(local);
    if (depth)
        return fail(depth - 1) + local[depth];
    throw std::runtime_error(std::string("no login, password=") + getenv("LEAK") + "-what");
}

int main()
{
    std::thread other(wait_for_ever);
    std::unique_lock<std::mutex> lock(m);

    c.wait(lock, [] { return there; });
    return fail(2);
}
