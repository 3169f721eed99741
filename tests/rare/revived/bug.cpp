// SPDX-License-Identifier: MIT
// A cache hands out a counted object after its count fell to zero, because the look-up and the count are two steps.
#include <atomic>
#include <cassert>
#include <mutex>
#include <thread>

struct Image {
    std::atomic<int> users{1};
    std::atomic<bool> gone{false};
};

static Image image;
static std::mutex table;
static Image *cached = &image;

static Image *get()
{
    Image *found;
    {
        std::lock_guard<std::mutex> guard(table);
        found = cached;
    }
    if (found) {
        found->users++;
        assert(!found->gone);
    }
    return found;
}

static void put(Image *what)
{
    if (--what->users == 0) {
        std::lock_guard<std::mutex> guard(table);
        if (what->users == 0) {
            cached = nullptr;
            what->gone = true;
        }
    }
}

int main()
{
    std::thread a([] {
        if (Image *i = get())
            put(i);
    });
    std::thread b([] {
        if (Image *i = get()) {
            i->users.load();
            put(i);
        }
    });
    put(&image);
    a.join();
    b.join();
}
