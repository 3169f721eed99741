/* SPDX-License-Identifier: MIT */
/* convoy.c with std::thread and std::mutex. */
#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

static std::mutex table_lock;
static long long waited[4];
static long data;

__attribute__((noinline)) static void update(int i)
{
    auto before = std::chrono::steady_clock::now();
    std::lock_guard<std::mutex> guard(table_lock);

    waited[i] += std::chrono::nanoseconds(std::chrono::steady_clock::now() - before).count();
    data++;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

int main()
{
    std::vector<std::thread> threads;

    for (int i = 0; i < 4; i++)
        threads.emplace_back([i] {
            for (int k = 0; k < 25; k++)
                update(i);
        });
    for (auto &thread : threads)
        thread.join();
    std::printf("%lld\n", waited[0] + waited[1] + waited[2] + waited[3]);
}
