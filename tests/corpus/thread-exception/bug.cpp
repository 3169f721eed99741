// SPDX-License-Identifier: MIT
// The thread passes on std::runtime_error by exception_ptr; the parser also throws std::out_of_range, which nobody catches.
#include "../corpus.h"

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

namespace service {

struct Endpoint {
    std::string host;
    std::uint16_t port = 0;
};

Endpoint parse_endpoint(const std::string &text)
{
    const auto colon = text.rfind(':');
    if (colon == std::string::npos)
        throw std::runtime_error("no port in " + text); //@noport
    int port = 0;
    for (std::size_t i = colon + 1; i < text.size(); i++)
        port = port * 10 + (text[i] - '0'); //@digits
    if (port < 1 || port > 65535) //@range
        throw std::out_of_range("bad port in " + text); //@throw
    Endpoint endpoint;
    endpoint.host = text.substr(0, colon);
    endpoint.port = static_cast<std::uint16_t>(port);
    return endpoint;
}

class Connector {
public:
    explicit Connector(std::string text)
        : text_(std::move(text)), thread_([this] { run(); }) //@start
    {
    }

    ~Connector()
    {
        if (thread_.joinable())
            thread_.join();
    }

    Endpoint wait()
    {
        thread_.join();
        if (error_)
            std::rethrow_exception(error_);
        return endpoint_;
    }

private:
    void run()
    {
        try {
            endpoint_ = parse_endpoint(text_); //@parse
#ifdef FIXED
        } catch (const std::exception &) {
#else
        } catch (const std::runtime_error &) { //@catch
#endif
            error_ = std::current_exception();
        }
    }

    std::string text_;
    Endpoint endpoint_;
    std::exception_ptr error_;
    std::thread thread_;
};

} // namespace service

int main()
{
    static const char *const inputs[] = {"db.example.org:5432", "cache", "10.0.0.7:70000", "localhost:80"};
    service::Connector connector(inputs[draw(4)]); //@input

    try {
        const service::Endpoint endpoint = connector.wait();
        printf("%s port %u\n", endpoint.host.c_str(), endpoint.port);
    } catch (const std::exception &error) {
        printf("not connected: %s\n", error.what());
    }
    return 0;
}
