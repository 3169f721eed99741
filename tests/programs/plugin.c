/* SPDX-License-Identifier: MIT */
/* What loader.c loads. */
int plugin_work(int x);

int plugin_work(int x)
{
    int sum = 0;

    for (int i = 0; i < 50; i++)
        sum += i % (x + 1);
    return sum;
}
