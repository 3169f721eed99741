// SPDX-License-Identifier: MIT
// soft_store N: a key-value store (leveldb) in memory: N keys written, read, deleted in part, and walked.
#include "helpers/memenv/memenv.h"
#include "leveldb/db.h"
#include "leveldb/env.h"
#include "leveldb/write_batch.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

static std::string key_of(unsigned i)
{
    return "key" + std::to_string(i * 2654435761u);
}

int main(int argc, char **argv)
{
    std::unique_ptr<leveldb::Env> env(leveldb::NewMemEnv(leveldb::Env::Default()));
    unsigned n = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 1000, found = 0, walked = 0;
    leveldb::Options options;
    leveldb::DB *raw = nullptr;

    options.create_if_missing = true;
    options.env = env.get();
    options.write_buffer_size = 1 << 20;
    if (!leveldb::DB::Open(options, "/store", &raw).ok())
        return 1;
    std::unique_ptr<leveldb::DB> store(raw);
    for (unsigned i = 0; i < n; i++)
        store->Put({}, key_of(i), std::string(20 + i % 100, static_cast<char>('a' + i % 26)));
    for (unsigned i = 0; i < n; i++) {
        std::string value;

        found += store->Get({}, key_of(i * 3 % (n + n / 2)), &value).ok();
        if (i % 5 == 0)
            store->Delete({}, key_of(i));
    }
    std::unique_ptr<leveldb::Iterator> at(store->NewIterator({}));
    for (at->SeekToFirst(); at->Valid(); at->Next())
        walked++;
    std::printf("%u %u\n", found, walked);
    return 0;
}
