/* SPDX-License-Identifier: MIT */
/* The control block that etch and the plugin share; see layout.h. */
#include "collector/vpt/vpt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FLOW_SIZE (1u << 20)
#define PSB_PERIOD 8192u

int etch_vpt_control_make(struct vpt *v, struct etch_error *err)
{
    int cause, fd = openat(v->folder.fd, VPT_CONTROL, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    cause = fd < 0 ? errno : posix_fallocate(fd, 0, sizeof(*v->control));
    if (!cause) {
        v->control_mapping = etch_guarded_map(fd, sizeof(*v->control), true);
        cause = v->control_mapping ? 0 : errno;
    }
    if (fd >= 0)
        close(fd);
    if (cause) {
        etch_error_set_errno(err, cause, "cannot make shared memory in %s", v->folder.path);
        return etch_error_advise(err, "free some of /dev/shm");
    }
    v->control = etch_guarded_at(v->control_mapping);
    return 0;
}

static int find_watch(struct vpt *v, size_t i, struct etch_error *err)
{
    struct etch_vpt_watch *to = &v->control->watches[i];
    struct etch_place *p = &v->watches[i];
    const char *own = v->interpreter[0] ? v->interpreter : v->program;
    uint64_t size;

    if (etch_place_parse(p, v->options->watches[i], err) < 0)
        return -1;
    if (v->options->watch_names[i])
        snprintf(p->text, sizeof(p->text), "%s", v->options->watch_names[i]);
    if (etch_place_suits_emulator(p, err) < 0 ||
        etch_place_find_in_file(p, p->site ? v->subject : own, &p->address, &size, err) < 0)
        return -1;
    p->size = (uint32_t)size;
    if (p->site)
        to->flags = VPT_WATCH_SITE | (p->here ? VPT_WATCH_HERE : 0);
    else if (p->name[0])
        to->flags = v->elf.dynamic ? VPT_WATCH_IN_PROGRAM : 0;
    to->address = p->address;
    to->size = p->size;
    to->flags |= (p->reads ? VPT_WATCH_READS : 0) | (p->writes ? VPT_WATCH_WRITES : 0);
    return 0;
}

static int find_watches(struct vpt *v, struct etch_error *err)
{
    for (size_t i = 0; i < v->options->n_watches; i++)
        if (find_watch(v, i, err) < 0)
            return -1;
    v->control->n_watches = (uint32_t)v->options->n_watches;
    return 0;
}

static uint64_t power_of_two(uint64_t at_least)
{
    uint64_t size = 16384;

    while (size < at_least)
        size *= 2;
    return size;
}

/* The program whose instructions are watched. */
static int find_subject(struct vpt *v, struct etch_error *err)
{
    struct etch_vpt_control *c = v->control;
    const char *subject = v->options->subject;
    struct etch_elf elf = v->elf;
    char path[4096];

    snprintf(path, sizeof(path), "%s", v->interpreter[0] ? v->interpreter : v->program);
    if (subject && (!realpath(subject, path) || etch_elf_read(&elf, path, err) < 0))
        return etch_error_set_errno(err, errno, "cannot read %s", subject);
    c->program_vaddr = elf.file_vaddr;
    c->program_size = elf.end_vaddr - elf.file_vaddr;
    snprintf(v->subject, sizeof(v->subject), "%s", path);
    memcpy(c->program, v->subject, sizeof(c->program));
    return 0;
}

int etch_vpt_control_fill(struct vpt *v, struct etch_error *err)
{
    const struct etch_record_options *o = v->options;
    struct etch_vpt_control *c = v->control;
    char truth[4096];

    c->collector = getpid();
    c->flow_size = v->flow_size = o->snapshot ? power_of_two(o->snapshot) : FLOW_SIZE;
    c->event_size = VPT_EVENT_RING;
    c->max_rings = o->max_rings;
    c->psb_period = o->snapshot && o->snapshot < (uint64_t)16 * PSB_PERIOD ? 2048 : PSB_PERIOD;
    c->flags = (o->snapshot ? VPT_SNAPSHOT : 0) | (o->truth ? VPT_TRUTH : 0);
    if (find_subject(v, err) < 0)
        return -1;
    if (o->truth) {
        if (!realpath(o->truth, truth))
            return etch_error_set_errno(err, errno, "cannot write the truth log to %s", o->truth);
        snprintf(c->truth, sizeof(c->truth), "%s", truth);
    }
    if (find_watches(v, err) < 0)
        return -1;
    c->magic = VPT_MAGIC;
    return 0;
}

/* The control block as a dead etch left it, believed as far as it makes sense. */
int etch_vpt_control_read(struct vpt *v, struct etch_record_options *o)
{
    int fd = openat(v->folder.fd, VPT_CONTROL, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd >= 0)
        v->control_mapping = etch_guarded_map(fd, sizeof(*v->control), false);
    if (fd >= 0)
        close(fd);
    if (!v->control_mapping)
        return -1;
    v->control = etch_guarded_at(v->control_mapping);
    v->flow_size = v->control->flow_size;
    if (v->control->magic != VPT_MAGIC || v->flow_size < 16384 || v->flow_size > 1u << 30 ||
        (v->flow_size & (v->flow_size - 1)))
        return -1;
    o->snapshot = v->control->flags & VPT_SNAPSHOT ? v->flow_size : 0;
    o->n_watches = v->control->n_watches < ETCH_RECORD_MAX_WATCHES ? v->control->n_watches : ETCH_RECORD_MAX_WATCHES;
    for (size_t i = 0; i < o->n_watches; i++) {
        o->watches[i] = "";
        v->armed[i] = true;
        v->watches[i].here = v->control->watches[i].flags & VPT_WATCH_HERE;
        v->watches[i].site = v->control->watches[i].flags & VPT_WATCH_SITE;
        v->watches[i].address = v->control->watches[i].address;
    }
    return 0;
}
