// SPDX-License-Identifier: MIT
// The base class stops its thread in its own destructor: by then the derived part is gone, and the thread calls a pure
// virtual function.
#include "../corpus.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace monitor {

class Probe {
public:
    explicit Probe(std::string name) : name_(std::move(name)) {}
    Probe(const Probe &) = delete;
    Probe &operator=(const Probe &) = delete;

    virtual ~Probe() { //@base
        stop(); //@stop
    }

    void start()
    {
        thread_ = std::thread([this] { run(); }); //@start
    }

protected:
    void stop()
    {
        stopping_ = true;
        if (thread_.joinable())
            thread_.join();
    }

private:
    virtual void sample() = 0;

    void run()
    {
        for (int i = 0; i < 3 && !stopping_; i++) { //@loop
            window(150);
            sample(); //@call
        }
    }

    std::string name_;
    std::thread thread_;
    std::atomic<bool> stopping_{false};
};

class LoadProbe : public Probe {
public:
    LoadProbe() : Probe("load"), history_(16) {} //@derived

    ~LoadProbe() override
    {
#ifdef FIXED
        stop();
#endif
    }

private:
    void sample() override
    {
        history_[next_++ % history_.size()] = 42;
    }

    std::vector<int> history_;
    std::size_t next_ = 0;
};

} // namespace monitor

int main()
{
    auto probe = std::make_unique<monitor::LoadProbe>(); //@make

    probe->start();
    window(1000);
    probe.reset(); //@destroy
    return 0;
}
