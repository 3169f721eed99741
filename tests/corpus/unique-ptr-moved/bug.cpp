// SPDX-License-Identifier: MIT
// An urgent message is moved into the fast lane; the accounting that follows still looks into it.
#include "../corpus.h"

#include <deque>
#include <memory>
#include <string>
#include <utility>

namespace bus {

enum class Priority { Low, Normal, Urgent };

struct Message {
    std::size_t length;
    Priority priority;
    std::string topic;
};

using MessagePtr = std::unique_ptr<Message>;

class Router {
public:
    void route(MessagePtr message)
    {
#ifdef FIXED
        const std::size_t length = message->length;
#endif
        if (message->priority == Priority::Urgent) //@urgent
            fast_.push_back(std::move(message)); //@move
        else
            backlog_++;
#ifdef FIXED
        bytes_ += length;
#else
        bytes_ += message->length; //@use
#endif
    }

    std::size_t bytes() const { return bytes_; }
    std::size_t waiting() const { return fast_.size() + backlog_; }

private:
    std::deque<MessagePtr> fast_;
    std::size_t backlog_ = 0;
    std::size_t bytes_ = 0;
};

MessagePtr receive()
{
    static const struct {
        const char *topic;
        Priority priority;
    } kinds[] = {
        {"metrics", Priority::Low},
        {"orders", Priority::Normal},
        {"alarms", Priority::Urgent},
    };
    const auto &kind = kinds[draw(3)]; //@input
    auto message = std::make_unique<Message>();

    message->topic = kind.topic;
    message->priority = kind.priority; //@priority
    message->length = message->topic.size() + 16;
    return message;
}

} // namespace bus

int main()
{
    bus::Router router;

    router.route(bus::receive()); //@route
    printf("%zu bytes\n", router.bytes());
    return router.waiting() == 1 && router.bytes() > 16 ? 0 : 2;
}
