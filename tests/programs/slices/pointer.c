// SPDX-License-Identifier: MIT
// Function pointers: each function of the type whose address is taken, and where the pointer comes from.
static int nothing(int n)
{
    return n - n;                                            //@in
}
static int twice(int n)
{
    return n * 2;                                            //@in
}
static int never_taken(int n)
{
    return n + 1;
}
static int other_type(int n, int m)
{
    return n + m;
}
static int (*const both[])(int, int) = {other_type};
int main(int argc, char **argv)
{
    int (*f)(int) = argc > 1 ? nothing : twice;              //@in
    int x = f(argc);                                         //@in
    int y = never_taken(both[0](argc, 1));
    (void)argv, (void)y;
    return 20 / x;                                           //@fail
}
