/* SPDX-License-Identifier: MIT */
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <variant>
#include <vector>

struct inserted {
  std::size_t at;
  std::string text;
};

struct erased {
  std::size_t at;
  std::string text;
};

using change = std::variant<inserted, erased>;

template <class... F> struct cases : F... {
  using F::operator()...;
};
template <class... F> cases(F...) -> cases<F...>;

class history {
 public:
  void add(inserted now) {
    auto* last = newest<inserted>();
    if (last && last->at + last->text.size() == now.at)
      last->text += now.text;
    else
      m_done.emplace_back(std::move(now));
  }

  void add(erased now) {
    auto* last = newest<erased>(); //@last
    if (last && now.at + now.text.size() == last->at) { //@joins
      last->text = now.text + last->text; //@merge
#ifdef FIXED
      last->at = now.at;
#endif
      return;
    }
    m_done.emplace_back(std::move(now)); //@new
  }

  bool take(change& c) {
    if (m_done.empty())
      return false;
    c = std::move(m_done.back()); //@take
    m_done.pop_back();
    return true;
  }

 private:
  template <class T> T* newest() { return m_done.empty() ? nullptr : std::get_if<T>(&m_done.back()); }

  std::vector<change> m_done;
};

class editor {
 public:
  void type(const std::string& text) {
    m_text.insert(m_cursor, text);
    m_history.add(inserted{m_cursor, text});
    m_cursor += text.size();
  }

  void backspace() {
    if (m_cursor == 0)
      return;
    m_cursor--;
    m_history.add(erased{m_cursor, m_text.substr(m_cursor, 1)}); //@back
    m_text.erase(m_cursor, 1); //@shorter
  }

  void move(std::size_t to) { m_cursor = std::min(to, m_text.size()); }

  void undo() {
    change c;
    if (!m_history.take(c))
      return;
    std::visit(cases{
                   [this](const inserted& i) {
                     m_text.replace(i.at, i.text.size(), "", 0);
                     m_cursor = i.at;
                   },
                   [this](const erased& e) {
                     m_text.insert(e.at, e.text); //@redo
                     m_cursor = e.at + e.text.size();
                   },
               },
               c);
  }

  const std::string& text() const { return m_text; }

 private:
  std::string m_text;
  std::size_t m_cursor = 0;
  history m_history;
};

// i: type a word, b: backspace, a digit: move there, u: undo
void play(editor& e, const std::string& script) {
  for (const char key : script) {
    if (key == 'i')
      e.type("ab");
    else if (key == 'b')
      e.backspace();
    else if (key == 'u')
      e.undo();
    else
      e.move(static_cast<std::size_t>(key - '0'));
  }
}

int main(int argc, char** argv) {
  static const char* const scripts[] = {"iibuu", "ii0iuuu", "iibbu", "ib0ibuuuu", "ii2bbuu", "i1biuu"};
  timespec now{};

  clock_gettime(CLOCK_REALTIME, &now);
  const std::string script = argc > 1 ? argv[1] : scripts[now.tv_nsec / 1000 % 6]; //@input
  editor e;
  play(e, script);
  std::printf("%s -> \"%s\"\n", script.c_str(), e.text().c_str());
  return 0;
}
