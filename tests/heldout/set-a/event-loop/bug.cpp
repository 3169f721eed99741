/* SPDX-License-Identifier: MIT */
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace loop {

struct Event {
    std::string topic;
    int value = 0;
};

// Wakes the loop, once for any number of events that come before it is awake.
class Alarm {
public:
    void ring()
    {
        if (rung_.exchange(true)) //@rung
            return; //@skip
        std::lock_guard<std::mutex> guard(lock_);
        calls_++;
        bell_.notify_one();
    }

    void sleep()
    {
        std::unique_lock<std::mutex> guard(lock_);
        while (calls_ == 0)
            bell_.wait(guard); //@wait
        calls_--;
    }

    void rearm() { rung_.store(false); } //@rearm

private:
    std::atomic<bool> rung_{false};
    std::mutex lock_;
    std::condition_variable bell_;
    int calls_ = 0;
};

class Loop {
public:
    using Handler = std::function<void(const Event &)>;

    void on(const std::string &topic, Handler handler) { handlers_[topic] = std::move(handler); }

    void post(Event event)
    {
        {
            std::lock_guard<std::mutex> guard(lock_);
            events_.push_back(std::move(event)); //@push
        }
        alarm_.ring(); //@ring
    }

    void quit() { post({"quit", 0}); }

    void run()
    {
        while (!done_) {
            alarm_.sleep(); //@sleep
#ifdef FIXED
            alarm_.rearm();
            drain();
#else
            drain(); //@drain
            alarm_.rearm();
#endif
        }
    }

private:
    bool take(Event &event)
    {
        std::lock_guard<std::mutex> guard(lock_);
        if (events_.empty()) //@empty
            return false;
        event = std::move(events_.front());
        events_.pop_front();
        return true;
    }

    void drain()
    {
        Event event;

        while (take(event)) {
            if (event.topic == "quit")
                done_ = true;
            const auto handler = handlers_.find(event.topic);
            if (handler != handlers_.end())
                handler->second(event);
        }
    }

    Alarm alarm_;
    std::mutex lock_;
    std::deque<Event> events_;
    std::map<std::string, Handler> handlers_;
    bool done_ = false;
};

} // namespace loop

int main()
{
    loop::Loop events;
    int keys = 0, clicks = 0;

    events.on("key", [&keys](const loop::Event &event) { keys += event.value; });
    events.on("click", [&clicks](const loop::Event &event) { clicks += event.value; });
    std::thread runner([&events] { events.run(); });
    events.post({"key", 3});
    events.post({"click", 1});
    events.quit(); //@quit
    runner.join();
    std::printf("%d keys, %d clicks\n", keys, clicks);
    return 0;
}
