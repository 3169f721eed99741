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
                entries_.erase(it); //@erase
                return;
            }
    }

    void tell(int event)
    {
        const std::size_t count = size(); //@count
        for (std::size_t i = 0; i < count; i++) {
            at(i)(event); //@call
        }
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
        return entries_.at(i).second; //@at
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
