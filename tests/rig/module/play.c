/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* /dev/etch_rig_play: bytes written here take the place of the packets, over and over, until the module is told to stop
 * by writing nothing but a newline. What a broken or hostile CPU would write reaches collectors through the real AUX
 * area. */
#include "rig.h"

#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/uaccess.h>

enum { PLAY_MAX = 1 << 16 };

static u8 stream[PLAY_MAX];
static size_t length; /* 0: nothing is played */
static atomic_t at = ATOMIC_INIT(0);

bool rig_play(u8 *bytes, size_t n)
{
    size_t size = READ_ONCE(length);
    unsigned from;

    if (!size)
        return false;
    from = (unsigned)atomic_fetch_add((int)n, &at);
    for (size_t i = 0; i < n; i++)
        bytes[i] = stream[(from + i) % size];
    return true;
}

/* One write is the whole stream. */
static ssize_t play_write(struct file *file, const char __user *from, size_t n, loff_t *offset)
{
    WRITE_ONCE(length, 0);
    if (n <= 1)
        return (ssize_t)n;
    if (n > sizeof(stream))
        return -E2BIG;
    if (copy_from_user(stream, from, n))
        return -EFAULT;
    atomic_set(&at, 0);
    WRITE_ONCE(length, n);
    return (ssize_t)n;
}

static const struct file_operations operations = {.owner = THIS_MODULE, .write = play_write};

static struct miscdevice device = {.minor = MISC_DYNAMIC_MINOR, .name = "etch_rig_play", .fops = &operations};

int rig_play_register(void)
{
    return misc_register(&device);
}

void rig_play_unregister(void)
{
    misc_deregister(&device);
}
