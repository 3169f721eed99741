// SPDX-License-Identifier: MIT
// The writer thread clears its stop flag when it starts; a stop that was asked for before that is forgotten.
#include "../corpus.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace logging {

class Sink {
public:
    void open() { window(400); }
    void write(const std::string &line) { lines_.push_back(line); }
    std::size_t size() const { return lines_.size(); }

private:
    std::vector<std::string> lines_;
};

class Queue {
public:
    void reset()
    {
        std::lock_guard<std::mutex> guard(lock_);
        stopping_ = false; //@clear
    }

    void put(std::string line)
    {
        {
            std::lock_guard<std::mutex> guard(lock_);
            lines_.push_back(std::move(line));
        }
        changed_.notify_one();
    }

    // False when there is nothing left and none will come.
    bool get(std::string &line)
    {
        std::unique_lock<std::mutex> guard(lock_);
        while (lines_.empty() && !stopping_) //@test
            changed_.wait(guard); //@wait
        if (lines_.empty())
            return false;
        line = std::move(lines_.front());
        lines_.pop_front(); //@pop
        return true;
    }

    void stop()
    {
        {
            std::lock_guard<std::mutex> guard(lock_);
            stopping_ = true; //@stop
        }
        changed_.notify_all(); //@notify
    }

private:
    std::mutex lock_;
    std::condition_variable changed_;
    std::deque<std::string> lines_;
    bool stopping_ = false;
};

class Writer {
public:
    explicit Writer(Sink &sink) : sink_(sink) {}
    ~Writer() { finish(); }

    void start()
    {
#ifdef FIXED
        queue_.reset();
#endif
        thread_ = std::thread(&Writer::run, this); //@start
    }

    void log(std::string line) { queue_.put(std::move(line)); }

    void finish()
    {
        if (!thread_.joinable())
            return;
        queue_.stop(); //@ask
        thread_.join(); //@join
    }

private:
    void run()
    {
        sink_.open();
#ifndef FIXED
        queue_.reset(); //@reset
#endif
        for (std::string line; queue_.get(line);) //@get
            sink_.write(line);
    }

    Sink &sink_;
    Queue queue_;
    std::thread thread_;
};

} // namespace logging

int main()
{
    logging::Sink sink;

    {
        logging::Writer writer(sink);
        writer.start();
        writer.log("started");
        window(700); // the work
        writer.log("done");
    }
    return sink.size() == 2 ? 0 : 2;
}
