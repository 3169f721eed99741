/* SPDX-License-Identifier: MIT */
/* A promise calls back when it is kept: sometimes the callback never comes and the main thread waits for ever. */
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <mutex>
#include <thread>

class Promise {
public:
    void then(std::function<void(int)> callback)
    {
        if (kept_.load()) { //@kept
            callback(value_);
            return;
        }
        callback_ = std::move(callback);
        has_callback_.store(true); //@store
    }

    void keep(int value)
    {
        value_ = value;
        kept_.store(true); //@keep
        if (has_callback_.load()) { //@has
            callback_(value);
        }
    }

private:
    std::atomic<bool> kept_{false};
    std::atomic<bool> has_callback_{false};
    std::function<void(int)> callback_;
    int value_ = 0;
};

class Mailbox {
public:
    void put(int value)
    {
        std::lock_guard<std::mutex> guard(lock_);
        value_ = value;
        full_ = true;
        filled_.notify_one();
    }

    int take()
    {
        std::unique_lock<std::mutex> guard(lock_);
        while (!full_)
            filled_.wait(guard); //@wait
        return value_;
    }

private:
    std::mutex lock_;
    std::condition_variable filled_;
    bool full_ = false;
    int value_ = 0;
};

int main()
{
    Promise promise;
    Mailbox mailbox;

    std::thread producer([&] { promise.keep(42); });
    std::thread consumer([&] { promise.then([&mailbox](int value) { mailbox.put(value); }); });
    const int value = mailbox.take();
    producer.join();
    consumer.join();
    std::printf("got %d\n", value);
    return 0;
}
