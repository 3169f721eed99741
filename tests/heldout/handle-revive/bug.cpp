// SPDX-License-Identifier: MIT
// The registry looks up a texture and only then counts the new reference: the last other one may be dropped in between.
#include "../corpus.h"

#include <array>
#include <atomic>
#include <cassert>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace gfx {

class Registry;

class Texture {
public:
    void setup(Registry *registry, std::string name)
    {
        registry_ = registry;
        name_ = std::move(name);
        references_ = 0; //@setup
    }

    void first() { references_ = 1; } //@first

    void retain()
    {
        const int before = references_.fetch_add(1); //@retain
        assert(before > 0); //@check
        (void)before;
    }

    void release();
    bool retain_if_alive()
    {
        int seen = references_;
        while (seen > 0)
            if (references_.compare_exchange_weak(seen, seen + 1))
                return true;
        return false;
    }
    const std::string &name() const { return name_; }

private:
    std::atomic<int> references_{0};
    Registry *registry_ = nullptr;
    std::string name_;
};

// Holds one reference, which was already counted.
template <typename T>
class Handle {
public:
    explicit Handle(T *object = nullptr) : object_(object) {}
    Handle(Handle &&other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Handle &operator=(Handle &&other) noexcept
    {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Handle() { reset(); }

    void reset()
    {
        if (T *object = std::exchange(object_, nullptr))
            object->release(); //@drop
    }
    explicit operator bool() const { return object_ != nullptr; }
    T *operator->() const { return object_; }

private:
    T *object_;
};

class Registry {
public:
    Handle<Texture> load(const std::string &name)
    {
        std::lock_guard<std::mutex> guard(lock_);
        Texture &texture = textures_.at(used_++);
        texture.setup(this, name);
        texture.first();
        by_name_[name] = &texture; //@enter
        return Handle<Texture>(&texture);
    }

    Handle<Texture> find(const std::string &name)
    {
        Texture *texture = lookup(name); //@lookup
        if (!texture)
            return Handle<Texture>();
        window(150); // the format is compared
#ifdef FIXED
        if (!texture->retain_if_alive())
            return Handle<Texture>();
#else
        texture->retain(); //@share
#endif
        return Handle<Texture>(texture);
    }

    void forget(const Texture &texture)
    {
        std::lock_guard<std::mutex> guard(lock_);
        by_name_.erase(texture.name()); //@forget
    }

private:
    Texture *lookup(const std::string &name)
    {
        std::lock_guard<std::mutex> guard(lock_);
        const auto found = by_name_.find(name);
        return found == by_name_.end() ? nullptr : found->second; //@found
    }

    std::array<Texture, 4> textures_;
    std::size_t used_ = 0;
    std::map<std::string, Texture *> by_name_;
    std::mutex lock_;
};

void Texture::release()
{
    if (references_.fetch_sub(1) == 1) //@last
        registry_->forget(*this);
}

} // namespace gfx

int main()
{
    gfx::Registry registry;
    gfx::Handle<gfx::Texture> wall = registry.load("brick");

    std::thread renderer([&registry] {
        window(200);
        if (auto brick = registry.find("brick"))
            printf("%s\n", brick->name().c_str());
    });
    window(500);
    wall.reset(); //@unload
    renderer.join();
    return 0;
}
