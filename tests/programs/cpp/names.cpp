// SPDX-License-Identifier: MIT
// Functions that C++ gives long names or none: each crashes when the program's argument says so.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace {

volatile int sink;

void touch(int *p)
{
    sink = *p; //@touch
}

template <class T> struct Box {
    std::vector<T> items;

    template <class U> T read(const U *from) const
    {
        return static_cast<T>(*from) + items.at(0); //@read
    }
};

void worker(int *p)
{
    touch(p);
}

} // namespace

int main(int, char **argv)
{
    int *volatile hidden = argv[1] ? nullptr : new int(1); // from the optimiser
    int *nothing = hidden;
    const char *what = argv[1] ? argv[1] : "";

    if (!strcmp(what, "plain"))
        touch(nothing);
    if (!strcmp(what, "template"))
        return Box<long>{{1}}.read(nothing);
    if (!strcmp(what, "header"))
        return reinterpret_cast<std::atomic<int> *>(nothing)->load(); //@header
    if (!strcmp(what, "thread"))
        std::thread(worker, nothing).join();
    auto crash = [nothing] { //@lambda
        sink = *nothing; //@inside
    };
    if (!strcmp(what, "lambda"))
        std::thread(crash).join();
    return 0;
}
