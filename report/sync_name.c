/* SPDX-License-Identifier: MIT */
/* See sync_name.h. */
#include "report/sync_name.h"

#include <stddef.h>

const char *etch_sync_name(Etch__SyncOp op)
{
    static const char *const names[] = {
        [ETCH__SYNC_OP__SYNC_THREAD_CREATE] = "pthread_create",
        [ETCH__SYNC_OP__SYNC_THREAD_START] = "start of the thread",
        [ETCH__SYNC_OP__SYNC_THREAD_EXIT] = "end of the thread",
        [ETCH__SYNC_OP__SYNC_THREAD_JOIN] = "pthread_join",
        [ETCH__SYNC_OP__SYNC_MUTEX_LOCK] = "pthread_mutex_lock",
        [ETCH__SYNC_OP__SYNC_MUTEX_UNLOCK] = "pthread_mutex_unlock",
        [ETCH__SYNC_OP__SYNC_RWLOCK_RDLOCK] = "pthread_rwlock_rdlock",
        [ETCH__SYNC_OP__SYNC_RWLOCK_WRLOCK] = "pthread_rwlock_wrlock",
        [ETCH__SYNC_OP__SYNC_RWLOCK_UNLOCK] = "pthread_rwlock_unlock",
        [ETCH__SYNC_OP__SYNC_COND_WAIT_BEGIN] = "pthread_cond_wait",
        [ETCH__SYNC_OP__SYNC_COND_WAIT_END] = "pthread_cond_wait",
        [ETCH__SYNC_OP__SYNC_COND_SIGNAL] = "pthread_cond_signal",
        [ETCH__SYNC_OP__SYNC_COND_BROADCAST] = "pthread_cond_broadcast",
        [ETCH__SYNC_OP__SYNC_BARRIER_ENTER] = "pthread_barrier_wait",
        [ETCH__SYNC_OP__SYNC_BARRIER_LEAVE] = "pthread_barrier_wait",
        [ETCH__SYNC_OP__SYNC_SEM_POST] = "sem_post",
        [ETCH__SYNC_OP__SYNC_SEM_WAIT] = "sem_wait",
        [ETCH__SYNC_OP__SYNC_SPIN_LOCK] = "pthread_spin_lock",
        [ETCH__SYNC_OP__SYNC_SPIN_UNLOCK] = "pthread_spin_unlock",
    };

    return (size_t)op < sizeof(names) / sizeof(names[0]) ? names[op] : NULL;
}
