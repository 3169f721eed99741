/* SPDX-License-Identifier: MIT */
/* A logger whose sink can be taken away: sometimes a line is written to none, and the program crashes. */
#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

class Sink {
public:
    virtual ~Sink() = default;
    virtual void write(const std::string &line) { lines_.push_back(line); }
    std::size_t size() const { return lines_.size(); }

private:
    std::vector<std::string> lines_;
};

class Logger {
public:
    void attach(Sink *sink) { sink_.store(sink); }

    Sink *detach() { return sink_.exchange(nullptr); }

    void log(const std::string &line)
    {
        Sink *sink = sink_.load();
        if (sink)
            sink->write(line);
    }

private:
    std::atomic<Sink *> sink_{nullptr};
};

class Service {
public:
    explicit Service(Logger &logger) : logger_(logger) {}

    void handle(int request)
    {
        served_ += request;
        logger_.log("request " + std::to_string(request));
    }

    int served() const { return served_; }

private:
    Logger &logger_;
    int served_ = 0;
};

int main()
{
    Logger logger;
    Sink sink;
    Service service(logger);

    logger.attach(&sink);
    std::thread worker([&service] {
        for (int i = 1; i <= 3; i++)
            service.handle(i);
    });
    std::thread admin([&logger] {
        logger.detach();
    });
    worker.join();
    admin.join();
    std::printf("%d served\n", service.served());
    return 0;
}
