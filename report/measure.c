/* SPDX-License-Identifier: MIT */
/* Steps to a profile; see measure.h. A window ends where a stamp lies between two steps: the step before is over by the
 * stamp, and the step behind does not begin before it. */
#include "report/measure.h"

#include "base/path.h"
#include "decoder/steps.h"
#include "report/wait_site.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static struct etch_profile_function *function_at(struct etch_measure *m, uint32_t function)
{
    return &m->profile->functions.v[function];
}

enum { FEW_INSTRUCTIONS = 64, TAIL_CHAIN = 16 };

/* ---- Windows ---- */

static void touch_function(struct etch_measure *m, uint32_t function)
{
    struct etch_profile_function *f = function_at(m, function);

    if (f->window == m->window)
        return;
    f->window = m->window;
    if (!etch_array_push(&m->touched_functions, function))
        m->failed = true;
}

/* What the innermost function ran since the last event. */
static void count_run(struct etch_measure *m)
{
    uint64_t ran = m->instructions - m->run;
    struct etch_profile_path *path;
    uint32_t number;

    m->run = m->instructions;
    if (!ran || !m->frames.n)
        return;
    number = m->frames.v[m->frames.n - 1].path;
    path = &m->profile->paths.v[number];
    path->instructions += ran;
    function_at(m, path->function)->instructions += ran;
    if (path->window != m->window) {
        path->window = m->window;
        path->window_instructions = 0;
        if (!etch_array_push(&m->touched_paths, number))
            m->failed = true;
    }
    path->window_instructions += ran;
    m->window_instructions += ran;
}

/* The function was active since before this window: what lies before the window is certain. */
static void add_full(struct etch_measure *m, struct etch_profile_function *f)
{
    uint64_t ticks = m->start > f->full_from && f->full_from ? m->start - f->full_from : 0;

    f->total.lo += ticks;
    f->total.hi += ticks;
}

/* The length of a window for pictures. A window at an end of the run has no stamp there: it is as long as other windows
 * with so many instructions, and no longer than its bounds. */
static double length_for_pictures(const struct etch_measure *m, uint64_t length, bool stamped)
{
    double like_others = m->paced_instructions
                             ? (double)m->window_instructions * (double)m->paced_ticks / (double)m->paced_instructions
                             : (double)length;

    return stamped || like_others > (double)length ? (double)length : like_others;
}

static void share_window(struct etch_measure *m, uint64_t length, bool stamped)
{
    double shown = length_for_pictures(m, length, stamped);
    bool alone = m->touched_paths.n == 1 && !m->lost;

    for (size_t i = 0; i < m->touched_paths.n; i++) {
        struct etch_profile_path *path = &m->profile->paths.v[m->touched_paths.v[i]];

        path->self.hi += length;
        path->self.lo += alone ? length : 0;
        path->estimate += shown * (double)path->window_instructions / (double)m->window_instructions;
    }
}

/* Of functions: those that ran on several paths count once. */
static void share_self(struct etch_measure *m, uint64_t length)
{
    uint32_t first = ETCH_FUNCTION_NONE;
    bool alone = !m->lost;

    for (size_t i = 0; i < m->touched_paths.n; i++) {
        uint32_t function = m->profile->paths.v[m->touched_paths.v[i]].function;
        struct etch_profile_function *f = function_at(m, function);

        if (f->self_window == m->window)
            continue;
        f->self_window = m->window;
        f->self.hi += length;
        alone = alone && first == ETCH_FUNCTION_NONE;
        first = function;
    }
    if (alone && first != ETCH_FUNCTION_NONE)
        function_at(m, first)->self.lo += length;
}

static void add_wait(struct etch_measure *m, uint32_t path, const struct etch_measure_site *site, uint64_t from,
                     uint64_t to)
{
    m->waited += to - from;
    m->profile->paths.v[path].wait += to - from;
    function_at(m, m->profile->paths.v[path].function)->wait += to - from;
    etch_wait_site_add(m, site, m->profile->paths.v[path].function, from, to);
}

/* A window with a call out of recorded code, and with next to no recorded instructions, is the time of that call: the
 * recorder stamps before and behind calls that may wait. */
static bool is_wait(const struct etch_measure *m)
{
    return m->outside && !m->lost && m->window_instructions <= FEW_INSTRUCTIONS;
}

/* `stamped`: it ends at a stamp, not at the end of the run. */
static void close_window(struct etch_measure *m, uint64_t end, bool stamped)
{
    bool bounded = m->start && end != UINT64_MAX && end >= m->start;
    uint64_t length = bounded ? end - m->start : 0;
    struct etch_measure_site site = {.image = m->outside_image, .address = m->outside_address};

    count_run(m);
    if (length && stamped && m->stamped && is_wait(m)) {
        add_wait(m, m->outside, &site, m->start, end);
    } else if (stamped && m->stamped && !m->lost) {
        m->paced_ticks += length;
        m->paced_instructions += m->window_instructions;
    }
    share_window(m, length, stamped && m->stamped);
    share_self(m, length);
    for (size_t i = 0; i < m->touched_functions.n; i++) {
        struct etch_profile_function *f = function_at(m, m->touched_functions.v[i]);

        f->total.hi += length;
        f->unbounded |= !bounded;
        f->full_from = end;
    }
    m->touched_paths.n = m->touched_functions.n = 0;
    m->window_instructions = 0;
    m->window++;
    m->outside = 0;
    m->lost = false;
}

/* A stamp: the window ends, and the time to the next one is a wait of the innermost function. */
static void cross(struct etch_measure *m)
{
    struct etch_measure_site site = {.image = m->image, .address = m->address};

    m->crossing = false;
    close_window(m, m->last.hi, true);
    m->stamped = true;
    m->start = m->next;
    if (m->next > m->last.hi && m->frames.n)
        add_wait(m, m->frames.v[m->frames.n - 1].path, &site, m->last.hi, m->next);
}

/* Time that a loss took is nobody's for certain. */
static void on_loss(struct etch_measure *m)
{
    count_run(m);
    for (size_t i = 0; i < m->frames.n; i++) {
        struct etch_profile_function *f = function_at(m, m->frames.v[i].function);

        if (f->window != m->window)
            add_full(m, f);
        touch_function(m, m->frames.v[i].function);
        m->frames.v[i].cut = true;
    }
    m->lost = m->behind_loss = true;
    m->profile->losses++;
    m->profile->threads.v[m->thread].losses++;
}

/* ---- Calls ---- */

static uint32_t look_up(struct etch_measure *m, uint32_t parent, const struct etch_call *call)
{
    char name[1200];
    uint32_t function;

    if (call->name)
        snprintf(name, sizeof(name), "%s", call->name);
    else
        snprintf(name, sizeof(name), "%.1000s+0x%" PRIx64, call->module[0] ? etch_path_name(call->module) : "?",
                 call->module_offset);
    function = etch_profile_function(m->profile, name, call->module);
    return function == ETCH_FUNCTION_NONE ? function : etch_profile_path(m->profile, parent, function);
}

static uint32_t path_of(struct etch_measure *m, uint32_t parent, const struct etch_call *call)
{
    uint64_t offset = call->name ? 0 : call->module_offset;
    uint64_t hash = ((uintptr_t)call->name ^ ((uintptr_t)call->module << 7) ^ offset ^ (uint64_t)parent << 3) *
                    UINT64_C(0x9e3779b97f4a7c15);
    struct etch_measure_known *k = &m->known[hash >> 40 & (ETCH_MEASURE_KNOWN - 1)];

    if (k->path && k->parent == parent && k->name == call->name && k->module == call->module &&
        k->module_offset == offset)
        return k->path;
    *k = (struct etch_measure_known){call->name, call->module, offset, parent, look_up(m, parent, call)};
    if (k->path == ETCH_FUNCTION_NONE) {
        m->failed = true;
        k->path = 0;
    }
    return k->path;
}

static void activate(struct etch_measure *m, uint32_t function)
{
    struct etch_profile_function *f = function_at(m, function);

    if (f->active++ > 0)
        return;
    touch_function(m, function);
    f->instructions_from = m->instructions;
    f->wait_from = m->waited;
}

static void deactivate(struct etch_measure *m, uint32_t function)
{
    struct etch_profile_function *f = function_at(m, function);

    if (--f->active > 0)
        return;
    f->total_instructions += m->instructions - f->instructions_from;
    f->total_wait += m->waited - f->wait_from;
    if (f->window != m->window)
        add_full(m, f);
    touch_function(m, function);
}

/* Keeps the list sorted, the greatest first. */
static void keep_slow(struct etch_profile_call *list, uint32_t *n, const struct etch_profile_call *call, bool by_wait)
{
    uint32_t at = *n;

    while (at > 0 && (by_wait ? list[at - 1].wait < call->wait
                              : list[at - 1].cost.lo < call->cost.lo ||
                                    (list[at - 1].cost.lo == call->cost.lo && list[at - 1].cost.hi < call->cost.hi)))
        at--;
    if (at >= ETCH_SLOWEST_KEPT)
        return;
    *n += *n < ETCH_SLOWEST_KEPT;
    memmove(&list[at + 1], &list[at], (*n - at - 1) * sizeof(*list));
    list[at] = *call;
}

static void count_call(struct etch_measure *m, const struct etch_measure_frame *frame, struct etch_interval left,
                       struct etch_profile_call *ended)
{
    struct etch_profile_path *path = &m->profile->paths.v[frame->path];
    struct etch_profile_edge *edge = &m->profile->edges.v[path->edge];
    struct etch_profile_slowest *slowest = &m->profile->slowest.v[frame->function];
    struct etch_profile_call call = {.file = m->file,
                                     .pid = m->profile->threads.v[m->thread].pid,
                                     .tid = m->profile->threads.v[m->thread].tid,
                                     .instructions_before = frame->instructions,
                                     .number = frame->number,
                                     .entered = frame->entered.lo,
                                     .depth = (uint32_t)m->frames.n - 1,
                                     .wait = m->waited - frame->wait};

    if (m->profile->unit == ETCH_UNIT_INSTRUCTIONS)
        call.cost.lo = call.cost.hi = m->instructions - frame->instructions;
    else {
        call.cost.lo = left.lo > frame->entered.hi ? left.lo - frame->entered.hi : 0;
        call.cost.lo = call.cost.lo > call.wait ? call.cost.lo : call.wait;
        call.cost.hi = left.hi - frame->entered.lo;
    }
    if (!etch_distribution_add(&edge->lo, call.cost.lo, 1) ||
        (m->profile->unit == ETCH_UNIT_TICKS && !etch_distribution_add(&edge->hi, call.cost.hi, 1)) ||
        (call.wait && !etch_distribution_add(&edge->wait, call.wait, 1)))
        m->failed = true;
    keep_slow(slowest->calls, &slowest->n, &call, false);
    if (call.wait)
        keep_slow(slowest->waits, &slowest->n_waits, &call, true);
    *ended = call;
}

/* The innermost call is over. */
static void end_call(struct etch_measure *m, struct etch_interval left, bool whole)
{
    struct etch_measure_frame frame = m->frames.v[m->frames.n - 1];
    struct etch_profile_call ended;

    count_run(m);
    left.hi = left.hi == UINT64_MAX && m->end ? m->end : left.hi;
    frame.entered.lo = frame.entered.lo ? frame.entered.lo : m->begin;
    whole = whole && !frame.cut &&
            (m->profile->unit == ETCH_UNIT_INSTRUCTIONS || (frame.entered.lo && left.hi != UINT64_MAX));
    if (whole)
        count_call(m, &frame, left, &ended);
    else
        function_at(m, frame.function)->left_out++;
    if (m->on_leave)
        m->on_leave(m->watcher, &frame, whole ? &ended : NULL);
    m->frames.n--;
    deactivate(m, frame.function);
}

/* Calls that ended by a tail call are over when the function that they jumped to is. */
static void end_tailed(struct etch_measure *m, int depth, struct etch_interval left, bool whole)
{
    while (m->frames.n && m->frames.v[m->frames.n - 1].tailed && m->frames.v[m->frames.n - 1].depth >= depth)
        end_call(m, left, whole);
}

static void leave(struct etch_measure *m, const struct etch_call *call)
{
    bool whole = call->why != ETCH_WHY_LOST && call->why != ETCH_WHY_END;

    if (!m->frames.n)
        return;
    if (call->why == ETCH_WHY_TAIL) {
        m->frames.v[m->frames.n - 1].tailed = true;
        return;
    }
    end_call(m, call->time, whole);
    end_tailed(m, call->depth, call->time, whole);
}

/* A function that the caller jumped to is shown as called by it. A program may jump for ever: a function that is in the
 * chain already, or a long chain, ends the chain. */
static void enter_tail(struct etch_measure *m, const struct etch_call *call)
{
    size_t chain = 0;

    while (chain < m->frames.n && m->frames.v[m->frames.n - 1 - chain].tailed)
        chain++;
    for (size_t i = 0; i < chain; i++) {
        uint32_t function = m->frames.v[m->frames.n - 1 - i].function;

        if (chain >= TAIL_CHAIN || (call->name && strcmp(function_at(m, function)->name, call->name) == 0)) {
            end_tailed(m, call->depth, call->time, true);
            return;
        }
    }
}

static void enter(struct etch_measure *m, const struct etch_call *call)
{
    struct etch_measure_frame frame = {
        .entered = call->time, .instructions = m->instructions, .wait = m->waited, .depth = call->depth};

    if (call->why == ETCH_WHY_TAIL)
        enter_tail(m, call);
    else
        end_tailed(m, call->depth, call->time, true);
    count_run(m);
    frame.path = path_of(m, m->frames.n ? m->frames.v[m->frames.n - 1].path : 0, call);
    if (!frame.path)
        return;
    frame.function = m->profile->paths.v[frame.path].function;
    frame.cut = call->kind == ETCH_CALL_BELOW || call->why == ETCH_WHY_BEGAN;
    frame.number = ++function_at(m, frame.function)->calls;
    m->profile->paths.v[frame.path].calls++;
    m->profile->edges.v[m->profile->paths.v[frame.path].edge].calls++;
    if (!etch_array_push(&m->frames, frame))
        m->failed = true;
    else
        activate(m, frame.function);
    if (m->on_enter && !m->failed)
        m->on_enter(m->watcher, &frame);
}

/* ---- Threads ---- */

static char *name_of_thread(const struct etch_recording *recording, uint32_t pid, uint32_t tid)
{
    for (size_t i = 0; i < recording->threads.n; i++) {
        const Etch__Thread *t = recording->threads.v[i];

        if (t->tid == tid && (t->pid == pid || !t->pid))
            return strdup(t->name);
    }
    return strdup("");
}

static void begin_thread(struct etch_measure *m, const struct etch_call *call)
{
    struct etch_profile_thread thread = {.file = m->file, .pid = call->pid, .tid = call->tid};

    thread.name = name_of_thread(m->recording, call->pid, call->tid);
    if (!thread.name || !etch_array_push(&m->profile->threads, thread)) {
        free(thread.name);
        m->failed = true;
        return;
    }
    m->thread = m->profile->threads.n - 1;
    m->frames.n = 0;
    m->instructions = m->run = m->waited = 0;
    m->outside = 0;
    m->stamped = false;
    m->stamped = false;
    m->start = call->time.lo ? call->time.lo : m->begin;
    m->first = m->last = call->time;
    m->no_begin = !call->time.lo;
    m->in_thread = true;
    m->lost = m->behind_loss = m->crossing = false;
    etch_wait_site_thread(m, call->tid);
}

static void end_thread(struct etch_measure *m)
{
    struct etch_profile_thread *thread = &m->profile->threads.v[m->thread];
    uint64_t end = m->last.hi == UINT64_MAX && m->end ? m->end : m->last.hi;

    m->crossing = false;
    end_tailed(m, INT_MIN, m->last, false);
    close_window(m, end, false);
    thread->instructions = m->instructions;
    thread->wait = m->waited;
    thread->elapsed.lo = m->last.lo > m->first.hi ? m->last.lo - m->first.hi : 0;
    m->first.lo = m->first.lo ? m->first.lo : m->begin;
    thread->elapsed.hi = m->first.lo && end != UINT64_MAX ? end - m->first.lo : UINT64_MAX;
    m->in_thread = false;
}

static int visit(void *context, const struct etch_call *call)
{
    struct etch_measure *m = context;

    if (m->crossing && call->kind != ETCH_CALL_LEAVE)
        cross(m);
    switch (call->kind) {
    case ETCH_CALL_THREAD:
        begin_thread(m, call);
        break;
    case ETCH_CALL_ENTER:
    case ETCH_CALL_BELOW:
        enter(m, call);
        break;
    case ETCH_CALL_LEAVE:
        leave(m, call);
        break;
    case ETCH_CALL_LOSS:
        on_loss(m);
        break;
    case ETCH_CALL_THREAD_END:
        end_thread(m);
        break;
    case ETCH_CALL_PART:
        end_tailed(m, INT_MIN, m->last, false);
        break;
    case ETCH_CALL_NOWHERE:
        break;
    }
    return m->failed ? -1 : 0;
}

/* The first steps of the thread have no stamp before them, and may be as old as the run. Those from here on are not. */
static void begin_at_stamp(struct etch_measure *m, uint64_t stamp)
{
    m->no_begin = false;
    close_window(m, m->last.hi, false);
    m->start = stamp;
}

/* Only blocks have times of their own: the time of an event reaches over the wait that it stands for. */
static int visit_step(void *context, const struct etch_step *step)
{
    struct etch_measure *m = context;
    bool same = m->in_thread && step->tid == m->profile->threads.v[m->thread].tid &&
                step->pid == m->profile->threads.v[m->thread].pid;
    int status;

    if (same && m->no_begin && step->kind == ETCH_STEP_BLOCK && step->time.lo)
        begin_at_stamp(m, step->time.lo);
    if (same && !m->behind_loss && step->kind == ETCH_STEP_BLOCK && step->time.lo >= m->last.hi &&
        step->time.lo > m->start) {
        m->crossing = true;
        m->next = step->time.lo;
    }
    status = etch_calls_step(m->calls, step);
    if (status || m->failed)
        return -1;
    if (m->crossing)
        cross(m);
    if (step->kind == ETCH_STEP_BLOCK) {
        m->instructions += step->count;
        m->image = step->image;
        m->address = step->last;
        m->behind_loss = false;
        m->last = step->time;
    } else if (step->kind == ETCH_STEP_END && m->frames.n && !m->outside) {
        m->outside = m->frames.v[m->frames.n - 1].path;
        m->outside_image = m->image;
        m->outside_address = m->address;
    }
    return 0;
}

/* ---- A recording ---- */

static enum etch_profile_unit unit_of(const struct etch_recording *recording,
                                      const struct etch_profile_options *options)
{
    bool emulated = recording->source == ETCH__SOURCE__SOURCE_VPT || recording->source == ETCH__SOURCE__SOURCE_LAB;

    return emulated || options->instructions ? ETCH_UNIT_INSTRUCTIONS : ETCH_UNIT_TICKS;
}

static int check_unit(struct etch_profile *profile, const struct etch_recording *recording,
                      const struct etch_profile_options *options, struct etch_error *err)
{
    enum etch_profile_unit unit = unit_of(recording, options);
    char *path;

    if (profile->files.n && unit != profile->unit) {
        etch_error_set(err, "%s counts instructions, other recordings have times", recording->path);
        return etch_error_advise(err, "--instructions, which counts instructions in all of them");
    }
    profile->unit = unit;
    if (recording->host && recording->host->tsc_hz && profile->ns_per_tick == 0)
        profile->ns_per_tick = 1e9 / (double)recording->host->tsc_hz;
    path = strdup(recording->path);
    if (!path || !etch_array_push(&profile->files, path)) {
        free(path);
        return etch_error_no_memory(err);
    }
    return 0;
}

static void release(struct etch_measure *m)
{
    etch_calls_free(m->calls);
    free(m->known);
    etch_array_free(&m->frames);
    etch_array_free(&m->sites);
    etch_array_free(&m->of_thread);
    etch_array_free(&m->touched_paths);
    etch_array_free(&m->touched_functions);
    etch_index_release(&m->by_site);
}

static int measure(struct etch_measure *m, const struct etch_profile_options *options, struct etch_error *err)
{
    struct etch_steps_options steps = {.jobs = options->jobs, .tid = options->tid, .sysroot = options->sysroot};
    struct etch_steps_count count = {0};
    uint64_t lost[ETCH_LOSS_CAUSES];
    int status = etch_steps(m->recording, &steps, visit_step, m, &count, err);

    if (m->failed || (status == 0 && etch_calls_finish(m->calls)))
        return etch_error_no_memory(err);
    if (status)
        return -1;
    m->profile->branches += count.branches;
    m->profile->instructions += count.instructions;
    etch_recording_lost(m->recording, lost);
    for (size_t i = 0; i < ETCH_LOSS_CAUSES; i++)
        m->profile->lost[i] += lost[i];
    return 0;
}

int etch_measure_run(struct etch_measure *m, const struct etch_profile_options *options, struct etch_error *err)
{
    const struct etch_recording *recording = m->recording;
    int status;

    if (check_unit(m->profile, recording, options, err) < 0)
        return -1;
    m->file = (uint32_t)m->profile->files.n - 1;
    m->window = ++m->profile->windows;
    m->begin = recording->program ? recording->program->start_tsc : 0;
    m->end = recording->outcome ? recording->outcome->end_tsc : 0;
    m->known = calloc(ETCH_MEASURE_KNOWN, sizeof(*m->known));
    m->calls = etch_calls_new(m->symbols, visit, m);
    status = m->known && m->calls ? measure(m, options, err) : etch_error_no_memory(err);
    m->profile->windows = m->window;
    release(m);
    return status;
}

int etch_profile_add(struct etch_profile *profile, struct etch_recording *recording, struct etch_symbols *symbols,
                     const struct etch_profile_options *options, struct etch_error *err)
{
    struct etch_measure m = {.profile = profile, .recording = recording, .symbols = symbols};

    return etch_measure_run(&m, options, err);
}
