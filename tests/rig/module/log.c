/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* /dev/etch_rig_log: each instruction of a traced thread in the order of its CPU, as 16 bytes: address, thread, kind.
 * Reading gives what is there, writing anything empties it. When it is full it says so and stays as it is. */
#include "rig.h"

#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

struct entry {
    u64 ip;
    u32 tid;
    u32 kind;
};

enum { LOG_ENTRIES = 24 << 20 >> 3 };

static struct entry *entries;
static atomic_t used = ATOMIC_INIT(0);

void rig_log_add(u64 ip, enum rig_log_kind kind)
{
    int at;

    if (!rig_knobs.log)
        return;
    at = atomic_fetch_add(1, &used);
    if (at < LOG_ENTRIES)
        entries[at] = (struct entry){ip, (u32)task_pid_nr(current), kind};
    else
        atomic_dec(&used);
    WARN_ONCE(at >= LOG_ENTRIES, "etch_rig: the log is full\n");
}

static ssize_t log_read(struct file *file, char __user *to, size_t n, loff_t *at)
{
    return simple_read_from_buffer(to, n, at, entries, (size_t)min(atomic_read(&used), LOG_ENTRIES) * sizeof(*entries));
}

static ssize_t log_write(struct file *file, const char __user *from, size_t n, loff_t *at)
{
    atomic_set(&used, 0);
    return (ssize_t)n;
}

static const struct file_operations operations = {
    .owner = THIS_MODULE,
    .read = log_read,
    .write = log_write,
    .llseek = default_llseek,
};

static struct miscdevice device = {.minor = MISC_DYNAMIC_MINOR, .name = "etch_rig_log", .fops = &operations};

int rig_log_register(void)
{
    int error;

    entries = vzalloc(array_size(LOG_ENTRIES, sizeof(*entries)));
    if (!entries)
        return -ENOMEM;
    error = misc_register(&device);
    if (error)
        vfree(entries);
    return error;
}

void rig_log_unregister(void)
{
    misc_deregister(&device);
    vfree(entries);
}
