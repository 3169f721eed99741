// SPDX-License-Identifier: MIT
// What C++17 programs wait with, used properly: under no schedule may one of these fail or hang. The argument says which.
#include <atomic>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <future>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

std::mutex mutex;
int counter;

template <class F> void together(F f, int n = 4)
{
    std::vector<std::thread> threads;
    for (int i = 0; i < n; i++)
        threads.emplace_back(f, i);
    for (auto &t : threads)
        t.join();
}

void test_lock_guard()
{
    together([](int) {
        std::lock_guard<std::mutex> lock(mutex);
        counter++;
    });
    assert(counter == 4);
}

void test_scoped_lock()
{
    static std::mutex other;
    together([](int i) {
        if (i % 2) {
            std::scoped_lock lock(mutex, other);
            counter++;
        } else {
            std::scoped_lock lock(other, mutex);
            counter++;
        }
    });
    assert(counter == 4);
}

void test_condition()
{
    static std::condition_variable ready;
    static std::vector<int> queue;
    together([](int i) {
        std::unique_lock<std::mutex> lock(mutex);
        if (i % 2) {
            ready.wait(lock, [] { return !queue.empty(); });
            queue.pop_back();
            counter++;
        } else {
            queue.push_back(i);
            ready.notify_one();
        }
    });
    assert(counter == 2);
}

void test_wait_for()
{
    static std::condition_variable never;
    together([](int) {
        std::unique_lock<std::mutex> lock(mutex);
        assert(!never.wait_for(lock, std::chrono::seconds(3), [] { return false; }));
    });
}

void test_sleep()
{
    const auto before = std::chrono::steady_clock::now();
    together([](int i) { std::this_thread::sleep_for(std::chrono::milliseconds(500 * i)); });
    assert(std::chrono::steady_clock::now() - before >= std::chrono::milliseconds(1000));
}

void test_shared_mutex()
{
    static std::shared_mutex lock;
    static int a, b;
    together([](int i) {
        if (i % 2) {
            std::shared_lock<std::shared_mutex> l(lock);
            assert(a == b);
        } else {
            std::unique_lock<std::shared_mutex> l(lock);
            a++;
            b++;
        }
    });
}

void test_call_once()
{
    static std::once_flag flag;
    together([](int) {
        std::call_once(flag, [] { counter++; });
        assert(counter == 1);
    });
}

struct Slow {
    Slow() { std::this_thread::yield(); value = 7; }
    int value = 0;
};

void test_static()
{
    together([](int) {
        static Slow slow;
        assert(slow.value == 7);
    });
}

void test_atomic()
{
    static std::atomic<int> sum{0};
    together([](int i) { sum.fetch_add(i); });
    assert(sum == 6);
}

void test_async()
{
    auto f = std::async(std::launch::async, [] { return 42; });
    assert(f.get() == 42);
}

void test_promise()
{
    std::promise<int> promise;
    auto future = promise.get_future();
    std::thread t([&promise] { promise.set_exception(std::make_exception_ptr(std::runtime_error("no"))); });
    bool thrown = false;
    try {
        future.get();
    } catch (const std::runtime_error &) {
        thrown = true;
    }
    t.join();
    assert(thrown);
}

void test_shared_ptr()
{
    auto p = std::make_shared<int>(1);
    std::weak_ptr<int> w = p;
    together([p](int) { std::shared_ptr<int> copy = p; assert(*copy == 1); });
    p.reset();
    assert(w.expired());
}

struct Last {
    ~Last()
    {
        std::lock_guard<std::mutex> lock(mutex);
        counter++;
    }
    int used = 0;
};

void test_thread_local()
{
    together([](int) {
        thread_local Last last;
        last.used++;
    });
    assert(counter == 4);
}

void test_exception()
{
    together([](int i) {
        try {
            std::lock_guard<std::mutex> lock(mutex);
            if (i % 2)
                throw std::runtime_error("odd");
            counter++;
        } catch (const std::runtime_error &) {
            std::lock_guard<std::mutex> lock(mutex);
            counter += 10;
        }
    });
    assert(counter == 22);
}

const struct {
    const char *name;
    void (*run)();
} tests[] = {{"lock_guard", test_lock_guard},     {"scoped_lock", test_scoped_lock}, {"condition", test_condition},
             {"wait_for", test_wait_for},         {"sleep", test_sleep},             {"shared_mutex", test_shared_mutex},
             {"call_once", test_call_once},       {"static", test_static},           {"atomic", test_atomic},
             {"async", test_async},               {"promise", test_promise},         {"shared_ptr", test_shared_ptr},
             {"thread_local", test_thread_local}, {"exception", test_exception}};

} // namespace

int main(int argc, char **argv)
{
    for (const auto &t : tests) {
        if (argc < 2)
            std::puts(t.name);
        else if (std::strcmp(argv[1], t.name) == 0)
            t.run();
    }
    return 0;
}
