// SPDX-License-Identifier: MIT
// A callback captures a local variable by reference; when the loop is busy the callback runs after the function returned.
#include "../corpus.h"

#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#define NOINLINE __attribute__((noinline))

namespace net {

class Loop {
public:
    explicit Loop(bool busy) : busy_(busy) {} //@busy

    // Runs `fn` at once if it can, else when the loop comes round.
    void dispatch(std::function<void()> fn)
    {
        if (!busy_) //@idle
            fn(); //@now
        else
            later_.push_back(std::move(fn)); //@defer
    }

    std::size_t waiting() const { return later_.size(); }

    void run()
    {
        busy_ = false;
        while (!later_.empty()) {
            auto fn = std::move(later_.front());
            later_.pop_front();
            fn(); //@later
        }
    }

private:
    bool busy_;
    std::deque<std::function<void()>> later_;
};

struct Peer {
    int credit;
    std::string name;
};

class Server {
public:
    explicit Server(Loop &loop) : loop_(loop), peers_{{10, "north"}, {20, "south"}} {}

    NOINLINE void read_request()
    {
        char line[1024];

        snprintf(line, sizeof(line), "GET %u", draw(2));
        on_request(atoi(line + 4)); //@request
    }

    NOINLINE void log_status() const
    {
        char text[4096] = {0}; //@zero

        snprintf(text, sizeof(text), "%zu callbacks wait", loop_.waiting());
        puts(text);
    }

    int served() const { return served_; }

private:
    NOINLINE void on_request(int id)
    {
        const Peer *peer = &peers_.at(static_cast<std::size_t>(id)); //@local

#ifdef FIXED
        loop_.dispatch([this, peer] {
#else
        loop_.dispatch([&] { //@capture
#endif
            served_ += peer->credit; //@use
        });
    }

    Loop &loop_;
    std::vector<Peer> peers_;
    int served_ = 0;
};

} // namespace net

int main()
{
    net::Loop loop(draw(3) == 0); //@input
    net::Server server(loop);

    server.read_request();
    server.log_status();
    loop.run();
    return server.served() >= 10 ? 0 : 2;
}
