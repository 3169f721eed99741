// SPDX-License-Identifier: MIT
// A reader tests the shared settings and then uses them, without the lock; a reload drops them in between.
#include "../corpus.h"

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace config {

struct Settings {
    int timeout_s = 0;
    std::vector<std::string> hosts;
};

class Store {
public:
    void load(int timeout_s)
    {
        auto fresh = std::make_shared<Settings>();
        fresh->timeout_s = timeout_s;
        fresh->hosts = {"a.example.org", "b.example.org"};
        std::lock_guard<std::mutex> guard(lock_);
        current_ = std::move(fresh); //@load
    }

    void drop()
    {
        std::lock_guard<std::mutex> guard(lock_);
        current_.reset(); //@reset
    }

    // In milliseconds.
    int timeout() const
    {
#ifdef FIXED
        std::shared_ptr<const Settings> current;
        {
            std::lock_guard<std::mutex> guard(lock_);
            current = current_;
        }
        if (!current)
            return kDefaultTimeout;
        window(200);
        return current->timeout_s * 1000;
#else
        if (!current_) //@test
            return kDefaultTimeout;
        window(200);
        return current_->timeout_s * 1000; //@use
#endif
    }

private:
    static constexpr int kDefaultTimeout = 10000;
    mutable std::mutex lock_;
    std::shared_ptr<const Settings> current_;
};

} // namespace config

int main()
{
    config::Store store;
    int total = 0;

    store.load(30);
    std::thread client([&store, &total] {
        for (int i = 0; i < 2; i++) {
            window(100);
            total += store.timeout(); //@ask
        }
    });
    window(700);
    store.drop();
    client.join();
    return total > 0 ? 0 : 2;
}
