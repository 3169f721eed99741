// SPDX-License-Identifier: MIT
// The queue template looks whether it is empty before it takes its lock: two consumers may both see the last element.
#include "../corpus.h"

#include <array>
#include <cassert>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace work {

template <typename T, std::size_t N>
class Queue {
public:
    void push(T item)
    {
        std::lock_guard<std::mutex> guard(lock_);
        slots_[tail_ % N] = std::move(item);
        tail_++; //@push
    }

    std::optional<T> take()
    {
#ifdef FIXED
        std::lock_guard<std::mutex> guard(lock_);
#endif
        if (head_ == tail_) //@test
            return std::nullopt;
        window(100);
#ifndef FIXED
        std::lock_guard<std::mutex> guard(lock_);
#endif
        assert(head_ != tail_); //@check
        T item = std::move(slots_[head_ % N]);
        head_++; //@advance
        return item;
    }

private:
    std::mutex lock_;
    std::array<T, N> slots_;
    std::size_t head_ = 0;
    std::size_t tail_ = 0;
};

struct Job {
    int id = 0;
    std::string name;
};

using JobQueue = Queue<Job, 8>;

void consume(JobQueue &queue, int &done)
{
    while (auto job = queue.take()) { //@take
        window(500);
        done += job->id;
    }
}

} // namespace work

int main()
{
    work::JobQueue queue;
    std::vector<std::thread> consumers;
    int done[2] = {0, 0};

    queue.push({1, "index"});
    queue.push({2, "compress"});
    queue.push({4, "upload"});
    for (int &sum : done)
        consumers.emplace_back(work::consume, std::ref(queue), std::ref(sum));
    for (auto &consumer : consumers)
        consumer.join();
    return done[0] + done[1] == 7 ? 0 : 2;
}
