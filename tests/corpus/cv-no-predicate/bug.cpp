// SPDX-License-Identifier: MIT
// The gate waits for a notification without looking whether it is open: one that came before wakes nobody.
#include "../corpus.h"

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace startup {

class Gate {
public:
    void open()
    {
        {
            std::lock_guard<std::mutex> guard(lock_);
            open_ = true; //@open
        }
        changed_.notify_all(); //@notify
    }

    void pass()
    {
        std::unique_lock<std::mutex> guard(lock_);
#ifdef FIXED
        changed_.wait(guard, [this] { return open_; });
#else
        changed_.wait(guard); //@wait
#endif
    }

    bool is_open()
    {
        std::lock_guard<std::mutex> guard(lock_);
        return open_;
    }

private:
    std::mutex lock_;
    std::condition_variable changed_;
    bool open_ = false;
};

class Listener {
public:
    explicit Listener(Gate &gate) : thread_([this, &gate] { run(gate); }) {} //@start
    ~Listener() { thread_.join(); }

private:
    void run(Gate &gate)
    {
        window(300); // the socket is bound
        gate.pass(); //@pass
        accepted_ = "client";
    }

    std::string accepted_;
    std::thread thread_;
};

} // namespace startup

int main()
{
    startup::Gate gate;
    startup::Listener listener(gate);

    window(900); // the database is opened
    gate.open(); //@ready
    return gate.is_open() ? 0 : 2;
}
