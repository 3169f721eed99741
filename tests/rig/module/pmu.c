/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* The PMU `intel_pt` as perf's core and its users see it: what it offers, what it refuses and with which error. */
#include "aux.h"
#include "rig.h"

#include <linux/fs.h>
#include <linux/module.h>
#include <linux/slab.h>

static atomic_t live = ATOMIC_INIT(0);

unsigned rig_pmu_live(void)
{
    return (unsigned)atomic_read(&live);
}

PMU_FORMAT_ATTR(pt, "config:0");
PMU_FORMAT_ATTR(cyc, "config:1");
PMU_FORMAT_ATTR(mtc, "config:9");
PMU_FORMAT_ATTR(tsc, "config:10");
PMU_FORMAT_ATTR(noretcomp, "config:11");
PMU_FORMAT_ATTR(branch, "config:13");
PMU_FORMAT_ATTR(mtc_period, "config:14-17");
PMU_FORMAT_ATTR(cyc_thresh, "config:19-22");
PMU_FORMAT_ATTR(psb_period, "config:24-27");

static struct attribute *format_attrs[] = {
    &format_attr_pt.attr,         &format_attr_cyc.attr,
    &format_attr_mtc.attr,        &format_attr_tsc.attr,
    &format_attr_noretcomp.attr,  &format_attr_branch.attr,
    &format_attr_mtc_period.attr, &format_attr_cyc_thresh.attr,
    &format_attr_psb_period.attr, NULL,
};
static const struct attribute_group format_group = {.name = "format", .attrs = format_attrs};

#define CAP(cap, value)                                                                                                \
    static ssize_t cap_##cap##_show(struct device *d, struct device_attribute *a, char *page)                          \
    {                                                                                                                  \
        return sysfs_emit(page, "%x\n", (unsigned)(value));                                                            \
    }                                                                                                                  \
    static struct device_attribute cap_##cap = {.attr = {.name = #cap, .mode = 0444}, .show = cap_##cap##_show};

CAP(max_subleaf, 1)
CAP(cr3_filtering, 0)
CAP(psb_cyc, 1)
CAP(ip_filtering, rig_knobs.filters != 0)
CAP(mtc, rig_knobs.mtc)
CAP(ptwrite, 0)
CAP(power_event_trace, 0)
CAP(event_trace, 0)
CAP(tnt_disable, 0)
CAP(topa_output, 1)
CAP(topa_multiple_entries, 1)
CAP(single_range_output, 0)
CAP(output_subsys, 0)
CAP(payloads_lip, 0)
CAP(num_address_ranges, rig_knobs.filters)
CAP(mtc_periods, rig_knobs.mtc ? RIG_MTC_PERIODS : 0)
CAP(cycle_thresholds, rig_knobs.cyc ? RIG_CYC_THRESHOLDS : 0)
CAP(psb_periods, RIG_PSB_PERIODS)

static struct attribute *cap_attrs[] = {
    &cap_max_subleaf.attr,
    &cap_cr3_filtering.attr,
    &cap_psb_cyc.attr,
    &cap_ip_filtering.attr,
    &cap_mtc.attr,
    &cap_ptwrite.attr,
    &cap_power_event_trace.attr,
    &cap_event_trace.attr,
    &cap_tnt_disable.attr,
    &cap_topa_output.attr,
    &cap_topa_multiple_entries.attr,
    &cap_single_range_output.attr,
    &cap_output_subsys.attr,
    &cap_payloads_lip.attr,
    &cap_num_address_ranges.attr,
    &cap_mtc_periods.attr,
    &cap_cycle_thresholds.attr,
    &cap_psb_periods.attr,
    NULL,
};
static const struct attribute_group caps_group = {.name = "caps", .attrs = cap_attrs};

static ssize_t max_nonturbo_ratio_show(struct device *d, struct device_attribute *a, char *page)
{
    return sysfs_emit(page, "%x\n", RIG_CBR);
}
static DEVICE_ATTR_RO(max_nonturbo_ratio);

static ssize_t tsc_art_ratio_show(struct device *d, struct device_attribute *a, char *page)
{
    return sysfs_emit(page, "%u:1\n", RIG_TSC_PER_CTC);
}
static DEVICE_ATTR_RO(tsc_art_ratio);

static struct attribute *timing_attrs[] = {&dev_attr_max_nonturbo_ratio.attr, &dev_attr_tsc_art_ratio.attr, NULL};
static const struct attribute_group timing_group = {.attrs = timing_attrs};

static const struct attribute_group *attr_groups[] = {&format_group, &caps_group, &timing_group, NULL};

static bool offers(unsigned bitmap, u64 value)
{
    return value < 32 && bitmap >> value & 1;
}

static bool config_valid(u64 config)
{
    u64 known = RIG_CONFIG_PT | RIG_CONFIG_TSC | RIG_CONFIG_NORETCOMP | RIG_CONFIG_BRANCH | RIG_CONFIG_PSB_PERIOD;

    if (rig_knobs.mtc)
        known |= RIG_CONFIG_MTC | RIG_CONFIG_MTC_PERIOD;
    if (rig_knobs.cyc)
        known |= RIG_CONFIG_CYC | RIG_CONFIG_CYC_THRESHOLD;
    if (config & ~known)
        return false;
    /* Branches are always traced; whoever says `pt` says `branch` too. */
    if (!(config & RIG_CONFIG_PT) != !(config & RIG_CONFIG_BRANCH))
        return false;
    if (config & RIG_CONFIG_MTC && !offers(RIG_MTC_PERIODS, rig_config_mtc_period(config)))
        return false;
    return offers(RIG_PSB_PERIODS, (config & RIG_CONFIG_PSB_PERIOD) >> 24);
}

static void event_destroy(struct perf_event *event)
{
    kfree(event->hw.addr_filters);
    event->hw.addr_filters = NULL;
    atomic_dec(&live);
}

static int event_init(struct perf_event *event)
{
    struct rig_filters *filters;

    if (event->attr.type != event->pmu->type)
        return -ENOENT;
    if (!config_valid(event->attr.config))
        return -EINVAL;
    if (!event->attr.exclude_kernel || event->attr.exclude_user)
        return -EOPNOTSUPP; /* the trap flag stops at the kernel's door */
    filters = kzalloc(sizeof(*filters), GFP_KERNEL);
    if (!filters)
        return -ENOMEM;
    if (event->parent && event->parent->hw.addr_filters)
        memcpy(filters, event->parent->hw.addr_filters, sizeof(*filters));
    event->hw.addr_filters = filters;
    event->destroy = event_destroy;
    atomic_inc(&live);
    return 0;
}

static void event_start(struct perf_event *event, int flags)
{
    event->hw.state = rig_steps_start(event) < 0 ? PERF_HES_STOPPED : 0;
}

static void event_stop(struct perf_event *event, int flags)
{
    rig_steps_stop(event);
    event->hw.state = PERF_HES_STOPPED;
}

static int event_add(struct perf_event *event, int flags)
{
    if (rig_steps_busy())
        return -EBUSY;
    event->hw.state = PERF_HES_STOPPED;
    if (!(flags & PERF_EF_START))
        return 0;
    event_start(event, 0);
    return event->hw.state == PERF_HES_STOPPED ? -EINVAL : 0;
}

static void event_del(struct perf_event *event, int flags)
{
    event_stop(event, PERF_EF_UPDATE);
}

static void event_read(struct perf_event *event)
{
}

/* As the real driver refuses: no `start` filter, no single address, no more than the CPU has. */
static int filters_validate(struct list_head *list)
{
    struct perf_addr_filter *filter;
    unsigned n = 0;

    list_for_each_entry(filter, list, entry)
    {
        if (!filter->size || filter->action == PERF_ADDR_FILTER_ACTION_START)
            return -EOPNOTSUPP;
        if (!filter->path.dentry)
            return -EINVAL; /* kernel code */
        if (++n > rig_knobs.filters)
            return -EOPNOTSUPP;
    }
    return 0;
}

static void filters_sync(struct perf_event *event)
{
    struct perf_addr_filters_head *head = perf_event_addr_filters(event);
    struct perf_addr_filter_range *where = event->addr_filter_ranges;
    struct rig_filters *filters = event->hw.addr_filters;
    struct perf_addr_filter *filter;
    unsigned n = 0;

    list_for_each_entry(filter, &head->list, entry)
    {
        struct rig_range *range = &filters->ranges[n];

        /* Not mapped yet: an empty range, which no address is in. */
        *range = (struct rig_range){1, 0, filter->action == PERF_ADDR_FILTER_ACTION_STOP};
        if (where[n].start) {
            range->begin = where[n].start;
            range->end = where[n].start + where[n].size - 1;
        }
        n++;
    }
    filters->n = n;
}

static struct pmu pmu = {
    .module = THIS_MODULE,
    .capabilities = PERF_PMU_CAP_EXCLUSIVE | PERF_PMU_CAP_ITRACE,
    .attr_groups = attr_groups,
    .task_ctx_nr = perf_sw_context,
    .event_init = event_init,
    .add = event_add,
    .del = event_del,
    .start = event_start,
    .stop = event_stop,
    .read = event_read,
    .setup_aux = rig_aux_setup,
    .free_aux = rig_aux_free,
    .addr_filters_validate = filters_validate,
    .addr_filters_sync = filters_sync,
};

int rig_pmu_register(void)
{
    pmu.nr_addr_filters = rig_knobs.filters;
    return perf_pmu_register(&pmu, "intel_pt", -1);
}

void rig_pmu_unregister(void)
{
    perf_pmu_unregister(&pmu);
}
