// SPDX-License-Identifier: MIT
// Two threads that take two locks in opposite orders, each when the other has its first; with an argument one after the
// other.
#include <atomic>
#include <mutex>
#include <thread>

struct Account {
    std::mutex lock;
    long balance = 100;
};

static Account one, other;
static std::atomic<int> inside;
static bool apart;

static void transfer(Account &from, Account &to, long amount)
{
    std::lock_guard<std::mutex> first(from.lock);

    for (inside++; !apart && inside < 2;)
        std::this_thread::yield();
    std::lock_guard<std::mutex> second(to.lock);
    from.balance -= amount;
    to.balance += amount;
}

int main(int argc, char **)
{
    apart = argc > 1;
    std::thread a(transfer, std::ref(one), std::ref(other), 10);
    if (apart)
        a.join();
    std::thread b([] { transfer(other, one, 20); });
    if (!apart)
        a.join();
    b.join();
    return one.balance == 110 ? 0 : 1;
}
