/* SPDX-License-Identifier: MIT */ // Prints an order list as an aligned table; cells that contain separators
// or quotes are quoted.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <vector>
#include <unistd.h>

using Row = std::vector<std::string>;

class Quoter {
public:
    explicit Quoter(char separator) : separator_(separator) {}

    bool needed(const std::string& s) const {
        return s.find(separator_) != std::string::npos || s.find('"') != std::string::npos;
    }

    std::string operator()(const std::string& s) const {
        if (!needed(s))
            return s;
        std::string out = "\"";
        for (char c : s) {
            if (c == '"')
                out += '"';
            out += c;
        }
        return out + '"';
    }

private:
    char separator_;
};

enum class Align { Left, Right };

struct Column {
    std::string title;
    Align align;
    size_t width = 0;
};

class Table {
public:
    Table(std::vector<Column> columns, char separator)
        : columns_(std::move(columns)), quote_(separator), separator_(separator) {}

    void add(Row row) { rows_.push_back(std::move(row)); }

    void layout() {
        for (size_t c = 0; c < columns_.size(); c++) {
            columns_[c].width = columns_[c].title.size();
            for (const Row& r : rows_)
                columns_[c].width = std::max(columns_[c].width, extent(r[c]));
        }
    }

    void print(std::ostream& os) const {
        for (const Column& c : columns_)
            put(os, c, c.title);
        os << '\n';
        for (const Row& r : rows_) {
            for (size_t c = 0; c < columns_.size(); c++)
                put(os, columns_[c], quote_(r[c]));
            os << '\n';
        }
    }

private:
    size_t extent(const std::string& cell) const {
#ifdef FIXED
        return quote_(cell).size();
#else
        return cell.size();
#endif
    }

    void put(std::ostream& os, const Column& c, const std::string& text) const {
        std::string pad(c.width - text.size(), ' ');
        if (c.align == Align::Right)
            os << pad << text;
        else
            os << text << pad;
        os << ' ' << separator_ << ' ';
    }

    std::vector<Column> columns_;
    Quoter quote_;
    char separator_;
    std::vector<Row> rows_;
};

struct Item {
    const char* name;
    int cents;
};

static const Item stock[] = {
    {"hex bolt M8", 12},        {"washer, steel", 2},      {"clamp 3\"", 310},
    {"wire 1.5mm, red", 55},    {"cable tie", 4},          {"heat-shrink sleeve", 18},
    {"junction box IP54", 420}, {"socket", 260},           {"fuse 16A", 90},
    {"terminal block 12-way", 145},
};

static std::string money(long cents) {
    char buf[32];
    std::snprintf(buf, sizeof buf, "%ld.%02ld", cents / 100, cents % 100);
    return buf;
}

static std::string customer(std::mt19937& rng) {
    static const char* const names[] = {"Ahlgren", "Brandt & Co", "Cerny", "Delacroix", "Eriksen"};
    static const char* const towns[] = {"Bergen", "Lund", "Gent"};
    std::string s = names[rng() % 5];
    if (rng() % 30 == 0)
        s += std::string(", ") + towns[rng() % 3];
    return s;
}

int main(int argc, char** argv) {
    unsigned seed;
    if (argc > 1)
        seed = static_cast<unsigned>(std::strtoul(argv[1], nullptr, 0));
    else
        seed = static_cast<unsigned>(
                   std::chrono::high_resolution_clock::now().time_since_epoch().count()) +
               static_cast<unsigned>(getpid());
    std::mt19937 rng(seed);

    Table t({{"no", Align::Right}, {"customer", Align::Left}, {"item", Align::Left},
             {"qty", Align::Right}, {"price", Align::Right}},
            ',');
    long total = 0;
    int orders = 6 + static_cast<int>(rng() % 8);
    for (int i = 1; i <= orders; i++) {
        const Item& it = stock[rng() % (sizeof stock / sizeof stock[0])];
        int qty = 1 + static_cast<int>(rng() % 40);
        long price = static_cast<long>(qty) * it.cents;
        total += price;
        t.add({std::to_string(i), customer(rng), it.name, std::to_string(qty), money(price)});
    }
    t.layout();
    t.print(std::cout);
    std::cout << "total " << money(total) << '\n';
    return 0;
}
