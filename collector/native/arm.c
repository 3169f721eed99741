/* SPDX-License-Identifier: MIT */
/* Setting watches in the program, at its start and when a site is reached; see arm.h. */
#include "collector/native/arm.h"
#include "collector/native/library.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/user.h>
#include <time.h>
#include <unistd.h>

#define ARM_HOLD_MS 20           /* for the threads to stop, at most, while a watch is set */
#define KNOWN_MAX 2              /* arrivals at a site with objects that are watched already */
#define RING_BYTES (16u << 20)   /* 19,000 hits on each CPU */
#define RINGS_BYTES (512u << 20) /* of all CPUs, where there are many */
#define RING_LEAST (512u << 10)  /* what the kernel lets everybody have */

static size_t read_target(void *context, uint64_t address, void *buffer, size_t size)
{
    return etch_process_read(*(pid_t *)context, address, buffer, size);
}

/* Sets the watch in all threads, also in those that appear meanwhile. A thread may inherit the watch and get it here
 * again; etch_watches_drain() drops the double hits. */
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
        etch_native_write_watch(n, w, err->what); /* one of a plan's watches: the others go on */
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
    etch_native_write_watch(n, w, NULL);
    return 0;
}

/* The addresses of the program's own code and data. */
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

/* All CPUs get rings of the same size. If locked memory is limited, the first CPU must not take all of it. */
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

/* In C++, code of headers is compiled into the program. Only the stack shows the line of the user's code that called
 * it. */
static bool is_cplusplus(const struct etch_object *object)
{
    static const char personality[] = "__gxx_personality_v0";
    struct etch_symbol symbol;

    return etch_object_imports(object, personality) || etch_object_symbol(object, personality, &symbol) > 0;
}

/* Sets a watch in a library that is loaded by now. A watch that cannot be set is reported; the others go on. */
static void arm_in_library(struct native *n, uint32_t index)
{
    struct native_watch *w = &n->list[index];
    struct etch_object *object = NULL;
    struct etch_error err;
    uint64_t bias;

    w->deferred = false;
    w->site = 0;
    if (etch_native_library_locate(n, etch_native_library_of(n, w->added), &object, &bias, &err) < 0 ||
        arm_watch(n, index, object, bias, &err) < 0) {
        w->armed = true;
        etch_native_write_watch(n, w, err.what);
        n->summary->skipped_watches++;
    }
    etch_object_free(object);
}

/* Stops the program at its own first instruction. */
static int await_libraries(struct native *n, uint32_t index, struct etch_error *err)
{
    n->list[index].deferred = true;
    if (n->entry)
        return 0;
    n->entry = n->list[index].site = etch_native_entry(n->target.pid);
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

int etch_native_arm(struct native *n, struct etch_error *err)
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
        etch_native_write_watch(n, &n->list[i], reason);
        n->summary->skipped_watches++;
    }
    etch_object_free(object);
    return status;
}

/* A plan may name several sites of one location. One debug register is enough for the location. */
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
    etch_native_write_watch(n, &n->list[index], status < 0 ? err.what : NULL);
    etch_target_release_held(&n->target);
}

static void give_up(struct native *n, uint32_t index, const char *why)
{
    etch_watches_disarm_site(n->watches, index);
    n->list[index].armed = true;
    etch_native_write_watch(n, &n->list[index], why);
}

/* A plan may have several watches of one site, each for another object. Only one of these watches is armed at a time;
 * the others wait. */
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

/* A thread has reached a site, so that the location is now known. The thread is stopped before the instruction. The
 * other threads are held meanwhile, unless the stop would show in the program. No held thread passes the site before
 * its debug register is set, and all held threads lose the same time. */
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

bool etch_native_arrive(struct native *n, pid_t tid)
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

/* Disarms the sites before etch detaches: the trap of a site would kill an untraced program. Also takes the traps that
 * are already under way. */
void etch_native_leave_sites(struct native *n, struct etch_error *err)
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

/* Compares the counts of the debug registers with the hits that arrived. */
void etch_native_watches_account(struct native *n)
{
    for (uint32_t i = 0; n->watches && i < n->n_list; i++) {
        struct native_watch *w = &n->list[i];
        uint64_t counted = w->counted + etch_watches_count(n->watches, i);
        char detail[200];

        if (w->deferred) {
            etch_native_write_watch(n, w, "the program ended before its libraries were there");
        } else if (w->place.site && !w->armed && w->set == n->set) {
            w->address = w->known ? w->address : 0;
            etch_native_write_watch(n, w,
                                    w->further ? "no further object came by"
                                    : w->known ? "another watch has the location already"
                                               : "its site was never reached");
        }
        if (w->cut) {
            snprintf(detail, sizeof(detail), "%.100s went beyond its budget and was not watched to the end",
                     w->place.text);
            etch_native_write_loss(n, ETCH__LOSS_CAUSE__LOSS_RATE_LIMITED, w->id, 0, 0, detail);
        }
        if (!n->late && counted > w->hits + w->reported)
            etch_native_write_loss(n, ETCH__LOSS_CAUSE__LOSS_SIDEBAND, w->id, 0, counted - w->hits - w->reported,
                                   "the debug register fired more often than was written");
    }
}
