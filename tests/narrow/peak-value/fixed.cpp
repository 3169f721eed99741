/* SPDX-License-Identifier: MIT */
/* Threads report values and the largest is kept: sometimes a smaller one is kept and the program exits with 3. */
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

class Gauge {
public:
    void report(int value)
    {
        count_.fetch_add(1);
        int known = peak_.load();
        while (value > known && !peak_.compare_exchange_weak(known, value))
            ;
    }

    int peak() const { return peak_.load(); }
    int count() const { return count_.load(); }

private:
    std::atomic<int> peak_{0};
    std::atomic<int> count_{0};
};

class Probe {
public:
    Probe(Gauge &gauge, std::vector<int> values) : gauge_(gauge), values_(std::move(values)) {}

    void operator()() const
    {
        for (const int value : values_)
            gauge_.report(value);
    }

    int largest() const { return *std::max_element(values_.begin(), values_.end()); }

private:
    Gauge &gauge_;
    std::vector<int> values_;
};

int main()
{
    Gauge gauge;
    const Probe north(gauge, {3, 12, 7});
    const Probe south(gauge, {9, 15, 4});

    std::thread one(std::cref(north));
    std::thread two(std::cref(south));
    one.join();
    two.join();
    std::printf("peak %d of %d\n", gauge.peak(), gauge.count());
    if (gauge.peak() != std::max(north.largest(), south.largest()))
        return 3;
    return 0;
}
