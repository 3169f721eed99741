/* SPDX-License-Identifier: MIT */
/* See lab_run.h. */
#include "collector/lab/shared.h"

#include "base/output.h"
#include "base/time.h"
#include "collector/lab_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_REALTIME UINT64_C(1700000000000000000) /* each run begins at the same moment */
#define START_MONOTONIC UINT64_C(100000000000)
#define SLACK_NS UINT64_C(20000000)

/* ---- The shared memory ---- */

static void fill_halt(struct etch_lab_shared *s, const struct etch_lab_debugger *d)
{
    s->debugged = true;
    s->halt_point = d->point;
    s->halt_moment = d->is_moment;
    s->halt_any = d->any_thread;
    s->halt = d->moment;
    if (d->is_moment)
        s->n_ruled = d->n_ruled;
}

static void fill(struct etch_lab_shared *s, const struct etch_lab_request *r)
{
    s->magic = ETCH_LAB_MAGIC;
    s->size = sizeof(*s);
    s->spec = r->spec;
    s->max_points = r->max_points;
    s->slack_ns = SLACK_NS;
    s->realtime_ns = START_REALTIME;
    s->monotonic_ns = START_MONOTONIC;
    s->real_time = r->real_time;
    s->all_points = r->all_points;
    s->memory = r->memory;
    s->keeps_choices = r->keeps_choices;
    s->heap_check = !r->no_heap_check;
    if (r->sites)
        memcpy(s->sites, r->sites, sizeof(s->sites));
    if (r->expected)
        memcpy(s->expected, r->expected, sizeof(s->expected));
    s->n_chosen = r->n_chosen < ETCH_LAB_CHOSEN ? r->n_chosen : ETCH_LAB_CHOSEN;
    if (s->n_chosen)
        memcpy(s->chosen, r->chosen, s->n_chosen * sizeof(*s->chosen));
    s->n_rules = r->n_rules < ETCH_LAB_MOST_RULES ? r->n_rules : ETCH_LAB_MOST_RULES;
    for (uint32_t i = 0; i < s->n_rules; i++)
        s->rules[i] = r->rules[i];
    if (r->lines) {
        memcpy(s->places, r->lines->places, sizeof(s->places));
        memcpy(s->ranges, r->lines->ranges, sizeof(s->ranges));
        memcpy(s->foreign, r->lines->foreign, sizeof(s->foreign));
        memcpy(s->names, r->lines->names, sizeof(s->names));
        s->n_places = r->lines->n_places;
        s->n_foreign = r->lines->n_foreign;
        s->n_names = r->lines->n_names;
        s->n_ruled = s->n_places;
    }
    if (r->debugger)
        fill_halt(s, r->debugger);
    s->sources = ETCH_LAB_ALL_SOURCES & ~r->asked;
    if (!r->repeat)
        return;
    s->repeat = r->loosely ? ETCH_LAB_LOOSELY : ETCH_LAB_EXACTLY;
    s->n_input = r->n_repeat < ETCH_LAB_SEGMENTS ? r->n_repeat : ETCH_LAB_SEGMENTS;
    memcpy(s->input, r->repeat, s->n_input * sizeof(*r->repeat));
}

/* Answers from outside that are given back, and the hashes to compare with. */
static int fill_input(struct etch_lab_shared *s, const struct etch_lab_request *r, struct etch_error *err)
{
    uint64_t answers;

    s->n_flows = r->n_flows < ETCH_LAB_FLOWS ? r->n_flows : ETCH_LAB_FLOWS;
    if (s->n_flows)
        memcpy(s->flows, r->flows, s->n_flows * sizeof(*r->flows));
    if (!r->feed)
        return 0;
    if (r->feed_size > sizeof(s->feed))
        return etch_error_set(err, "the input of the run is damaged");
    s->feeds = true;
    s->feed_size = r->feed_size;
    memcpy(s->feed, r->feed, r->feed_size);
    if (!etch_lab_journal_link(s->feed, r->feed_size, s->feed_first, &answers))
        return etch_error_set(err, "the input of the run is damaged");
    return 0;
}

int etch_lab_share(struct etch_lab_shared **shared, const struct etch_lab_request *r, struct etch_error *err)
{
    int fd = memfd_create("etch-lab", 0); /* the program inherits it */
    void *at = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, sizeof(**shared)) == 0)
        at = mmap(NULL, sizeof(**shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        etch_error_set_errno(err, errno, "cannot make the memory that the lab shares with the program");
        if (fd >= 0)
            close(fd);
        return -1;
    }
    *shared = at;
    fill(*shared, r);
    if (fill_input(*shared, r, err) == 0)
        return fd;
    munmap(at, sizeof(**shared));
    *shared = NULL;
    close(fd);
    return -1;
}

/* ---- The program ---- */

static void redirect(const char *path, int flags, int fd)
{
    int opened = open(path, flags | O_CLOEXEC);

    if (opened < 0 || dup2(opened, fd) < 0)
        _exit(127);
}

void etch_lab_settle_in(const struct etch_lab_request *r)
{
    personality(ADDR_NO_RANDOMIZE);
    redirect(r->input ? r->input : "/dev/null", O_RDONLY, 0);
    if (r->output) {
        int fd;

        unlink(r->output); /* of the run before */
        fd = etch_output_fresh(r->output);
        if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
            _exit(127);
        close(fd);
    } else if (r->silent) {
        redirect("/dev/null", O_WRONLY, 1);
        redirect("/dev/null", O_WRONLY, 2);
    }
}

/* Without randomised addresses: the same schedule gives the same run. The variables that say where the shared memory is
 * are taken out again by the runtime. */
static void become(const struct etch_lab_request *r, int shared, int failed)
{
    extern char **environ;
    char variable[64];
    size_t n = 0, k = 0;
    char **environment;

    while (environ[n])
        n++;
    environment = calloc(n + 2, sizeof(*environment));
    snprintf(variable, sizeof(variable), "%s=%04d", ETCH_LAB_VARIABLE, shared); /* always of the same length */
    if (environment) {
        while (k < n) {
            environment[k] = environ[k];
            k++;
        }
        environment[k] = variable;
        etch_lab_settle_in(r);
        setpgid(0, 0); /* Ctrl-C is for etch, or for gdb: it must not look like a failure of the program */
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        execve(r->program, r->argv, environment);
    }
    n = (size_t)errno;
    if (write(failed, &n, sizeof(n)) < 0)
        _exit(126);
    _exit(127);
}

/* Returns the process, or -1 with `err` set. */
static pid_t start(const struct etch_lab_request *r, int shared, struct etch_error *err)
{
    int failed[2];
    size_t errnum;
    pid_t pid;

    if (pipe2(failed, O_CLOEXEC) < 0)
        return etch_error_set_errno(err, errno, "cannot run %s", r->program);
    pid = fork();
    if (pid == 0)
        become(r, shared, failed[1]);
    close(failed[1]);
    if (pid < 0) {
        etch_error_set_errno(err, errno, "cannot run %s", r->program);
    } else if (read(failed[0], &errnum, sizeof(errnum)) == (ssize_t)sizeof(errnum)) {
        waitpid(pid, NULL, 0);
        etch_error_set_errno(err, (int)errnum, "cannot run %s", r->program);
        pid = -1;
    }
    close(failed[0]);
    return pid;
}

/* Returns whether the program had to be ended. */
static bool await(pid_t pid, double deadline, const volatile sig_atomic_t *stop, int *status)
{
    int fd = deadline > 0 || stop ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    bool killed = false;

    while (fd >= 0 && !killed) {
        double left = deadline > 0 ? deadline - etch_time_seconds() : 1;

        /* Looks at `stop` each second: the signal may come right before poll(). */
        if (poll(&p, 1, left <= 0 ? 0 : left < 1 ? (int)(left * 1000) + 1 : 1000) > 0)
            break;
        killed = (stop && *stop) || (deadline > 0 && etch_time_seconds() >= deadline);
    }
    if (killed)
        kill(pid, SIGKILL);
    if (fd >= 0)
        close(fd);
    while (waitpid(pid, status, 0) < 0 && errno == EINTR)
        ;
    return killed;
}

void etch_lab_judge(struct etch_lab_result *result, int status, bool killed)
{
    const struct etch_lab_shared *s = result->shared;

    result->number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    result->end = WIFSIGNALED(status) ? ETCH_LAB_SIGNALED : ETCH_LAB_EXITED;
    if (killed || s->outcome == ETCH_LAB_LIMIT)
        result->end = ETCH_LAB_ENDLESS;
    else if (s->outcome == ETCH_LAB_MISUSED) {
        result->end = ETCH_LAB_WRONG;
        result->number = (int)s->misuse;
    } else if (s->outcome == ETCH_LAB_DEADLOCK)
        result->end = ETCH_LAB_HUNG;
    else if (s->outcome == ETCH_LAB_DESYNC)
        result->end = ETCH_LAB_UNLIKE;
    else if (s->outcome == ETCH_LAB_INFEASIBLE)
        result->end = ETCH_LAB_UNKEPT;
}

int etch_lab_refuse(uint32_t outcome, const char *program, struct etch_error *err)
{
    switch (outcome) {
    case ETCH_LAB_THREADS_OUT:
        return etch_error_set(err, "%s makes more than %u threads", program, ETCH_LAB_THREADS);
    case ETCH_LAB_BARRIERS_OUT:
        return etch_error_set(err, "%s has more than %u barriers at a time", program, ETCH_LAB_BARRIERS);
    case ETCH_LAB_ONCES_OUT:
        return etch_error_set(err, "%s runs more than %u initialisers at a time", program, ETCH_LAB_ONCES);
    default:
        return 0;
    }
}

void etch_lab_check(struct etch_lab_result *result, const struct etch_lab_request *r, int status)
{
    if (r->fails && result->end == ETCH_LAB_EXITED)
        result->number = r->fails(r->fails_context, r->output, status) ? ETCH_LAB_CHECK : 0;
}

int etch_lab_start(struct etch_lab_running *run, const struct etch_lab_request *request, struct etch_error *err)
{
    int fd;

    memset(run, 0, sizeof(*run));
    run->begin = etch_time_seconds();
    fd = etch_lab_share(&run->shared, request, err);
    if (fd < 0)
        return -1;
    run->pid = start(request, fd, err);
    close(fd);
    if (run->pid > 0)
        return 0;
    munmap(run->shared, sizeof(*run->shared));
    run->shared = NULL;
    return -1;
}

void etch_lab_abandon(struct etch_lab_running *run)
{
    int status;

    if (!run->shared)
        return;
    kill(run->pid, SIGKILL);
    await(run->pid, 0, NULL, &status);
    munmap(run->shared, sizeof(*run->shared));
    run->shared = NULL;
}

int etch_lab_finish(struct etch_lab_result *result, struct etch_lab_running *run,
                    const struct etch_lab_request *request, struct etch_error *err)
{
    int status = 0;
    bool killed;

    memset(result, 0, sizeof(*result));
    if (request->debugger && etch_lab_debug(run->pid, request, run->shared, err) < 0) {
        etch_lab_abandon(run);
        return -1;
    }
    killed = await(run->pid, request->timeout > 0 ? run->begin + request->timeout : 0, request->stop, &status);
    result->shared = run->shared;
    run->shared = NULL;
    result->seconds = etch_time_seconds() - run->begin;
    etch_lab_judge(result, status, killed);
    etch_lab_check(result, request, status);
    if (!result->shared->started && !killed) {
        etch_lab_result_release(result);
        return etch_error_set(err, "%s ended before the lab had control of it", request->program);
    }
    if (etch_lab_refuse(result->shared->outcome, request->program, err) < 0) {
        etch_lab_result_release(result);
        return -1;
    }
    return 0;
}

int etch_lab_run(struct etch_lab_result *result, const struct etch_lab_request *request, struct etch_error *err)
{
    struct etch_lab_running run;

    memset(result, 0, sizeof(*result));
    return etch_lab_start(&run, request, err) < 0 ? -1 : etch_lab_finish(result, &run, request, err);
}

void etch_lab_result_release(struct etch_lab_result *result)
{
    if (result->shared)
        munmap(result->shared, sizeof(*result->shared));
    result->shared = NULL;
}

static const char *misuse_name(int misuse)
{
    static const char *const names[] = {
        [ETCH_LAB_AFTER_FREE] = "use after free",
        [ETCH_LAB_BEYOND] = "access behind the end of a heap block",
        [ETCH_LAB_FREED_TWICE] = "double free",
        [ETCH_LAB_FREED_INSIDE] = "free of an address inside a heap block",
        [ETCH_LAB_DESTROYED_HELD] = "a mutex destroyed while a thread holds it",
        [ETCH_LAB_AFTER_DESTROY] = "a mutex used after it was destroyed",
    };

    return misuse > 0 && (size_t)misuse < sizeof(names) / sizeof(names[0]) ? names[misuse] : "misuse of memory";
}

void etch_lab_describe(const struct etch_lab_result *result, char *text, size_t size)
{
    const char *name = sigabbrev_np(result->number);

    switch (result->end) {
    case ETCH_LAB_EXITED:
        if (result->number == ETCH_LAB_CHECK) {
            snprintf(text, size, "the check failed");
            break;
        }
        snprintf(text, size, "exit status %d", result->number);
        break;
    case ETCH_LAB_SIGNALED:
        snprintf(text, size, "SIG%s", name ? name : "?");
        break;
    case ETCH_LAB_WRONG:
        snprintf(text, size, "%s", misuse_name(result->number));
        break;
    case ETCH_LAB_HUNG:
        snprintf(text, size, "no thread can run");
        break;
    case ETCH_LAB_ENDLESS:
        snprintf(text, size, "no end within the limit");
        break;
    case ETCH_LAB_UNKEPT:
        snprintf(text, size, "the order cannot be enforced");
        break;
    default:
        snprintf(text, size, "the schedule does not fit");
    }
}

/* ---- Models of memory ---- */

static const char *const memories[] = {[ETCH_LAB_SC] = "sc", [ETCH_LAB_TSO] = "tso", [ETCH_LAB_C11] = "c11"};

bool etch_lab_memory_parse(enum etch_lab_memory *memory, const char *text)
{
    for (unsigned i = 0; i < sizeof(memories) / sizeof(memories[0]); i++)
        if (strcmp(text, memories[i]) == 0) {
            *memory = (enum etch_lab_memory)i;
            return true;
        }
    return false;
}

const char *etch_lab_memory_name(enum etch_lab_memory memory)
{
    return memories[memory];
}
