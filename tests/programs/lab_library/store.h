// SPDX-License-Identifier: MIT
#ifndef STORE_H
#define STORE_H

#include <map>
#include <string>

namespace store {

std::map<std::string, int> &all();

class Box {
public:
    explicit Box(int value) : held_(new int(value)) {}
    int value() const;
    void drop();

private:
    int *held_;
};

} // namespace store

#endif
