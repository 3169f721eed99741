/* SPDX-License-Identifier: MIT */
#include <array>
#include <cstdio>
#include <ctime>
#include <pthread.h>
#include <string>
#include <unistd.h>

struct operations {
  const char* title;
  int (*apply)(int);
};

struct plugin {
  std::string name;
  const operations* ops = nullptr;
  int users = 0;
};

int twice(int x) { return 2 * x; }
int next(int x) { return x + 1; }

const operations doubling{"doubling", twice};
const operations counting{"counting", next};

void linger(unsigned most) {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  usleep(static_cast<unsigned>(t.tv_nsec / 70) % most);
}

class host {
 public:
  void load(std::size_t place, const std::string& name, const operations& ops) {
    locked([&] {
      m_plugins[place].name = name;
      m_plugins[place].ops = &ops;
    });
  }

  plugin* find(const std::string& name) {
    plugin* found = nullptr;
    locked([&] {
      for (auto& p : m_plugins)
        if (p.name == name) { //@match
          found = &p; //@found
#ifdef FIXED
          p.users++;
#endif
        }
    });
    return found;
  }

  int call(const std::string& name, int argument) {
    plugin* p = find(name); //@find
    if (!p)
      return -1;
#ifndef FIXED
    trace(name);
    locked([&] { p->users++; }); //@use
#else
    trace(name);
#endif
    const int result = p->ops->apply(argument); //@apply
    locked([&] { p->users--; });
    return result;
  }

  // True if nobody uses the plugin and it was taken out.
  bool unload(const std::string& name) {
    bool done = false;
    locked([&] {
      for (auto& p : m_plugins)
        if (p.name == name && p.users == 0) { //@unused
          p.name.clear();
          p.ops = nullptr; //@unload
          done = true;
        }
    });
    return done;
  }

 private:
  template <class F> void locked(F&& f) {
    pthread_mutex_lock(&m_mutex);
    f();
    pthread_mutex_unlock(&m_mutex);
  }

  void trace(const std::string& name) { linger(static_cast<unsigned>(name.size()) * 5); }

  pthread_mutex_t m_mutex = PTHREAD_MUTEX_INITIALIZER;
  std::array<plugin, 4> m_plugins;
};

host plugins;

void* caller(void* argument) {
  const char* name = static_cast<const char*>(argument);
  for (int i = 0; i < 4; i++) {
    plugins.call(name, i);
    linger(300);
  }
  return nullptr;
}

void* janitor(void*) {
  linger(1600);
  plugins.unload("double"); //@janitor
  return nullptr;
}

int main() {
  char first[] = "double", second[] = "count";
  pthread_t threads[3];

  plugins.load(0, first, doubling);
  plugins.load(2, second, counting);
  pthread_create(&threads[0], nullptr, caller, first);
  pthread_create(&threads[1], nullptr, caller, second);
  pthread_create(&threads[2], nullptr, janitor, nullptr);
  for (pthread_t thread : threads)
    pthread_join(thread, nullptr);
  std::printf("%d\n", plugins.call(second, 41));
  return 0;
}
