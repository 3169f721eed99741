/* SPDX-License-Identifier: MIT */ // Hedged lookups: every query goes to two replicas, the first answer wins.
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

struct Answer {
    int replica = -1;
    uint64_t value = 0;
};

class Query {
public:
    explicit Query(uint64_t key) : key_(key) {}

    uint64_t key() const { return key_; }
    std::future<Answer> future() { return promise_.get_future(); }
    bool settled() const { return settled_.load(); }

    // True for the replica whose answer is to be delivered.
    bool claim(int replica) {
#ifdef FIXED
        if (settled_.exchange(true))
            return false;
#else
        if (settled_.load())
            return false;
        settled_.store(true);
#endif
        winner_.store(replica);
        return true;
    }

    void deliver(const Answer& a) { promise_.set_value(a); }

private:
    uint64_t key_;
    std::atomic<bool> settled_{false};
    std::atomic<int> winner_{-1};
    std::promise<Answer> promise_;
};

using QueryPtr = std::shared_ptr<Query>;

class Inbox {
public:
    void put(QueryPtr q) {
        {
            std::lock_guard<std::mutex> g(m_);
            items_.push_back(std::move(q));
        }
        cv_.notify_one();
    }

    // An empty pointer says: closed and drained.
    QueryPtr take() {
        std::unique_lock<std::mutex> g(m_);
        cv_.wait(g, [this] { return closed_ || !items_.empty(); });
        if (items_.empty())
            return nullptr;
        QueryPtr q = std::move(items_.front());
        items_.pop_front();
        return q;
    }

    void close() {
        {
            std::lock_guard<std::mutex> g(m_);
            closed_ = true;
        }
        cv_.notify_all();
    }

private:
    std::mutex m_;
    std::condition_variable cv_;
    std::deque<QueryPtr> items_;
    bool closed_ = false;
};

class Replica {
public:
    Replica(int id, uint64_t seed) : id_(id), noise_(seed), thread_([this] { run(); }) {}
    ~Replica() { thread_.join(); }

    Inbox& inbox() { return inbox_; }
    unsigned long wins() const { return wins_; }
    unsigned long late() const { return late_; }

private:
    uint64_t lookup(uint64_t key) {
        noise_ ^= noise_ << 13;
        noise_ ^= noise_ >> 7;
        noise_ ^= noise_ << 17;
        uint64_t h = key;
        for (unsigned i = 0, n = 300 + noise_ % 200; i < n; i++)
            h = (h ^ (h >> 31)) + i * 0x9e3779b97f4a7c15ull;
        return key * key + 17;
    }

    void run() {
        while (QueryPtr q = inbox_.take()) {
            if (q->settled()) {
                late_++;
                continue;
            }
            Answer a;
            a.replica = id_;
            a.value = lookup(q->key());
            if (q->claim(id_)) {
                wins_++;
                q->deliver(a);
            } else {
                late_++;
            }
        }
    }

    int id_;
    uint64_t noise_;
    unsigned long wins_ = 0, late_ = 0;
    Inbox inbox_;
    std::thread thread_;
};

int main() {
    const int kQueries = 500;
    int wrong = 0;
    int from[2] = {0, 0};
    {
        Replica a(0, 88172645463325252ull), b(1, 362436069362436069ull);
        for (int i = 0; i < kQueries; i++) {
            auto q = std::make_shared<Query>(static_cast<uint64_t>(i));
            auto f = q->future();
            a.inbox().put(q);
            b.inbox().put(q);
            q.reset();
            Answer ans = f.get();
            from[ans.replica]++;
            if (ans.value != static_cast<uint64_t>(i) * i + 17)
                wrong++;
        }
        a.inbox().close();
        b.inbox().close();
    }
    std::printf("%d queries, replica 0: %d, replica 1: %d, wrong: %d\n", kQueries, from[0],
                from[1], wrong);
    return wrong ? 1 : 0;
}
