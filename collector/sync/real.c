/* SPDX-License-Identifier: MIT */
/* Private to the preloaded library: finds the functions that the library stands before. */
#include "collector/sync/real.h"

#include <dlfcn.h>

struct etch_shim_real etch_shim_real;

/* libc's own names for these; in place before dlsym() may be called, and should dlsym() itself come back here through a
 * preloaded malloc. */
extern int __pthread_mutex_lock(pthread_mutex_t *);
extern int __pthread_mutex_trylock(pthread_mutex_t *);
extern int __pthread_mutex_unlock(pthread_mutex_t *);

static void *next(const char *name, const char *version)
{
    void *found = version ? dlvsym(RTLD_NEXT, name, version) : NULL;

    return found ? found : dlsym(RTLD_NEXT, name);
}

/* POSIX's way around C's rule against data to function casts. */
#define FIND(member, name, version) (*(void **)(&etch_shim_real.member) = next(name, version))

void etch_shim_real_find(void)
{
    static const char *cond = "GLIBC_2.3.2"; /* the older ones have another layout */

    if (!etch_shim_real.mutex_lock) {
        etch_shim_real.mutex_lock = __pthread_mutex_lock;
        etch_shim_real.mutex_trylock = __pthread_mutex_trylock;
        etch_shim_real.mutex_unlock = __pthread_mutex_unlock;
    }
    FIND(create, "pthread_create", NULL);
    FIND(join, "pthread_join", NULL);
    FIND(tryjoin, "pthread_tryjoin_np", NULL);
    FIND(timedjoin, "pthread_timedjoin_np", NULL);
    FIND(mutex_init, "pthread_mutex_init", NULL);
    FIND(mutex_destroy, "pthread_mutex_destroy", NULL);
    FIND(mutex_timedlock, "pthread_mutex_timedlock", NULL);
    FIND(mutex_clocklock, "pthread_mutex_clocklock", NULL);
    FIND(rdlock, "pthread_rwlock_rdlock", NULL);
    FIND(tryrdlock, "pthread_rwlock_tryrdlock", NULL);
    FIND(timedrdlock, "pthread_rwlock_timedrdlock", NULL);
    FIND(wrlock, "pthread_rwlock_wrlock", NULL);
    FIND(trywrlock, "pthread_rwlock_trywrlock", NULL);
    FIND(timedwrlock, "pthread_rwlock_timedwrlock", NULL);
    FIND(rwunlock, "pthread_rwlock_unlock", NULL);
    FIND(cond_wait, "pthread_cond_wait", cond);
    FIND(cond_timedwait, "pthread_cond_timedwait", cond);
    FIND(cond_clockwait, "pthread_cond_clockwait", NULL);
    FIND(cond_signal, "pthread_cond_signal", cond);
    FIND(cond_broadcast, "pthread_cond_broadcast", cond);
    FIND(barrier_init, "pthread_barrier_init", NULL);
    FIND(barrier_wait, "pthread_barrier_wait", NULL);
    FIND(sem_init, "sem_init", NULL);
    FIND(sem_post, "sem_post", NULL);
    FIND(sem_wait, "sem_wait", NULL);
    FIND(sem_trywait, "sem_trywait", NULL);
    FIND(sem_timedwait, "sem_timedwait", NULL);
    FIND(spin_lock, "pthread_spin_lock", NULL);
    FIND(spin_trylock, "pthread_spin_trylock", NULL);
    FIND(spin_unlock, "pthread_spin_unlock", NULL);
    FIND(mutex_lock, "pthread_mutex_lock", NULL);
    FIND(mutex_trylock, "pthread_mutex_trylock", NULL);
    FIND(mutex_unlock, "pthread_mutex_unlock", NULL);
    etch_shim_real.found = true;
}
