/* SPDX-License-Identifier: MIT */ // Metrics with two banks of counters: the workers count into the active
// bank while the reporter writes out the other one.
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

enum Metric { kRequests, kErrors, kBytes, kCacheHits, kRetries, kMetrics };
static const char* const kNames[kMetrics] = {"requests", "errors", "bytes", "hits", "retries"};

struct Bank {
    std::array<std::atomic<long>, kMetrics> cell{};
};

class Registry {
public:
    Bank& active() { return banks_[active_.load()]; }

    // Make the other bank the active one, return the one in use so far.
    Bank& swap() {
        int old = active_.load();
        active_.store(1 - old);
        return banks_[old];
    }

private:
    std::array<Bank, 2> banks_;
    std::atomic<int> active_{0};
};

class Reporter {
public:
    explicit Reporter(Registry& reg) : reg_(reg) { sums_.fill(0); }

    void flush() {
        Bank& b = reg_.swap();
        std::string line = "flush";
        for (int m = 0; m < kMetrics; m++) {
#ifdef FIXED
            long n = b.cell[m].exchange(0);
#else
            long n = b.cell[m].load();
#endif
            if (n == 0)
                continue;
            sums_[m] += n;
            line += std::string(" ") + kNames[m] + "=" + std::to_string(n);
        }
        lines_.push_back(line);
#ifndef FIXED
        for (auto& c : b.cell)
            c.store(0);
#endif
    }

    long sum(Metric m) const { return sums_[m]; }
    size_t flushes() const { return lines_.size(); }

private:
    Registry& reg_;
    std::array<long, kMetrics> sums_;
    std::vector<std::string> lines_;
};

class Worker {
public:
    Worker(unsigned id, int requests, Registry& reg) : x_(id * 977 + 5), n_(requests), reg_(reg) {}

    void run() {
        for (int i = 0; i < n_; i++) {
            Bank& b = reg_.active();
            unsigned size = serve();
            b.cell[kRequests]++;
            b.cell[kBytes] += size;
            if (size % 13 == 0)
                b.cell[kErrors]++;
            if (size % 3 == 0)
                b.cell[kCacheHits]++;
            if (size % 50 == 0)
                b.cell[kRetries]++;
            served_++;
        }
        done_ = true;
    }

    long served() const { return served_; }
    bool done() const { return done_; }

private:
    unsigned serve() {
        unsigned len = 100;
        for (unsigned i = 0; i < 60 + x_ % 40; i++) {
            x_ = x_ * 1103515245u + 12345u;
            len += x_ >> 28;
        }
        return len;
    }

    unsigned x_;
    int n_;
    Registry& reg_;
    long served_ = 0;
    std::atomic<bool> done_{false};
};

int main() {
    const int kWorkers = 3, kRequestsEach = 4000;
    Registry reg;
    Reporter reporter(reg);
    std::vector<Worker*> workers;
    std::vector<std::thread> threads;

    for (unsigned i = 0; i < kWorkers; i++)
        workers.push_back(new Worker(i, kRequestsEach, reg));
    for (Worker* w : workers)
        threads.emplace_back(&Worker::run, w);

    for (bool busy = true; busy;) {
        busy = false;
        for (Worker* w : workers)
            busy |= !w->done();
        reporter.flush();
        std::this_thread::yield();
    }
    for (auto& t : threads)
        t.join();
    reporter.flush();
    reporter.flush();

    long served = 0;
    for (Worker* w : workers) {
        served += w->served();
        delete w;
    }
    std::printf("served %ld requests\n", served);
    std::printf("report: requests %ld errors %ld bytes %ld\n", reporter.sum(kRequests),
                reporter.sum(kErrors), reporter.sum(kBytes));
    return 0;
}
