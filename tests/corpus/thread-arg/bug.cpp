// SPDX-License-Identifier: MIT
// The upload thread is given its job by reference; the job goes out of scope while the thread may still have to read it.
#include "../corpus.h"

#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace transfer {

struct Job {
    const char *url;
    long size;
};

struct Report {
    const char *error;
    long sent;
};

class Uploader {
public:
    ~Uploader()
    {
        if (worker_.joinable())
            worker_.join();
    }

    void start(const Job &job)
    {
#ifdef FIXED
        worker_ = std::thread(&Uploader::run, this, job);
#else
        worker_ = std::thread(&Uploader::run, this, std::cref(job)); //@start
#endif
    }

    void finish(Report &report)
    {
        worker_.join();
        report.sent = static_cast<long>(scheme_.size());
    }

private:
    void run(const Job &job)
    {
        window(350); // the name of the proxy is looked up
        const char *p = job.url; //@read
        while (*p && *p != ':') //@use
            scheme_ += *p++;
    }

    std::thread worker_;
    std::string scheme_;
};

} // namespace transfer

int main()
{
    transfer::Uploader uploader;

    {
        auto job = std::make_unique<transfer::Job>();
        job->url = "https://example.org/incoming"; //@make
        job->size = 4096;
        uploader.start(*job); //@call
        window(500); // the progress bar is drawn
    } //@dies

    auto report = std::make_unique<transfer::Report>(); //@reuse
    uploader.finish(*report);
    return report->sent == 5 ? 0 : 2;
}
