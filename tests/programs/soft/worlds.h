/* SPDX-License-Identifier: MIT */
/* Shared by worlds.c and worlds_other.c. */
#ifndef WORLDS_H
#define WORLDS_H

typedef int (*worker)(int);

int add(int n, ...);
int other_step(int x);
worker other_worker(void);
worker other_add_one(void);
int add_one(int x);
int hook(int x);
int by_alias(int x);
int count_calls(void);

#endif
