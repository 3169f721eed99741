/* SPDX-License-Identifier: MIT */
/* A directory hands out one session for each name: sometimes two are made for one name, and an assertion fails. */
#include <cassert>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>

struct Session {
    explicit Session(std::string name) : name(std::move(name)) {}
    std::string name;
    int visits = 0;
};

class Directory {
public:
    std::shared_ptr<Session> get(const std::string &name)
    {
        {
            std::shared_lock<std::shared_mutex> guard(lock_);
            const auto found = sessions_.find(name);
            if (found != sessions_.end())
                return found->second;
        }
        return create(name);
    }

    std::size_t size() const
    {
        std::shared_lock<std::shared_mutex> guard(lock_);
        return sessions_.size();
    }

private:
    std::shared_ptr<Session> create(const std::string &name)
    {
        std::unique_lock<std::shared_mutex> guard(lock_);
        auto &entry = sessions_[name];
        if (!entry)
        entry = std::make_shared<Session>(name);
        return entry;
    }

    mutable std::shared_mutex lock_;
    std::map<std::string, std::shared_ptr<Session>> sessions_;
};

int main()
{
    Directory directory;
    std::shared_ptr<Session> left, right;

    std::thread one([&] { left = directory.get("anna"); });
    std::thread two([&] { right = directory.get("anna"); });
    one.join();
    two.join();
    assert(left == right);
    std::printf("%zu session of %s\n", directory.size(), left->name.c_str());
    return 0;
}
