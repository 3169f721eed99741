/* SPDX-License-Identifier: MIT */
/* Which processes and threads a trace is of, and what each had mapped when: built from perf's side-band, which comes
 * from each CPU in order but not between them. Records wait until those of the other CPUs must have come, then they are
 * applied by time and written to the bundle. */
#ifndef ETCH_COLLECTOR_PT_PROCESS_MAP_H
#define ETCH_COLLECTOR_PT_PROCESS_MAP_H

#include "collector/pt/sideband.h"
#include "collector/sink.h"

struct etch_process_map;

/* NULL where memory is short. */
struct etch_process_map *etch_process_map_new(const struct etch_sink *sink);
void etch_process_map_free(struct etch_process_map *map);

/* Leaves the threads of this process to another part, which knows more of them. */
void etch_process_map_leave(struct etch_process_map *map, pid_t pid);

/* A process that was there before the records: what /proc says of it now. */
void etch_process_map_seed(struct etch_process_map *map, pid_t pid);

/* Takes a record (all but AUX, LOST and switches) that happened at `tsc`. */
void etch_process_map_take(struct etch_process_map *map, const struct etch_side *side, uint64_t tsc);

/* Applies what waits, up to `time` of perf's clock; UINT64_MAX: all. */
void etch_process_map_apply(struct etch_process_map *map, uint64_t time);

/* Writes the threads that are still there, applied records only. */
void etch_process_map_conclude(struct etch_process_map *map);

/* Writes the mappings of all processes as they are now, applied records only. */
void etch_process_map_write(struct etch_process_map *map);

/* Another receiver from now on. */
void etch_process_map_redirect(struct etch_process_map *map, const struct etch_sink *sink);

/* True if a thread of the process has not ended. */
bool etch_process_map_has(const struct etch_process_map *map, pid_t pid);

/* How many processes and threads there were, those left to another part not counted. */
uint64_t etch_process_map_processes(const struct etch_process_map *map);
uint64_t etch_process_map_threads(const struct etch_process_map *map);

/* True if a known thread has not ended. */
bool etch_process_map_alive(const struct etch_process_map *map);

#endif
