/* SPDX-License-Identifier: MIT */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace rooms {

struct Booking {
    std::string from;
    std::string to;
    std::string who;
};

int minutes(const std::string &clock)
{
    const std::size_t colon = clock.find(':');

    return std::stoi(clock.substr(0, colon)) * 60 + std::stoi(clock.substr(colon + 1));
}

bool earlier(const Booking &a, const Booking &b)
{
#ifdef FIXED
    return minutes(a.from) < minutes(b.from);
#else
    return a.from < b.from; //@compare
#endif
}

struct Span {
    int from;
    int to;
};

class Room {
public:
    void book(Booking booking)
    {
        const auto place = std::upper_bound(bookings_.begin(), bookings_.end(), booking, earlier); //@place
        bookings_.insert(place, std::move(booking)); //@insert
    }

    // The times at which the room is taken, joined where they overlap.
    std::vector<Span> taken() const
    {
        std::vector<Span> spans;

        for (const Booking &booking : bookings_) { //@each
            const Span span{minutes(booking.from), minutes(booking.to)}; //@span
            if (!spans.empty() && span.from <= spans.back().to) //@overlap
                spans.back().to = std::max(spans.back().to, span.to); //@widen
            else
                spans.push_back(span);
        }
        return spans;
    }

    int total() const
    {
        int sum = 0;

        for (const Span &span : taken())
            sum += span.to - span.from; //@sum
        return sum;
    }

    std::map<std::string, int> guests() const
    {
        std::map<std::string, int> result;

        for (const Booking &booking : bookings_)
            result[booking.who]++;
        return result;
    }

private:
    std::vector<Booking> bookings_;
};

Room read(const std::string &text)
{
    Room room;
    std::istringstream lines(text);
    Booking booking;

    while (lines >> booking.from >> booking.to >> booking.who)
        room.book(booking); //@book
    return room;
}

} // namespace rooms

int main(int argc, char **argv)
{
    static const char *const days[] = {
        "10:00 11:00 ann 13:00 14:30 bob 10:30 11:30 cid",
        "14:00 15:00 dan 12:00 12:30 eve 12:15 13:00 fay",
        "9:00 10:30 gus 10:00 11:00 hal 15:00 16:00 ida",
        "16:00 17:00 jim 11:00 12:00 kim 11:30 13:00 lee",
    };
    timespec now{};

    clock_gettime(CLOCK_REALTIME, &now);
    const long day = argc > 1 ? std::atol(argv[1]) : now.tv_nsec / 1000; //@input
    const rooms::Room room = rooms::read(days[day % 4]);
    for (const auto &guest : room.guests())
        std::printf("%s %d\n", guest.first.c_str(), guest.second);
    std::printf("day %ld taken %d\n", day % 4, room.total()); //@print
    return 0;
}
