// SPDX-License-Identifier: MIT
// A thread uses a box of the library while another one empties it: sometimes after it was freed.
#include "counter.h"
#include "store.h"

#include <cstdio>
#include <stdexcept>
#include <thread>

static bool found = store::all().count("begin") == 1; // the library's variables are there before

int main()
{
    store::Box box(4);

    if (!found || !counter_begun())
        return 3;
    std::thread user([&] {
        try {
            std::printf("%d\n", box.value());
        } catch (const std::runtime_error &error) {
            std::printf("%s\n", error.what());
        }
    });
    box.drop();
    user.join();
    return 0;
}
