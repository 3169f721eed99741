/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
#include "rig.h"
#include "aux.h"

#include <linux/module.h>

struct rig_knobs rig_knobs = {.ovf_lost = 100, .filters = 2};

module_param_named(ovf_every, rig_knobs.ovf_every, uint, 0644);
MODULE_PARM_DESC(ovf_every, "instructions after which packets are lost (OVF); 0: never");
module_param_named(ovf_lost, rig_knobs.ovf_lost, uint, 0644);
MODULE_PARM_DESC(ovf_lost, "instructions whose packets are lost then");
module_param_named(pad, rig_knobs.pad, uint, 0644);
MODULE_PARM_DESC(pad, "PAD bytes after each instruction, for volume");
module_param_named(psb_bytes, rig_knobs.psb_bytes, uint, 0644);
MODULE_PARM_DESC(psb_bytes, "bytes from PSB to PSB, instead of the event's period; 0: the event's");
module_param_named(log, rig_knobs.log, bool, 0644);
MODULE_PARM_DESC(log, "every instruction goes into /dev/etch_rig_log");
module_param_named(mtc, rig_knobs.mtc, bool, 0444);
MODULE_PARM_DESC(mtc, "offer MTC packets");
module_param_named(cyc, rig_knobs.cyc, bool, 0444);
MODULE_PARM_DESC(cyc, "offer CYC packets, an instruction being a cycle");
module_param_named(filters, rig_knobs.filters, uint, 0444);
MODULE_PARM_DESC(filters, "address filters of the PMU, up to 4");

/* What is alive, to see what leaks */
static int show_live(char *page, const struct kernel_param *parameter)
{
    return sysfs_emit(page, "events %u buffers %u\n", rig_pmu_live(), rig_aux_live());
}
static const struct kernel_param_ops live_ops = {.get = show_live};
module_param_cb(live, &live_ops, NULL, 0444);

static int __init rig_init(void)
{
    int error;

    rig_knobs.filters = min(rig_knobs.filters, (unsigned)RIG_FILTERS_MAX);
    error = rig_log_register();
    if (error)
        return error;
    error = rig_play_register();
    if (error)
        goto no_play;
    error = rig_watch_register();
    if (error)
        goto no_watch;
    error = rig_steps_register();
    if (error)
        goto no_steps;
    error = rig_pmu_register();
    if (error)
        goto no_pmu;
    return 0;
no_pmu:
    rig_steps_unregister();
no_steps:
    rig_watch_unregister();
no_watch:
    rig_play_unregister();
no_play:
    rig_log_unregister();
    return error;
}

static void __exit rig_exit(void)
{
    rig_pmu_unregister();
    rig_steps_unregister();
    rig_watch_unregister();
    rig_play_unregister();
    rig_log_unregister();
}

module_init(rig_init);
module_exit(rig_exit);
MODULE_DESCRIPTION("Intel PT by the trap flag, to test collectors in a guest");
MODULE_LICENSE("Dual MIT/GPL");
