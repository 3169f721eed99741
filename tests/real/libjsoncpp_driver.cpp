// SPDX-License-Identifier: MIT
// Reads a setting that not every document has. With libjsoncpp.patch Value::get() uses a member without asking whether there is one.
#include <json/json.h>

#include <cstdio>
#include <memory>
#include <random>
#include <string>

static Json::Value parse(const std::string &text)
{
    Json::CharReaderBuilder builder;
    std::unique_ptr<Json::CharReader> reader(builder.newCharReader());
    Json::Value root;
    std::string errors;

    if (!reader->parse(text.data(), text.data() + text.size(), &root, &errors))
        std::fprintf(stderr, "%s\n", errors.c_str());
    return root;
}

static int timeout_of(const Json::Value &server)
{
    return server.get("timeout", 30).asInt();
}

int main()
{
    static const char *const documents[] = {"{\"name\": \"a\", \"timeout\": 5}", "{\"name\": \"b\", \"timeout\": 7}",
                                            "{\"name\": \"c\"}"};
    Json::Value server = parse(documents[std::random_device{}() % 3]);

    std::printf("%s: %d s\n", server["name"].asCString(), timeout_of(server));
}
