/* SPDX-License-Identifier: MIT */ // Fan-out of messages to several subscribers.  A message is built once and
// shared: it carries its own count of users, the last one frees it.
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

class Message {
public:
    Message(int id, int users, size_t size) : id_(id), users_(users), body_(size) {
        for (size_t i = 0; i < size; i++)
            body_[i] = static_cast<char>('a' + (i * 7 + id) % 26);
        live_++;
    }

    int id() const { return id_; }
    const char* subject() const { return subject_; }
    const std::vector<char>& body() const { return body_; }

    // To be called once by every user.
    void release() {
#ifdef FIXED
        if (users_.fetch_sub(1) == 1)
            delete this;
#else
        users_.fetch_sub(1);
        if (users_.load() == 0)
            delete this;
#endif
    }

    static int live() { return live_.load(); }

private:
    ~Message() { live_--; }

    int id_;
    const char* subject_ = "update";
    std::atomic<int> users_;
    std::vector<char> body_;
    static std::atomic<int> live_;
};

std::atomic<int> Message::live_{0};

class Mailbox {
public:
    void post(Message* m) {
        std::lock_guard<std::mutex> g(m_);
        items_.push_back(m);
        cv_.notify_one();
    }

    std::vector<Message*> collect() {
        std::unique_lock<std::mutex> g(m_);
        cv_.wait(g, [this] { return !items_.empty(); });
        std::vector<Message*> out;
        out.swap(items_);
        return out;
    }

private:
    std::mutex m_;
    std::condition_variable cv_;
    std::vector<Message*> items_;
};

class Subscriber {
public:
    explicit Subscriber(char letter) : letter_(letter) {}

    void start() { thread_ = std::thread(&Subscriber::run, this); }
    void post(Message* m) { box_.post(m); }
    void stop() {
        box_.post(nullptr);
        thread_.join();
    }

    int handled() const { return handled_; }
    long letters() const { return letters_; }

private:
    void run() {
        for (;;) {
            for (Message* m : box_.collect()) {
                if (!m)
                    return;
                handle(m);
            }
        }
    }

    void handle(Message* m) {
        for (char c : m->body())
            letters_ += c == letter_;
        last_ = m->id();
        handled_++;
        m->release();
    }

    char letter_;
    Mailbox box_;
    int handled_ = 0, last_ = -1;
    long letters_ = 0;
    std::thread thread_;
};

class Topic {
public:
    void attach(Subscriber& s) { subscribers_.push_back(&s); }

    void publish(int id, size_t size) {
        auto* m = new Message(id, static_cast<int>(subscribers_.size()), size);
        for (Subscriber* s : subscribers_)
            s->post(m);
    }

private:
    std::vector<Subscriber*> subscribers_;
};

int main() {
    const int kMessages = 150;
    Subscriber a('a'), b('e'), c('z');
    Subscriber* all[] = {&a, &b, &c};
    Topic topic;

    for (Subscriber* s : all) {
        topic.attach(*s);
        s->start();
    }
    for (int i = 0; i < kMessages; i++)
        topic.publish(i, 2000 + i * 13 % 900);
    for (Subscriber* s : all)
        s->stop();
    for (Subscriber* s : all)
        std::printf("%d messages, %ld letters\n", s->handled(), s->letters());
    std::printf("%d messages left\n", Message::live());
    return Message::live() == 0 ? 0 : 1;
}
