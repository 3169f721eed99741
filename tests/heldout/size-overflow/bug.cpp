// SPDX-License-Identifier: MIT
// The sizes of an archive are summed in 32 bits: with two large files the sum wraps to nothing, and the program ends with 3.
#include "../corpus.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace archive {

constexpr std::uint32_t kMebibyte = 1024 * 1024;

struct Entry {
    std::string name;
    std::uint32_t mebibytes;
};

struct Plan {
    std::vector<Entry> entries;
#ifdef FIXED
    std::uint64_t bytes = 0;
#else
    std::uint32_t bytes = 0;
#endif
};

class Planner {
public:
    Planner &add(std::string name, std::uint32_t mebibytes)
    {
#ifdef FIXED
        plan_.bytes += std::uint64_t{mebibytes} * kMebibyte;
#else
        plan_.bytes += mebibytes * kMebibyte; //@sum
#endif
        plan_.entries.push_back({std::move(name), mebibytes}); //@entry
        return *this;
    }

    Plan finish() { return std::move(plan_); } //@finish

private:
    Plan plan_;
};

enum class Status { Ok = 0, NoInput = 2, VolumeFull = 3 };

// The room that was set aside on the disk.
class Volume {
public:
    explicit Volume(std::uint64_t bytes) : left_(bytes) {} //@reserve
    ~Volume() { printf("volume closed, %llu bytes left\n", static_cast<unsigned long long>(left_)); }
    Volume(const Volume &) = delete;
    Volume &operator=(const Volume &) = delete;

    bool write(std::uint64_t bytes)
    {
        if (bytes > left_) //@room
            return false;
        left_ -= bytes;
        return true;
    }

private:
    std::uint64_t left_;
};

class Writer {
public:
    explicit Writer(Volume &volume) : volume_(volume) {}

    Status write(const Plan &plan)
    {
        if (plan.entries.empty())
            return Status::NoInput;
        for (const Entry &entry : plan.entries)
            if (!volume_.write(std::uint64_t{entry.mebibytes} * kMebibyte)) { //@write
                failed_ = entry.name;
                return Status::VolumeFull; //@full
            }
        return Status::Ok;
    }

    const std::string &failed() const { return failed_; }

private:
    Volume &volume_;
    std::string failed_;
};

} // namespace archive

int main()
{
    archive::Planner planner;

    planner.add("disk.img", draw(3) == 0 ? 1024 : 2048); //@first
    planner.add("home.tar", draw(3) == 0 ? 512 : 2048); //@second
    const archive::Plan plan = planner.finish();
    archive::Volume volume(plan.bytes); //@volume
    archive::Writer writer(volume);
    const archive::Status status = writer.write(plan); //@status

    if (status != archive::Status::Ok)
        fprintf(stderr, "no room for %s\n", writer.failed().c_str());
    return static_cast<int>(status); //@exit
}
