// SPDX-License-Identifier: MIT
// A session is announced before it is entered in the table. A third thread that reacts looks for it in vain.
#include <atomic>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

static std::mutex lock;
static std::map<int, int> sessions;
static std::atomic<int> newest{0}, wanted{0};

static void open(int id)
{
    newest = id;
    std::lock_guard<std::mutex> guard(lock);
    sessions[id] = id * 10;
}

int main()
{
    std::thread opener([] {
        for (int id = 1; id <= 3; id++)
            open(id);
    });
    std::thread relay([] {
        for (int i = 0; i < 3; i++)
            wanted = newest.load();
    });
    std::thread user([] {
        int id = wanted;
        if (id) {
            std::lock_guard<std::mutex> guard(lock);
            sessions.at(id)++;
        }
    });
    opener.join();
    relay.join();
    user.join();
}
