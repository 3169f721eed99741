/* SPDX-License-Identifier: MIT */ // Topic directory: topics come into being with their first subscriber.
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

struct Subscription {
    int client = 0;
    int quota = 0;
    long delivered = 0;
};

class Topic {
public:
    explicit Topic(unsigned id) : name_("topic-" + std::to_string(id)) {
        // permutation used to spread keys over the partitions
        uint32_t x = id * 747796405u + 1;
        spread_.resize(4096);
        for (size_t i = 0; i < spread_.size(); i++)
            spread_[i] = static_cast<uint16_t>(i);
        for (size_t i = spread_.size() - 1; i > 0; i--) {
            x = x * 1664525u + 1013904223u;
            std::swap(spread_[i], spread_[(x >> 8) % (i + 1)]);
        }
    }

    void subscribe(int client, int quota) {
        std::lock_guard<std::mutex> g(m_);
        Subscription& s = subs_[client];
        s.client = client;
        s.quota = quota;
    }

    Subscription& subscription(int client) {
        std::lock_guard<std::mutex> g(m_);
        return subs_.at(client);
    }

    size_t partition(uint32_t key) const { return spread_[key % spread_.size()] % 8; }
    const std::string& name() const { return name_; }

private:
    std::string name_;
    std::vector<uint16_t> spread_;
    std::mutex m_;
    std::map<int, Subscription> subs_;
};

class Directory {
public:
    static constexpr unsigned kTopics = 12;

    ~Directory() {
        for (auto& t : topics_)
            delete t.load();
    }

    Topic& topic(unsigned id) {
        Topic* t = topics_[id].load(std::memory_order_acquire);
        if (t)
            return *t;
#ifdef FIXED
        std::lock_guard<std::mutex> g(create_);
        if ((t = topics_[id].load()))
            return *t;
#endif
        t = new Topic(id);
        topics_[id].store(t, std::memory_order_release);
        created_++;
        return *t;
    }

    int created() const { return created_; }

private:
    std::array<std::atomic<Topic*>, kTopics> topics_{};
    std::atomic<int> created_{0};
    [[maybe_unused]] std::mutex create_;
};

class Client {
public:
    Client(int id, Directory& dir) : id_(id), dir_(dir) {}

    // Join the topics on our list.
    void join() {
        for (unsigned k = 0; k < 4; k++) {
            unsigned topic = (static_cast<unsigned>(id_) * 2 + k * 3) % Directory::kTopics;
            dir_.topic(topic).subscribe(id_, 10 + id_ * 5);
            joined_.push_back(topic);
        }
    }

    const std::vector<unsigned>& joined() const { return joined_; }
    int id() const { return id_; }

private:
    int id_;
    Directory& dir_;
    std::vector<unsigned> joined_;
};

// Hand out some messages to everybody who asked for them.
static long deliver(Directory& dir, const std::vector<Client>& clients, uint32_t messages) {
    long sent = 0;
    for (uint32_t m = 0; m < messages; m++) {
        for (const Client& c : clients) {
            for (unsigned id : c.joined()) {
                Topic& t = dir.topic(id);
                if (t.partition(m) != static_cast<size_t>(c.id()) % 8)
                    continue;
                Subscription& s = t.subscription(c.id());
                if (s.delivered < s.quota) {
                    s.delivered++;
                    sent++;
                }
            }
        }
    }
    return sent;
}

int main() {
    Directory dir;
    std::vector<Client> clients;
    std::vector<std::thread> threads;

    for (int i = 0; i < 6; i++)
        clients.emplace_back(i, dir);
    for (auto& c : clients)
        threads.emplace_back([&c] { c.join(); });
    for (auto& t : threads)
        t.join();

    long sent = deliver(dir, clients, 500);
    std::printf("%d topics, %ld messages sent\n", dir.created(), sent);
    return 0;
}
