// SPDX-License-Identifier: MIT
// A coroutine that crashes after it was resumed: its code is then in a clone of the function.
#include <coroutine>
#include <exception>

struct Task {
    struct promise_type {
        Task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
    std::coroutine_handle<promise_type> handle;
};

static volatile int sink;
static const int *volatile nothing; // volatile: else the optimiser knows that it is not used

static Task count(const int *from)
{
    sink = 1;
    co_await std::suspend_always{};
    sink = *from; //@use
}

int main(int argc, char **)
{
    int one = 1;
    Task task = count(argc > 1 ? nothing : &one);

    while (!task.handle.done())
        task.handle.resume();
    task.handle.destroy();
    return 0;
}
