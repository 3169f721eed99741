// SPDX-License-Identifier: MIT
// The destructor of a transaction rolls back, which writes to a journal that may be full: the exception leaves a destructor.
#include "../corpus.h"

#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace db {

struct Record {
    enum class Kind { Change, Undo, Commit } kind;
    std::string key;
    int value;
};

class JournalFull : public std::runtime_error {
public:
    explicit JournalFull(const std::string &key) : std::runtime_error("journal full at " + key) {}
};

class Journal {
public:
    explicit Journal(std::size_t room) : room_(room) {} //@room

    void append(Record record)
    {
        if (records_.size() >= room_) //@full
            throw JournalFull(record.key); //@throw
        records_.push_back(std::move(record)); //@append
    }

    std::size_t size() const { return records_.size(); }

private:
    std::size_t room_;
    std::vector<Record> records_;
};

using Table = std::map<std::string, int>;

class Transaction {
public:
    Transaction(Table &table, Journal &journal) : table_(table), journal_(journal) {}
    Transaction(const Transaction &) = delete;
    Transaction &operator=(const Transaction &) = delete;

    ~Transaction()
    {
        if (committed_) //@committed
            return;
#ifdef FIXED
        try {
            rollback();
        } catch (const JournalFull &) {
            // The table is right again; the journal is replayed at the next start.
        }
#else
        rollback(); //@rollback
#endif
    }

    void set(const std::string &key, int value)
    {
        if (value < 0) //@negative
            throw std::invalid_argument("negative stock of " + key); //@invalid
        journal_.append({Record::Kind::Change, key, value}); //@change
        before_.emplace_back(key, table_[key]);
        table_[key] = value;
    }

    void commit()
    {
        journal_.append({Record::Kind::Commit, "", 0});
        committed_ = true; //@commit
    }

private:
    void rollback()
    {
        for (auto it = before_.rbegin(); it != before_.rend(); ++it)
            table_[it->first] = it->second;
        for (auto it = before_.rbegin(); it != before_.rend(); ++it) //@each
            journal_.append({Record::Kind::Undo, it->first, it->second}); //@undo
    }

    Table &table_;
    Journal &journal_;
    std::vector<std::pair<std::string, int>> before_;
    bool committed_ = false;
};

// An order of all articles: each is taken off the stock.
bool order(Table &table, Journal &journal, const std::vector<std::pair<std::string, int>> &wanted)
{
    try {
        Transaction transaction(table, journal); //@begin
        for (const auto &[key, count] : wanted)
            transaction.set(key, table[key] - count); //@set
        transaction.commit();
        return true;
    } catch (const std::exception &error) {
        printf("refused: %s\n", error.what());
        return false;
    }
}

} // namespace db

int main()
{
    db::Table table = {{"bolt", 40}, {"nut", 40}, {"rivet", 40}, {"screw", 5}};
    db::Journal journal(7);
    const int screws = static_cast<int>(draw(10)); //@screws
    std::vector<std::pair<std::string, int>> wanted = {{"bolt", 4}, {"nut", 4}, {"rivet", 8}};

    if (draw(4) == 0) // none of these are left
        wanted = {{"washer", 1}};
    wanted.emplace_back("screw", screws);
    order(table, journal, {{"nut", 2}});
    order(table, journal, wanted);
    return table["bolt"] >= 0 ? 0 : 2;
}
