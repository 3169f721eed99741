// SPDX-License-Identifier: MIT
// Crashes below main, in a member function of a template, where it has no argument.
#include <string>
#include <vector>

template <typename T> struct Shelf {
    std::vector<T *> items;
    T *first = nullptr;

    void put(T *item)
    {
        items.push_back(item);
        if (items.size() > 2)
            first = items[0];
    }
    int weigh() const { return *first + static_cast<int>(items.size()); }
};

static int fill(Shelf<int> &shelf, int n)
{
    static int values[4] = {1, 2, 3, 4};

    for (int i = 0; i < n; i++)
        shelf.put(&values[i]);
    return shelf.weigh();
}

int main(int argc, char **)
{
    Shelf<int> shelf;
    std::string name(static_cast<size_t>(argc), 'x');

    return fill(shelf, argc > 1 ? 3 : 2) + static_cast<int>(name.size()) - 6;
}
