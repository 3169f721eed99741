// SPDX-License-Identifier: MIT
// Two producers log through a pool of two workers. With spdlog.patch a worker that was woken does not look again whether there is a
// message: the other worker may have taken it, and then what it takes has no logger.
#include <spdlog/async.h>
#include <spdlog/async_logger.h>
#include <spdlog/sinks/null_sink.h>

#include <cstdlib>
#include <memory>
#include <thread>

static void produce(const std::shared_ptr<spdlog::async_logger> &logger, int messages)
{
    for (int i = 0; i < messages; i++)
        logger->info("message {}", i);
}

int main(int argc, char **argv)
{
    int messages = argc > 1 ? std::atoi(argv[1]) : 60;
    auto pool = std::make_shared<spdlog::details::thread_pool>(64, 2);
    auto sink = std::make_shared<spdlog::sinks::null_sink_mt>();
    auto logger = std::make_shared<spdlog::async_logger>("real", sink, pool, spdlog::async_overflow_policy::block);
    std::thread first(produce, logger, messages), second(produce, logger, messages);

    first.join();
    second.join();
}
