/* SPDX-License-Identifier: MIT */
/* The source `pt`: Intel PT through perf_event. Beside the native collector, `pt` is the source etch_source_pt
 * (source.h). Without the native collector, `pt` follows a set of processes, or a control group, that nobody traces. */
#ifndef ETCH_COLLECTOR_PT_H
#define ETCH_COLLECTOR_PT_H

#include "collector/pt_events.h"
#include "collector/source.h"

/* Records options->pids or options->cgroup until all are gone, the time is up, or a signal ends it. */
int etch_pt_record_group(const struct etch_record_options *options, struct etch_record_summary *summary,
                         struct etch_error *err);

/* Returns true if this machine and user can record with Intel PT; else `err` has the reason. */
bool etch_pt_usable(struct etch_error *err);

/* ---- Private to pt*.c ---- */

struct etch_pt;

/* The parts of etch_source_pt, for several processes: each is added by pid, or by an open control group. */
int etch_pt_open(struct etch_pt **pt, const struct etch_record_options *options, const struct etch_sink *sink,
                 struct etch_error *err);
/* For tests and benches, which play the kernel: uses existing rings. The rings stay the caller's. */
int etch_pt_open_rings(struct etch_pt **pt, const struct etch_record_options *options, const struct etch_sink *sink,
                       const struct etch_pt_cpu *cpus, size_t n, struct etch_error *err);
int etch_pt_add_process(struct etch_pt *pt, pid_t pid, struct etch_error *err);
int etch_pt_add_cgroup(struct etch_pt *pt, int cgroup, struct etch_error *err);
void etch_pt_seed(struct etch_pt *pt, pid_t pid);
void etch_pt_begin(struct etch_pt *pt);
size_t etch_pt_poll(const struct etch_pt *pt, struct pollfd *fds, size_t max);
void etch_pt_drain(struct etch_pt *pt);
void etch_pt_stop(struct etch_pt *pt);
void etch_pt_close(struct etch_pt *pt);
bool etch_pt_alive(const struct etch_pt *pt);

/* For rings that are overwritten, and that go on after a failure. etch_pt_hold() keeps a copy of the rings of this
 * moment, and of what is known about the processes. etch_pt_snapshot() writes both to another receiver. Nothing is
 * drained in between. */
bool etch_pt_has(const struct etch_pt *pt, pid_t pid);
void etch_pt_hold(struct etch_pt *pt);
void etch_pt_snapshot(struct etch_pt *pt, const struct etch_sink *sink);

#endif
