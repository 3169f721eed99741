// SPDX-License-Identifier: MIT
// C++ exceptions through several frames with destructors, caught, rethrown, and virtual calls.
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

static int destroyed;

struct Witness {
    ~Witness()
    {
        destroyed++;
    }
};

struct Shape {
    virtual ~Shape() = default;
    virtual int area() const = 0;
};

struct Square : Shape {
    explicit Square(int n) : side(n)
    {
    }
    int area() const override
    {
        return side * side;
    }
    int side;
};

struct Line : Shape {
    int area() const override
    {
        throw std::domain_error("a line");
    }
};

static int dive(int n)
{
    Witness witness;

    if (n == 0)
        throw std::runtime_error("bottom");
    return dive(n - 1) + 1;
}

static int attempt(int n)
{
    try {
        return dive(n);
    } catch (const std::runtime_error &) {
        if (n % 3 == 0)
            throw;
        return n;
    }
}

int main()
{
    int sum = 0;

    for (int i = 1; i < 30; i++) {
        std::unique_ptr<Shape> shape;

        if (i % 4)
            shape = std::make_unique<Square>(i);
        else
            shape = std::make_unique<Line>();
        try {
            sum += attempt(i);
            sum += shape->area();
        } catch (const std::exception &e) {
            sum += static_cast<int>(std::string(e.what()).size());
        }
    }
    std::printf("exceptions %d %d\n", sum, destroyed);
}
