/* SPDX-License-Identifier: MIT */
/* The threads of a program under ptrace, and breakpoints in it. */
#ifndef ETCH_COLLECTOR_HOLD_TASKS_H
#define ETCH_COLLECTOR_HOLD_TASKS_H

#include "base/array.h"
#include "base/error.h"
#include "collector/lab_run.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum etch_task_state {
    ETCH_TASK_RUNS,
    ETCH_TASK_STOPPED, /* to be resumed */
    ETCH_TASK_HELD,    /* at a statement, until another thread has left its own */
    ETCH_TASK_ENDED,
};

struct etch_task {
    pid_t tid;
    enum etch_task_state state;
    struct etch_lab_name name;
    uint32_t number; /* in the order of creation, from 1 */
    uint32_t made;   /* threads that it made */
    bool nameless;   /* its creator is not known yet, or is too many generations away */
    bool born;       /* its first stop was seen */
    bool pending;    /* `status` came while the thread was stopped for another one */
    int status;
    double since;      /* held since */
    uint64_t at;       /* breakpoint at which the thread stands, to be stepped over; 0: none */
    bool walks;        /* is stepped through a statement */
    uint32_t place;    /* of that statement */
    uint64_t comes_to; /* return address at which the walk goes on; 0: none */
    uint32_t visits[ETCH_LAB_PLACES];
};

struct etch_breakpoint {
    uint64_t address;
    uint32_t uses;  /* statements and walks; 0: the program's own byte is back in its place */
    uint8_t before; /* the program's own byte */
};

struct etch_tasks {
    pid_t pid;
    ETCH_ARRAY(struct etch_task *) all;
    ETCH_ARRAY(struct etch_breakpoint) breakpoints;
};

struct etch_task *etch_tasks_find(struct etch_tasks *tasks, pid_t tid);
/* Returns NULL if memory is short. */
struct etch_task *etch_tasks_add(struct etch_tasks *tasks, pid_t tid);
void etch_task_name_after(struct etch_task *task, struct etch_task *creator);
void etch_tasks_free(struct etch_tasks *tasks);

struct etch_breakpoint *etch_breakpoint_at(struct etch_tasks *tasks, uint64_t address);
bool etch_breakpoint_add(struct etch_tasks *tasks, uint64_t address);
void etch_breakpoint_drop(struct etch_tasks *tasks, uint64_t address);
/* Puts the program's own byte back for the step of a thread over it, and the breakpoint afterwards. */
void etch_breakpoint_lift(struct etch_tasks *tasks, const struct etch_task *task, uint64_t address, bool lifted);
/* Takes all breakpoints out of a process that got a copy of the program's memory. */
void etch_breakpoints_remove_from(const struct etch_tasks *tasks, pid_t copy);

/* Stops the other threads. Events of theirs that come meanwhile are kept in `pending`. */
void etch_tasks_stop_others(struct etch_tasks *tasks, const struct etch_task *but);
void etch_tasks_resume_others(struct etch_tasks *tasks, const struct etch_task *but);

bool etch_task_get_pc(const struct etch_task *task, uint64_t *pc, uint64_t *sp);
bool etch_task_set_pc(const struct etch_task *task, uint64_t pc);
void etch_task_resume(struct etch_task *task, int signal);

#endif
