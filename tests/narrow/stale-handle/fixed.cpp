/* SPDX-License-Identifier: MIT */
/* Objects are named by handles that go stale when a slot is used again: sometimes a stale one writes, and the program exits with 2. */
#include <array>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <thread>

struct Handle {
    std::uint32_t slot;
    std::uint32_t generation;
};

class Registry {
public:
    Handle open(int owner)
    {
        std::lock_guard<std::mutex> guard(lock_);
        for (std::uint32_t i = 0; i < slots_.size(); i++)
            if (!slots_[i].used) {
                slots_[i] = {true, slots_[i].generation + 1, owner, 0};
                return {i, slots_[i].generation};
            }
        return {0, 0};
    }

    void close(Handle handle)
    {
        std::lock_guard<std::mutex> guard(lock_);
        if (matches(handle))
            slots_[handle.slot].used = false;
    }

    bool valid(Handle handle)
    {
        std::lock_guard<std::mutex> guard(lock_);
        return matches(handle);
    }

    void add(Handle handle, int amount)
    {
        std::lock_guard<std::mutex> guard(lock_);
        if (!matches(handle))
            return;
        slots_[handle.slot].amount += amount;
    }

    int amount(Handle handle)
    {
        std::lock_guard<std::mutex> guard(lock_);
        return matches(handle) ? slots_[handle.slot].amount : 0;
    }

private:
    struct Slot {
        bool used;
        std::uint32_t generation;
        int owner;
        int amount;
    };

    bool matches(Handle h) const { return slots_[h.slot].used && slots_[h.slot].generation == h.generation; }

    std::mutex lock_;
    std::array<Slot, 2> slots_{};
};

int main()
{
    Registry registry;
    const Handle first = registry.open(1);
    Handle second{};

    std::thread payer([&] {
        if (registry.valid(first)) {
            registry.add(first, 40);
        }
    });
    std::thread clerk([&] {
        registry.close(first);
        second = registry.open(2);
    });
    payer.join();
    clerk.join();
    std::printf("new account has %d\n", registry.amount(second));
    if (registry.amount(second) != 0)
        return 2;
    return 0;
}
