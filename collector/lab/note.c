/* SPDX-License-Identifier: MIT */
/* Notes of a run that is recorded: accesses with values, and synchronisations. etch makes records of them when the
 * program has ended (flow.c). The holder of the baton is the only writer. */
#include "collector/lab/memory.h"
#include "collector/lab/runtime.h"

#include <errno.h>

#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <x86intrin.h>

#define STEP 4u /* between two stamps: readers take an event to be within one of its stamp */

static uint32_t pending[ETCH_LAB_THREADS]; /* the thread's write whose value is not known yet: its note + 1 */

static struct etch_lab_note *next_note(void)
{
    const struct etch_lab_thread *t = &lab->thread[lab_me];
    static uint64_t last;
    struct etch_lab_note *n;
    uint64_t now = __rdtsc();

    if (lab->n_notes == ETCH_LAB_NOTES) {
        lab->notes_lost++;
        return NULL;
    }
    last = now > last + STEP ? now : last + STEP;
    n = &lab->notes[lab->n_notes++];
    n->tsc = last;
    n->thread = lab_me;
    for (uint32_t i = 0; i < ETCH_LAB_NOTE_CALLERS && i < t->depth && t->depth <= ETCH_LAB_FRAMES; i++)
        n->callers[i] = t->frames[t->depth - 1 - i];
    return n;
}

static bool is_recorded(void)
{
    return lab && lab->recorded && lab_controlled();
}

/* By the kernel: a load would fault where the program's own instruction is about to. */
bool lab_peek(uint64_t at, size_t size, uint64_t *value)
{
    struct iovec to = {value, size}, from = {(void *)(uintptr_t)at, size};
    int before = errno;
    bool good;

    *value = 0;
    good = size <= sizeof(*value) &&
           lab_real_syscall(SYS_process_vm_readv, lab_real_syscall(SYS_getpid), &to, 1L, &from, 1L, 0L) == (long)size;
    errno = before;
    return good;
}

void lab_note_settle(void)
{
    struct etch_lab_note *n;

    lab_memory_settle();
    if (!is_recorded() || !pending[lab_me])
        return;
    n = &lab->notes[pending[lab_me] - 1];
    pending[lab_me] = 0;
    n->known = lab_peek(n->object, n->size, &n->other);
}

void lab_note_access(const volatile void *at, size_t size, bool write, bool made, uint64_t site)
{
    struct etch_lab_note *n;
    uint64_t value;

    /* An access that will fault does not happen. */
    if (!is_recorded() || !lab_peek(LAB_OBJECT(at), size < sizeof(value) ? size : sizeof(value), &value) ||
        !(n = next_note()))
        return;
    n->made = made;
    n->site = site;
    n->object = LAB_OBJECT(at);
    n->size = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;
    n->write = write;
    n->read = !write;
    if (write) {
        pending[lab_me] = lab->n_notes;
    } else {
        n->known = size <= sizeof(value); /* nobody else runs before the program's own load */
        n->other = value;
    }
}

/* Few instructions share memory in a first run, and the first accesses to an object are rarely among them. */
void lab_note_aside(const volatile void *at, size_t size, bool write, bool made, uint64_t site)
{
    uint32_t n = lab->n_notes;

    if (n >= ETCH_LAB_NOTES / 2)
        return; /* the rest is for accesses that are known to share memory */
    lab_note_access(at, size, write, made, site);
    if (lab->n_notes > n)
        lab->notes[n].aside = true;
}

void lab_note_atomic(const volatile void *at, size_t size, bool read, bool write, uint64_t value, uint64_t site)
{
    struct etch_lab_note *n;

    if (!is_recorded() || !(n = next_note()))
        return;
    n->site = site;
    n->object = LAB_OBJECT(at);
    n->size = (uint32_t)size;
    n->read = read;
    n->write = write;
    n->other = value;
    n->known = n->made = true;
}

/* Robust mutexes are taken with EOWNERDEAD. */
static void follow_locks(enum lab_sync op, uint64_t object, uint64_t other, int result)
{
    bool taken = result == 0 || result == EOWNERDEAD;

    if (op == LAB_MUTEX_LOCK || op == LAB_RWLOCK_RDLOCK || op == LAB_RWLOCK_WRLOCK || op == LAB_SPIN_LOCK) {
        if (taken)
            lab_lock_held(object, true);
    } else if (op == LAB_MUTEX_UNLOCK || op == LAB_RWLOCK_UNLOCK || op == LAB_SPIN_UNLOCK) {
        lab_lock_held(object, false);
    } else if (op == LAB_COND_WAIT_BEGIN || op == LAB_COND_WAIT_END) {
        lab_lock_held(other, op == LAB_COND_WAIT_END);
    }
}

void lab_note_sync(enum lab_sync op, uint64_t object, uint64_t other, int result, uint64_t site)
{
    struct etch_lab_note *n;

    if (lab && lab_is_mine())
        follow_locks(op, object, other, result);
    if (!is_recorded() || !(n = next_note()))
        return;
    n->op = (uint16_t)op;
    n->site = site;
    n->object = object;
    n->other = other;
    n->result = result;
}
