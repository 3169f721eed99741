/* SPDX-License-Identifier: MIT */
/* See hold.h. Threads are traced. A thread that comes to the second statement of an order is left stopped until the
 * first statement is over. To see when a statement is over, its thread is stepped through the code of the line; calls
 * are run through up to their return. */
#include "collector/hold.h"
#include "base/time.h"
#include "collector/hold/tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEPS 200000u     /* of one statement, at most */
#define QUIET_CHECKS 5u   /* looks at sleeping threads before they count as hung */
#define QUIET_SECONDS 0.1 /* between two looks */
#define LONGEST_CALL 15u  /* bytes of an instruction */

struct rule_state {
    bool first_over, then_begun;
};

struct hold {
    const struct etch_hold_request *request;
    struct etch_hold_result *result;
    struct etch_tasks tasks;
    struct rule_state *rules;
    ETCH_ARRAY(pid_t) strangers; /* stopped processes whose creation was not reported yet */
    uint64_t *begins;            /* addresses of the ranges, by their index; 0: of no place that is waited for */
    bool running;                /* the program is in memory */
    bool over;
    double quiet_since;
    uint32_t quiet;
    struct etch_error *err;
};

/* ---- Moments ---- */

static bool is_thread(const struct hold *h, const struct etch_lab_moment *m, const struct etch_task *t)
{
    if (!m->name)
        return t->number == m->thread + 1;
    return !t->nameless && memcmp(&h->request->lines->names[m->name - 1], &t->name, sizeof(t->name)) == 0;
}

static bool is_now(const struct hold *h, const struct etch_lab_moment *m, const struct etch_task *t, uint32_t place)
{
    return m->what == ETCH_LAB_AT_PLACE && m->place == place && is_thread(h, m, t) &&
           t->visits[place] == (m->visit ? m->visit : 1);
}

static bool has_address(const struct hold *h, uint32_t place, uint64_t address)
{
    const struct etch_lab_place *p = &h->request->lines->places[place];

    for (uint32_t i = 0; i < p->n; i++)
        if (h->begins[p->first + i] == address)
            return true;
    return false;
}

/* The breakpoints of a place stay as long as an order waits for it. */
static void drop_unused(struct hold *h)
{
    const struct etch_lab_lines *l = h->request->lines;

    for (uint32_t p = 0; p < l->n_places; p++) {
        bool used = false;

        for (uint32_t i = 0; i < h->request->n_rules; i++) {
            const struct etch_lab_rule *r = &h->request->rules[i];

            used |= (r->first.what == ETCH_LAB_AT_PLACE && r->first.place == p && !h->rules[i].first_over) ||
                    (r->then.what == ETCH_LAB_AT_PLACE && r->then.place == p && !h->rules[i].then_begun);
        }
        for (uint32_t i = 0; !used && i < l->places[p].n; i++) {
            uint64_t *begin = &h->begins[l->places[p].first + i];

            if (*begin)
                etch_breakpoint_drop(&h->tasks, *begin);
            *begin = 0;
        }
    }
}

/* ---- Steps ---- */

/* Waits for one thread. Returns false if nothing comes in time. */
static bool wait_for(struct hold *h, struct etch_task *t, int *status)
{
    double until = etch_time_seconds() + h->request->patience;

    for (uint32_t i = 0;; i++) {
        pid_t got = waitpid(t->tid, status, __WALL | WNOHANG);

        if (got == t->tid)
            return true;
        if ((got < 0 && errno != EINTR) || etch_time_seconds() > until)
            return false;
        if (i > 1000)
            usleep(50);
    }
}

static bool is_step(int status)
{
    return WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP && status >> 16 == 0;
}

/* One instruction, also over a breakpoint. Returns false if something else happened: that is kept as pending. */
static bool step(struct hold *h, struct etch_task *t, uint64_t pc)
{
    const struct etch_breakpoint *b = etch_breakpoint_at(&h->tasks, pc);
    bool lift = b && b->uses, good;
    int status = 0;

    if (lift) {
        etch_tasks_stop_others(&h->tasks, t);
        etch_breakpoint_lift(&h->tasks, t, pc, true);
    }
    t->at = 0;
    ptrace(PTRACE_SINGLESTEP, t->tid, NULL, NULL);
    good = wait_for(h, t, &status);
    if (lift) {
        if (good && WIFSTOPPED(status))
            etch_breakpoint_lift(&h->tasks, t, pc, false);
        etch_tasks_resume_others(&h->tasks, t);
    }
    if (good && is_step(status))
        return true;
    t->walks = false;
    t->pending = good;
    t->status = status;
    t->state = good ? ETCH_TASK_STOPPED : ETCH_TASK_RUNS;
    return false;
}

static void go_on(struct hold *h, struct etch_task *t);

static void release_held(struct hold *h)
{
    for (size_t i = 0; i < h->tasks.all.n; i++)
        if (h->tasks.all.v[i]->state == ETCH_TASK_HELD && h->tasks.all.v[i]->born)
            go_on(h, h->tasks.all.v[i]);
}

/* The thread has left the statement. */
static void end_walk(struct hold *h, struct etch_task *t)
{
    t->walks = false;
    for (uint32_t i = 0; i < h->request->n_rules; i++)
        if (is_now(h, &h->request->rules[i].first, t, t->place))
            h->rules[i].first_over = true;
    drop_unused(h);
    etch_task_resume(t, 0);
    release_held(h);
}

/* Ranges keep their size in memory. A range whose breakpoint was dropped is no longer needed for a walk. */
static bool is_inside(const struct hold *h, uint32_t place, uint64_t pc)
{
    const struct etch_lab_place *p = &h->request->lines->places[place];

    for (uint32_t i = p->first; i < p->first + p->n; i++) {
        const struct etch_lab_range *r = &h->request->lines->ranges[i];
        uint64_t from = h->begins[i];

        if (from && pc >= from && pc - from < r->to - r->from)
            return true;
    }
    return false;
}

/* The instruction was a call: the return address is on the stack. */
static bool was_call(const struct etch_task *t, uint64_t before, uint64_t sp, uint64_t *back)
{
    errno = 0;
    *back = (uint64_t)ptrace(PTRACE_PEEKDATA, t->tid, (void *)sp, NULL);
    return !errno && *back > before && *back - before <= LONGEST_CALL;
}

/* Steps the thread through the statement, until it leaves the statement or calls a function. */
static void walk(struct hold *h, struct etch_task *t)
{
    uint64_t pc, before, sp, back;

    t->state = ETCH_TASK_STOPPED;
    if (!etch_task_get_pc(t, &before, &sp))
        return;
    for (uint32_t i = 0; i < STEPS && is_inside(h, t->place, before); i++, before = pc) {
        if (!step(h, t, before))
            return;
        if (!etch_task_get_pc(t, &pc, &sp))
            return;
        if (!is_inside(h, t->place, pc) && was_call(t, before, sp, &back) && etch_breakpoint_add(&h->tasks, back)) {
            t->comes_to = back;
            etch_task_resume(t, 0);
            return;
        }
    }
    end_walk(h, t);
}

/* ---- Arrivals ---- */

static bool must_wait(const struct hold *h, const struct etch_task *t)
{
    for (uint32_t i = 0; i < h->request->n_rules; i++) {
        const struct etch_lab_moment *m = &h->request->rules[i].then;

        if (h->rules[i].first_over)
            continue;
        if (t->at ? m->what == ETCH_LAB_AT_PLACE && has_address(h, m->place, t->at) && is_now(h, m, t, m->place)
                  : m->what == ETCH_LAB_AT_BEGIN && is_thread(h, m, t))
            return true;
    }
    return false;
}

/* The place at which the thread is and that is the first statement of an order; UINT32_MAX: none. */
static uint32_t place_to_walk(const struct hold *h, const struct etch_task *t)
{
    for (uint32_t i = 0; i < h->request->n_rules; i++) {
        const struct etch_lab_moment *m = &h->request->rules[i].first;

        if (t->at && m->what == ETCH_LAB_AT_PLACE && !h->rules[i].first_over && has_address(h, m->place, t->at) &&
            is_now(h, m, t, m->place))
            return m->place;
    }
    return UINT32_MAX;
}

/* Lets a thread go on from where it arrived, unless it must wait. */
static void go_on(struct hold *h, struct etch_task *t)
{
    uint32_t place;

    if (must_wait(h, t)) {
        if (t->state != ETCH_TASK_HELD)
            t->since = etch_time_seconds();
        t->state = ETCH_TASK_HELD;
        return;
    }
    t->state = ETCH_TASK_STOPPED;
    for (uint32_t i = 0; i < h->request->n_rules; i++)
        if (t->at && h->request->rules[i].then.what == ETCH_LAB_AT_PLACE &&
            is_now(h, &h->request->rules[i].then, t, h->request->rules[i].then.place))
            h->rules[i].then_begun = true;
    place = place_to_walk(h, t);
    if (place != UINT32_MAX) {
        t->place = place;
        t->walks = true;
        walk(h, t);
    } else if (!t->at || step(h, t, t->at))
        etch_task_resume(t, 0);
}

static void arrive(struct hold *h, struct etch_task *t, uint64_t address)
{
    etch_task_set_pc(t, address);
    t->state = ETCH_TASK_STOPPED;
    if (t->comes_to == address) {
        t->comes_to = 0;
        etch_breakpoint_drop(&h->tasks, address);
        walk(h, t);
        return;
    }
    t->at = address;
    for (uint32_t p = 0; p < h->request->lines->n_places; p++)
        if (has_address(h, p, address) && !(t->walks && t->place == p))
            t->visits[p]++;
    go_on(h, t);
}

/* ---- Threads and processes ---- */

static void begin(struct hold *h, struct etch_task *t)
{
    t->born = true;
    t->state = ETCH_TASK_STOPPED;
    for (uint32_t i = 0; i < h->request->n_rules; i++)
        if (h->request->rules[i].first.what == ETCH_LAB_AT_BEGIN && is_thread(h, &h->request->rules[i].first, t))
            h->rules[i].first_over = true;
    go_on(h, t);
    release_held(h);
}

static void end_task(struct hold *h, struct etch_task *t, int status)
{
    t->state = ETCH_TASK_ENDED;
    t->pending = false;
    if (t->tid == h->tasks.pid) {
        h->over = true;
        h->result->end = WIFSIGNALED(status) ? ETCH_HOLD_SIGNALED : ETCH_HOLD_EXITED;
        h->result->number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
        return;
    }
    for (uint32_t i = 0; i < h->request->n_rules; i++)
        if (h->request->rules[i].first.what == ETCH_LAB_AT_END && is_thread(h, &h->request->rules[i].first, t))
            h->rules[i].first_over = true;
    release_held(h);
}

static bool is_of_process(pid_t pid, pid_t tid)
{
    char path[64];
    struct stat st;

    snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)pid, (int)tid);
    return stat(path, &st) == 0;
}

/* A new process runs on without etch. A copy of the memory has copies of the breakpoints. */
static void let_go(struct hold *h, pid_t process, bool copied)
{
    if (copied)
        etch_breakpoints_remove_from(&h->tasks, process);
    ptrace(PTRACE_DETACH, process, NULL, NULL);
}

static void on_process(struct hold *h, pid_t process, bool copied)
{
    int status;

    for (size_t i = 0; i < h->strangers.n; i++)
        if (h->strangers.v[i] == process) {
            h->strangers.v[i] = h->strangers.v[--h->strangers.n];
            let_go(h, process, copied);
            return;
        }
    if (waitpid(process, &status, __WALL) == process && WIFSTOPPED(status))
        let_go(h, process, copied);
}

static void on_thread(struct hold *h, struct etch_task *creator, pid_t tid)
{
    struct etch_task *t = etch_tasks_find(&h->tasks, tid);
    bool stopped = t != NULL;

    if (!t)
        t = etch_tasks_add(&h->tasks, tid);
    if (!t)
        return;
    etch_task_name_after(t, creator);
    if (stopped)
        begin(h, t);
}

static void unknown(struct hold *h, pid_t tid, int status)
{
    struct etch_task *t;

    if (!WIFSTOPPED(status))
        return;
    if (!is_of_process(h->tasks.pid, tid)) {
        if (!etch_array_push(&h->strangers, tid))
            let_go(h, tid, true);
        return;
    }
    t = etch_tasks_add(&h->tasks, tid);
    if (t) {
        t->nameless = true;
        t->state = ETCH_TASK_HELD; /* until its creator says who it is */
        t->since = etch_time_seconds();
    }
}

/* ---- Where the code is ---- */

static void set_breakpoints(struct hold *h, uint64_t start, uint64_t end, uint64_t offset)
{
    const struct etch_lab_lines *l = h->request->lines;

    for (uint32_t p = 0; p < l->n_places; p++)
        for (uint32_t i = l->places[p].first; i < l->places[p].first + l->places[p].n; i++) {
            uint64_t from = l->ranges[i].from;

            if (from < offset || from - offset >= end - start)
                continue;
            if (etch_breakpoint_add(&h->tasks, start + (from - offset)))
                h->begins[i] = start + (from - offset);
        }
}

/* Finds the code of the program in its memory. */
static void on_exec(struct hold *h, struct etch_task *t)
{
    char path[64], exe[PATH_MAX], line[PATH_MAX + 128];
    FILE *maps;

    t->state = ETCH_TASK_STOPPED;
    h->tasks.breakpoints.n = 0;
    if (!realpath(h->request->program, exe))
        exe[0] = '\0';
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)h->tasks.pid);
    maps = h->running ? NULL : fopen(path, "re");
    h->running = true;
    while (maps && fgets(line, sizeof(line), maps)) {
        unsigned long long start, end, offset;
        char prot[8];
        int at = 0;

        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%llx-%llx %7s %llx %*s %*s %n", &start, &end, prot, &offset, &at) == 4 && at &&
            prot[2] == 'x' && strcmp(line + at, exe) == 0)
            set_breakpoints(h, start, end, offset);
    }
    if (maps)
        fclose(maps);
    etch_task_resume(t, 0);
}

/* ---- Events ---- */

static void on_event(struct hold *h, struct etch_task *t, int event)
{
    unsigned long about = 0;

    ptrace(PTRACE_GETEVENTMSG, t->tid, NULL, &about);
    switch (event) {
    case PTRACE_EVENT_EXEC:
        on_exec(h, t);
        return;
    case PTRACE_EVENT_CLONE:
        etch_task_resume(t, 0);
        on_thread(h, t, (pid_t)about);
        return;
    case PTRACE_EVENT_FORK:
    case PTRACE_EVENT_VFORK:
        on_process(h, (pid_t)about, event == PTRACE_EVENT_FORK);
        etch_task_resume(t, 0);
        return;
    default: /* a stop that etch asked for, or the first stop of a thread */
        if (!t->born)
            begin(h, t);
        else
            etch_task_resume(t, 0);
    }
}

static void on_trap(struct hold *h, struct etch_task *t)
{
    const struct etch_breakpoint *b;
    uint64_t pc, sp;

    if (!etch_task_get_pc(t, &pc, &sp)) {
        etch_task_resume(t, 0);
        return;
    }
    b = etch_breakpoint_at(&h->tasks, pc - 1);
    if (!b)
        etch_task_resume(t, SIGTRAP);
    else if (b->uses)
        arrive(h, t, pc - 1);
    else {
        etch_task_set_pc(t, pc - 1);
        etch_task_resume(t, 0);
    }
}

static void handle(struct hold *h, pid_t tid, int status)
{
    struct etch_task *t = etch_tasks_find(&h->tasks, tid);

    h->quiet = 0;
    h->quiet_since = etch_time_seconds();
    if (!t) {
        unknown(h, tid, status);
        return;
    }
    t->pending = false;
    if (!WIFSTOPPED(status)) {
        end_task(h, t, status);
        return;
    }
    t->state = ETCH_TASK_STOPPED;
    if (status >> 16)
        on_event(h, t, status >> 16);
    else if (WSTOPSIG(status) == SIGTRAP)
        on_trap(h, t);
    else
        etch_task_resume(t, WSTOPSIG(status));
}

/* ---- Limits ---- */

/* The thread waits in a futex without a time limit. */
static bool waits_for_ever(const struct hold *h, const struct etch_task *t)
{
    char path[64], text[256] = "";
    unsigned long long number, address, operation, value, timeout;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)h->tasks.pid, (int)t->tid);
    f = fopen(path, "re");
    if (f && !fgets(text, sizeof(text), f))
        text[0] = '\0';
    if (f)
        fclose(f);
    return sscanf(text, "%llu %llx %llx %llx %llx", &number, &address, &operation, &value, &timeout) == 5 &&
           number == SYS_futex && timeout == 0;
}

static bool is_hung(struct hold *h)
{
    bool any = false;

    for (size_t i = 0; i < h->tasks.all.n; i++) {
        const struct etch_task *t = h->tasks.all.v[i];

        if (t->state == ETCH_TASK_ENDED)
            continue;
        if (t->state != ETCH_TASK_RUNS || !waits_for_ever(h, t))
            return false;
        any = true;
    }
    return any;
}

/* Ends the run if a limit is reached. */
static void check_limits(struct hold *h, double began)
{
    double now = etch_time_seconds();

    for (size_t i = 0; i < h->tasks.all.n; i++)
        if (h->tasks.all.v[i]->state == ETCH_TASK_HELD && now - h->tasks.all.v[i]->since > h->request->patience) {
            h->result->end = ETCH_HOLD_UNKEPT;
            h->over = true;
        }
    if (now - began > h->request->timeout) {
        h->result->end = ETCH_HOLD_ENDLESS;
        h->over = true;
    }
    if (now - h->quiet_since < QUIET_SECONDS)
        return;
    h->quiet_since = now;
    h->quiet = is_hung(h) ? h->quiet + 1 : 0;
    if (h->quiet >= QUIET_CHECKS) {
        h->result->end = ETCH_HOLD_HUNG;
        h->over = true;
    }
}

static bool handle_pending(struct hold *h)
{
    for (size_t i = 0; i < h->tasks.all.n; i++)
        if (h->tasks.all.v[i]->pending) {
            handle(h, h->tasks.all.v[i]->tid, h->tasks.all.v[i]->status);
            return true;
        }
    return false;
}

static void follow(struct hold *h)
{
    double began = etch_time_seconds();
    uint32_t idle = 0;

    h->quiet_since = began;
    while (!h->over) {
        int status;
        pid_t tid;

        if (handle_pending(h))
            continue;
        tid = waitpid(-1, &status, __WALL | WNOHANG);
        if (tid > 0) {
            idle = 0;
            handle(h, tid, status);
        } else if (tid < 0 && errno != EINTR) {
            h->over = true;
        } else if (idle++ > 100) {
            check_limits(h, began);
            usleep(200);
        } else
            sched_yield();
    }
}

/* ---- The program ---- */

static _Noreturn void become(const struct etch_hold_request *r, int ready)
{
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    int input = r->input ? open(r->input, O_RDONLY | O_CLOEXEC) : nowhere;
    char byte;

    setpgid(0, 0); /* Ctrl-C is for etch */
    if (nowhere < 0 || input < 0 || dup2(input, 0) < 0 || dup2(nowhere, 1) < 0 || dup2(nowhere, 2) < 0)
        _exit(127);
    while (read(ready, &byte, 1) < 0 && errno == EINTR) {
    }
    execv(r->program, r->argv);
    _exit(127);
}

static int start(struct hold *h, struct etch_error *err)
{
    const long options =
        PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC;
    struct etch_task *main_task;
    int ends[2];
    pid_t pid;

    if (access(h->request->program, X_OK) < 0 || pipe2(ends, O_CLOEXEC) < 0)
        return etch_error_set_errno(err, errno, "cannot run %s", h->request->program);
    pid = fork();
    if (pid == 0) {
        close(ends[1]);
        become(h->request, ends[0]);
    }
    close(ends[0]);
    if (pid > 0 && ptrace(PTRACE_SEIZE, pid, NULL, (void *)options) < 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        pid = -1;
    }
    h->tasks.pid = pid;
    main_task = pid > 0 ? etch_tasks_add(&h->tasks, pid) : NULL;
    if (main_task)
        main_task->born = true;
    close(ends[1]);
    return main_task ? 0 : etch_error_set(err, "cannot trace %s: it needs ptrace", h->request->program);
}

/* Ends what is left of the program, and collects its threads: the first one comes last. */
static void finish(struct hold *h)
{
    bool running = h->result->end != ETCH_HOLD_EXITED && h->result->end != ETCH_HOLD_SIGNALED;
    int status;
    pid_t got;

    if (running)
        kill(h->tasks.pid, SIGKILL);
    while (running && ((got = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR))
        running = got != h->tasks.pid || WIFSTOPPED(status);
    while (waitpid(-1, &status, __WALL | WNOHANG) > 0) {
    }
    for (uint32_t i = 0; i < h->request->n_rules; i++)
        h->result->kept += h->rules[i].first_over;
}

int etch_hold_run(struct etch_hold_result *result, const struct etch_hold_request *request, struct etch_error *err)
{
    struct hold h = {.request = request, .result = result, .err = err};
    int status = -1;

    memset(result, 0, sizeof(*result));
    for (uint32_t i = 0; i < request->n_rules; i++)
        if (request->rules[i].then.what == ETCH_LAB_AT_END)
            return etch_error_set(err, "natively a thread cannot be held at its end");
    h.rules = calloc(request->n_rules + 1, sizeof(*h.rules));
    h.begins = calloc(ETCH_LAB_RANGES, sizeof(*h.begins));
    result->end = ETCH_HOLD_ENDLESS;
    if (!h.rules || !h.begins)
        etch_error_no_memory(err);
    else if (start(&h, err) == 0) {
        follow(&h);
        finish(&h);
        status = 0;
    }
    etch_tasks_free(&h.tasks);
    etch_array_free(&h.strangers);
    free(h.rules);
    free(h.begins);
    return status;
}
