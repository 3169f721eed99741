/* SPDX-License-Identifier: MIT */ // Request engine with timers: every request has a time-out, an answer
// cancels it, slow requests get their time-out extended.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <list>
#include <map>
#include <random>
#include <string>
#include <unistd.h>

class Timers {
public:
    using Id = unsigned;
    using Action = std::function<void()>;

    Id add(long due, Action action) {
        timers_.push_back({next_, due, std::move(action), false});
        return next_++;
    }

    void cancel(Id id) {
        for (auto it = timers_.begin(); it != timers_.end(); ++it) {
            if (it->id == id) {
#ifdef FIXED
                it->dead = true;
#else
                timers_.erase(it);
#endif
                return;
            }
        }
    }

    void tick(long now) {
        auto it = timers_.begin();
        while (it != timers_.end()) {
            auto cur = it++;        // the action may cancel its own timer
            if (cur->dead) {
                timers_.erase(cur);
                continue;
            }
            if (cur->due > now)
                continue;
            Action action = std::move(cur->action);
            timers_.erase(cur);
            action();
        }
    }

    bool empty() const { return timers_.empty(); }

private:
    struct Timer {
        Id id;
        long due;
        Action action;
        bool dead;
    };

    std::list<Timer> timers_;
    Id next_ = 1;
};

class Engine {
public:
    explicit Engine(unsigned seed) : rng_(seed) {}

    void run(int requests) {
        int sent = 0;
        for (now_ = 0; sent < requests || !timers_.empty(); now_++) {
            if (sent < requests && rng_() % 3 == 0)
                send(++sent);
            timers_.tick(now_);
        }
        std::printf("%ld ticks: %d answered, %d timed out, %d extended\n", now_, answered_,
                    timed_out_, extended_);
    }

    bool consistent(int requests) const { return answered_ + timed_out_ == requests; }

private:
    struct Pending {
        Timers::Id timeout = 0;
        Timers::Id answer = 0;
        std::string what;
    };

    void send(int id) {
        Pending& p = pending_[id];
        long delay = 2 + static_cast<long>(rng_() % 20);
        p.what = "GET /object/" + std::to_string(id * 37 % 101);
        p.timeout = timers_.add(now_ + kTimeout, [this, id] { expire(id); });
        if (rng_() % 40 == 0)
            return;                     // this answer will get lost
        if (rng_() % 75 == 0)
            timers_.add(now_ + 1, [this, id] { extend(id); });
        p.answer = timers_.add(now_ + delay, [this, id] { answer(id); });
    }

    void answer(int id) {
        auto it = pending_.find(id);
        if (it == pending_.end())
            return;
        timers_.cancel(it->second.timeout);
        answered_++;
        pending_.erase(it);
    }

    // The server asks for more time.
    void extend(int id) {
        Pending& p = pending_.at(id);
        timers_.cancel(p.timeout);
        p.timeout = timers_.add(now_ + 2 * kTimeout, [this, id] { expire(id); });
        extended_++;
    }

    void expire(int id) {
        auto it = pending_.find(id);
        if (it == pending_.end())
            return;
        timers_.cancel(it->second.answer);
        timed_out_++;
        pending_.erase(it);
    }

    static constexpr long kTimeout = 30;

    std::mt19937 rng_;
    Timers timers_;
    std::map<int, Pending> pending_;
    long now_ = 0;
    int answered_ = 0, timed_out_ = 0, extended_ = 0;
};

int main(int argc, char** argv) {
    auto ticks = std::chrono::system_clock::now().time_since_epoch().count();
    unsigned seed = argc > 1 ? static_cast<unsigned>(std::atol(argv[1]))
                             : static_cast<unsigned>(ticks / 1000) ^ static_cast<unsigned>(getpid());
    const int kRequests = 40;
    Engine engine(seed);

    engine.run(kRequests);
    if (!engine.consistent(kRequests)) {
        std::fprintf(stderr, "requests lost\n");
        return 1;
    }
    return 0;
}
