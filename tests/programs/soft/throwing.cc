// SPDX-License-Identifier: MIT
// A loop that throws, catches and has objects to destroy, called once and run for long.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static volatile unsigned sink;

struct guard {
    unsigned *count;
    explicit guard(unsigned *c) : count(c) { ++*count; }
    ~guard() { *count += 2; }
};

static __attribute__((noinline)) unsigned checked(unsigned n)
{
    if (n % 9 == 4)
        throw std::runtime_error(std::to_string(n));
    return n % 4 ? n : n + 1;
}

static __attribute__((noinline)) unsigned run(unsigned n, std::vector<std::string> words)
{
    unsigned count = 0, caught = 0;
    guard outer(&count);

    for (unsigned i = 0; i < n; i++) {
        guard inner(&count);
        try {
            auto held = std::make_unique<unsigned>(i);
            count += checked(*held);
            words[i % words.size()] += static_cast<char>('a' + i % 26);
            if (words[i % words.size()].size() > 20)
                words[i % words.size()].clear();
        } catch (const std::exception &e) {
            caught += static_cast<unsigned>(std::atoi(e.what()));
        }
        sink = sink + 1;
    }
    for (const auto &w : words)
        count += static_cast<unsigned>(w.size());
    return count + caught;
}

// Leaves the loop by an exception.
static __attribute__((noinline)) unsigned thrown(unsigned n)
{
    unsigned sum = 0;

    for (unsigned i = 1;; i++) {
        sum += i % 3 ? i : 2;
        if (i == n)
            throw sum;
    }
}

static void all(unsigned n, unsigned *result)
{
    *result = run(n, {"one", "two", "three"});
    try {
        thrown(n);
    } catch (unsigned sum) {
        *result += sum;
    }
}

int main(int argc, char **argv)
{
    unsigned n = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 3000, result[2];
    std::thread t(all, n, &result[0]);

    t.join();
    all(n, &result[1]);
    std::printf("%u %u\n", result[0], result[1]);
}
