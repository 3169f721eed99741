// SPDX-License-Identifier: MIT
// Ends by an exception that nobody catches, unless it has an argument.
#include <stdexcept>
#include <string>
#include <vector>

static int pick(const std::vector<int> &from, unsigned which)
{
    if (which >= from.size())
        throw std::out_of_range("no item " + std::to_string(which));
    return from[which];
}

int main(int argc, char **)
{
    std::vector<int> items{1, 2, 3};

    return pick(items, argc > 1 ? 1 : 7) - 2;
}
