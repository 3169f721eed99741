/* SPDX-License-Identifier: MIT */
/* A worker is told to stop when its queue is empty: sometimes it sleeps on and the join never ends. */
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <thread>

class Worker {
public:
    Worker() : thread_([this] { run(); }) {}

    void post(int job)
    {
        {
            std::lock_guard<std::mutex> guard(lock_);
            jobs_.push_back(job);
        }
        wake_.notify_one();
    }

    void stop()
    {
        {
            std::lock_guard<std::mutex> guard(lock_);
            stopping_ = true;
        }
        wake_.notify_one();
        thread_.join();
    }

    int done() const { return done_; }

private:
    bool idle()
    {
        const bool nothing = jobs_.empty() && !stopping_;
        return nothing;
    }

    void run()
    {
        std::unique_lock<std::mutex> guard(lock_);
        for (;;) {
            while (idle())
                wake_.wait(guard);
            if (jobs_.empty())
                return;
            const int job = jobs_.front();
            jobs_.pop_front();
            guard.unlock();
            done_ += job;
            guard.lock();
        }
    }

    std::mutex lock_;
    std::condition_variable wake_;
    std::deque<int> jobs_;
    std::atomic<bool> stopping_{false};
    int done_ = 0;
    std::thread thread_;
};

int main()
{
    Worker worker;

    worker.post(2);
    worker.post(3);
    worker.stop();
    std::printf("done %d\n", worker.done());
    return worker.done() == 5 ? 0 : 1;
}
