/* SPDX-License-Identifier: MIT */
/* Pairs of shelves are locked by their rank, and ranks can be swapped: sometimes two threads wait for each other for ever. */
#include <atomic>
#include <cstdio>
#include <mutex>
#include <thread>

struct Shelf {
    Shelf(int number, int rank) : number(number), rank(rank) {}
    const int number;
    std::atomic<int> rank;
    std::mutex lock;
    int goods = 10;
};

class Store {
public:
    void carry(Shelf &from, Shelf &to, int count)
    {
        Shelf *first = &from;
        Shelf *second = &to;

        if (before(to, from)) //@order
            std::swap(first, second);
        std::lock_guard<std::mutex> outer(first->lock); //@outer
        std::lock_guard<std::mutex> inner(second->lock); //@inner
        from.goods -= count;
        to.goods += count;
    }

    void promote(Shelf &shelf, Shelf &over)
    {
        const int rank = shelf.rank.load();
        shelf.rank.store(over.rank.load()); //@swap
        over.rank.store(rank); //@swap2
    }

private:
    static bool before(const Shelf &a, const Shelf &b)
    {
        return a.rank.load() < b.rank.load(); //@rank
    }
};

int main()
{
    Store store;
    Shelf tea(1, 1), coffee(2, 2);

    std::thread one([&] { store.carry(tea, coffee, 3); });
    std::thread two([&] {
        store.promote(coffee, tea);
        store.carry(coffee, tea, 2);
    });
    one.join();
    two.join();
    std::printf("%d tea, %d coffee\n", tea.goods, coffee.goods);
    return tea.goods + coffee.goods == 20 ? 0 : 1;
}
