// SPDX-License-Identifier: MIT
// Recursion: the walk ends, and sees the recursive call's arguments.
static int depth(int n)
{
    if (n <= 0)               //@in
        return n;             //@in
    return depth(n - 2);      //@in
}
int main(int argc, char **argv)
{
    int start = argc * 2;     //@in
    int d = depth(start);     //@in
    (void)argv;
    return 1 / d;             //@fail
}
