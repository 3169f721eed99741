/* SPDX-License-Identifier: MIT */
/* The source `pt`: Intel PT through perf_event. As a recorder beside the native collector it is etch_flow_pt (flow.h);
 * without one it follows a set of processes, or a control group, that nobody traces. */
#ifndef ETCH_COLLECTOR_PT_H
#define ETCH_COLLECTOR_PT_H

#include "collector/flow.h"

/* Records options->pids or options->cgroup until all are gone, the time is up, or a signal ends it. */
int etch_pt_record_group(const struct etch_record_options *options, struct etch_record_summary *summary,
                         struct etch_error *err);

/* Whether this machine and user can record with Intel PT; why not, in `err`. */
bool etch_pt_usable(struct etch_error *err);

/* ---- Private to pt*.c ---- */

struct etch_pt;

/* What etch_flow_pt does, for several processes: a pid, or an open control group. */
int etch_pt_open(struct etch_pt **pt, const struct etch_record_options *options, const struct etch_flow_sink *sink,
                 struct etch_error *err);
int etch_pt_add_process(struct etch_pt *pt, pid_t pid, struct etch_error *err);
int etch_pt_add_cgroup(struct etch_pt *pt, int cgroup, struct etch_error *err);
void etch_pt_seed(struct etch_pt *pt, pid_t pid);
void etch_pt_begin(struct etch_pt *pt);
size_t etch_pt_poll(const struct etch_pt *pt, struct pollfd *fds, size_t max);
void etch_pt_drain(struct etch_pt *pt);
void etch_pt_stop(struct etch_pt *pt);
void etch_pt_close(struct etch_pt *pt);
bool etch_pt_alive(const struct etch_pt *pt);

#endif
