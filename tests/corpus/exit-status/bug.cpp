// SPDX-License-Identifier: MIT
// A deposit reads the balance and writes it back later; a fee that is charged in between is lost, and the audit ends with 1.
#include "../corpus.h"

#include <memory>
#include <string>
#include <utility>

namespace bank {

class Account {
public:
    explicit Account(long balance) : balance_(balance) {}

    void deposit(long amount)
    {
        Guard guard(lock_);
        const long before = balance_; //@read
        window(200); // the entry is written to the journal
        balance_ = before + amount; //@write
    }

    void charge(long fee)
    {
#ifdef FIXED
        Guard guard(lock_);
#endif
        balance_ -= fee; //@fee
    }

    long balance() const { return balance_; }

private:
    class Guard {
    public:
        explicit Guard(pthread_mutex_t &lock) : lock_(lock) { pthread_mutex_lock(&lock_); }
        ~Guard() { pthread_mutex_unlock(&lock_); }

    private:
        pthread_mutex_t &lock_;
    };

    pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
    long balance_;
};

// Says at its end what took place.
class Audit {
public:
    explicit Audit(std::string title) : title_(std::move(title)) {}
    ~Audit() { printf("%s: %ld found\n", title_.c_str(), found_); }

    bool matches(long found, long expected)
    {
        found_ = found;
        return found == expected; //@compare
    }

private:
    std::string title_;
    long found_ = 0;
};

} // namespace bank

static void *fees(void *arg)
{
    window(400);
    static_cast<bank::Account *>(arg)->charge(5); //@charge
    return nullptr;
}

int main()
{
    auto account = std::make_unique<bank::Account>(100);
    bank::Audit audit("evening audit");
    pthread_t thread;

    if (pthread_create(&thread, nullptr, fees, account.get()) != 0)
        return 3;
    window(200);
    account->deposit(50);
    pthread_join(thread, nullptr);
    if (!audit.matches(account->balance(), 145)) //@audit
        return 1; //@fail
    return 0;
}
