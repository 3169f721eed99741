// SPDX-License-Identifier: MIT
// Returned values: the statements that made them.
static int seven(void)
{
    return 7;
}
static int pick(int n)
{
    int half = n / 2;        //@in
    if (n > 4)               //@in
        return 0;            //@in
    return half;             //@in
}
int main(int argc, char **argv)
{
    int s = seven();
    int p = pick(argc);      //@in
    (void)argv, (void)s;
    return 12 / p;           //@fail
}
