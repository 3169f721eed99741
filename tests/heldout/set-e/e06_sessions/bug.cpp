/* SPDX-License-Identifier: MIT */ // Login front end: several acceptor threads hand out session numbers from
// a rotating range; the audit walks over what they wrote down.
#include <array>
#include <atomic>
#include <cassert>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

// Numbers 0 .. kSessions-1, in turn, then from the start again.
class Rotor {
public:
    static constexpr unsigned kSessions = 32;

    unsigned next() {
#ifdef FIXED
        return cursor_.fetch_add(1) % kSessions;
#else
        if (cursor_.load() == kSessions)
            cursor_.store(0);
        return cursor_.fetch_add(1);
#endif
    }

private:
    std::atomic<unsigned> cursor_{0};
};

struct LogEntry {
    unsigned session;
    uint32_t user;
    uint64_t token;
};

class Log {
public:
    void append(const LogEntry& e) {
        std::lock_guard<std::mutex> g(m_);
        entries_.push_back(e);
    }

    const std::vector<LogEntry>& entries() const { return entries_; }

private:
    std::mutex m_;
    std::vector<LogEntry> entries_;
};

class Acceptor {
public:
    Acceptor(int id, int logins, Rotor& rotor, Log& log)
        : id_(id), logins_(logins), rotor_(rotor), log_(log) {}

    void operator()() {
        for (int i = 0; i < logins_; i++) {
            uint32_t user = static_cast<uint32_t>(id_) << 16 | static_cast<uint32_t>(i);
            uint64_t proof = handshake(user);
            LogEntry e;
            e.session = rotor_.next();
            e.user = user;
            e.token = proof ^ e.session;
            log_.append(e);
        }
    }

private:
    // Challenge and response: some rounds of mixing.
    static uint64_t handshake(uint32_t user) {
        uint64_t h = user * 0x9e3779b97f4a7c15ull;
        for (unsigned r = 0; r < 400 + user % 37; r++) {
            h ^= h >> 29;
            h *= 0xbf58476d1ce4e5b9ull;
            h ^= h >> 32;
        }
        return h;
    }

    int id_, logins_;
    Rotor& rotor_;
    Log& log_;
};

class Audit {
public:
    void replay(const std::vector<LogEntry>& log) {
        for (const LogEntry& e : log)
            take(e);
    }

    void report() const {
        unsigned busiest = 0;
        for (unsigned s = 0; s < use_.size(); s++)
            if (use_[s].logins > use_[busiest].logins)
                busiest = s;
        std::printf("%u logins, session %u was used most often (%u times)\n", total_, busiest,
                    use_[busiest].logins);
    }

private:
    struct Use {
        unsigned logins = 0;
        uint32_t last_user = 0;
        uint64_t tokens = 0;
    };

    Use& use(unsigned session) {
        assert(session < use_.size());
        return use_[session];
    }

    void take(const LogEntry& e) {
        Use& u = use(e.session);
        u.logins++;
        u.last_user = e.user;
        u.tokens ^= e.token;
        total_++;
    }

    std::array<Use, Rotor::kSessions> use_;
    unsigned total_ = 0;
};

int main() {
    const int kAcceptors = 3, kLogins = 250;
    Rotor rotor;
    Log log;
    std::vector<std::thread> threads;

    for (int i = 0; i < kAcceptors; i++)
        threads.emplace_back(Acceptor(i, kLogins, rotor, log));
    for (auto& t : threads)
        t.join();

    Audit audit;
    audit.replay(log.entries());
    audit.report();
    return 0;
}
