// SPDX-License-Identifier: MIT
// Arrays: an element may be any element of the same array, and the index counts.
static int table[16];
static int pads[16];
int main(int argc, char **argv)
{
    int i = argc & 15;              //@in
    int k = argc + 3;               //@in
    pads[i] = 7;
    table[i] = k;                   //@in writes table[i]
    table[3] = argc;                //@in writes table[3]
    pads[k & 15] = 8;
    (void)argv;
    return 5 / table[k & 15];       //@fail reads table[...]
}
