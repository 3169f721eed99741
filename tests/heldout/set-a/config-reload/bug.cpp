/* SPDX-License-Identifier: MIT */
#include <cstdio>
#include <ctime>
#include <pthread.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace config {

class Lock {
public:
    explicit Lock(pthread_mutex_t *mutex) : mutex_(mutex) { pthread_mutex_lock(mutex_); }
    ~Lock() { pthread_mutex_unlock(mutex_); }
    Lock(const Lock &) = delete;
    Lock &operator=(const Lock &) = delete;

private:
    pthread_mutex_t *mutex_;
};

struct Address {
    std::string host;
    int port = 0;
};

class Store {
public:
    void set(const Address &address)
    {
        Lock lock(&mutex_);
        address_ = address; //@set
    }

    std::string host() const
    {
        Lock lock(&mutex_);
        return address_.host; //@host
    }

    int port() const
    {
        Lock lock(&mutex_);
        return address_.port; //@port
    }

    Address address() const
    {
        Lock lock(&mutex_);
        return address_;
    }

private:
    mutable pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
    Address address_;
};

Address parse(const std::string &line)
{
    const std::size_t colon = line.find(':');

    return {line.substr(0, colon), std::stoi(line.substr(colon + 1))};
}

} // namespace config

namespace {

void doze(unsigned most)
{
    timespec now{};

    clock_gettime(CLOCK_MONOTONIC, &now);
    usleep(static_cast<unsigned>(now.tv_nsec / 50) % most);
}

class Dialer {
public:
    explicit Dialer(const config::Store &store) : store_(store) {}

    std::string dial()
    {
#ifdef FIXED
        const config::Address target = store_.address();
#else
        config::Address target;
        target.host = store_.host(); //@first
        resolve(target.host);
        target.port = store_.port(); //@second
#endif
        return target.host + ":" + std::to_string(target.port); //@join
    }

private:
    void resolve(const std::string &host) const { doze(static_cast<unsigned>(host.size()) * 3); }

    const config::Store &store_;
};

struct Client {
    Dialer dialer;
    std::vector<std::string> dialed;
};

void *dial_all(void *argument)
{
    auto *client = static_cast<Client *>(argument);

    for (int i = 0; i < 4; i++) {
        client->dialed.push_back(client->dialer.dial()); //@dialed
        doze(900);
    }
    return nullptr;
}

void *reload(void *argument)
{
    doze(2000);
    static_cast<config::Store *>(argument)->set(config::parse("beta.example:9002")); //@reload
    return nullptr;
}

} // namespace

int main()
{
    config::Store store;
    Client client{Dialer(store), {}};
    pthread_t threads[2];

    store.set(config::parse("alpha.example:9001"));
    pthread_create(&threads[0], nullptr, dial_all, &client);
    pthread_create(&threads[1], nullptr, reload, &store);
    for (pthread_t thread : threads)
        pthread_join(thread, nullptr);
    for (const std::string &name : client.dialed)
        std::printf("dial %s\n", name.c_str()); //@print
    return 0;
}
