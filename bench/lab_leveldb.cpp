// SPDX-License-Identifier: MIT
// Three threads write to and read from one leveldb database, whose own thread compacts it.
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "leveldb/db.h"

int main(int argc, char **argv)
{
    const std::string path = argc > 1 ? argv[1] : "db";
    leveldb::Options options;
    leveldb::DB *db = nullptr;

    leveldb::DestroyDB(path, options);
    options.create_if_missing = true;
    options.write_buffer_size = 64 << 10;
    if (!leveldb::DB::Open(options, path, &db).ok())
        std::abort();
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; t++)
        threads.emplace_back([db, t] {
            for (int i = 0; i < 60; i++) {
                const std::string key = std::to_string(t) + "/" + std::to_string(i);
                std::string value;
                if (!db->Put(leveldb::WriteOptions(), key, std::string(2000, 'x')).ok() ||
                    !db->Get(leveldb::ReadOptions(), key, &value).ok() || value.size() != 2000)
                    std::abort();
            }
        });
    for (auto &t : threads)
        t.join();
    delete db;
    leveldb::DestroyDB(path, options);
}
