/* SPDX-License-Identifier: MIT */ // Plans nightly transfers over some links: the largest first, each on the
// link that is free the earliest.  Then the plan is drawn as a time line.
#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>
#include <unistd.h>

struct Link {
    std::string name;
    int kbit_per_s;
    long free_at = 0;           // ms since the start
};

struct Transfer {
    std::string file;
    int kbytes;
    int link = -1;
    long start = 0, end = 0;    // ms
};

class Planner {
public:
    void add_link(std::string name, int kbit) { links_.push_back({std::move(name), kbit}); }

    void plan(std::vector<Transfer>& transfers) {
        std::sort(transfers.begin(), transfers.end(), [](const Transfer& a, const Transfer& b) {
            return a.kbytes > b.kbytes;
        });
        for (Transfer& t : transfers)
            place(t);
    }

    const std::vector<Link>& links() const { return links_; }

private:
    static int duration_ms(int kbytes, const Link& l) {
#ifdef FIXED
        return static_cast<int>(8000LL * kbytes / l.kbit_per_s);
#else
        return kbytes * 8 * 1000 / l.kbit_per_s;
#endif
    }

    void place(Transfer& t) {
        size_t best = 0;
        for (size_t i = 1; i < links_.size(); i++)
            if (links_[i].free_at < links_[best].free_at)
                best = i;
        Link& l = links_[best];
        t.link = static_cast<int>(best);
        t.start = l.free_at;
        t.end = t.start + duration_ms(t.kbytes, l) + kGap;
        l.free_at = t.end;
    }

    static constexpr long kGap = 20;
    std::vector<Link> links_;
};

class TimeLine {
public:
    explicit TimeLine(size_t links) : busy_(links) {}

    void mark(const Transfer& t) {
        auto& row = busy_[static_cast<size_t>(t.link)];
        size_t from = slot(t.start), to = slot(t.end);
        if (row.size() <= to)
            row.resize(to + 1, 0);
        for (size_t s = from; s <= to; s++)
            row[s] += 1;
    }

    void draw(const std::vector<Link>& links) const {
        for (size_t i = 0; i < links.size(); i++) {
            std::printf("%-8s ", links[i].name.c_str());
            for (int n : busy_[i])
                std::putchar(n == 0 ? '.' : n == 1 ? '#' : '+');
            std::putchar('\n');
        }
    }

private:
    static size_t slot(long ms) {
        assert(ms >= 0);
        return static_cast<size_t>(ms / 20000);
    }

    std::vector<std::vector<int>> busy_;
};

static std::vector<Transfer> tonight(unsigned seed) {
    static const char* const kinds[] = {"mail", "web", "db", "home", "media"};
    std::mt19937 rng(seed);
    std::vector<Transfer> list;
    size_t n = 8 + rng() % 12;
    for (size_t i = 0; i < n; i++) {
        unsigned kind = rng() % 5;
        Transfer t;
        t.file = std::string(kinds[kind]) + "-" + std::to_string(i) + ".tar";
        t.kbytes = 2000 + static_cast<int>(rng() % 90000);
        if (kind == 4)
            t.kbytes += static_cast<int>(rng() % 260000);
        list.push_back(t);
    }
    return list;
}

int main(int argc, char** argv) {
    unsigned seed;
    if (argc > 1) {
        seed = static_cast<unsigned>(std::atoi(argv[1]));
    } else {
        auto t = std::chrono::steady_clock::now().time_since_epoch();
        seed = static_cast<unsigned>(
            std::chrono::duration_cast<std::chrono::microseconds>(t).count() * 31 + getpid());
    }

    Planner planner;
    planner.add_link("fibre", 9000);
    planner.add_link("dsl-1", 4000);
    planner.add_link("dsl-2", 3000);

    std::vector<Transfer> transfers = tonight(seed);
    planner.plan(transfers);

    TimeLine line(planner.links().size());
    for (const Transfer& t : transfers)
        line.mark(t);
    line.draw(planner.links());

    long last = 0;
    for (const Transfer& t : transfers)
        last = std::max(last, t.end);
    std::printf("%zu transfers, done after %ld s\n", transfers.size(), last / 1000);
    return 0;
}
