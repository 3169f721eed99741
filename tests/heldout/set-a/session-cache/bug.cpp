/* SPDX-License-Identifier: MIT */
#include <cassert>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace cache {

using Blob = std::shared_ptr<const std::string>;

class Loader {
public:
    explicit Loader(unsigned seed) : random_(seed) {}

    Blob load(const std::string &key)
    {
        std::chrono::microseconds delay;
        {
            std::lock_guard<std::mutex> guard(lock_);
            delay = std::chrono::microseconds(random_() % 120);
        }
        std::this_thread::sleep_for(delay);
        return std::make_shared<const std::string>(key + ":" + std::string(key.size() * 3, '.'));
    }

private:
    std::mutex lock_;
    std::minstd_rand random_;
};

class Cache {
public:
    Cache(Loader &loader, std::size_t limit) : loader_(loader), limit_(limit) {}

    Blob get(const std::string &key)
    {
        {
            std::lock_guard<std::mutex> guard(lock_);
            const auto found = entries_.find(key); //@find
            if (found != entries_.end())
                return found->second;
        }
        Blob blob = loader_.load(key); //@load
        insert(key, blob);
        return blob;
    }

    void drop(const std::string &key)
    {
        std::lock_guard<std::mutex> guard(lock_);
        const auto found = entries_.find(key);
        if (found != entries_.end()) {
            bytes_ -= found->second->size();
            entries_.erase(found);
        }
    }

    // Empties the cache, entry by entry.
    void clear()
    {
        std::lock_guard<std::mutex> guard(lock_);
        while (!entries_.empty()) {
            bytes_ -= entries_.begin()->second->size(); //@less
            entries_.erase(entries_.begin());
        }
        assert(bytes_ == 0); //@check
    }

private:
    void insert(const std::string &key, const Blob &blob)
    {
        std::lock_guard<std::mutex> guard(lock_);
        if (bytes_ + blob->size() > limit_)
            return;
#ifdef FIXED
        if (!entries_.emplace(key, blob).second)
            return;
#else
        entries_[key] = blob; //@replace
#endif
        bytes_ += blob->size(); //@more
    }

    Loader &loader_;
    const std::size_t limit_;
    std::mutex lock_;
    std::map<std::string, Blob> entries_;
    std::size_t bytes_ = 0;
};

} // namespace cache

namespace {

struct Visitor {
    cache::Cache &cache;
    std::vector<std::string> keys;
    unsigned delay;
    std::size_t seen = 0;

    void operator()()
    {
        std::this_thread::sleep_for(std::chrono::microseconds(delay));
        for (const std::string &key : keys)
            seen += cache.get(key)->size();
    }
};

} // namespace

int main()
{
    std::random_device device;
    cache::Loader loader(device());
    cache::Cache cache(loader, 4096);
    Visitor left{cache, {"alice", "bob", "carol"}, device() % 1000};
    Visitor right{cache, {"dave", "alice", "erin"}, device() % 1000};

    std::thread one(std::ref(left));
    std::thread two(std::ref(right));
    one.join();
    two.join();
    cache.drop("bob");
    cache.clear(); //@clear
    std::printf("%zu bytes seen\n", left.seen + right.seen);
    return 0;
}
