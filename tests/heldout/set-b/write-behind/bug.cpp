/* SPDX-License-Identifier: MIT */
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>

using namespace std::chrono_literals;

struct disk {
  void write(const std::string& key, int value) {
    std::this_thread::sleep_for(150us);
    rows[key] = value;
  }

  std::map<std::string, int> rows;
};

struct entry {
  int value = 0;
  bool dirty = false;
};

class write_behind {
 public:
  explicit write_behind(disk& d) : m_disk(d) {}

  void put(const std::string& key, int value) {
    std::scoped_lock hold(m_mutex);
    m_entries[key].value = value; //@put
    m_entries[key].dirty = true; //@dirty
  }

  // Writes what has changed; true if there was anything.
  bool flush() {
    auto changed = next_dirty();
    if (!changed)
      return false;
    m_disk.write(changed->first, changed->second); //@write
#ifndef FIXED
    mark_clean(changed->first); //@mark
#endif
    return true;
  }

  std::map<std::string, int> contents() {
    std::scoped_lock hold(m_mutex);
    std::map<std::string, int> all;
    for (const auto& [key, e] : m_entries)
      all[key] = e.value;
    return all;
  }

 private:
  std::optional<std::pair<std::string, int>> next_dirty() {
    std::scoped_lock hold(m_mutex);
    for (auto& [key, e] : m_entries)
      if (e.dirty) { //@isdirty
#ifdef FIXED
        e.dirty = false;
#endif
        return std::pair(key, e.value); //@take
      }
    return std::nullopt;
  }

#ifndef FIXED
  void mark_clean(const std::string& key) {
    std::scoped_lock hold(m_mutex);
    m_entries[key].dirty = false; //@clean
  }
#endif

  disk& m_disk;
  std::mutex m_mutex;
  std::map<std::string, entry> m_entries;
};

int main() {
  disk d;
  write_behind cache(d);
  std::random_device random;
  const unsigned pace = 60 + random() % 240;

  std::thread user([&cache, pace] {
    for (int round = 1; round <= 3; round++)
      for (const char* key : {"height", "width"}) {
        cache.put(key, round * 10);
        std::this_thread::sleep_for(std::chrono::microseconds(pace));
      }
  });
  std::thread flusher([&cache] {
    for (int i = 0; i < 12; i++) {
      cache.flush();
      std::this_thread::sleep_for(300us);
    }
  });
  user.join();
  flusher.join();
  while (cache.flush())
    ;
  if (cache.contents() != d.rows) { //@differ
    std::puts("the disk lags behind");
    return 2; //@fail
  }
  std::printf("%zu rows\n", d.rows.size());
  return 0;
}
