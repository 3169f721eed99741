// SPDX-License-Identifier: MIT
// C++ names: namespaces, templates, constructors, lambdas, exceptions, an inlined standard library.
#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace shop
{
template <typename T> struct Box {
    T value;
    explicit Box(T v) : value(v)
    {
        if (v == T{})
            throw std::invalid_argument("empty");
    }
    ~Box();
    T twice() const
    {
        return value + value;
    }
};
template <typename T> Box<T>::~Box()
{
    value = T{};
}

static int total(const std::vector<int> &v)
{
    int sum = 0;

    std::for_each(v.begin(), v.end(), [&sum](int x) { sum += Box<int>(x + 1).twice(); });
    return sum;
}
} // namespace shop

int main(int argc, char **argv)
{
    std::map<std::string, int> names;
    std::vector<int> v;

    for (int i = 0; i < 10 * argc; i++) {
        v.push_back(i);
        names[argv[0] + std::to_string(i)] = i;
    }
    std::sort(v.begin(), v.end(), [](int a, int b) { return a > b; });
    try {
        v.push_back(-1);
        return shop::total(v) + static_cast<int>(names.size());
    } catch (const std::exception &e) {
        return static_cast<int>(std::string(e.what()).size());
    }
}
