// SPDX-License-Identifier: MIT
// A library in C++. It uses the library in C, has a variable with a constructor, and throws.
#include "store.h"

#include "counter.h"

#include <stdexcept>

namespace store {

static std::map<std::string, int> things;
static bool made = (things["begin"] = 1, true);

std::map<std::string, int> &all()
{
    return things;
}

int Box::value() const
{
    if (!held_) //@look
        throw std::runtime_error("empty");
    return *held_ + (made ? 0 : 1); //@use
}

void Box::drop()
{
    int *old = held_;

    held_ = nullptr; //@drop
    delete old; //@free
}

} // namespace store
