// SPDX-License-Identifier: MIT
// Exceptions: a handler runs because of the throw that it catches, in whatever function that is; what other handlers
// catch stays out.
#include <stdexcept>
struct refused {
    int code;
};
static int other;
static int twice(int x)
{
    return 2 * x;
}
static void check(int n)
{
    if (n > 3)                                            //@in
        throw refused{n};                                 //@in
    if (n < -3)
        throw std::runtime_error("low");
}
int main(int argc, char **)
{
    int zero = 1;                                         //@in
    other = twice(argc);
    try {
        check(argc + 3);                                  //@in
    } catch (const refused &) {                           //@in
        zero = 0;                                         //@in
    }
    try {
        other = 4;
    } catch (...) {
        other = 5;
    }
    return 6 / zero;                                      //@fail
}
