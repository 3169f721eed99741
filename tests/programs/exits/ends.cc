/* SPDX-License-Identifier: MIT */
// Ways to end with a status: each is named by its argument, and by the label of the statement that makes the value. With -DSAME all are 1,
// so that only what ran tells them apart.
#ifdef SAME
#define STATUS(n) 1
#else
#define STATUS(n) n
#endif
#include <string>
#include <thread>
#include <cstdlib>
#include <unistd.h>
#include <vector>
static int errors;
struct guard {
    int *n;
    guard(int *p) : n(p) {}
    ~guard() { *n += 1; }
};
static int ran;
static void die(int code)
{
    if (code > 100)
        code = 100;
    std::exit(code);
}
static int check(int x)
{
    guard g(&ran);
    if (x > 4)
        return STATUS(4);
    for (int i = 0; i < x; i++) {
        guard h(&ran);
        if (i == 3)
            return STATUS(5); //@nested
        std::string s(i, 'x');
        if (s.size() == 9)
            return STATUS(6);
    }
    return 0;
}
static int run(int argc, char **argv)
{
    int rc = 0;
    std::string what = argc > 1 ? argv[1] : "check";
    if (what == "check" && check(4) != 0)
        rc = STATUS(7); //@check
    if (what == "die")
        die(STATUS(8)); //@die
    if (what == "global")
        errors = STATUS(9); //@global
    if (what == "quick")
        std::quick_exit(STATUS(10)); //@quick
    if (what == "_exit")
        _exit(STATUS(11)); //@_exit
    if (what == "nested")
        return check(4);
    if (what == "thread") {
        std::thread t([] {
            guard g(&ran);
            die(STATUS(12)); //@thread
        });
        t.join();
    }
    if (what == "try") {
        try {
            std::vector<int> v;
            v.at(3) = 1;
        } catch (const std::exception &) {
            rc = STATUS(13); //@try
        }
    }
    return rc;
}
int main(int argc, char **argv)
{
    std::string keep = argv[0];
    int r = run(argc, argv);
    if (r)
        return r;
    return errors;
}
