// SPDX-License-Identifier: MIT
// Objects of the C++ library in all the ways that a program reaches them. Nothing fails here: the test asks for the slices.
#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

struct Node {
    int weight = 1;
};

class Base {
public:
    virtual ~Base() = default;

protected:
    int level_ = 0;
};

class Store : public Base {
public:
    explicit Store(std::string name) : name_(std::move(name)) {}

    void fill()
    {
        shared_ = std::make_shared<Node>();
        unique_ = std::make_unique<Node>();
        list_.push_back(1);
        hits_.fetch_add(1);
        best_ = 3;
        level_++;
    }

    int sum() const
    {
        if (!shared_) //@shared
            abort();
        if (!unique_) //@unique
            abort();
        if (list_.empty()) //@vector
            abort();
        if (hits_.load() > 5) //@atomic
            abort();
        if (!best_.has_value()) //@optional
            abort();
        if (name_.size() == 0) //@string
            abort();
        if (level_ < 0) //@base
            abort();
        return unique_->weight; //@arrow
    }

private:
    std::string name_;
    std::shared_ptr<Node> shared_;
    std::unique_ptr<Node> unique_;
    std::vector<int> list_;
    std::atomic<int> hits_{0};
    std::optional<int> best_;
};

static int use(Store &store, const std::string &key)
{
    auto count = [&store] { return store.sum(); }; //@capture

    return count() + (key.size() > 3); //@reference
}

int main(int, char **argv)
{
    Store store("a");

    store.fill();
    return use(store, argv[0]) > 100;
}
