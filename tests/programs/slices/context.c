// SPDX-License-Identifier: MIT
// A function that is called from many places: only the call whose result is used comes in, with what it passes.
static int half(int n)
{
    return n / 2;               //@in
}
static int quarter(int n)
{
    return half(half(n));
}
int main(int argc, char **argv)
{
    int a = argc + 7;
    int b = argc + 9;           //@in
    int c = half(a);
    int d = half(b);            //@in
    int e = quarter(c);
    (void)argv, (void)e;
    return 1 / d;               //@fail
}
