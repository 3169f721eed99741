/* SPDX-License-Identifier: MIT */
/* Recording a program on this CPU itself; see native.h. */
#include "collector/native/native.h"
#include "collector/native/library.h"

#include "collector/native/stuck.h"
#include "collector/privacy.h"
#include "collector/session/host.h"
#include "collector/session/plan_file.h"
#include "collector/sync/exception.h"
#include "collector/sync/preload.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#define TICK_MS 100          /* between two looks at the rings */
#define IDLE_TICK_MS 1000    /* where there are none: the watchdog wants to see us move */
#define BUSY_TICK_MS 2       /* while the synchronisation rings fill fast */
#define FORWARD_NS 30000000u /* how long a signal waits to be seen at the program itself before it is passed on */
#define ARM_HOLD_MS 20       /* for the threads to stop, at most, while a watch is set */
#define KNOWN_MAX 2          /* arrivals at a site with objects that are watched already */
#define TRACER_STACK (8u << 20)
#define POLL_MAX 4096
#define LOOK_NS 500000000u       /* between two looks for threads that wait for each other */
#define STUCK_NS 1000000000u     /* how long they must have done so */
#define RING_BYTES (16u << 20)   /* 19,000 hits on each CPU */
#define RINGS_BYTES (512u << 20) /* of all CPUs, where there are many */
#define RING_LEAST (512u << 10)  /* what the kernel lets everybody have */

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- Watches ---- */

static int parse_watches(struct native *n, struct etch_error *err)
{
    const struct etch_record_options *o = n->options;
    uint32_t slots = o->slots ? o->slots : ETCH_WATCH_SLOTS;

    for (size_t i = 0; i < o->n_watches; i++) {
        struct native_watch *watch = &n->list[i];

        if (etch_place_parse(&watch->place, o->watches[i], err) < 0)
            return -1;
        if (o->watch_names[i])
            snprintf(watch->place.text, sizeof(watch->place.text), "%s", o->watch_names[i]);
        watch->id = (uint32_t)i + 1;
        watch->set = (uint32_t)(i / slots);
        watch->size = watch->place.size;
    }
    n->n_list = o->n_watches;
    n->sets = o->n_watches ? (uint32_t)((o->n_watches + slots - 1) / slots) : 1;
    return 0;
}

/* A plan's watch: a global by its address in the file, or what an instruction of the file will use. */
static int take_planned(struct native *n, const Etch__PlanWatch *planned, uint32_t set, struct etch_error *err)
{
    struct native_watch *watch = &n->list[n->n_list];
    struct etch_place *place = &watch->place;
    const struct native_library *library;

    if (n->n_list == ETCH_RECORD_MAX_WATCHES)
        return etch_error_set(err, "the plan has more than %u watches", ETCH_RECORD_MAX_WATCHES);
    snprintf(place->text, sizeof(place->text), "%s", planned->name);
    place->size = planned->size > 8 ? 8 : planned->size; /* what one debug register covers */
    place->reads = planned->reads;
    place->writes = true;
    place->in_file = true;
    place->site = !planned->global;
    place->address = planned->global ? planned->global : planned->site;
    library = native_library_of(n, place->address);
    watch->added = library ? library->added : 0;
    place->address -= watch->added;
    if (place->site && etch_place_operand_parse(&place->operand, planned->site_operand, err) < 0)
        return etch_error_prefix(err, "the plan's watch '%s'", planned->name);
    watch->id = (uint32_t)n->n_list + 1;
    watch->set = set;
    watch->size = place->size;
    if (planned->global && planned->site && native_library_of(n, planned->site) == library)
        watch->found_at = planned->site - watch->added;
    n->n_list++;
    return 0;
}

static int take_plan(void *context, const Etch__Plan *plan, struct etch_error *err)
{
    struct native *n = context;

    n->sets = plan->n_sets ? (uint32_t)plan->n_sets : 1;
    n->plan_build_id_size = plan->build_id.len <= sizeof(n->plan_build_id) ? plan->build_id.len : 0;
    memcpy(n->plan_build_id, plan->build_id.data, n->plan_build_id_size);
    if (native_libraries_take(n, plan, err) < 0)
        return -1;
    for (size_t i = 0; i < plan->n_sets; i++)
        for (size_t k = 0; k < plan->sets[i]->n_watches; k++)
            if (take_planned(n, plan->sets[i]->watches[k], (uint32_t)i, err) < 0)
                return -1;
    return 0;
}

static int read_plan(struct native *n, struct etch_error *err)
{
    if (!n->options->plan)
        return 0;
    if (n->options->n_watches)
        return etch_error_set(err, "--plan and --watch do not go together: the plan says what to watch");
    return etch_plan_file_visit(n->options->plan, take_plan, n, err);
}

/* Which watches this run takes: as told, or the next after the run that the output file holds. */
static void choose_set(struct native *n)
{
    struct etch_bundle_reader *reader;
    struct etch_bundle_item item;
    struct etch_error ignored;
    const Etch__Record__BodyCase wanted = ETCH__RECORD__BODY_PROGRAM;

    if (n->sets <= 1)
        return;
    if (n->options->set_given) {
        n->set = n->options->set % n->sets;
        return;
    }
    if (access(n->options->output, R_OK) < 0 || etch_bundle_open(&reader, n->options->output, &ignored) < 0)
        return;
    etch_bundle_want(reader, &wanted, 1);
    while (etch_bundle_next(reader, &item, &ignored) < ETCH_BUNDLE_END)
        if (item.record && item.record->body_case == ETCH__RECORD__BODY_PROGRAM) {
            n->set = (item.record->program->plan_set + 1) % n->sets;
            break;
        }
    etch_bundle_reader_free(reader);
}

static size_t read_target(void *context, uint64_t address, void *buffer, size_t size)
{
    return etch_process_read(*(pid_t *)context, address, buffer, size);
}

/* In all threads that there are, those that appear meanwhile included. A thread that both inherited the watch and gets
 * it here is sorted out by etch_watches_drain(). */
static int arm_everywhere(struct native *n, uint32_t index, bool site, struct etch_error *err)
{
    const struct native_watch *w = &n->list[index];
    struct etch_tids done = {0}, now;
    bool more = true;
    int status = 0;

    while (more && status == 0) {
        more = false;
        if (etch_process_threads(n->target.pid, &now) < 0)
            break;
        for (size_t i = 0; i < now.list.n && status == 0; i++) {
            pid_t tid = now.list.v[i];
            bool known = false;

            for (size_t k = 0; k < done.list.n; k++)
                known |= done.list.v[k] == tid;
            if (known)
                continue;
            more = true;
            status = site ? etch_watches_arm_site(n->watches, index, tid, w->site, err)
                          : etch_watches_arm(n->watches, index, tid, w->address, w->size, w->place.reads, err);
            if (status > 0)
                status = 0; /* it ended */
            if (!etch_array_push(&done.list, tid))
                more = false;
        }
        etch_array_free(&now.list);
        if (n->target.launched && !n->late)
            break; /* one thread, stopped: nothing appears */
    }
    etch_array_free(&done.list);
    return status;
}

static int arm_watch(struct native *n, uint32_t index, const struct etch_object *object, uint64_t bias,
                     struct etch_error *err)
{
    struct native_watch *w = &n->list[index];
    uint64_t at;
    uint32_t size;

    if (etch_place_find(&w->place, object, bias, read_target, &n->target.pid, &at, &size, err) < 0) {
        if (!w->place.in_file)
            return -1;
        native_write_watch(n, w, err->what); /* one of a plan's watches: the others go on */
        n->summary->skipped_watches++;
        return 0;
    }
    if (w->place.site) {
        w->site = at;
        for (uint32_t i = 0; i < index && !w->further; i++)
            w->further = n->list[i].set == w->set && n->list[i].place.site && n->list[i].site == at;
        return w->further ? 0 : arm_everywhere(n, index, true, err);
    }
    w->address = at;
    w->size = size;
    w->site = w->found_at ? w->found_at + bias : 0;
    if (arm_everywhere(n, index, false, err) < 0)
        return -1;
    w->armed = true;
    native_write_watch(n, w, NULL);
    return 0;
}

/* Where the program's own code and data are. */
struct own {
    uint64_t bias, start, end;
};

static int find_own(struct native *n, const struct etch_object *object, struct own *own, struct etch_error *err)
{
    struct etch_mappings mappings;
    char exe[4096];

    if (etch_process_mappings(n->target.pid, &mappings, err) < 0)
        return -1;
    etch_process_exe(n->target.pid, exe, sizeof(exe));
    for (size_t i = 0; i < mappings.list.n; i++) {
        const struct etch_mapping *m = &mappings.list.v[i];

        if (strcmp(m->path, exe) != 0)
            continue;
        if (!own->end) {
            own->bias = etch_object_bias(object, m->start, m->offset);
            own->start = m->start;
        }
        own->end = m->end;
    }
    etch_mappings_release(&mappings);
    return own->end ? 0 : etch_error_set(err, "cannot find %s in its own process", exe);
}

static int check_build(const struct native *n, const struct etch_object *object, struct etch_error *err)
{
    uint8_t id[64];
    size_t size = etch_object_build_id(object, id);

    if (!n->plan_build_id_size || (size == n->plan_build_id_size && memcmp(id, n->plan_build_id, size) == 0))
        return 0;
    etch_error_set(err, "the plan %s was made for another build of the program", n->options->plan);
    return etch_error_advise(err, "etch slice, on this build");
}

/* The same for each CPU: where memory may not be locked without limit the first must not take all there is. */
static size_t ring_bytes(void)
{
    long cpus = sysconf(_SC_NPROCESSORS_CONF);
    size_t bytes = RING_BYTES, all = RINGS_BYTES;
    struct rlimit locked;

    if (geteuid() != 0 && getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur < all)
        all = locked.rlim_cur;
    while (cpus > 0 && bytes > RING_LEAST && bytes * (size_t)cpus > all)
        bytes /= 2;
    return bytes;
}

/* In C++ code of headers is compiled into the program. Only the stack tells which line of the user's called it. */
static bool is_cplusplus(const struct etch_object *object)
{
    static const char personality[] = "__gxx_personality_v0";
    struct etch_symbol symbol;

    return etch_object_imports(object, personality) || etch_object_symbol(object, personality, &symbol) > 0;
}

/* One that is in a library which is there by now. That it cannot be set is told; the others go on. */
static void arm_in_library(struct native *n, uint32_t index)
{
    struct native_watch *w = &n->list[index];
    struct etch_object *object = NULL;
    struct etch_error err;
    uint64_t bias;

    w->deferred = false;
    w->site = 0;
    if (native_library_locate(n, native_library_of(n, w->added), &object, &bias, &err) < 0 ||
        arm_watch(n, index, object, bias, &err) < 0) {
        w->armed = true;
        native_write_watch(n, w, err.what);
        n->summary->skipped_watches++;
    }
    etch_object_free(object);
}

/* Stops the program where its own code begins. */
static int await_libraries(struct native *n, uint32_t index, struct etch_error *err)
{
    n->list[index].deferred = true;
    if (n->entry)
        return 0;
    n->entry = n->list[index].site = native_entry(n->target.pid);
    n->entry_index = index;
    return arm_everywhere(n, index, true, err);
}

static void on_entry(struct native *n)
{
    n->entry = 0;
    etch_watches_disarm_site(n->watches, n->entry_index);
    for (uint32_t i = 0; i < n->n_list; i++)
        if (n->list[i].deferred)
            arm_in_library(n, i);
}

static int arm_one(struct native *n, uint32_t index, const struct etch_object *object, uint64_t bias,
                   struct etch_error *err)
{
    if (!n->list[index].added)
        return arm_watch(n, index, object, bias, err);
    if (n->target.launched && !n->late)
        return await_libraries(n, index, err);
    arm_in_library(n, index);
    return 0;
}

static int arm_watches(struct native *n, struct etch_error *err)
{
    const struct etch_watch_budget budget = {n->options->watch_hits_per_s, n->options->watch_share};
    struct etch_object *object = NULL;
    struct own own = {0};
    char name[64], reason[64];
    int status = 0;

    if (!n->n_list)
        return 0;
    snprintf(name, sizeof(name), "/proc/%d/exe", (int)n->target.pid);
    if (etch_object_open(&object, name, err) < 0 || check_build(n, object, err) < 0 ||
        find_own(n, object, &own, err) < 0 || etch_watches_new(&n->watches, ring_bytes(), &budget, err) < 0)
        status = -1;
    else if (!is_cplusplus(object))
        etch_watches_set_own(n->watches, own.start, own.end);
    for (uint32_t i = 0; status == 0 && i < n->n_list; i++) {
        if (n->list[i].set == n->set) {
            status = arm_one(n, i, object, own.bias, err);
            continue;
        }
        snprintf(reason, sizeof(reason), "set %u of %u; this run took set %u", n->list[i].set, n->sets, n->set);
        native_write_watch(n, &n->list[i], reason);
        n->summary->skipped_watches++;
    }
    etch_object_free(object);
    return status;
}

/* A plan may name several sites of one location: it needs one debug register only. */
static bool is_armed_already(const struct native *n, uint32_t index)
{
    for (uint32_t i = 0; i < n->n_list; i++)
        if (i != index && n->list[i].armed && n->list[i].set == n->list[index].set &&
            n->list[i].address == n->list[index].address && n->list[i].size == n->list[index].size)
            return true;
    return false;
}

static void arm_held(struct native *n, uint32_t index, pid_t tid)
{
    struct etch_error err;
    int status;

    etch_target_hold(&n->target, tid, ARM_HOLD_MS, true);
    status = arm_everywhere(n, index, false, &err);
    native_write_watch(n, &n->list[index], status < 0 ? err.what : NULL);
    etch_target_release_held(&n->target);
}

static void give_up(struct native *n, uint32_t index, const char *why)
{
    etch_watches_disarm_site(n->watches, index);
    n->list[index].armed = true;
    native_write_watch(n, &n->list[index], why);
}

/* A plan may have a site several times: each time for another object. They wait for one another. */
static uint32_t waiting_at(const struct native *n, uint32_t index)
{
    for (uint32_t i = 0; i < n->n_list; i++)
        if (i != index && n->list[i].further && !n->list[i].armed && n->list[i].set == n->set &&
            n->list[i].site == n->list[index].site)
            return i;
    return UINT32_MAX;
}

static void await_further(struct native *n, uint32_t index)
{
    uint32_t next = waiting_at(n, index);
    struct etch_error ignored;

    if (next == UINT32_MAX)
        return;
    n->list[next].further = false;
    if (arm_everywhere(n, next, true, &ignored) < 0)
        give_up(n, next, "no debug register is left");
}

/* An arrival at a site: a location is now known. The thread is stopped before the instruction, and so are the others
 * meanwhile, as far as they do not notice: none gets past while its debug register is being set, and all of them are
 * late by the same. */
static void arrive(struct native *n, uint32_t index, pid_t tid, const uint64_t registers[24])
{
    struct native_watch *w = &n->list[index];

    w->address = etch_place_operand_address(&w->place.operand, registers);
    n->late = true;
    if (!etch_place_fits(w->address, w->size)) {
        give_up(n, index, "the location is not aligned to its length");
    } else if (!is_armed_already(n, index)) {
        etch_watches_disarm_site(n->watches, index);
        w->armed = true;
        arm_held(n, index, tid);
        await_further(n, index);
    } else if (++w->known >= KNOWN_MAX) {
        give_up(n, index, "another watch has the location already");
    }
}

static bool on_site(struct native *n, pid_t tid)
{
    struct user_regs_struct r;
    size_t known = n->n_list;

    if (!n->watches || ptrace(PTRACE_GETREGS, tid, NULL, &r) < 0)
        return true;
    if (n->entry && r.rip == n->entry) {
        on_entry(n);
        return true;
    }
    for (uint32_t i = 0; i < known; i++) {
        struct native_watch *w = &n->list[i];
        const uint64_t registers[24] = {r.rax, r.rbx, r.rcx, r.rdx, r.rsi, r.rdi, r.rbp, r.rsp, r.rip, 0,    0, 0, 0, 0,
                                        0,     0,     r.r8,  r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15};

        if (w->place.site && !w->armed && !w->further && w->set == n->set && w->site == r.rip)
            arrive(n, i, tid, registers);
    }
    return true;
}

/* ---- Control flow ---- */

static int start_flow(struct native *n, struct etch_error *err)
{
    n->flow_started = n->flow != NULL;
    if (n->flow && n->flow->start(n->flow_state, n->target.pid, err) < 0)
        return -1;
    n->followed = true;
    return 0;
}

/* ---- What the target does ---- */

static int on_exec(void *context, struct etch_target *target, bool first)
{
    struct native *n = context;

    if (first) {
        n->start_tsc = __rdtsc();
        native_write_program(n);
        native_write_images(n);
        if (arm_watches(n, n->err) < 0 || start_flow(n, n->err) < 0)
            return -1;
        etch_watchdog_set_target(n->watchdog, n->target.pid); /* now: what was done so far may take its time */
        return 0;
    }
    (void)target;
    n->became_another = true;
    native_drain(n, false);
    for (size_t i = 0; i < n->n_list && n->watches; i++)
        n->list[i].counted += etch_watches_count(n->watches, (uint32_t)i);
    if (n->watches && n->n_list) {
        etch_watches_disarm_all(n->watches);
        native_note(n, "the program became another by exec; its watches ended there");
    }
    n->images.n = 0;
    native_write_images(n);
    return 0;
}

static void on_thread_start(void *context, struct etch_target *target, const struct etch_target_thread *thread)
{
    (void)context;
    (void)target;
    (void)thread;
}

static void capture(struct native *n, Etch__FailureKind kind, pid_t tid, const siginfo_t *signal, bool hold,
                    const char *words)
{
    struct etch_failure failure;
    struct etch_error err;

    if (n->failure_written)
        return;
    if (n->flow)
        n->flow->freeze(n->flow_state);
    native_drain(n, false);
    if (etch_failure_capture(&failure, &n->target, kind, tid, signal, hold, n->options->keep_stack, words, &err) == 0) {
        if (n->sync && tid)
            failure.record.exception = etch_sync_exception(etch_sync_reader_memory(n->sync), (uint32_t)tid);
        native_write_failure(n, &failure);
    }
    etch_failure_release(&failure);
}

static void on_thread_exit(void *context, struct etch_target *target, const struct etch_target_thread *thread,
                           int wait_status)
{
    struct native *n = context;

    if (n->options->fail_on_exit && WIFEXITED(wait_status) && WEXITSTATUS(wait_status))
        capture(n, ETCH__FAILURE_KIND__FAILURE_EXIT, thread->tid, NULL, false, "");
    if (thread->tid == target->pid || target->threads.n == 1)
        native_write_images(n); /* the last chance to see the libraries */
    native_write_thread(n, thread, true);
}

/* Signals that etch got for itself while the program may get them too. */
static struct {
    uint64_t seen_ns;
    uint64_t due_ns; /* 0: none waits */
    pid_t seen_from, due_from;
} passing[65];

/* On some virtual machines a debug trap comes, once in a great while, without its cause: the kernel knows it for
 * nobody's and sends a signal that would end the program. Its own int1 instruction looks the same but for its byte,
 * which is behind or, where the virtual machine did not step over it, ahead. */
static bool is_stray_trap(const struct native *n, pid_t tid, const siginfo_t *info)
{
    struct user_regs_struct r;
    long word;

    if (!n->watches || !etch_trap_is_ours(info) || ptrace(PTRACE_GETREGS, tid, NULL, &r) < 0)
        return false;
    errno = 0;
    word = ptrace(PTRACE_PEEKTEXT, tid, (void *)(uintptr_t)(r.rip - 1), NULL);
    return errno != 0 || ((word & 0xff) != 0xf1 && (word >> 8 & 0xff) != 0xf1);
}

static bool on_signal(void *context, struct etch_target *target, pid_t tid, const siginfo_t *info)
{
    struct native *n = context;
    struct etch_process_status status;
    int number = info->si_signo;

    if (number == SIGTRAP && info->si_code == ETCH_TRAP_PERF)
        return on_site(n, tid);
    if (is_stray_trap(n, tid, info)) {
        native_write_loss(n, ETCH__LOSS_CAUSE__LOSS_SIDEBAND, 0, (uint32_t)tid, 1,
                          "a debug trap came without its cause: an access was not recorded");
        return true;
    }
    if (number > 0 && number < 65) {
        passing[number].seen_ns = now_ns();
        passing[number].seen_from = info->si_code == SI_USER ? info->si_pid : 0;
        if (passing[number].due_from == passing[number].seen_from)
            passing[number].due_ns = 0;
    }
    if (etch_signal_is_failure(number) && etch_process_status(target->pid, tid, &status) == 0 &&
        etch_signal_is_fatal(&status, number))
        capture(n, ETCH__FAILURE_KIND__FAILURE_SIGNAL, tid, info, true, "");
    return false;
}

/* Ctrl-Z: the shell waits for us, so we stop as well; SIGCONT goes to the whole group. A stop by hand (SIGSTOP to the
 * program alone) is its sender's to undo, for which we must be awake. */
static void on_stopped(void *context, struct etch_target *target, int signal)
{
    struct native *n = context;

    if (!target->launched || signal == SIGSTOP || getpgid(target->pid) != getpgrp())
        return;
    etch_watchdog_rest(n->watchdog, true);
    raise(SIGSTOP); /* to this thread: one to the process may be taken by another, and this one would go on */
    etch_watchdog_rest(n->watchdog, false);
    kill(target->pid, SIGCONT);
}

/* ---- Before the start ---- */

struct environment {
    char **words;
    struct etch_sync_words sync;
};

/* The program's environment, with the library in it. */
static int prepare_environment(struct environment *e, const char *library, const struct native *native)
{
    extern char **environ;
    size_t n = 0, k = 0;
    bool given = false;

    while (environ[n])
        n++;
    e->words = calloc(n + 7, sizeof(char *));
    if (!e->words)
        return -1;
    if (native->flow && native->flow->environment) /* first: of two of a name the first counts */
        k = native->flow->environment(native->flow_state, e->words, 3);
    if (library)
        etch_sync_words_make(&e->sync, library, native->sync);
    for (size_t i = 0; i < n; i++) { /* each in its place: the program may look */
        bool ours = library && strncmp(environ[i], "LD_PRELOAD=", 11) == 0;

        given |= ours;
        e->words[k++] = ours ? e->sync.preload : environ[i];
    }
    if (!library)
        return 0;
    e->words[k++] = e->sync.sync;
    e->words[k++] = given ? e->sync.before : e->sync.preload;
    return 0;
}

/* A program with more rights than its user loses them under a tracer: that would not be the same program. */
static int refuse_privileged(const char *path, struct etch_error *err)
{
    struct stat st;

    if (geteuid() == 0 || stat(path, &st) < 0 || !(st.st_mode & (S_ISUID | S_ISGID)))
        return 0;
    etch_error_set(err, "cannot record %s: it is set-user-id or set-group-id, and would lose that under a tracer",
                   path);
    return etch_error_advise(err, "run etch as root");
}

static int refuse_tracer(struct native *n, const struct etch_object *object, struct etch_error *err)
{
    if (n->options->allow_ptrace || !etch_object_imports(object, "ptrace"))
        return 0;
    etch_error_set(err, "cannot record %s: it uses ptrace itself, and a process has one tracer only", n->path);
    return etch_error_advise(err,
                             "record the program that it traces; or --allow-ptrace if it traces none but children");
}

/* Our watches and its breakpoints would share four registers: it would meet refusals that it does not meet alone. */
static int refuse_breakpoints(struct native *n, const struct etch_object *object, struct etch_error *err)
{
    if (!n->n_list || n->options->allow_breakpoints || !etch_object_makes_call(object, SYS_perf_event_open))
        return 0;
    etch_error_set(err, "cannot watch in %s: it opens perf events, perhaps hardware breakpoints, itself", n->path);
    return etch_error_advise(err,
                             "record it without --watch; or --allow-breakpoints if it can do with fewer than four");
}

/* Looks at the file, and decides whether the library goes in. */
static int examine(struct native *n, char *library, size_t size, struct etch_error *err)
{
    struct etch_object *object = NULL;
    struct etch_error ignored;

    library[0] = '\0';
    if (etch_target_find(n->options->argv[0], n->path, sizeof(n->path), err) < 0 || refuse_privileged(n->path, err) < 0)
        return -1;
    if (etch_object_open(&object, n->path, &ignored) == 0 &&
        (refuse_tracer(n, object, err) < 0 || refuse_breakpoints(n, object, err) < 0)) {
        etch_object_free(object);
        return -1;
    }
    if (n->options->no_sync)
        library[0] = '\0';
    else if (object && !etch_object_is_dynamic(object))
        native_note(n, "no synchronisation events: %s is linked statically", n->path);
    else if (!etch_sync_library_find(library, size))
        native_note(n, "no synchronisation events: etch-sync.so is not beside etch");
    else if (strpbrk(library, ": \t"))
        library[0] = '\0', native_note(n, "no synchronisation events: the path of etch-sync.so has a space or colon");
    etch_object_free(object);
    return 0;
}

/* ---- Running ---- */

struct loop {
    int signals; /* signalfd */
    sigset_t mask, mask_before;
    struct sigaction child_before;
    struct rlimit files_before;
    bool finish; /* leave a joined process */
    uint64_t ran_ns, ran_changed_ns, started_ns;
    bool hang_reported;
    uint64_t looked_ns, stuck_since_ns, stuck_print;
    bool can_be_woken; /* by an alarm */
    struct pollfd *fds;
};

static const int watched_signals[] = {SIGCHLD, SIGINT,  SIGQUIT, SIGTERM, SIGHUP, SIGUSR1,
                                      SIGUSR2, SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE};

static int take_signals(struct loop *l, struct etch_error *err)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};
    struct rlimit files;

    sigemptyset(&l->mask);
    for (size_t i = 0; i < sizeof(watched_signals) / sizeof(watched_signals[0]); i++)
        sigaddset(&l->mask, watched_signals[i]);
    sigaction(SIGCHLD, &standard, &l->child_before);
    sigprocmask(SIG_BLOCK, &l->mask, &l->mask_before);
    getrlimit(RLIMIT_NOFILE, &l->files_before);
    files = l->files_before;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    l->signals = signalfd(-1, &l->mask, SFD_CLOEXEC | SFD_NONBLOCK);
    l->fds = calloc(POLL_MAX, sizeof(*l->fds));
    if (l->signals < 0 || !l->fds)
        return etch_error_set_errno(err, errno, "cannot watch for signals");
    memset(passing, 0, sizeof(passing));
    return 0;
}

static void give_back_signals(struct loop *l)
{
    struct timespec none = {0, 0};

    if (l->signals >= 0)
        close(l->signals);
    free(l->fds);
    setrlimit(RLIMIT_NOFILE, &l->files_before);
    while (sigtimedwait(&l->mask, NULL, &none) > 0)
        ; /* what came for the program is not to end us now */
    sigprocmask(SIG_SETMASK, &l->mask_before, NULL);
    sigaction(SIGCHLD, &l->child_before, NULL);
}

/* A signal for etch. From the terminal the program has it as well. From another process it was perhaps meant for the
 * group, perhaps for the program under our process id: it is passed on unless the program turns out to have got it. */
static void on_own_signal(struct native *n, struct loop *l, const struct signalfd_siginfo *info)
{
    uint32_t number = info->ssi_signo;

    if (number == SIGCHLD || number == SIGPIPE || number >= 65)
        return;
    if (!n->target.launched) {
        l->finish |= number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
        return;
    }
    if (info->ssi_code != SI_USER && info->ssi_code != SI_QUEUE)
        return;
    if (passing[number].seen_from == (pid_t)info->ssi_pid &&
        now_ns() - passing[number].seen_ns < (uint64_t)4 * FORWARD_NS)
        return;
    passing[number].due_ns = now_ns() + FORWARD_NS;
    passing[number].due_from = (pid_t)info->ssi_pid;
}

static void pass_on_due(struct native *n)
{
    uint64_t now = now_ns();

    for (int i = 1; i < 65; i++)
        if (passing[i].due_ns && passing[i].due_ns <= now) {
            passing[i].due_ns = 0;
            kill(n->target.pid, i);
        }
}

static bool signal_waits(void)
{
    for (int i = 1; i < 65; i++)
        if (passing[i].due_ns)
            return true;
    return false;
}

static void give_up_on(struct native *n, Etch__FailureKind kind, const char *words)
{
    bool end = n->options->kill_on_hang;

    capture(n, kind, 0, NULL, end, words);
    if (end)
        kill(n->target.pid, SIGKILL);
}

/* A hang that is sure is not waited for: nothing in the process ran for a second, and nothing can make it. Only where
 * it would be ended for a hang anyway; and not where it may have an alarm from before an exec, or from before etch. */
static bool is_stuck(struct native *n, struct loop *l, uint64_t now)
{
    uint64_t print;
    bool stuck;

    if (!n->options->kill_on_hang || (n->options->wall_s <= 0 && n->options->hang_s <= 0) || !n->target.launched ||
        n->became_another || l->can_be_woken || now - l->looked_ns < LOOK_NS)
        return false;
    l->looked_ns = now;
    stuck = etch_stuck_look(n->target.pid, &print);
    if (!stuck || !l->stuck_since_ns || print != l->stuck_print) {
        l->stuck_since_ns = stuck ? now : 0;
        l->stuck_print = print;
        return false;
    }
    if (now - l->stuck_since_ns < STUCK_NS)
        return false;
    l->can_be_woken = etch_stuck_has_alarm(n->target.pid);
    return !l->can_be_woken;
}

static void check_hang(struct native *n, struct loop *l)
{
    uint64_t now = now_ns(), ran;

    if (l->hang_reported)
        return;
    if (is_stuck(n, l, now)) {
        l->hang_reported = true;
        give_up_on(n, ETCH__FAILURE_KIND__FAILURE_HANG, "all threads wait for each other; not waited for longer");
        return;
    }
    if (n->options->wall_s > 0 && (double)(now - l->started_ns) / 1e9 >= n->options->wall_s) {
        l->hang_reported = true;
        if (!n->target.launched && !n->options->kill_on_hang) {
            l->finish = true; /* it was asked to look so long at a process that is not ours */
            return;
        }
        give_up_on(n, ETCH__FAILURE_KIND__FAILURE_TIMEOUT, "");
        return;
    }
    if (n->options->hang_s <= 0)
        return;
    ran = etch_process_ran_ns(n->target.pid);
    if (ran != l->ran_ns) {
        l->ran_ns = ran;
        l->ran_changed_ns = now;
    } else if ((double)(now - l->ran_changed_ns) / 1e9 >= n->options->hang_s) {
        l->hang_reported = true;
        give_up_on(n, ETCH__FAILURE_KIND__FAILURE_HANG, "");
    }
}

static int next_wait_ms(const struct native *n)
{
    if (signal_waits())
        return 10;
    if (n->watches || n->sync || n->flow || n->options->hang_s > 0 || n->options->wall_s > 0)
        return n->busy ? BUSY_TICK_MS : TICK_MS;
    return IDLE_TICK_MS;
}

static int follow(struct native *n, struct loop *l, struct etch_error *err)
{
    l->started_ns = l->ran_changed_ns = now_ns();
    while (!n->target.gone && !l->finish) {
        struct signalfd_siginfo info;
        size_t fds = 1;

        etch_watchdog_beat(n->watchdog);
        n->starved = etch_watchdog_barked(n->watchdog);
        if (n->starved)
            break;
        if (etch_target_pump(&n->target, err) < 0)
            return -1;
        if (n->target.gone)
            break;
        l->fds[0] = (struct pollfd){.fd = l->signals, .events = POLLIN};
        if (n->watches)
            fds += etch_watches_poll(n->watches, l->fds + 1, POLL_MAX - 1);
        if (n->flow)
            fds += n->flow->poll(n->flow_state, l->fds + fds, POLL_MAX - fds);
        if (poll(l->fds, fds, next_wait_ms(n)) < 0 && errno != EINTR)
            return etch_error_set_errno(err, errno, "cannot wait");
        while (read(l->signals, &info, sizeof(info)) == sizeof(info))
            on_own_signal(n, l, &info);
        pass_on_due(n);
        native_drain(n, false);
        if (n->flow)
            n->flow->drain(n->flow_state);
        check_hang(n, l);
    }
    return 0;
}

static int launch(struct native *n, struct loop *l, struct etch_error *err)
{
    struct environment *e = calloc(1, sizeof(*e));
    struct etch_launch launch;
    char library[4096];
    int status = -1;

    if (!e)
        return etch_error_set(err, "out of memory");
    if (examine(n, library, sizeof(library), err) == 0 && (!library[0] || etch_sync_reader_new(&n->sync, err) == 0)) {
        if (prepare_environment(e, library[0] ? library : NULL, n) < 0) {
            etch_error_set(err, "out of memory");
        } else {
            launch = (struct etch_launch){.argv = n->options->argv,
                                          .path = n->path,
                                          .environment = e->words,
                                          .signal_mask = &l->mask_before,
                                          .sigchld_ignored = l->child_before.sa_handler == SIG_IGN,
                                          .descriptors = &l->files_before};
            status = etch_target_launch(&n->target, &launch, err);
        }
    }
    free(e->words);
    free(e);
    return status;
}

static int join(struct native *n, struct etch_error *err)
{
    if (etch_process_perf_events(n->options->pid) && n->n_list) {
        etch_error_set(err, "cannot watch in process %d: it uses perf events, perhaps hardware breakpoints, itself",
                       (int)n->options->pid);
        return etch_error_advise(err, "record it without --watch");
    }
    if (etch_target_attach(&n->target, n->options->pid, err) < 0)
        return -1;
    etch_watchdog_set_target(n->watchdog, n->target.pid);
    native_note(n, "no synchronisation events: the library goes into a program only at its start");
    n->start_tsc = __rdtsc();
    n->late = true;
    native_write_program(n);
    native_write_images(n);
    return arm_watches(n, err) < 0 ? -1 : start_flow(n, err);
}

/* ---- Tracing ---- */

struct tracing {
    struct native *n;
    struct loop *loop;
    struct etch_error *err;
    int status;
};

/* A site's trap in a program that nobody traces would be its end. Those that are on their way are taken yet. */
static void leave_sites(struct native *n, struct etch_error *err)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    bool any = n->entry != 0;

    if (n->target.gone || !n->watches)
        return;
    if (n->entry)
        etch_watches_disarm_site(n->watches, n->entry_index);
    for (uint32_t i = 0; i < n->n_list; i++)
        if (n->list[i].place.site && !n->list[i].armed && n->list[i].set == n->set) {
            etch_watches_disarm_site(n->watches, i);
            any = true;
        }
    for (int i = 0; any && i < 3 && !n->target.gone; i++) {
        if (etch_target_pump(&n->target, err) < 0)
            return;
        nanosleep(&moment, NULL);
    }
}

/* A thread of its own: when it ends the kernel lets go of all that it traces, wherever those are, without a stop. */
static void *trace(void *context)
{
    struct tracing *t = context;
    struct native *n = t->n;

    t->status =
        (n->options->pid ? join(n, t->err) : launch(n, t->loop, t->err)) < 0 || follow(n, t->loop, t->err) < 0 ? -1 : 0;
    leave_sites(n, t->err);
    return NULL;
}

static int trace_apart(struct native *n, struct loop *l, struct etch_error *err)
{
    struct tracing t = {.n = n, .loop = l, .err = err, .status = -1};
    pthread_attr_t attributes;
    pthread_t thread;
    int cause;

    n->watchdog = etch_watchdog_start();
    if (!n->watchdog)
        native_note(n, "no process for a watchdog: while etch is stopped, so is the program");
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, TRACER_STACK);
    cause = pthread_create(&thread, &attributes, trace, &t);
    pthread_attr_destroy(&attributes);
    if (cause == 0)
        pthread_join(thread, NULL);
    else
        etch_error_set_errno(err, cause, "cannot make a thread");
    etch_watchdog_end(n->watchdog);
    n->watchdog = NULL;
    return t.status;
}

/* The program goes on without a tracer, and etch waits as its parent does: it is stopped again, as whoever stopped it
 * wanted it, and its end is the program's. */
static void wait_untraced(struct native *n, struct loop *l)
{
    if (!n->starved || !n->target.launched)
        return;
    raise(SIGSTOP);
    for (;;) {
        siginfo_t info;
        pid_t done = waitpid(n->target.pid, &n->summary->status, WNOHANG);

        if (done == n->target.pid || (done < 0 && errno != EINTR))
            break;
        if (sigtimedwait(&l->mask, &info, &(struct timespec){.tv_nsec = TICK_MS * 1000000l}) > 0 &&
            info.si_signo != SIGCHLD && info.si_signo != SIGPIPE && info.si_code == SI_USER)
            kill(n->target.pid, info.si_signo);
    }
    n->summary->left_running = false;
}

/* ---- The end ---- */

/* The debug registers' own counts against what came through. */
static void account(struct native *n)
{
    for (uint32_t i = 0; n->watches && i < n->n_list; i++) {
        struct native_watch *w = &n->list[i];
        uint64_t counted = w->counted + etch_watches_count(n->watches, i);
        char detail[200];

        if (w->deferred) {
            native_write_watch(n, w, "the program ended before its libraries were there");
        } else if (w->place.site && !w->armed && w->set == n->set) {
            w->address = w->known ? w->address : 0;
            native_write_watch(n, w,
                               w->further ? "no further object came by"
                               : w->known ? "another watch has the location already"
                                          : "its site was never reached");
        }
        if (w->cut) {
            snprintf(detail, sizeof(detail), "%.100s went beyond its budget and was not watched to the end",
                     w->place.text);
            native_write_loss(n, ETCH__LOSS_CAUSE__LOSS_RATE_LIMITED, w->id, 0, 0, detail);
        }
        if (!n->late && counted > w->hits + w->reported)
            native_write_loss(n, ETCH__LOSS_CAUSE__LOSS_SIDEBAND, w->id, 0, counted - w->hits - w->reported,
                              "the debug register fired more often than was written");
    }
}

static void conclude(struct native *n)
{
    struct etch_flow_sink sink = native_flow_sink(n);
    Etch__Loss loss = ETCH__LOSS__INIT;
    char detail[120];

    if (n->flow)
        n->flow->stop(n->flow_state);
    if (!n->target.gone) {
        native_write_images(n);
        for (size_t i = 0; i < n->target.threads.n; i++)
            native_write_thread(n, &n->target.threads.v[i], false);
    }
    native_drain(n, true);
    if (etch_limit_loss(&n->limit, n->options->max_size, &loss, detail))
        sink.lost(n, &loss);
    if (n->starved)
        native_write_loss(n, ETCH__LOSS_CAUSE__LOSS_STARVED, 0, 0, 1,
                          "etch was stopped while the program waited for it, and let go of the program");
    account(n);
    if (n->sync && !etch_sync_reader_joined(n->sync))
        native_note(n, "no synchronisation events: etch-sync.so did not come up in the program");
    if (n->watches && !etch_watches_see_kernel(n->watches))
        native_note(n, "accesses by the kernel for the program (read(2) into it) were not seen: needs CAP_PERFMON");
    n->summary->threads += n->target.threads_seen;
    n->summary->processes++;
    n->summary->status = n->target.wait_status;
    n->summary->left_running = !n->target.gone;
    native_write_outcome(n); /* first: what follows is not part of the run */
    native_write_clock(n, ETCH__CLOCK_PHASE__CLOCK_AFTER);
}

static int run(struct native *n, struct loop *l, struct etch_error *err)
{
    struct timespec now;

    if (etch_host_write(n->bundle, err) < 0)
        return -1;
    etch_clock_pairs_take(&n->first_pair, 1, CLOCK_MONOTONIC_RAW, 0);
    native_write_clock(n, ETCH__CLOCK_PHASE__CLOCK_BEFORE);
    clock_gettime(CLOCK_REALTIME, &now);
    n->start_unix_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    n->start_cpu_ns = native_cpu_ns(RUSAGE_SELF);
    if (trace_apart(n, l, err) < 0)
        return -1;
    if (!n->program_written)
        native_write_program(n); /* it was killed before it began */
    conclude(n);
    if (!n->broken && etch_bundle_finish(n->bundle, &n->write_error) < 0)
        n->broken = true;
    wait_untraced(n, l);
    return 0;
}

int etch_native_record(const struct etch_record_options *options, const struct etch_flow_recorder *flow,
                       struct etch_record_summary *summary, struct etch_error *err)
{
    struct native *n = calloc(1, sizeof(*n));
    struct loop loop = {.signals = -1};
    struct etch_flow_sink sink;
    int status = -1;

    if (!n)
        return etch_error_set(err, "out of memory");
    n->options = options;
    n->summary = summary;
    n->err = err;
    n->target.watcher =
        (struct etch_target_watcher){n, on_exec, on_thread_start, on_thread_exit, on_signal, on_stopped};
    n->flow = flow;
    sink = native_flow_sink(n);
    summary->source = flow ? flow->name : "none";
    if (parse_watches(n, err) == 0 && read_plan(n, err) == 0 &&
        (!flow || flow->open(&n->flow_state, options, &sink, err) == 0)) {
        choose_set(n);
        if (etch_bundle_create(&n->bundle, options->output, err) == 0) {
            etch_privacy_guard(options->privacy, n->bundle);
            if (take_signals(&loop, err) == 0)
                status = run(n, &loop, err);
            give_back_signals(&loop);
            etch_record_sum_up(summary, n->bundle);
            if (status < 0 && !n->followed)
                etch_bundle_discard(n->bundle); /* nothing was recorded */
            else
                etch_bundle_writer_free(n->bundle);
        }
    }
    etch_calibration_free(&n->calibration);
    if (flow)
        flow->close(n->flow_state);
    etch_watches_free(n->watches);
    etch_sync_reader_free(n->sync);
    etch_target_free(&n->target);
    etch_array_free(&n->images);
    etch_mappings_release(&n->mapped);
    etch_array_free(&n->libraries);
    free(n);
    return status;
}
