/* SPDX-License-Identifier: MIT */ /*
 * Prints the invoices of a day, page by page, with a subtotal for each
 * page and a total for each invoice.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PAGE_LINES 12

struct line {
    int article;
    int cents;
};

struct page {
    int number;
    int n;
    struct line line[PAGE_LINES];
    long subtotal;
    long carried;
};

struct invoice {
    int number;
    int pages;
    int lines;
    long total;
    struct page page;
};

static const struct {
    int number;
    int cents;
} article[] = {
    { 10230, 499 },  { 10231, 1290 }, { 11008, 2499 },
    { 11009, 3199 }, { 14770, 199 },  { 15002, 849 },
    { 20410, 3990 }, { 21333, 149 },  { 21340, 579 },
};

#define ARTICLES ((int)(sizeof article / sizeof article[0]))

static void page_start(struct page *p, int number, long carried)
{
    p->number = number;
    p->n = 0;
    p->subtotal = 0;
    p->carried = carried;
}

static void page_flush(struct invoice *inv)
{
    struct page *p = &inv->page;

    if (p->n == 0)
        return;
    printf("invoice %d page %d\n", inv->number, p->number);
    for (int i = 0; i < p->n; i++)
        printf("  item %d %6d\n", p->line[i].article, p->line[i].cents);
    printf("  subtotal %ld, carried %ld\n", p->subtotal, p->carried);
    inv->total += p->subtotal;
    inv->lines += p->n;
    inv->pages++;
    page_start(p, p->number + 1, p->carried + p->subtotal);
}

static void invoice_start(struct invoice *inv, int number)
{
    memset(inv, 0, sizeof *inv);
    inv->number = number;
    page_start(&inv->page, 1, 0);
}

static void invoice_add(struct invoice *inv, int art, int cents)
{
    struct page *p = &inv->page;

#ifdef FIXED
    if (p->n >= PAGE_LINES)
#else
    if (p->n > PAGE_LINES)
#endif
        page_flush(inv);
    p->line[p->n].article = art;
    p->line[p->n].cents = cents;
    p->n++;
    p->subtotal += cents;
}

static long invoice_end(struct invoice *inv)
{
    page_flush(inv);
    printf("invoice %d total %ld (%d items, %d pages)\n", inv->number, inv->total,
           inv->lines, inv->pages);
    return inv->total;
}

/* Size of an order: mostly small, some larger. */
static int order_size(void)
{
    int n = 1 + rand() % 4;

    while (n < 30 && rand() % 100 < 62)
        n += rand() % 3;
    return n;
}

static int rebate(int cents, int n)
{
    return n > 5 ? cents - cents / 20 : cents;
}

int main(int argc, char **argv)
{
    struct invoice inv;
    long day = 0;
    int count;

    srand(argc > 1 ? (unsigned)atoi(argv[1])
                   : (unsigned)(time(NULL) * 1009) ^ (unsigned)(getpid() * 31));
    count = 5 + rand() % 20;
    for (int i = 0; i < count; i++) {
        int n = order_size();

        invoice_start(&inv, 7000 + i);
        for (int k = 0; k < n; k++) {
            int a = rand() % ARTICLES;
            invoice_add(&inv, article[a].number, rebate(article[a].cents, n));
        }
        day += invoice_end(&inv);
    }
    printf("day total %ld in %d invoices\n", day, count);
    return 0;
}
