/* SPDX-License-Identifier: MIT */
// In C. Ways to end with a status: each is named by its argument, and by the label of the statement that makes the value. With -DSAME all are 1,
// so that only what ran tells them apart.
#ifdef SAME
#define STATUS(n) 1
#else
#define STATUS(n) n
#endif
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int errors;
struct result {
    int code;
} result;
static void die(int code)
{
    exit(code);
}
static int check(int x)
{
    for (int i = 0; i < x; i++) {
        if (i == 3)
            return STATUS(5); //@nested
        if (i == 9)
            return STATUS(6);
    }
    return 0;
}
static int run(const char *what)
{
    int rc = 0;
    if (strcmp(what, "check") == 0 && check(4) != 0)
        rc = STATUS(7); //@check
    if (strcmp(what, "die") == 0)
        die(STATUS(8)); //@die
    if (strcmp(what, "global") == 0)
        errors = STATUS(9); //@global
    if (strcmp(what, "errx") == 0)
        errx(STATUS(10), "enough"); //@errx
    if (strcmp(what, "_exit") == 0)
        _exit(STATUS(11)); //@_exit
    if (strcmp(what, "field") == 0)
        result.code = STATUS(12); //@field
    if (strcmp(what, "nested") == 0)
        return check(4);
    if (strcmp(what, "sum") == 0)
        return (int)strlen(what) + STATUS(10); //@sum
    return rc ? rc : result.code;
}
int main(int argc, char **argv)
{
    int r = run(argc > 1 ? argv[1] : "");
    if (r)
        return r;
    return errors;
}
