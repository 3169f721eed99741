// SPDX-License-Identifier: MIT
// A pool stops while a task is handed in: the task is accepted but never runs.
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

class Pool {
public:
    Pool()
    {
        for (int i = 0; i < 2; i++)
            threads_.emplace_back([this] { work(); });
    }
    bool submit(std::function<void()> task)
    {
        if (stopped_.load())
            return false;
        std::lock_guard<std::mutex> guard(lock_);
        tasks_.push(std::move(task));
        wake_.notify_one();
        return true;
    }
    void stop()
    {
        {
            std::lock_guard<std::mutex> guard(lock_);
            stopped_ = true;
        }
        wake_.notify_all();
        for (auto &t : threads_)
            t.join();
    }

private:
    void work()
    {
        for (;;) {
            std::unique_lock<std::mutex> guard(lock_);
            wake_.wait(guard, [this] { return stopped_ || !tasks_.empty(); });
            if (tasks_.empty())
                return;
            auto task = std::move(tasks_.front());
            tasks_.pop();
            guard.unlock();
            task();
        }
    }
    std::mutex lock_;
    std::condition_variable wake_;
    std::queue<std::function<void()>> tasks_;
    std::atomic<bool> stopped_{false};
    std::vector<std::thread> threads_;
};

int main()
{
    Pool pool;
    std::atomic<int> ran{0};
    int accepted = 0;
    std::thread client([&] {
        for (int i = 0; i < 3; i++)
            accepted += pool.submit([&] { ran++; });
    });
    pool.submit([&] { ran += 10; });
    pool.stop();
    client.join();
    std::printf("%d %d\n", accepted, ran.load());
    return ran == accepted + 10 ? 0 : 1;
}
