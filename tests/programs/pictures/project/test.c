/* SPDX-License-Identifier: MIT */
/* The test: what was taken and what is left must be what there was. */
#include "report.h"
#include "store.h"

#include <pthread.h>
#include <stdio.h>

static void *buyer(void *unused)
{
    (void)unused;
    while (stock_take())
        continue;
    return NULL;
}

int main(void)
{
    pthread_t buyers[2];
    int missing;

    stock_fill(12);
    for (int i = 0; i < 2; i++)
        pthread_create(&buyers[i], NULL, buyer, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(buyers[i], NULL);
    missing = report_balance(12);
    if (missing != 0) {
        fprintf(stderr, "%d items are missing\n", missing);
        return 1;
    }
    return 0;
}
