/* SPDX-License-Identifier: MIT */
#ifndef COUNTER_H
#define COUNTER_H

#ifdef __cplusplus
extern "C" {
#endif

int counter_begun(void);
const char *counter_name(void);
const char *counter_name_inside(void);
void *counter_run(void *unused);
int counter_total(void);

#ifdef __cplusplus
}
#endif

#endif
