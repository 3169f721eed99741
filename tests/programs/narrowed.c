// SPDX-License-Identifier: MIT
// A call through a pointer that fits two functions and reaches one; and a failure inside the C library.
#include <string.h>
static const char *none(int n)
{
    return n > 100 ? "x" : 0;                            //@in
}
static const char *never(int n)
{
    return n > 100 ? "y" : "z";                          //@fits
}
static const char *(*volatile pick[])(int) = {none, never};
int main(int argc, char **argv)
{
    const char *text = pick[argc > 50](argc);            //@in
    (void)argv;
    return (int)strlen(text);                            //@fail
}
