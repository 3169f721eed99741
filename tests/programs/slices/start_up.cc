// SPDX-License-Identifier: MIT
// What runs before main: the initialisers of variables, in constructors and functions; and static variables of functions.
static int first()
{
    return 0;                                             //@in
}
static int begin = first();                               //@in
struct counter {
    int n, unused;
    counter(int k) : n(k), unused(7) {}                   //@in
};
static counter total(begin);                              //@in
static int &once()
{
    static int kept = total.n;                            //@in
    return kept;                                          //@in
}
int main()
{
    int &alias = once();                                  //@in
    total.unused = 4;
    return 6 / alias;                                     //@fail
}
