/* SPDX-License-Identifier: MIT */
/* Private to report/: synchronisation operations by the function that a programmer calls. */
#ifndef ETCH_REPORT_SYNC_NAME_H
#define ETCH_REPORT_SYNC_NAME_H

#include "proto/etch.pb-c.h"

/* "pthread_mutex_lock"; NULL for an operation that no view names. */
const char *etch_sync_name(Etch__SyncOp op);

#endif
