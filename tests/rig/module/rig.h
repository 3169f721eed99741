/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* An Intel PT PMU for a guest whose CPU has none: perf's core above is the real one, the packets are real, and below
 * stands the trap flag instead of silicon. Each user instruction of a traced task traps, and is written as a packet. */
#ifndef ETCH_RIG_H
#define ETCH_RIG_H

#include <linux/perf_event.h>

/* attr.config: bits of the CPU's RTIT_CTL, as /sys/bus/event_source/devices/intel_pt/format names them */
#define RIG_CONFIG_PT BIT_ULL(0)
#define RIG_CONFIG_CYC BIT_ULL(1)
#define RIG_CONFIG_MTC BIT_ULL(9)
#define RIG_CONFIG_TSC BIT_ULL(10)
#define RIG_CONFIG_NORETCOMP BIT_ULL(11)
#define RIG_CONFIG_BRANCH BIT_ULL(13)
#define RIG_CONFIG_MTC_PERIOD GENMASK_ULL(17, 14)
#define RIG_CONFIG_CYC_THRESHOLD GENMASK_ULL(22, 19)
#define RIG_CONFIG_PSB_PERIOD GENMASK_ULL(27, 24)

#define RIG_MTC_PERIODS 0x249u     /* periods 0, 3, 6, 9 */
#define RIG_CYC_THRESHOLDS 0x1fffu /* as Skylake */
#define RIG_PSB_PERIODS 0x3fu      /* 2 KiB to 64 KiB */
#define RIG_TSC_PER_CTC 64u        /* how slow the crystal is */
#define RIG_CBR 10                 /* core to bus ratio */
#define RIG_FILTERS_MAX 4

static inline unsigned rig_config_mtc_period(u64 config)
{
    return (unsigned)((config & RIG_CONFIG_MTC_PERIOD) >> 14);
}

static inline u64 rig_config_psb_bytes(u64 config)
{
    return 2048ull << ((config & RIG_CONFIG_PSB_PERIOD) >> 24);
}

/* What may be changed while the module runs, in /sys/module/etch_rig/parameters */
struct rig_knobs {
    unsigned ovf_every; /* instructions after which packets are lost; 0: never */
    unsigned ovf_lost;  /* instructions whose packets are lost then */
    unsigned pad;       /* PAD bytes after each instruction */
    unsigned psb_bytes; /* instead of the event's PSB period; 0: the event's */
    bool log;           /* every instruction goes into /dev/etch_rig_log */
    bool mtc;           /* the PMU offers MTC (when the module is loaded) */
    bool cyc;           /* and CYC */
    unsigned filters;   /* address filters that the PMU offers (when the module is loaded) */
};
extern struct rig_knobs rig_knobs;

/* One address filter, resolved: user code from `begin` to `end`, both within. */
struct rig_range {
    u64 begin, end;
    bool stops; /* tracing ends there, instead of being limited to it */
};

struct rig_filters {
    struct rig_range ranges[RIG_FILTERS_MAX];
    unsigned n;
};

/* pmu.c */
int rig_pmu_register(void);
void rig_pmu_unregister(void);
unsigned rig_pmu_live(void); /* events */

/* steps.c: what happens on this CPU. Interrupts are off in all of them. */
int rig_steps_start(struct perf_event *event); /* 0, or -ENOSPC without room for a byte */
void rig_steps_stop(struct perf_event *event);
bool rig_steps_busy(void); /* another event is on this CPU */
int rig_steps_register(void);
void rig_steps_unregister(void);

bool rig_steps_any(void); /* this CPU steps */

/* watch.c: watchpoints of code that steps */
int rig_watch_register(void);
void rig_watch_unregister(void);
void rig_watch_silence(void); /* while this CPU steps */
void rig_watch_restore(void);
bool rig_watch_any(void);
/* One instruction ran. */
void rig_watch_step(struct pt_regs *before, struct pt_regs *after);

/* log.c: what ran, by thread, told by the traps and not by the packets */
enum rig_log_kind { RIG_LOG_RAN, RIG_LOG_FAULTED };
int rig_log_register(void);
void rig_log_unregister(void);
void rig_log_add(u64 ip, enum rig_log_kind kind);

/* play.c: other bytes in place of the packets. False where none are set. */
int rig_play_register(void);
void rig_play_unregister(void);
bool rig_play(u8 *bytes, size_t n);

#endif
