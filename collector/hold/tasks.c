/* SPDX-License-Identifier: MIT */
/* See tasks.h. */
#include "collector/hold/tasks.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#define TRAP 0xccu

/* ---- Threads ---- */

struct etch_task *etch_tasks_find(struct etch_tasks *tasks, pid_t tid)
{
    for (size_t i = 0; i < tasks->all.n; i++)
        if (tasks->all.v[i]->tid == tid && tasks->all.v[i]->state != ETCH_TASK_ENDED)
            return tasks->all.v[i];
    return NULL;
}

void etch_task_name_after(struct etch_task *task, struct etch_task *creator)
{
    task->name = creator->name;
    task->nameless = creator->nameless || creator->name.depth == ETCH_LAB_GENERATIONS;
    creator->made++;
    if (!task->nameless)
        task->name.ordinals[task->name.depth++] = creator->made;
}

struct etch_task *etch_tasks_add(struct etch_tasks *tasks, pid_t tid)
{
    struct etch_task *task = calloc(1, sizeof(*task));

    if (!task || !etch_array_push(&tasks->all, task)) {
        free(task);
        return NULL;
    }
    task->tid = tid;
    task->number = (uint32_t)tasks->all.n;
    return task;
}

void etch_tasks_free(struct etch_tasks *tasks)
{
    for (size_t i = 0; i < tasks->all.n; i++)
        free(tasks->all.v[i]);
    etch_array_free(&tasks->all);
    etch_array_free(&tasks->breakpoints);
}

bool etch_task_get_pc(const struct etch_task *task, uint64_t *pc, uint64_t *sp)
{
    struct user_regs_struct regs;

    if (ptrace(PTRACE_GETREGS, task->tid, NULL, &regs) < 0)
        return false;
    *pc = regs.rip;
    *sp = regs.rsp;
    return true;
}

bool etch_task_set_pc(const struct etch_task *task, uint64_t pc)
{
    struct user_regs_struct regs;

    if (ptrace(PTRACE_GETREGS, task->tid, NULL, &regs) < 0)
        return false;
    regs.rip = pc;
    return ptrace(PTRACE_SETREGS, task->tid, NULL, &regs) == 0;
}

void etch_task_resume(struct etch_task *task, int signal)
{
    task->state = ETCH_TASK_RUNS;
    ptrace(PTRACE_CONT, task->tid, NULL, (void *)(intptr_t)signal);
}

void etch_tasks_stop_others(struct etch_tasks *tasks, const struct etch_task *but)
{
    for (size_t i = 0; i < tasks->all.n; i++) {
        struct etch_task *t = tasks->all.v[i];
        int status;

        if (t == but || t->state != ETCH_TASK_RUNS || ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL) < 0)
            continue;
        while (waitpid(t->tid, &status, __WALL) < 0)
            if (errno != EINTR)
                break;
        t->state = ETCH_TASK_STOPPED;
        if (!WIFSTOPPED(status) || status >> 16 != PTRACE_EVENT_STOP || WSTOPSIG(status) != SIGTRAP) {
            t->pending = true;
            t->status = status;
        }
    }
}

void etch_tasks_resume_others(struct etch_tasks *tasks, const struct etch_task *but)
{
    for (size_t i = 0; i < tasks->all.n; i++) {
        struct etch_task *t = tasks->all.v[i];

        if (t != but && t->state == ETCH_TASK_STOPPED && !t->pending)
            etch_task_resume(t, 0);
    }
}

/* ---- Breakpoints ---- */

static bool poke(pid_t pid, uint64_t address, uint8_t byte, uint8_t *before)
{
    uint64_t from = address & ~UINT64_C(7), shift = (address - from) * 8;
    long word;

    errno = 0;
    word = ptrace(PTRACE_PEEKTEXT, pid, (void *)from, NULL);
    if (errno)
        return false;
    if (before)
        *before = (uint8_t)((uint64_t)word >> shift);
    word = (long)(((uint64_t)word & ~(UINT64_C(0xff) << shift)) | (uint64_t)byte << shift);
    return ptrace(PTRACE_POKETEXT, pid, (void *)from, (void *)word) == 0;
}

/* A thread that is stopped now: memory can be written through it. */
static pid_t stopped_task(const struct etch_tasks *tasks)
{
    for (size_t i = 0; i < tasks->all.n; i++)
        if (tasks->all.v[i]->state == ETCH_TASK_STOPPED || tasks->all.v[i]->state == ETCH_TASK_HELD)
            return tasks->all.v[i]->tid;
    return 0;
}

struct etch_breakpoint *etch_breakpoint_at(struct etch_tasks *tasks, uint64_t address)
{
    for (size_t i = 0; i < tasks->breakpoints.n; i++)
        if (tasks->breakpoints.v[i].address == address)
            return &tasks->breakpoints.v[i];
    return NULL;
}

bool etch_breakpoint_add(struct etch_tasks *tasks, uint64_t address)
{
    struct etch_breakpoint *known = etch_breakpoint_at(tasks, address), b = {.address = address, .uses = 1};

    if (known && known->uses++)
        return true;
    if (known)
        return poke(stopped_task(tasks), address, TRAP, NULL);
    return poke(stopped_task(tasks), address, TRAP, &b.before) && etch_array_push(&tasks->breakpoints, b);
}

void etch_breakpoint_drop(struct etch_tasks *tasks, uint64_t address)
{
    struct etch_breakpoint *b = etch_breakpoint_at(tasks, address);

    if (b && b->uses && --b->uses == 0)
        poke(stopped_task(tasks), address, b->before, NULL);
}

void etch_breakpoint_lift(struct etch_tasks *tasks, const struct etch_task *task, uint64_t address, bool lifted)
{
    const struct etch_breakpoint *b = etch_breakpoint_at(tasks, address);

    if (b && b->uses)
        poke(task->tid, address, lifted ? b->before : TRAP, NULL);
}

void etch_breakpoints_remove_from(const struct etch_tasks *tasks, pid_t copy)
{
    for (size_t i = 0; i < tasks->breakpoints.n; i++)
        if (tasks->breakpoints.v[i].uses)
            poke(copy, tasks->breakpoints.v[i].address, tasks->breakpoints.v[i].before, NULL);
}
