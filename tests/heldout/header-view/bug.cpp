// SPDX-License-Identifier: MIT
// The parser keeps a string_view of the length header, but the reader puts every line into the same string.
#include "../corpus.h"

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace http {

// Gives one line after the other; the view is good until the next call.
class LineReader {
public:
    explicit LineReader(std::string text) : text_(std::move(text)) { line_.reserve(256); }

    std::string_view next()
    {
        const auto end = text_.find("\r\n", at_);
        line_.assign(text_, at_, end - at_); //@overwrite
        at_ = end + 2;
        return line_; //@line
    }

    std::string rest() const { return text_.substr(at_); }

private:
    std::string text_;
    std::string line_;
    std::size_t at_ = 0;
};

struct Request {
    std::string method;
#ifdef FIXED
    std::string length;
#else
    std::string_view length;
#endif
    std::string host;
    std::string body;
};

std::pair<std::string_view, std::string_view> split(std::string_view line)
{
    const auto colon = line.find(": ");
    if (colon == std::string_view::npos)
        return {line, {}};
    return {line.substr(0, colon), line.substr(colon + 2)}; //@split
}

Request parse(LineReader &reader)
{
    Request request;
    const std::string_view first = reader.next();

    request.method = std::string(first.substr(0, first.find(' ')));
    for (;;) {
        const std::string_view line = reader.next(); //@next
        if (line.empty())
            break;
        const auto [name, value] = split(line);
        if (name == "Content-Length")
            request.length = value; //@keep
        else if (name == "Host")
            request.host = std::string(value);
    }
    request.body = reader.rest();
    return request;
}

std::optional<std::size_t> to_number(std::string_view text)
{
    std::size_t number = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), number); //@convert
    if (result.ec != std::errc() || result.ptr != text.data() + text.size()) //@bad
        return std::nullopt; //@none
    return number;
}

bool complete(const Request &request)
{
    const auto length = to_number(request.length); //@length
    return length && *length == request.body.size(); //@compare
}

} // namespace http

int main()
{
    std::vector<std::string> headers = {"Host: www.example.org", "User-Agent: robot/1.0 (linux)", "Content-Length: 11"};
    std::string text = "POST /comments HTTP/1.1\r\n";

    std::swap(headers[2], headers[draw(3)]); //@input
    for (const std::string &header : headers)
        text += header + "\r\n"; //@text
    text += "\r\nhello world";

    http::LineReader reader(text);
    const http::Request request = http::parse(reader);
    if (!http::complete(request)) { //@check
        fprintf(stderr, "400 Bad Request\n");
        return 4; //@fail
    }
    return 0;
}
