// SPDX-License-Identifier: MIT
// Placing an order locks the book, then the stock; recalling an article locks the stock, then the book: both may wait for ever.
#include "../corpus.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace shop {

struct Order {
    std::string article;
    int count;
};

class Stock;

class OrderBook {
public:
    bool place(Stock &stock, const std::string &article, int count);
    std::size_t cancel(const std::string &article);
    std::size_t size() const
    {
        std::lock_guard<std::mutex> guard(lock_);
        return orders_.size();
    }

private:
    mutable std::mutex lock_;
    std::vector<Order> orders_;
};

class Stock {
public:
    void deliver(const std::string &article, int count)
    {
        std::lock_guard<std::mutex> guard(lock_);
        shelf_[article] += count;
    }

    bool reserve(const std::string &article, int count)
    {
        std::lock_guard<std::mutex> guard(lock_); //@stock2
        const auto found = shelf_.find(article);
        if (found == shelf_.end() || found->second < count)
            return false;
        found->second -= count;
        return true;
    }

    // Takes an article off the shelf, and cancels what was ordered of it.
    std::size_t recall(OrderBook &book, const std::string &article)
    {
#ifdef FIXED
        {
            std::lock_guard<std::mutex> guard(lock_);
            shelf_.erase(article);
        }
#else
        std::lock_guard<std::mutex> guard(lock_); //@stock1
        shelf_.erase(article);
#endif
        window(150); // the label is printed
        return book.cancel(article); //@cancel
    }

private:
    std::mutex lock_;
    std::map<std::string, int> shelf_;
};

bool OrderBook::place(Stock &stock, const std::string &article, int count)
{
    std::lock_guard<std::mutex> guard(lock_); //@book1
    window(150); // the customer is looked up
    if (!stock.reserve(article, count)) //@reserve
        return false;
    orders_.push_back({article, count});
    return true;
}

std::size_t OrderBook::cancel(const std::string &article)
{
    std::lock_guard<std::mutex> guard(lock_); //@book2
    const auto gone = std::remove_if(orders_.begin(), orders_.end(),
                                     [&article](const Order &order) { return order.article == article; });
    const auto count = static_cast<std::size_t>(orders_.end() - gone);
    orders_.erase(gone, orders_.end());
    return count;
}

} // namespace shop

int main()
{
    shop::Stock stock;
    shop::OrderBook book;

    stock.deliver("kettle", 3);
    stock.deliver("toaster", 5);
    std::thread customer([&stock, &book] {
        window(300);
        book.place(stock, "toaster", 1);
        window(100);
        book.place(stock, "kettle", 1);
    });
    std::thread clerk([&stock, &book] {
        window(1000);
        stock.recall(book, "toaster");
    });
    customer.join();
    clerk.join();
    return book.size() <= 2 ? 0 : 2;
}
