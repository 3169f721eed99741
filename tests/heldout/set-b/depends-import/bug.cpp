/* SPDX-License-Identifier: MIT */
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

struct package {
  std::string name;
  std::vector<std::string> needs;
};

struct plan {
  std::vector<std::string> order;
  std::vector<std::string> missing;
};

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string::npos)
    return {};
#ifdef FIXED
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
#else
  return text.substr(first, text.find_last_not_of(" \t") - first + 1); //@trim
#endif
}

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, by);) {
    part = trimmed(part); //@trimmed
    if (!part.empty()) //@nonempty
      parts.push_back(part); //@keep
  }
  return parts;
}

class catalog {
 public:
  void read(const std::string& text) {
    for (const auto& line : split(text, '\n')) {
      const auto colon = line.find(':');
      if (colon == std::string::npos)
        continue;
      package p;
      p.name = trimmed(line.substr(0, colon));
      p.needs = split(line.substr(colon + 1), ','); //@needs
      m_packages[p.name] = p;
    }
  }

  plan install(const std::string& name) const {
    plan result;
    std::set<std::string> seen;
    visit(name, seen, result);
    return result;
  }

  std::string last() const { return m_packages.empty() ? "" : m_packages.rbegin()->first; }

 private:
  void visit(const std::string& name, std::set<std::string>& seen, plan& result) const {
    if (!seen.insert(name).second)
      return;
    const auto found = m_packages.find(name); //@lookup
    if (found == m_packages.end()) { //@unknown
      result.missing.push_back(name); //@missing
      return;
    }
    for (const auto& need : found->second.needs) //@each
      visit(need, seen, result); //@visit
    result.order.push_back(name);
  }

  std::map<std::string, package> m_packages;
};

int main(int argc, char** argv) {
  static const char* const files[] = {
      "base:\nnet: base\nweb: net, base\n",
      "base: \r\nfont: base\r\nview: font\r\n",
      "core:\n tool : core \n zip: tool,core",
      "core:\nshell: core\nterm: shell , core\n",
  };
  timespec now{};

  clock_gettime(CLOCK_REALTIME, &now);
  const auto pick = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : static_cast<unsigned long>(now.tv_nsec / 1000); //@input
  catalog packages;
  packages.read(files[pick % 4]);
  const plan todo = packages.install(packages.last()); //@install
  for (const auto& name : todo.order)
    std::printf("install %s\n", name.c_str());
  if (!todo.missing.empty()) { //@any
    std::printf("%zu missing\n", todo.missing.size());
    return 5; //@fail
  }
  return 0;
}
