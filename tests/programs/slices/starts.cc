// SPDX-License-Identifier: MIT
// Ways to start a thread, and to keep a function: each of them leads back to who started it.
#include <functional>
#include <future>
#include <thread>
static int value = 1;
struct worker {
    int by;
    void run() { value = value - by; }                    //@in
};
static void plain(int n)
{
    value = value * n;                                    //@in
}
static int later()
{
    value = value + 1;                                    //@in
    return 2;
}
static void kept()
{
    value = value + 2;                                    //@in
}
int main(int argc, char **)
{
    worker w{argc};                                       //@in
    std::thread a(&worker::run, &w);                      //@in
    std::thread b(plain, argc);                           //@in
    auto c = std::async(std::launch::async, later);       //@in
    std::function<void()> d = kept;                       //@in
    d();                                                  //@in
    a.join();
    b.join();
    c.get();                                              //@in
    return 6 / value;                                     //@fail
}                                                         //@in
