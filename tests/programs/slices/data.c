// SPDX-License-Identifier: MIT
// Data flow through local variables: the last assignment that can reach the use, and nothing else.
#include <stdlib.h>
int main(int argc, char **argv)
{
    int a = argc + 1;      //@in
    int b = argc * 3;
    int unused = a - b;
    int c = a * 2;         //@in
    b = atoi(argv[0]);
    int d = c;
    d = c - 4;             //@in
    (void)unused, (void)b;
    return 10 / d;         //@fail
}
