// SPDX-License-Identifier: MIT
// Expired timers are erased while the loop goes on with the old iterator: when it is the last one, the loop steps over the end.
#include "../corpus.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace timing {

struct Timer {
    long deadline;
    std::string name;
};

class Wheel {
public:
    Wheel() { timers_.reserve(8); }

    void add(std::string name, long deadline)
    {
        auto timer = std::make_unique<Timer>();
        timer->deadline = deadline; //@deadline
        timer->name = std::move(name);
        timers_.push_back(std::move(timer)); //@add
    }

    std::size_t expire(long now)
    {
        std::size_t expired = 0;

#ifdef FIXED
        for (auto it = timers_.begin(); it != timers_.end();) {
            if ((*it)->deadline > now) {
                ++it;
                continue;
            }
            it = timers_.erase(it);
            expired++;
        }
#else
        for (auto it = timers_.begin(); it != timers_.end(); ++it) { //@step
            if ((*it)->deadline > now) //@look
                continue;
            timers_.erase(it); //@erase
            expired++;
        }
#endif
        return expired;
    }

    std::size_t size() const { return timers_.size(); }

private:
    std::vector<std::unique_ptr<Timer>> timers_;
};

} // namespace timing

int main()
{
    timing::Wheel wheel;
    const long now = 1000;
    const long patience = 40 * static_cast<long>(1 + draw(4)); //@input

    wheel.add("certificate", now + 86400);
    wheel.add("lease", now + 3600);
    wheel.add("keepalive", now + 60);
    wheel.add("request", now - 100 + patience); //@request
    const std::size_t expired = wheel.expire(now); //@expire
    return wheel.size() + expired == 4 ? 0 : 2;
}
