// SPDX-License-Identifier: MIT
// A global object starts a thread in its constructor; the thread uses a global that is initialised after it.
#include "../corpus.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

namespace health {

struct Limits {
    int open_files;
    int threads;
};

extern const Limits *limits;

class Watchdog {
public:
    Watchdog() : thread_([this] { watch(); }) {} //@start
    ~Watchdog() { join(); }

    void join()
    {
        if (thread_.joinable())
            thread_.join();
    }

    int budget() const { return budget_; }

private:
    void watch()
    {
        window(300); // the first reading
        budget_ = std::min(limits->open_files, 64); //@use
    }

    std::atomic<int> budget_{0};
    std::thread thread_;
};

const Limits *load_limits()
{
    auto *loaded = new Limits;

    window(350); // the file is read
    loaded->open_files = 1024;
    loaded->threads = 16;
    return loaded;
}

#ifdef FIXED
const Limits *limits = load_limits();
Watchdog watchdog;
#else
Watchdog watchdog; //@first
const Limits *limits = load_limits(); //@init
#endif

} // namespace health

int main()
{
    health::watchdog.join();
    printf("budget %d\n", health::watchdog.budget());
    return health::watchdog.budget() == 64 ? 0 : 2;
}
