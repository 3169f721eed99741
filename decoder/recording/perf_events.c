/* SPDX-License-Identifier: MIT */
/* The side-band of a perf.data, sorted by time and applied to the recording. */
#include "decoder/recording/cuts.h"
#include "decoder/recording/perf_loader.h"
#include "decoder/recording/recording_fill.h"

#include <linux/perf_event.h>

/* The newest thread of that number, which is the one that lives. */
static Etch__Thread *find_thread(struct etch_recording *recording, uint32_t tid)
{
    for (size_t i = recording->threads.n; i-- > 0;)
        if (recording->threads.v[i]->tid == tid)
            return recording->threads.v[i];
    return NULL;
}

static Etch__Thread *thread_of(struct etch_perf_loader *l, uint32_t pid, uint32_t tid)
{
    Etch__Thread *thread = find_thread(l->recording, tid);

    if (thread && thread->pid == pid && !thread->end_tsc)
        return thread;
    thread = etch_recording_add_thread(l->recording);
    if (thread) {
        thread->pid = pid;
        thread->tid = tid;
    }
    return thread;
}

static bool apply_program(struct etch_perf_loader *l, const struct etch_perf_event *e)
{
    Etch__Program *program = l->recording->program;

    if (program)
        return true;
    program = malloc(sizeof(*program));
    if (!program)
        return false;
    etch__program__init(program);
    l->recording->program = program;
    program->source = ETCH__SOURCE__SOURCE_PT;
    program->pid = e->pair.pid;
    program->start_tsc = etch_perf_loader_tsc(l, e->time);
    return true;
}

/* The program's own file is the first that its exec maps. */
static bool apply_exe(struct etch_perf_loader *l, const struct etch_perf_event *e)
{
    Etch__Program *program = l->recording->program;

    if (!program || program->pid != e->mmap.pid || program->exe[0] || e->name[0] != '/' || e->name[1] == '/')
        return true;
    return etch_message_set_string(&program->exe, e->name);
}

static bool apply_comm(struct etch_perf_loader *l, const struct etch_perf_event *e)
{
    Etch__Thread *thread = thread_of(l, e->pair.pid, e->pair.tid);

    if (!thread || !etch_message_set_string(&thread->name, e->name))
        return false;
    if (!(e->misc & PERF_RECORD_MISC_COMM_EXEC))
        return true;
    return etch_perf_images_unmap_all(l, e->pair.pid, etch_perf_loader_tsc(l, e->time)) && apply_program(l, e);
}

static bool apply_fork(struct etch_perf_loader *l, const struct etch_perf_event *e)
{
    const Etch__Thread *parent = find_thread(l->recording, e->task.ptid);
    const char *name = parent ? parent->name : "";
    Etch__Thread *thread = thread_of(l, e->task.pid, e->task.tid);
    uint64_t tsc = etch_perf_loader_tsc(l, e->time);

    if (!thread || !etch_message_set_string(&thread->name, name))
        return false;
    thread->parent_pid = e->task.ppid;
    thread->parent_tid = e->task.ptid;
    thread->start_tsc = tsc;
    return e->task.pid == e->task.ppid || etch_perf_images_inherit(l, e->task.ppid, e->task.pid, tsc);
}

static bool apply_exit(struct etch_perf_loader *l, const struct etch_perf_event *e)
{
    Etch__Thread *thread = find_thread(l->recording, e->task.tid);

    if (thread)
        thread->end_tsc = etch_perf_loader_tsc(l, e->time);
    return true;
}

static bool add_switch(struct etch_perf_loader *l, const struct etch_perf_event *e, bool in, uint32_t pid, uint32_t tid)
{
    Etch__Switch s = ETCH__SWITCH__INIT;

    if (!e->sample.has_cpu)
        return true;
    s.cpu = e->sample.cpu;
    s.perf_ns = e->time;
    s.tsc = etch_perf_loader_tsc(l, e->time);
    s.in = in;
    s.pid = pid;
    s.tid = tid;
    s.preempted = !in && e->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
    return etch_array_push(&l->recording->switches, s);
}

static bool apply_sched_switch(struct etch_perf_loader *l, const struct etch_perf_event *e)
{
    const Etch__Thread *from = find_thread(l->recording, e->pair.pid), *to = find_thread(l->recording, e->pair.tid);

    return add_switch(l, e, false, from ? from->pid : 0, e->pair.pid) &&
           add_switch(l, e, true, to ? to->pid : 0, e->pair.tid);
}

static Etch__Loss *add_loss(struct etch_perf_loader *l, const struct etch_perf_event *e, Etch__LossCause cause)
{
    Etch__Loss *loss = etch_recording_add_loss(l->recording);

    if (!loss)
        return NULL;
    loss->cause = cause;
    loss->events = 1;
    loss->tsc = etch_perf_loader_tsc(l, e->time);
    loss->cpu = e->sample.has_cpu ? e->sample.cpu : 0;
    loss->tid = e->sample.has_tid ? e->sample.tid : 0;
    return loss;
}

static bool apply_lost(struct etch_perf_loader *l, const struct etch_perf_event *e)
{
    Etch__Loss *loss = add_loss(l, e, ETCH__LOSS_CAUSE__LOSS_SIDEBAND);

    if (!loss)
        return false;
    loss->events = e->lost;
    return e->type != PERF_RECORD_LOST_SAMPLES || etch_message_set_string(&loss->detail, "samples");
}

/* An AUX record says which bytes came, and what went wrong at their end. */
static bool apply_aux(struct etch_perf_loader *l, const struct etch_perf_event *e)
{
    static const struct {
        uint64_t flag;
        Etch__LossCause cause;
    } causes[] = {{PERF_AUX_FLAG_TRUNCATED, ETCH__LOSS_CAUSE__LOSS_AUX_TRUNCATED},
                  {PERF_AUX_FLAG_PARTIAL, ETCH__LOSS_CAUSE__LOSS_AUX_PARTIAL},
                  {PERF_AUX_FLAG_COLLISION, ETCH__LOSS_CAUSE__LOSS_AUX_COLLISION}};
    const struct etch_stream *stream =
        e->sample.has_cpu ? etch_perf_streams_find(l->recording, true, e->sample.cpu) : NULL;

    if (!stream && e->sample.has_tid)
        stream = etch_perf_streams_find(l->recording, false, e->sample.tid);
    for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
        Etch__Loss *loss;

        if (!(e->aux.flags & causes[i].flag))
            continue;
        loss = add_loss(l, e, causes[i].cause);
        if (!loss)
            return false;
        loss->offset = e->aux.offset + e->aux.size;
        loss->stream = stream ? stream->about->id : UINT32_MAX;
        if (!stream && !etch_message_set_string(&loss->detail, "of a stream that is not in the file"))
            return false;
    }
    return true;
}

static bool apply(struct etch_perf_loader *l, const struct etch_perf_event *e)
{
    switch (e->type) {
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        return etch_perf_images_map(l, e) && apply_exe(l, e);
    case PERF_RECORD_COMM:
        return apply_comm(l, e);
    case PERF_RECORD_FORK:
        return apply_fork(l, e);
    case PERF_RECORD_EXIT:
        return apply_exit(l, e);
    case PERF_RECORD_SWITCH:
    case PERF_RECORD_SWITCH_CPU_WIDE:
        return !e->sample.has_tid ||
               add_switch(l, e, !(e->misc & PERF_RECORD_MISC_SWITCH_OUT), e->sample.pid, e->sample.tid);
    case PERF_RECORD_ITRACE_START:
        return add_switch(l, e, true, e->pair.pid, e->pair.tid);
    case PERF_RECORD_SAMPLE:
        return apply_sched_switch(l, e);
    case PERF_RECORD_AUX:
        return apply_aux(l, e);
    default:
        return apply_lost(l, e);
    }
}

static int compare_events(const void *a, const void *b)
{
    const struct etch_perf_event *x = a, *y = b;

    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* For a thread's stream, and for a CPU's that followed one process. */
static void name_processes(struct etch_perf_loader *l)
{
    for (size_t i = 0; i < l->auxtraces.n; i++) {
        const struct etch_perf_auxtrace *a = &l->auxtraces.v[i];
        bool by_cpu = a->cpu != UINT32_MAX;
        struct etch_stream *stream = etch_perf_streams_find(l->recording, by_cpu, by_cpu ? a->cpu : a->tid);
        const Etch__Thread *thread = find_thread(l->recording, a->tid);

        if (stream && thread)
            ((Etch__Stream *)(uintptr_t)stream->about)->pid = thread->pid;
    }
}

int etch_perf_events_apply(struct etch_perf_loader *l)
{
    if (l->events.n)
        qsort(l->events.v, l->events.n, sizeof(*l->events.v), compare_events);
    for (size_t i = 0; i < l->events.n; i++)
        if (!apply(l, &l->events.v[i]))
            return etch_perf_loader_no_memory(l);
    if (!etch_cuts_open(l->recording) || !etch_cuts_end(l->recording))
        return etch_perf_loader_no_memory(l);
    etch_perf_images_drop_empty(l->recording);
    name_processes(l);
    etch_recording_fill_end(l->recording);
    return 0;
}
