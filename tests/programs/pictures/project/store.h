/* SPDX-License-Identifier: MIT */
/* A stock of items that threads take from. */
extern int stock_left, stock_taken;

void stock_fill(int items);
int stock_take(void);
