/* SPDX-License-Identifier: MIT */
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <pthread.h>
#include <unistd.h>

namespace limit {

// A clock that moves in ticks, as the caller says.
class TickClock {
public:
    void advance(long ticks) { __atomic_add_fetch(&now_, ticks, __ATOMIC_SEQ_CST); }
    long now() const { return __atomic_load_n(&now_, __ATOMIC_SEQ_CST); } //@now

private:
    long now_ = 0;
};

class Guard {
public:
    explicit Guard(pthread_mutex_t &mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
    ~Guard() { pthread_mutex_unlock(&mutex_); }
    Guard(const Guard &) = delete;
    Guard &operator=(const Guard &) = delete;

private:
    pthread_mutex_t &mutex_;
};

class Bucket {
public:
    Bucket(const TickClock &clock, long burst) : clock_(clock), burst_(burst) {}

    bool take()
    {
        const long earned = elapsed(); //@earned
        usleep(20);
        if (earned > 0)
            refill(earned); //@refill
        Guard guard(mutex_);
        if (tokens_ == 0)
            return false;
        tokens_--;
        return true;
    }

    long added() const { return added_; } //@added

private:
    long elapsed()
    {
        Guard guard(mutex_);
        const long now = clock_.now();
        const long passed = now - last_; //@passed
#ifdef FIXED
        last_ = now;
#endif
        return passed;
    }

    void refill(long earned)
    {
        Guard guard(mutex_);
        const long room = burst_ - tokens_;
        const long more = earned < room ? earned : room;
        tokens_ += more;
        added_ += more; //@more
#ifndef FIXED
        last_ = clock_.now(); //@last
#endif
    }

    const TickClock &clock_;
    const long burst_;
    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
    long tokens_ = 0;
    long added_ = 0;
    long last_ = 0;
};

} // namespace limit

namespace {

struct Caller {
    limit::Bucket *bucket;
    unsigned seed;
    int allowed = 0;
    pthread_t thread{};
};

void *call(void *argument)
{
    auto *caller = static_cast<Caller *>(argument);

    for (int i = 0; i < 4; i++) {
        usleep(static_cast<useconds_t>(rand_r(&caller->seed)) % 1200);
        if (caller->bucket->take())
            caller->allowed++;
    }
    return nullptr;
}

} // namespace

int main()
{
    limit::TickClock clock;
    limit::Bucket bucket(clock, 50);
    timespec now{};
    long ticks = 0;

    clock_gettime(CLOCK_REALTIME, &now);
    const auto seed = static_cast<unsigned>(now.tv_nsec / 100);
    Caller callers[] = {{&bucket, seed}, {&bucket, seed ^ 0x5bd1e995u}};
    for (Caller &caller : callers)
        pthread_create(&caller.thread, nullptr, call, &caller);
    for (; ticks < 3; ticks++) {
        clock.advance(1); //@advance
        usleep(600);
    }
    for (Caller &caller : callers)
        pthread_join(caller.thread, nullptr);
    std::printf("%d allowed\n", callers[0].allowed + callers[1].allowed);
    if (bucket.added() > ticks) //@over
        return 1; //@fail
    return 0;
}
