/* SPDX-License-Identifier: MIT */
#include <array>
#include <atomic>
#include <cassert>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

struct token {
  int serial = 0;
  int uses_left = 0;
};

// Knows the token it has given out last, and takes no other.
class authority {
 public:
  token issue() {
    std::scoped_lock hold(m_mutex);
    m_valid = ++m_last; //@issue
    return {m_valid, 3};
  }

  bool accepts(const token& t) const {
    std::scoped_lock hold(m_mutex);
    return t.serial == m_valid; //@accepts
  }

 private:
  mutable std::mutex m_mutex;
  int m_last = 0;
  int m_valid = 0;
};

class wallet {
 public:
  explicit wallet(authority& a) : m_authority(a) {}

  // Calls the request with a token that has a use left.
  bool with_token(const std::function<bool(const token&)>& request) {
#ifdef FIXED
    std::scoped_lock whole(m_request);
#endif
    token mine = current();
    while (!spend(mine)) { //@spend
      refresh();
      mine = current(); //@mine
    }
    return request(mine); //@request
  }

  int refreshes() const { return m_refreshes; }

 private:
  token current() {
    std::scoped_lock hold(m_mutex);
    return m_token;
  }

  bool spend(token& t) {
    std::scoped_lock hold(m_mutex);
    if (m_token.serial != t.serial || m_token.uses_left == 0) //@left
      return false;
    m_token.uses_left--;
    t = m_token;
    return true;
  }

  void refresh() {
    const token fresh = m_authority.issue(); //@fresh
    std::scoped_lock hold(m_mutex);
    m_token = fresh; //@store
    m_refreshes++;
  }

  authority& m_authority;
  std::mutex m_mutex;
#ifdef FIXED
  std::mutex m_request;
#endif
  token m_token;
  std::atomic<int> m_refreshes{0};
};

struct client {
  wallet& purse;
  authority& server;
  int calls;
  int answered = 0;

  void operator()() {
    for (int i = 0; i < calls; i++) {
      const bool ok = purse.with_token([this](const token& t) { return server.accepts(t); }); //@ok
      assert(ok); //@check
      answered += ok;
    }
  }
};

int main() {
  authority server;
  wallet purse(server);
  std::array<client, 2> clients{client{purse, server, 2}, client{purse, server, 2}};

  std::thread first(std::ref(clients[0]));
  std::thread second(std::ref(clients[1]));
  first.join();
  second.join();
  std::printf("%d answered\n", clients[0].answered + clients[1].answered);
  return purse.refreshes() > 0 ? 0 : 1;
}
