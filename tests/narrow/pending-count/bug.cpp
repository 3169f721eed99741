/* SPDX-License-Identifier: MIT */
/* A pool that can wait until all its tasks are done: sometimes it does not wait, and an assertion fails. */
#include <array>
#include <atomic>
#include <cassert>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

class Pool {
public:
    explicit Pool(int threads)
    {
        for (int i = 0; i < threads; i++)
            threads_.emplace_back([this] { work(); });
    }

    ~Pool()
    {
        {
            std::lock_guard<std::mutex> guard(lock_);
            closing_ = true;
        }
        posted_.notify_all();
        for (std::thread &thread : threads_)
            thread.join();
    }

    void post(std::function<void()> task)
    {
        std::lock_guard<std::mutex> guard(lock_);
        tasks_.push_back(std::move(task));
        pending_++; //@post
        posted_.notify_one();
    }

    void wait()
    {
        std::unique_lock<std::mutex> guard(lock_);
        done_.wait(guard, [this] { return pending_ == 0; }); //@zero
    }

private:
    void work()
    {
        for (;;) {
            std::function<void()> task;
            {
                std::unique_lock<std::mutex> guard(lock_);
                posted_.wait(guard, [this] { return closing_ || !tasks_.empty(); });
                if (tasks_.empty())
                    return;
                task = std::move(tasks_.front());
                tasks_.pop_front();
                pending_--; //@down
            }
            task();
            done_.notify_all();
        }
    }

    std::mutex lock_;
    std::condition_variable posted_, done_;
    std::deque<std::function<void()>> tasks_;
    std::vector<std::thread> threads_;
    int pending_ = 0;
    bool closing_ = false;
};

int main()
{
    std::atomic<int> result{0};
    Pool pool(1);

    pool.post([&result] { result += 5; }); //@result
    pool.wait(); //@waited
    assert(result == 5); //@check
    std::puts("done");
    return 0;
}
