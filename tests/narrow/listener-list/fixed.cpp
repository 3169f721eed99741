/* SPDX-License-Identifier: MIT */
/* Listeners are told of an event while one of them leaves: sometimes the program is aborted by an exception. */
#include <cstdio>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

class Hub {
public:
    using Listener = std::function<void(int)>;

    int join(Listener listener)
    {
        std::lock_guard<std::mutex> guard(lock_);
        entries_.emplace_back(++last_, std::move(listener));
        return last_;
    }

    void leave(int id)
    {
        std::lock_guard<std::mutex> guard(lock_);
        for (auto it = entries_.begin(); it != entries_.end(); ++it)
            if (it->first == id) {
                entries_.erase(it);
                return;
            }
    }

    void tell(int event)
    {
        std::vector<std::pair<int, Listener>> copy;
        {
            std::lock_guard<std::mutex> guard(lock_);
            copy = entries_;
        }
        for (const auto &entry : copy)
            entry.second(event);
    }

    std::size_t size()
    {
        std::lock_guard<std::mutex> guard(lock_);
        return entries_.size();
    }

private:
    Listener at(std::size_t i)
    {
        std::lock_guard<std::mutex> guard(lock_);
        return entries_.at(i).second;
    }

    std::mutex lock_;
    std::vector<std::pair<int, Listener>> entries_;
    int last_ = 0;
};

int main()
{
    Hub hub;
    int total = 0;

    hub.join([&total](int event) { total += event; });
    const int guest = hub.join([](int) {});
    std::thread sender([&hub] { hub.tell(7); });
    std::thread leaver([&hub, guest] { hub.leave(guest); });
    sender.join();
    leaver.join();
    std::printf("total %d, %zu listeners\n", total, hub.size());
    return 0;
}
