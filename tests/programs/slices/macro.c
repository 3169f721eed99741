// SPDX-License-Identifier: MIT
// A macro that makes several statements on one line: one place, of which only the needed instructions count.
#define SWAP(a, b) do { int t_ = (a); (a) = (b); (b) = t_; } while (0)
int main(int argc, char **argv)
{
    int x = argc;
    int y = argc - 1;             //@in
    int z = argc + 9;
    SWAP(x, y);                   //@in
    SWAP(z, z);
    (void)argv, (void)z;
    return 3 / x;                 //@fail
}
