// SPDX-License-Identifier: MIT
// A ticket is taken by a load and then a subtraction, each atomic, but not both together: two clients take the last one.
#include "../corpus.h"

#include <array>
#include <atomic>
#include <cassert>
#include <thread>
#include <vector>

namespace pool {

class Tickets {
public:
    explicit Tickets(int count) : free_(count) {} //@init

    bool acquire()
    {
#ifdef FIXED
        int seen = free_.load();
        do {
            if (seen == 0)
                return false;
        } while (!free_.compare_exchange_weak(seen, seen - 1));
        const int left = seen - 1;
#else
        if (free_.load() == 0) //@test
            return false;
        window(100); // the client is authenticated
        const int left = free_.fetch_sub(1) - 1; //@take
#endif
        assert(left >= 0); //@check
        return true;
    }

    void release() { free_.fetch_add(1); } //@give

private:
    std::atomic<int> free_;
};

class Lease {
public:
    explicit Lease(Tickets &tickets) : tickets_(tickets), held_(tickets.acquire()) {} //@acquire
    ~Lease()
    {
        if (held_)
            tickets_.release();
    }
    Lease(const Lease &) = delete;
    Lease &operator=(const Lease &) = delete;
    explicit operator bool() const { return held_; }

private:
    Tickets &tickets_;
    const bool held_;
};

} // namespace pool

int main()
{
    pool::Tickets tickets(1); //@pool
    std::array<int, 2> served{};
    std::vector<std::thread> clients;

    for (int &count : served)
        clients.emplace_back([&tickets, &count] {
            window(500);
            pool::Lease lease(tickets); //@lease
            if (lease)
                count++;
            window(100);
        });
    for (auto &client : clients)
        client.join();
    return served[0] + served[1] > 0 ? 0 : 2;
}
