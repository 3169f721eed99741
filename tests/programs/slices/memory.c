// SPDX-License-Identifier: MIT
// Memory: every store to the same global, in any function; not those to others.
int level, other;
static void set(int v)
{
    other = v;
    level = v;              //@in writes level
}
static void clear(void)
{
    level = 0;              //@in writes level
}
int main(int argc, char **argv)
{
    set(argc);              //@in
    if (argv[1])            //@in
        clear();            //@in
    return 100 / level;     //@fail reads level
}
