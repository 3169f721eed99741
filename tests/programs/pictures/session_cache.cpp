// SPDX-License-Identifier: MIT
// A cache of sessions. A worker keeps a raw pointer while the reaper removes the session that it points to.
#include <map>
#include <memory>
#include <mutex>
#include <thread>

struct Quota {
    long used = 0;
};

struct Session {
    long id = 0, last_used = 0;
    Quota *quota = new Quota;
    ~Session()
    {
        delete quota;
        quota = nullptr;
    }
};

class Cache {
public:
    Session *find(int id)
    {
        std::lock_guard<std::mutex> lock(mutex_);
        auto &session = sessions_[id];

        if (!session)
            session = std::make_unique<Session>();
        return session.get();
    }

    void expire(int id)
    {
        std::lock_guard<std::mutex> lock(mutex_);

        sessions_.erase(id);
    }

private:
    std::mutex mutex_;
    std::map<int, std::unique_ptr<Session>> sessions_;
};

static Cache cache;

static void serve(int id)
{
    Session *s = cache.find(id);

    for (int i = 0; i < 4; i++)
        s->quota->used += i;
}

static void reaper()
{
    cache.expire(1);
}

int main()
{
    std::thread worker([] { serve(1); });
    std::thread reaps(reaper);

    worker.join();
    reaps.join();}
