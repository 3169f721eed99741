/* SPDX-License-Identifier: MIT */
/* Private: the parts of order_sync.c, and what they share. */
#ifndef ETCH_DECODER_ORDER_SYNC_H
#define ETCH_DECODER_ORDER_SYNC_H

#include "decoder/order/graph.h"

#define OP(name) (UINT64_C(1) << ETCH__SYNC_OP__SYNC_##name)

/* All sync events whose op is in `ops` (a bit each), by object, then as they came. False when memory is short. */
bool etch_sync_events(const struct etch_order *o, uint64_t ops, struct keyed_list *list);

/* The end of the group of one object that begins at `begin`. */
size_t etch_sync_group_end(const struct keyed_list *list, size_t begin);

/* Calls `derive` for the events of each object in the list. Returns the sum, or a value below 0. */
int64_t etch_sync_derive_groups(struct etch_order *o, const struct keyed_list *list,
                                int64_t (*derive)(struct etch_order *o, const struct keyed *v, size_t n));

/* For qsort_r with the order as its context. */
int etch_by_thread_and_place(const void *x, const void *y, void *context);

/* Each adds edges that need no other order. False when memory is short. */
bool etch_order_link_threads(struct etch_order *o);
bool etch_order_link_barriers(struct etch_order *o);
bool etch_order_link_cpus(struct etch_order *o);
bool etch_order_collect_sections(struct etch_order *o);

/* Each adds edges that follow from the order so far. Returns how many, or a value below 0. */
int64_t etch_order_derive_locks(struct etch_order *o);
int64_t etch_order_derive_semaphores(struct etch_order *o);
int64_t etch_order_derive_signals(struct etch_order *o);

#endif
