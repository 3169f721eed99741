// SPDX-License-Identifier: MIT
// The profile is loaded by std::async; the window is laid out without waiting for the future.
#include "../corpus.h"

#include <future>
#include <memory>
#include <string>

namespace ui {

struct Profile {
    int font_size;
    std::string theme;
};

class Session {
public:
    Session() : profile_(nullptr) {} //@empty

    void open(const std::string &user)
    {
        loading_ = std::async(std::launch::async, [this, user] { load(user); }); //@launch
    }

    int line_height()
    {
#ifdef FIXED
        loading_.wait();
#endif
        return profile_->font_size * 3 / 2; //@use
    }

private:
    void load(const std::string &user)
    {
        auto profile = std::make_unique<Profile>();
        profile->font_size = 12;
        profile->theme = user == "root" ? "red" : "plain";
        window(400); // the file is read
        profile_ = std::move(profile); //@publish
    }

    std::unique_ptr<Profile> profile_;
    std::future<void> loading_;
};

class Window {
public:
    explicit Window(Session &session) : session_(session) {}

    int layout(int lines)
    {
        return lines * session_.line_height(); //@layout
    }

private:
    Session &session_;
};

} // namespace ui

int main()
{
    ui::Session session;
    ui::Window window_of(session);

    session.open("alice");
    window(600); // the window is mapped
    const int height = window_of.layout(24);
    printf("%d pixels\n", height);
    return height == 24 * 18 ? 0 : 2;
}
