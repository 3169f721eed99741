/* SPDX-License-Identifier: MIT */ // Counts log levels and status codes of a web log with several threads and
// prints a report.  The shared table is safe for use by many threads.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

class Table {
public:
    long get(const std::string& key) const {
        std::lock_guard<std::mutex> g(m_);
        auto it = rows_.find(key);
        return it == rows_.end() ? 0 : it->second;
    }

    void put(const std::string& key, long value) {
        std::lock_guard<std::mutex> g(m_);
        rows_[key] = value;
    }

    void add(const std::string& key, long value) {
        std::lock_guard<std::mutex> g(m_);
        rows_[key] += value;
    }

    std::map<std::string, long> snapshot() const {
        std::lock_guard<std::mutex> g(m_);
        return rows_;
    }

private:
    mutable std::mutex m_;
    std::map<std::string, long> rows_;
};

static std::vector<std::string> make_log(int lines, unsigned seed) {
    static const char* const levels[] = {"info", "info", "info", "warn", "error"};
    static const int codes[] = {200, 200, 200, 204, 304, 404, 500};
    std::mt19937 rng(seed);
    std::vector<std::string> log;
    for (int i = 0; i < lines; i++) {
        std::ostringstream os;
        os << levels[rng() % 5] << " GET /item/" << rng() % 100 << ' ' << codes[rng() % 7] << ' '
           << rng() % 2000;
        log.push_back(os.str());
    }
    return log;
}

struct Entry {
    std::string level, code;
    long bytes = 0;
};

static bool parse(const std::string& line, Entry& e) {
    std::istringstream is(line);
    std::string verb, path;
    return static_cast<bool>(is >> e.level >> verb >> path >> e.code >> e.bytes);
}

class Counter {
public:
    Counter(const std::vector<std::string>& log, size_t from, size_t to, Table& out)
        : log_(log), from_(from), to_(to), out_(out) {}

    void run() {
        for (size_t i = from_; i < to_; i++) {
            Entry e;
            if (!parse(log_[i], e))
                continue;
            local_["level " + e.level]++;
            local_["code " + e.code]++;
            local_["bytes"] += e.bytes;
            if (++pending_ == kBatch)
                flush();
        }
        flush();
    }

private:
    void flush() {
        for (const auto& [key, n] : local_)
            merge(key, n);
        local_.clear();
        pending_ = 0;
    }

    void merge(const std::string& key, long n) {
#ifdef FIXED
        out_.add(key, n);
#else
        long sum = out_.get(key) + n;
        out_.put(key, sum);
#endif
    }

    static constexpr int kBatch = 8;
    const std::vector<std::string>& log_;
    size_t from_, to_;
    Table& out_;
    std::map<std::string, long> local_;
    int pending_ = 0;
};

static void report(const Table& table, size_t lines) {
    long levels = 0, codes = 0;
    for (const auto& [key, n] : table.snapshot()) {
        std::printf("%-14s %8ld\n", key.c_str(), n);
        if (key.rfind("level ", 0) == 0)
            levels += n;
        if (key.rfind("code ", 0) == 0)
            codes += n;
    }
    std::printf("lines %zu, by level %ld, by code %ld\n", lines, levels, codes);
}

int main() {
    const int kThreads = 4;
    auto log = make_log(6000, 42);
    Table table;
    std::vector<Counter> counters;
    std::vector<std::thread> threads;
    size_t step = log.size() / kThreads;

    for (int i = 0; i < kThreads; i++)
        counters.emplace_back(log, i * step, i + 1 == kThreads ? log.size() : (i + 1) * step,
                              table);
    for (auto& c : counters)
        threads.emplace_back(&Counter::run, &c);
    for (auto& t : threads)
        t.join();
    report(table, log.size());
    return 0;
}
