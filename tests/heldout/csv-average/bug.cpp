// SPDX-License-Identifier: MIT
// The field loop ends one character early: a last field that no newline ends is dropped, and the average of none is taken.
#include "../corpus.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace csv {

class Parser {
public:
    explicit Parser(std::string text) : text_(std::move(text)) {}

    std::vector<std::string> fields() const
    {
        std::vector<std::string> result;
        std::size_t start = 0;

        // The end of the text ends a field too.
#ifdef FIXED
        for (std::size_t i = 0; i <= text_.size(); i++) {
#else
        for (std::size_t i = 0; i < text_.size(); i++) { //@bound
#endif
            if (!ends_field(i)) //@ends
                continue;
            if (i > start)
                result.push_back(text_.substr(start, i - start)); //@field
            start = i + 1;
        }
        return result;
    }

private:
    bool ends_field(std::size_t i) const
    {
        return i == text_.size() || text_[i] == ',' || text_[i] == '\n'; //@separator
    }

    std::string text_;
};

} // namespace csv

namespace stats {

class Series {
public:
    void add(int value)
    {
        values_.push_back(value); //@add
        sum_ += value;
    }

    int count() const { return static_cast<int>(values_.size()); } //@count

    int sum() const { return sum_; }

private:
    std::vector<int> values_;
    int sum_ = 0;
};

struct Summary {
    int count;
    int mean;
};

__attribute__((noinline)) Summary summarise(const Series &series)
{
    Summary summary{};

    summary.count = series.count(); //@size
    summary.mean = series.sum() / summary.count; //@divide
    return summary;
}

} // namespace stats

namespace {

std::string read_file(const std::string &name)
{
    static const std::map<std::string, std::string> disk = {
        {"monday.csv", "12,15,9\n"},
        {"tuesday.csv", "42"},
        {"wednesday.csv", "7,7\n8\n"},
        {"thursday.csv", "30,31,32"},
    };

    return disk.at(name); //@text
}

} // namespace

int main()
{
    static const char *const names[] = {"monday.csv", "tuesday.csv", "wednesday.csv", "thursday.csv"};
    const csv::Parser parser(read_file(names[draw(4)])); //@input
    stats::Series series;

    for (const std::string &field : parser.fields()) //@loop
        series.add(std::stoi(field));
    const stats::Summary summary = stats::summarise(series);
    printf("%d values, mean %d\n", summary.count, summary.mean);
    return 0;
}
