// SPDX-License-Identifier: MIT
// Callbacks through the library: qsort calls our function with elements of our array; atexit calls it at all.
#include <stdlib.h>
static int scale = 1, late;
static int compare(const void *a, const void *b)
{
    int x = *(const int *)a;                       //@in
    return x / scale - *(const int *)b;            //@fail reads scale
}
static void at_end(void)
{
    scale = 0;                                     //@in writes scale
}
static void unrelated(void)
{
    late = 1;
}
int main(int argc, char **argv)
{
    int v[3] = {argc, 2, 1};                       //@in
    atexit(unrelated);
    atexit(at_end);                                //@in
    v[1] = argc * 7;                               //@in
    (void)argv;
    qsort(v, 3, sizeof(v[0]), compare);            //@in
    return v[0];
}
