// SPDX-License-Identifier: MIT
// The cache hands out a pointer to a page; the page is erased, and its frame wiped, while the reader still holds the pointer.
#include "../corpus.h"

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace storage {

using PageNumber = std::uint32_t;

struct Page {
    PageNumber number = 0;
    int pins = 0;
    bool stale = false;
    const char *data = nullptr;
};

class Cache {
public:
    explicit Cache(std::vector<std::string> file) : file_(std::move(file))
    {
        for (Page &frame : frames_)
            free_.push_back(&frame);
    }

    // The page, read from the file if it is not in the cache; nullptr if there is no room.
    Page *fetch(PageNumber number)
    {
        std::lock_guard<std::mutex> guard(lock_);
        const auto found = index_.find(number);
        if (found != index_.end()) {
            found->second->pins++;
            return found->second; //@hit
        }
        if (free_.empty())
            return nullptr;
        Page *page = free_.back();
        free_.pop_back();
        page->number = number;
        page->data = file_.at(number).c_str(); //@fill
        page->pins = 1;
        index_.emplace(number, page);
        return page; //@miss
    }

    void release(Page *page)
    {
        std::lock_guard<std::mutex> guard(lock_);
        page->pins--;
        if (page->stale && page->pins == 0)
            recycle(page);
    }

    // The page was changed on disk: what the cache has of it is of no use any more.
    void invalidate(PageNumber number)
    {
        std::lock_guard<std::mutex> guard(lock_);
        const auto found = index_.find(number);
        if (found == index_.end()) //@known
            return;
        Page *page = found->second; //@found
        index_.erase(found); //@erase
#ifdef FIXED
        if (page->pins > 0) {
            page->stale = true;
            return;
        }
#endif
        recycle(page); //@evict
    }

private:
    void recycle(Page *page)
    {
        *page = Page(); //@wipe
        free_.push_back(page);
    }

    std::vector<std::string> file_;
    std::array<Page, 4> frames_;
    std::vector<Page *> free_;
    std::unordered_map<PageNumber, Page *> index_;
    std::mutex lock_;
};

// Counts the words of one page after the other.
class Scanner {
public:
    explicit Scanner(Cache &cache) : cache_(cache) {}

    void scan(PageNumber number)
    {
        Page *page = cache_.fetch(number); //@fetch
        if (!page)
            return;
        window(250); // the lock on the table is taken
        for (const char *p = page->data; *p; p++) //@use
            words_ += *p == ' ';
        cache_.release(page);
        words_++;
    }

    int words() const { return words_; }

private:
    Cache &cache_;
    int words_ = 0;
};

} // namespace storage

int main()
{
    storage::Cache cache({"to be or not to be", "that is the question", "whether tis nobler"});
    storage::Scanner scanner(cache);

    std::thread reader([&scanner] {
        for (storage::PageNumber number = 0; number < 3; number++)
            scanner.scan(number);
    });
    window(700);
    cache.invalidate(1); //@invalidate
    reader.join();
    printf("%d words\n", scanner.words());
    return scanner.words() == 13 ? 0 : 2;
}
