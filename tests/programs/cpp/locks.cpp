// SPDX-License-Identifier: MIT
// locks dead: two threads take two mutexes in opposite orders, and each has its first before it wants the second. Without an
// argument both take them in one order.
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

static std::mutex left, right;
static std::atomic<int> ready{0};

static void take(std::mutex &one, std::mutex &other, bool meet)
{
    std::lock_guard<std::mutex> first(one); //@first
    ready++;
    while (meet && ready < 2)
        std::this_thread::sleep_for(std::chrono::milliseconds(1)); // rounds without a pause would fill the ring
    std::lock_guard<std::mutex> second(other); //@second
}

int main(int argc, char **)
{
    bool dead = argc > 1;
    std::thread thread([dead] { take(left, right, dead); });

    if (dead)
        take(right, left, true);
    else
        take(left, right, false);
    thread.join();
    return 0;
}
