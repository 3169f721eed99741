/* SPDX-License-Identifier: MIT */
#include <cstdio>
#include <ctime>
#include <functional>
#include <memory>
#include <pthread.h>
#include <string>
#include <unistd.h>
#include <vector>

struct mutex {
  pthread_mutex_t raw = PTHREAD_MUTEX_INITIALIZER;
};

struct hold {
  explicit hold(mutex& m) : m_mutex(m) { pthread_mutex_lock(&m_mutex.raw); } //@lock
  ~hold() { pthread_mutex_unlock(&m_mutex.raw); }
  hold(const hold&) = delete;
  mutex& m_mutex;
};

void breathe(unsigned most) {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  usleep(static_cast<unsigned>(t.tv_nsec / 90) % most);
}

class download {
 public:
  using progress = std::function<void(int)>;

  download(std::string name, progress report) : m_name(std::move(name)), m_report(std::move(report)) {}

  bool step(int bytes) {
#ifdef FIXED
    {
      hold h(m_mutex);
      if (m_cancelled)
        return false;
      m_done += bytes;
    }
#else
    hold h(m_mutex); //@item1
    if (m_cancelled)
      return false;
    m_done += bytes;
#endif
    breathe(30);
    m_report(bytes); //@report
    return true;
  }

  void cancel() {
    hold h(m_mutex); //@item2
    m_cancelled = true;
  }

 private:
  mutex m_mutex;
  std::string m_name;
  progress m_report;
  int m_done = 0;
  bool m_cancelled = false;
};

class manager {
 public:
  download& add(const std::string& name) {
    hold h(m_mutex);
    m_items.push_back(std::make_unique<download>(name, [this](int bytes) { account(bytes); }));
    return *m_items.back();
  }

  void cancel_all() {
    hold h(m_mutex); //@list1
    for (auto& item : m_items)
      item->cancel(); //@cancel
  }

  long total() {
    hold h(m_mutex);
    return m_total;
  }

 private:
  void account(int bytes) {
    hold h(m_mutex); //@list2
    m_total += bytes;
  }

  mutex m_mutex;
  std::vector<std::unique_ptr<download>> m_items;
  long m_total = 0;
};

void* fetch(void* argument) {
  auto& item = *static_cast<download*>(argument);
  for (int i = 0; i < 3 && item.step(100); i++)
    breathe(1500);
  return nullptr;
}

void* impatient(void* argument) {
  breathe(5000);
  static_cast<manager*>(argument)->cancel_all(); //@impatient
  return nullptr;
}

int main() {
  manager list;
  pthread_t threads[3];

  pthread_create(&threads[0], nullptr, fetch, &list.add("kernel.tar"));
  pthread_create(&threads[1], nullptr, fetch, &list.add("music.ogg"));
  pthread_create(&threads[2], nullptr, impatient, &list);
  for (pthread_t thread : threads)
    pthread_join(thread, nullptr);
  std::printf("%s\n", list.total() <= 1000 ? "stopped" : "too much");
  return 0;
}
