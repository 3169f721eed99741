// SPDX-License-Identifier: MIT
// A thread uses a queue that main has already thrown away; with an argument main waits for it first.
#include <atomic>
#include <memory>
#include <thread>

struct Queue {
    int length = 3;
    int taken = 0;
};

static Queue *queue;
static std::atomic<bool> started, gone;

static void consume(bool wait)
{
    for (int i = 0; i < 3; i++) {
        queue->taken++;
        started = true;
        while (wait && i == 1 && !gone)
            std::this_thread::yield();
    }
}

int main(int argc, char **)
{
    auto owner = std::make_unique<Queue>();

    queue = owner.get();
    std::thread consumer(consume, argc < 2);
    while (!started)
        std::this_thread::yield();
    if (argc > 1)
        consumer.join();
    queue = nullptr;
    gone = true;
    if (argc < 2)
        consumer.join();
    return owner->taken == 3 ? 0 : 1;
}
