/* SPDX-License-Identifier: MIT */ // A key-value server session: one parser object reads all the requests of
// a connection.  Here a generated script takes the place of the socket.
//
//     PUT key value [hex]
//     GET key [hex] [upper]
//     DEL key
#include <chrono>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>
#include <unistd.h>

enum class Verb { None, Put, Get, Del };

struct Request {
    Verb verb = Verb::None;
    std::string key, value;
    bool hex = false;
    bool upper = false;
};

class Parser {
public:
    // Returns false for a request that is to be refused.
    bool feed(const std::string& line) {
        std::istringstream is(line);
        std::string word;

        is >> word;
        if (word == "PUT")
            req_.verb = Verb::Put;
        else if (word == "GET")
            req_.verb = Verb::Get;
        else if (word == "DEL")
            req_.verb = Verb::Del;
        else
            return refuse("verb");
        if (!(is >> req_.key))
            return refuse("key");
        if (req_.verb == Verb::Put && !(is >> req_.value))
            return refuse("value");
        while (is >> word) {
            if (word == "hex")
                req_.hex = true;
            else if (word == "upper" && req_.verb == Verb::Get)
                req_.upper = true;
            else
                return refuse("option " + word);
        }
        return true;
    }

    const Request& request() const { return req_; }
    const std::string& error() const { return error_; }

    void done() { req_ = Request(); }

private:
    bool refuse(const std::string& what) {
        error_ = "bad " + what;
        req_.verb = Verb::None;
        req_.key.clear();
        req_.value.clear();
#ifdef FIXED
        req_ = Request();
#endif
        return false;
    }

    Request req_;
    std::string error_;
};

class Store {
public:
    std::string execute(const Request& r) {
        switch (r.verb) {
        case Verb::Put:
            data_[r.key] = r.hex ? unhex(r.value) : r.value;
            return "stored";
        case Verb::Get: {
            auto it = data_.find(r.key);
            if (it == data_.end())
                return "missing";
            return render(it->second, r);
        }
        case Verb::Del:
            return data_.erase(r.key) ? "deleted" : "missing";
        case Verb::None:
            break;
        }
        return "nothing";
    }

private:
    static std::string unhex(const std::string& h) {
        std::string out;
        for (size_t i = 0; i + 1 < h.size(); i += 2)
            out.push_back(static_cast<char>(std::strtol(h.substr(i, 2).c_str(), nullptr, 16)));
        return out;
    }

    static std::string render(const std::string& v, const Request& r) {
        std::string out;
        for (unsigned char c : v) {
            char two[3];
            if (r.hex) {
                std::snprintf(two, sizeof two, "%02x", c);
                out += two;
            } else {
                out.push_back(static_cast<char>(r.upper ? std::toupper(c) : c));
            }
        }
        return (r.hex ? "0x" : "'") + out + (r.hex ? "" : "'");
    }

    std::map<std::string, std::string> data_;
};

static std::vector<std::string> make_script(unsigned seed, int lines) {
    std::mt19937 rng(seed);
    std::vector<std::string> script;
    static const char* const values[] = {"apple", "pear", "quince", "fig", "medlar"};

    for (int i = 0; i < lines; i++) {
        std::string key = "k" + std::to_string(rng() % 6);
        unsigned dice = rng() % 100;
        if (dice < 35)
            script.push_back("PUT " + key + " " + values[rng() % 5]);
        else if (dice < 40)
            script.push_back("PUT " + key + " 706c756d hex");
        else if (dice < 90)
            script.push_back("GET " + key + (rng() % 6 ? "" : " hex") + (rng() % 4 ? "" : " upper"));
        else if (dice < 96)
            script.push_back("DEL " + key);
        else
            script.push_back("GET " + key + (rng() % 3 ? "" : " hex") + " colour");
    }
    return script;
}

int main(int argc, char** argv) {
    unsigned seed = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1]))
                             : static_cast<unsigned>(
                                   std::chrono::steady_clock::now().time_since_epoch().count() ^
                                   getpid());
    Parser parser;
    Store store;
    int n = 0;

    for (const std::string& line : make_script(seed, 40)) {
        n++;
        if (!parser.feed(line)) {
            std::printf("%2d %s -> ERR %s\n", n, line.c_str(), parser.error().c_str());
            continue;
        }
        std::printf("%2d %s -> %s\n", n, line.c_str(), store.execute(parser.request()).c_str());
        parser.done();
    }
    return 0;
}
