// SPDX-License-Identifier: MIT
// A reader checks the version of a record before it reads, but not afterwards.
#include <atomic>
#include <cassert>
#include <thread>

static std::atomic<unsigned> version{0};
static std::atomic<int> price{100}, tax{10};

static void update(int p)
{
    version++;
    price = p;
    tax = p / 10;
    version++;
}

int main()
{
    std::thread writer([] {
        for (int i = 2; i < 5; i++)
            update(i * 100);
    });
    std::thread reader([] {
        for (int i = 0; i < 2; i++) {
            while (version % 2)
                ;
            int t = tax;
            int p = price;
            assert(p == t * 10);
        }
    });
    writer.join();
    reader.join();
}
