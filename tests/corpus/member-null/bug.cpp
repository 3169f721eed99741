// SPDX-License-Identifier: MIT
// A panel hands its theme to a widget that is added, but forgets to when a widget is put in front.
#include "../corpus.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gui {

struct Theme {
    int font_size;
    int margin;
};

class Widget {
public:
    Widget() : theme_(nullptr) {} //@null
    virtual ~Widget() = default;
    virtual int height() const = 0;
    virtual void attach(const Theme *theme) { this->theme_ = theme; } //@attach

protected:
    const Theme *theme_;
};

class Label : public Widget {
public:
    explicit Label(std::string text) : text_(std::move(text)) {} //@label

    int height() const override
    {
        return this->theme_->font_size + padding(); //@use
    }

protected:
    virtual int padding() const { return 4; }

private:
    std::string text_;
};

class Button : public Label {
public:
    using Label::Label;

protected:
    int padding() const override { return 8; }
};

class Panel : public Widget {
public:
    explicit Panel(const Theme &theme) { this->theme_ = &theme; }

    void add(std::unique_ptr<Widget> widget)
    {
        widget->attach(this->theme_); //@adopt
        children_.push_back(std::move(widget));
    }

    void add_front(std::unique_ptr<Widget> widget)
    {
#ifdef FIXED
        widget->attach(this->theme_);
#endif
        children_.insert(children_.begin(), std::move(widget)); //@insert
    }

    int height() const override
    {
        int sum = 2 * this->theme_->margin;
        for (const auto &child : children_)
            sum += child->height(); //@child
        return sum;
    }

private:
    std::vector<std::unique_ptr<Widget>> children_;
};

} // namespace gui

int main()
{
    const gui::Theme theme = {12, 6};
    gui::Panel panel(theme);
    const bool first_start = draw(3) == 0; //@input

    panel.add(std::make_unique<gui::Label>("Really quit?"));
    panel.add(std::make_unique<gui::Button>("Quit"));
    if (first_start) //@first
        panel.add_front(std::make_unique<gui::Label>("Welcome!")); //@front
    return panel.height() > 0 ? 0 : 2; //@layout
}
