/* SPDX-License-Identifier: MIT */
/* The failure of a program in QEMU: from the faults that the plugin saw, and from how the process ended. */
#include "collector/session/process.h"
#include "collector/sync/exception.h"
#include "collector/vpt/vpt.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static bool is_subject(const struct vpt *v, uint32_t pid)
{
    for (size_t i = 0; i < v->subjects.n; i++)
        if (v->subjects.v[i] == pid)
            return true;
    return false;
}

/* Takes a fault that ends a process or may end it. If a handler gets a fault and then ends the process in its own way,
 * the fault counts. A fault of the program's own process has priority over faults of children. */
void etch_vpt_fault_take(struct vpt *v, const struct etch_vpt_slot *s, const struct etch_vpt_note *note)
{
    struct etch_vpt_fault *f = &v->fault;
    bool caught = note->event.type == VPT_EVENT_CAUGHT, own = s->tid == f->tid && s->pid == f->pid;

    if (f->seen && f->caught && own) {
        if (caught && note->flags & 2)
            memset(f, 0, sizeof(*f));
        else if (!caught)
            f->deadly = true;
        return;
    }
    if ((caught && note->flags & 2) || (f->seen && f->pid == (uint32_t)v->pid && s->pid != f->pid))
        return;
    if (s->pid != (uint32_t)v->pid && !(etch_signal_is_failure((int)(uint32_t)note->value) && is_subject(v, s->pid)))
        return; /* children may be ended by whoever started them, and may be other programs */
    *f = (struct etch_vpt_fault){.seen = true,
                                 .address_known = note->flags & 1,
                                 .caught = caught,
                                 .deadly = !caught,
                                 .pid = s->pid,
                                 .tid = s->tid,
                                 .signal = (uint32_t)note->value,
                                 .code = (int)(note->value >> 32),
                                 .ip = note->number,
                                 .address = note->address,
                                 .tsc = note->event.tsc};
}

/* An exit status is a failure only if it is not 0 and the process or its child had a fault before. With `subject` the
 * status does not count: the process is then only a launcher of the program in question. */
static bool has_failed(const struct vpt *v, int wait_status)
{
    const struct etch_vpt_fault *f = &v->fault;

    return WIFSIGNALED(wait_status) ||
           (f->seen && f->signal && (WEXITSTATUS(wait_status) || (v->options->subject && f->deadly)));
}

static void set_message(struct vpt *v, int wait_status)
{
    const struct etch_vpt_fault *f = &v->fault;
    bool killed = WIFSIGNALED(wait_status);

    if (f->seen && f->caught && f->pid == v->failure.pid)
        snprintf(v->failure_message, sizeof(v->failure_message),
                 killed ? "caught by a handler; then signal %d" : "caught by a handler; then exit status %d",
                 killed ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status));
    else if (!killed && f->pid != (uint32_t)v->pid)
        snprintf(v->failure_message, sizeof(v->failure_message), "in a child process");
    v->failure.message = v->failure_message;
}

Etch__Failure *etch_vpt_failure(void *state, int wait_status, bool *address_known)
{
    struct vpt *v = state;
    const struct etch_vpt_fault *f = &v->fault;
    Etch__Failure *failure = &v->failure;

    if (!has_failed(v, wait_status))
        return NULL;
    etch__failure__init(failure);
    failure->kind = ETCH__FAILURE_KIND__FAILURE_SIGNAL;
    failure->signal = WIFSIGNALED(wait_status) ? (uint32_t)WTERMSIG(wait_status) : f->signal;
    failure->pid = WIFSIGNALED(wait_status) ? (uint32_t)v->pid : f->pid;
    *address_known = f->address_known;
    if (f->seen && f->pid == failure->pid) {
        failure->signal = f->caught ? f->signal : failure->signal;
        failure->tid = f->tid;
        failure->ip = f->ip;
        failure->tsc = f->tsc;
        failure->fault_address = f->address;
        failure->code = f->code;
        failure->exception = v->exception;
    }
    set_message(v, wait_status);
    return failure;
}
