// SPDX-License-Identifier: MIT
// Control dependence: the branches that decide whether the failing statement runs, and what they test.
#include <stdlib.h>
int main(int argc, char **argv)
{
    int n = argc;                    //@in
    int other = argc * 2;
    if (other > 2)
        other++;
    for (int i = 0; i < n; i++) {    //@in
        if (argv[i][0] == 'x')       //@in
            abort();                 //@fail
    }
    return other;
}
