// SPDX-License-Identifier: MIT
// C++: a method's object, a reference, and a lambda that runs in a std::thread.
#include <thread>
class Counter
{
  public:
    void add(int n) { total += n; }                       //@in
    int rest() const { return total; }                    //@in
    int unused = 0;

  private:
    int total = 0;                                        //@in
};
static void lower(int &value)
{
    value = value - 1;                                    //@in
}
int main(int argc, char **)
{
    Counter counter;                                      //@in
    int step = argc;                                      //@in
    lower(step);                                          //@in
    std::thread worker([&] { counter.add(step); });       //@in
    worker.join();
    counter.unused = 4;
    return 6 / counter.rest();                            //@fail
}
