/* SPDX-License-Identifier: MIT */ // Log shipping: several sources hand log lines to several uploaders
// through a small bounded channel.
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

template <typename T>
class Channel {
public:
    explicit Channel(size_t capacity) : capacity_(capacity) {}

    void push(T item) {
        std::unique_lock<std::mutex> g(m_);
        while (items_.size() >= capacity_)
            changed_.wait(g);
        items_.push_back(std::move(item));
        wake();
    }

    std::optional<T> pop() {
        std::unique_lock<std::mutex> g(m_);
        while (items_.empty() && !closed_)
            changed_.wait(g);
        if (items_.empty())
            return std::nullopt;
        T item = std::move(items_.front());
        items_.pop_front();
        wake();
        return item;
    }

    void close() {
        std::lock_guard<std::mutex> g(m_);
        closed_ = true;
        changed_.notify_all();
    }

private:
    // Called with the lock held after every change.
    void wake() {
#ifdef FIXED
        changed_.notify_all();
#else
        changed_.notify_one();
#endif
    }

    const size_t capacity_;
    std::mutex m_;
    std::condition_variable changed_;
    std::deque<T> items_;
    bool closed_ = false;
};

struct LogLine {
    int source;
    int seq;
    std::string text;
};

class Source {
public:
    Source(int id, int lines, Channel<LogLine>& out) : id_(id), lines_(lines), out_(out) {}

    void operator()() {
        for (int i = 0; i < lines_; i++) {
            LogLine l{id_, i, "source " + std::to_string(id_) + " line " + std::to_string(i)};
            if (i % 5 == id_ % 5)
                l.text += std::string(40 + i % 60, '.');
            out_.push(std::move(l));
        }
    }

private:
    int id_, lines_;
    Channel<LogLine>& out_;
};

class Uploader {
public:
    explicit Uploader(Channel<LogLine>& in) : in_(in) {}

    void operator()() {
        while (auto l = in_.pop()) {
            batch_.append(l->text);
            batch_.push_back('\n');
            lines_++;
            if (batch_.size() > 512)
                upload();
        }
        upload();
    }

    unsigned long lines() const { return lines_; }
    unsigned long bytes() const { return bytes_; }

private:
    void upload() {
        unsigned h = 5381;
        for (char c : batch_)
            h = h * 33 + static_cast<unsigned char>(c);
        digest_ ^= h;
        bytes_ += batch_.size();
        batch_.clear();
    }

    Channel<LogLine>& in_;
    std::string batch_;
    unsigned digest_ = 0;
    unsigned long lines_ = 0, bytes_ = 0;
};

int main() {
    const int kSources = 4, kUploaders = 3, kLines = 24;
    Channel<LogLine> channel(2);
    std::vector<Source> sources;
    std::vector<Uploader> uploaders;
    std::vector<std::thread> in, out;

    for (int i = 0; i < kSources; i++)
        sources.emplace_back(i, kLines, channel);
    for (int i = 0; i < kUploaders; i++)
        uploaders.emplace_back(channel);
    for (auto& u : uploaders)
        out.emplace_back(std::ref(u));
    for (auto& s : sources)
        in.emplace_back(std::ref(s));

    for (auto& t : in)
        t.join();
    channel.close();
    for (auto& t : out)
        t.join();

    unsigned long lines = 0, bytes = 0;
    for (auto& u : uploaders) {
        lines += u.lines();
        bytes += u.bytes();
    }
    std::printf("shipped %lu lines, %lu bytes\n", lines, bytes);
    return lines == static_cast<unsigned long>(kSources) * kLines ? 0 : 1;
}
