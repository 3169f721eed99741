/* SPDX-License-Identifier: MIT */
/* A connection that either side may close: sometimes it is closed twice, and the program is aborted. */
#include <atomic>
#include <cstdio>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>

class Connection {
public:
    Connection()
    {
        if (pipe(ends_) != 0)
            throw std::runtime_error("no pipe");
    }

    void send(const std::string &text)
    {
        if (open_.load() && write(ends_[1], text.data(), text.size()) > 0)
            sent_ += text.size();
    }

    std::string receive()
    {
        char bytes[16];
        const ssize_t count = read(ends_[0], bytes, sizeof bytes);
        return std::string(bytes, count > 0 ? static_cast<std::size_t>(count) : 0);
    }

    void shut()
    {
        if (!open_.load()) //@open
            return;
        open_.store(false); //@store
        for (const int end : ends_)
            if (::close(end) != 0) //@close
                throw std::runtime_error("closed before"); //@throw
    }

    std::size_t sent() const { return sent_; }

private:
    int ends_[2];
    std::atomic<bool> open_{true};
    std::size_t sent_ = 0;
};

int main()
{
    Connection connection;

    connection.send("ping");
    if (connection.receive() != "ping")
        return 1;
    std::thread client([&connection] { connection.shut(); });
    std::thread timeout([&connection] { connection.shut(); });
    client.join();
    timeout.join();
    std::printf("%zu bytes\n", connection.sent());
    return 0;
}
