/* SPDX-License-Identifier: MIT */ // A processing stage owns a thread; concrete stages override the hooks.
#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

struct Record {
    int id = 0;
    std::vector<int> samples;
};

class Stage {
public:
    explicit Stage(std::string name) : name_(std::move(name)) {}

    virtual ~Stage() { stop(); }

    void start() {
        thread_ = std::thread([this] { loop(); });
    }

    void stop() {
        {
            std::lock_guard<std::mutex> g(m_);
            closed_ = true;
        }
        ready_.notify_all();
        if (thread_.joinable())
            thread_.join();
    }

    void submit(Record r) {
        {
            std::lock_guard<std::mutex> g(m_);
            queue_.push_back(std::move(r));
        }
        ready_.notify_one();
    }

    // Wait until the stage has taken in everything that was submitted.
    void drain() {
        std::unique_lock<std::mutex> g(m_);
        empty_.wait(g, [this] { return queue_.empty(); });
    }

    const std::string& name() const { return name_; }

protected:
    virtual long process(const Record& r) = 0;
    virtual void emit(int id, long value) = 0;

private:
    bool next(Record& out) {
        std::unique_lock<std::mutex> g(m_);
        ready_.wait(g, [this] { return closed_ || !queue_.empty(); });
        if (queue_.empty())
            return false;
        out = std::move(queue_.front());
        queue_.pop_front();
        if (queue_.empty())
            empty_.notify_all();
        return true;
    }

    void loop() {
        Record r;
        while (next(r)) {
            long v = process(r);
            emit(r.id, v);
        }
    }

    std::string name_;
    std::mutex m_;
    std::condition_variable ready_, empty_;
    std::deque<Record> queue_;
    bool closed_ = false;
    std::thread thread_;
};

class SumStage : public Stage {
public:
    explicit SumStage(std::vector<long>& sink) : Stage("sum"), sink_(sink) {}
#ifdef FIXED
    ~SumStage() override { stop(); }
#endif

protected:
    long process(const Record& r) override {
        return std::accumulate(r.samples.begin(), r.samples.end(), 0L);
    }
    void emit(int id, long value) override { sink_[id] = value; }

private:
    std::vector<long>& sink_;
};

class MedianStage : public Stage {
public:
    explicit MedianStage(std::vector<long>& sink) : Stage("median"), sink_(sink) {}
#ifdef FIXED
    ~MedianStage() override { stop(); }
#endif

protected:
    long process(const Record& r) override {
        std::vector<int> v(r.samples);
        std::sort(v.begin(), v.end());
        return v[v.size() / 2];
    }
    void emit(int id, long value) override { sink_[id] = value; }

private:
    std::vector<long>& sink_;
};

static Record make_record(int id) {
    Record r;
    r.id = id;
    unsigned x = static_cast<unsigned>(id) * 2654435761u + 1;
    for (int i = 0; i < 9000 + id % 400; i++) {
        x = x * 1664525u + 1013904223u;
        r.samples.push_back(static_cast<int>(x >> 20));
    }
    return r;
}

int main() {
    const int kRecords = 16;
    std::vector<long> sums(kRecords), medians(kRecords);
    {
        std::vector<std::unique_ptr<Stage>> stages;
        stages.push_back(std::make_unique<SumStage>(sums));
        stages.push_back(std::make_unique<MedianStage>(medians));
        for (auto& s : stages)
            s->start();
        for (int i = 0; i < kRecords; i++)
            for (auto& s : stages)
                s->submit(make_record(i));
        for (auto& s : stages)
            s->drain();
    }
    long total = std::accumulate(sums.begin(), sums.end(), 0L);
    long middle = std::accumulate(medians.begin(), medians.end(), 0L);
    std::printf("%d records, sum of sums %ld, sum of medians %ld\n", kRecords, total, middle);
    return 0;
}
