// SPDX-License-Identifier: MIT
// Arguments: what the callers pass for the parameter that is used, not for the others.
static int divide(int by, int times)
{
    int twice = times * 2;
    (void)twice;
    return 100 / by;             //@fail
}
int main(int argc, char **argv)
{
    int zero = argc - 1;         //@in
    int count = argc + 5;
    (void)argv;
    if (argc > 3)                //@in
        return divide(4, count); //@in
    return divide(zero, count);  //@in
}
