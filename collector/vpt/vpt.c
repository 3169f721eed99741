/* SPDX-License-Identifier: MIT */
/* The source `vpt`, etch's half: makes the shared memory, starts QEMU with the plugin, empties the rings while the
 * program runs, and finds what is left in them when it is gone. The other half is in vpt/. */
#include "binary/object.h"
#include "collector/folder.h"
#include "collector/session/guarded.h"
#include "collector/session/process.h"
#include "collector/source.h"
#include "collector/sync/exception.h"
#include "collector/sync/preload.h"
#include "collector/vpt/layout.h"
#include "collector/vpt/recover.h"
#include "collector/vpt/tail.h"
#include "collector/vpt_find.h"

#include "base/array.h"
#include "proto/frame.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FLOW_SIZE (1u << 20)
#define EVENT_SIZE (128u << 10)
#define PSB_PERIOD 8192u
#define WRITE_AT_LEAST (128u << 10) /* smaller pieces wait, so that records are not tiny */
#define ACCESSES_AT_ONCE 4096u
#define MAX_THREADS 1000000u
#define SYNCS_AT_ONCE 256u

enum slot_state { SLOT_AWAITED, SLOT_OPEN, SLOT_DONE };

/* One guest thread's shared memory. The program can write it, so what counts is here, taken once. */
struct slot {
    enum slot_state state;
    struct etch_guarded *mapping;
    struct vpt_thread *shared;
    const uint8_t *flow, *events;
    uint32_t pid, tid;
    uint64_t taken;       /* bytes of flow in the bundle */
    uint64_t event_taken; /* bytes of events */
    bool damaged;
};

struct child {
    uint32_t tid, parent;
};

struct vpt {
    struct etch_folder folder;
    char plugin[4096], qemu[4096];
    struct etch_guarded *control_mapping;
    struct vpt_control *control; /* written by the program too: what etch relies on is beside it */
    uint64_t flow_size;
    const struct etch_vpt_known *known; /* in a recovery; else NULL */
    char subject[VPT_MAX_PATH];         /* the program whose instructions are watched */
    ETCH_ARRAY(struct slot) slots;
    ETCH_ARRAY(struct child) children;
    ETCH_ARRAY(uint32_t) processes;
    ETCH_ARRAY(uint32_t) subjects; /* processes that run the program in question */
    struct etch_record_watch watches[ETCH_RECORD_MAX_WATCHES];
    bool armed[ETCH_RECORD_MAX_WATCHES];
    Etch__Access accesses[ACCESSES_AT_ONCE];
    Etch__Access *access_list[ACCESSES_AT_ONCE];
    size_t n_accesses;
    struct etch_sync_reader *sync; /* NULL: no synchronisation events */
    struct etch_sync_words words;
    Etch__Sync syncs[SYNCS_AT_ONCE];
    size_t n_syncs;
    struct etch_error sync_error;
    bool sync_failed;
    _Alignas(8) uint8_t event[EVENT_SIZE / 2]; /* one, in a row */
    uint32_t gaps;
};

static int out_of_memory(struct etch_error *err)
{
    return etch_error_set_errno(err, ENOMEM, "cannot record");
}

static int make_control(struct vpt *v, struct etch_error *err)
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

/* ---- Getting ready ---- */

static int find_parts(struct vpt *v, struct etch_error *err)
{
    if (!etch_vpt_find_qemu(v->qemu, sizeof(v->qemu))) {
        etch_error_set(err, "cannot record with vpt: there is no qemu-x86_64 here");
        return etch_error_advise(err, "apt-get install qemu-user, or etch cc --record and --source soft");
    }
    if (!etch_vpt_find_plugin(v->plugin, sizeof(v->plugin))) {
        etch_error_set(err, "cannot record with vpt: there is no plugin %s", v->plugin[0] ? v->plugin : "etch-vpt.so");
        return etch_error_advise(err, "ETCH_VPT_PLUGIN=PATH, or install etch whole");
    }
    return 0;
}

static int find_watches(struct vpt *v, const struct etch_recorder *r, struct etch_error *err)
{
    const struct etch_record_options *o = r->options;

    for (size_t i = 0; i < o->n_watches; i++) {
        struct etch_record_watch *w = &v->watches[i];
        struct vpt_watch *to = &v->control->watches[i];
        uint64_t size = 0;

        if (etch_record_watch_parse(w, o->watches[i], err) < 0)
            return -1;
        if (w->name[0]) {
            if (etch_elf_variable(r->interpreter[0] ? r->interpreter : r->program, w->name, &w->address, &size, err) <
                0)
                return -1;
            if (!w->size)
                w->size = size;
            to->flags = r->elf.dynamic ? VPT_WATCH_IN_PROGRAM : 0;
        }
        if (w->site)
            to->flags = VPT_WATCH_SITE | (w->here ? VPT_WATCH_HERE : 0);
        if (!w->size || w->size > UINT32_MAX) {
            etch_error_set(err, "cannot watch %s: its size is not known", o->watches[i]);
            return etch_error_advise(err, "%s:LENGTH", w->name);
        }
        to->address = w->address;
        to->size = (uint32_t)w->size;
        to->flags |= (w->reads ? VPT_WATCH_READS : 0) | (w->writes ? VPT_WATCH_WRITES : 0);
    }
    v->control->n_watches = (uint32_t)o->n_watches;
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
static int find_subject(const struct etch_recorder *r, struct vpt *v, struct etch_error *err)
{
    struct vpt_control *c = v->control;
    const char *subject = r->options->subject;
    struct etch_elf elf = r->elf;
    char path[4096];

    snprintf(path, sizeof(path), "%s", r->interpreter[0] ? r->interpreter : r->program);
    if (subject && (!realpath(subject, path) || etch_elf_read(&elf, path, err) < 0))
        return etch_error_set_errno(err, errno, "cannot read %s", subject);
    c->program_vaddr = elf.file_vaddr;
    c->program_size = elf.end_vaddr - elf.file_vaddr;
    snprintf(v->subject, sizeof(v->subject), "%s", path);
    memcpy(c->program, v->subject, sizeof(c->program));
    return 0;
}

static int fill_control(struct vpt *v, const struct etch_recorder *r, struct etch_error *err)
{
    const struct etch_record_options *o = r->options;
    struct vpt_control *c = v->control;
    char truth[4096];

    c->collector = getpid();
    c->flow_size = v->flow_size = o->snapshot ? power_of_two(o->snapshot) : FLOW_SIZE;
    c->event_size = EVENT_SIZE;
    c->max_rings = o->max_rings;
    c->psb_period = o->snapshot && o->snapshot < (uint64_t)16 * PSB_PERIOD ? 2048 : PSB_PERIOD;
    c->flags = (o->snapshot ? VPT_SNAPSHOT : 0) | (o->truth ? VPT_TRUTH : 0);
    if (find_subject(r, v, err) < 0)
        return -1;
    if (o->truth) {
        if (!realpath(o->truth, truth))
            return etch_error_set_errno(err, errno, "cannot write the truth log to %s", o->truth);
        snprintf(c->truth, sizeof(c->truth), "%s", truth);
    }
    if (find_watches(v, r, err) < 0)
        return -1;
    c->magic = VPT_MAGIC;
    return 0;
}

/* Only a program that loads libraries takes one more; QEMU's option for the environment knows no way to write a comma.
 * A C++ program takes the library also where no synchronisation is asked for: its exceptions are not in the control
 * flow.
 */
static int open_sync(struct vpt *v, const struct etch_recorder *r, struct etch_error *err)
{
    struct etch_object *object = NULL;
    struct etch_error ignored;
    char library[4096];
    bool good = !r->interpreter[0] && etch_object_open(&object, r->program, &ignored) == 0 &&
                etch_object_is_dynamic(object) &&
                (r->options->sync || etch_object_imports(object, "__gxx_personality_v0")) &&
                etch_sync_library_find(library, sizeof(library)) && !strpbrk(library, ",: \t");

    etch_object_free(object);
    if (!good)
        return 0;
    if (etch_sync_reader_new(&v->sync, err) < 0)
        return -1;
    etch_sync_reader_emulated(v->sync);
    if (!r->options->sync)
        etch_sync_reader_only_throws(v->sync);
    etch_sync_words_make(&v->words, library, v->sync);
    return 0;
}

static int vpt_open(struct etch_recorder *r, struct etch_error *err)
{
    struct vpt *v = calloc(1, sizeof(*v));

    if (!v)
        return out_of_memory(err);
    r->state = v;
    v->folder = ETCH_FOLDER_NONE;
    for (size_t i = 0; i < ACCESSES_AT_ONCE; i++)
        v->access_list[i] = &v->accesses[i];
    if (find_parts(v, err) < 0 || etch_folder_make(&v->folder, err) < 0 || make_control(v, err) < 0 ||
        fill_control(v, r, err) < 0 || open_sync(v, r, err) < 0)
        return -1;
    return 0;
}

/* In the child. */
static void enter_sync(struct vpt *v)
{
    if (!v->sync)
        return;
    putenv(v->words.preload);
    putenv(v->words.sync);
    if (v->words.before[0])
        putenv(v->words.before);
}

/* The target's LD_ variables are for its own dynamic linker, not for QEMU's: they go in by QEMU's option instead. */
static size_t move_environment(const char **argv, size_t n, size_t limit)
{
    extern char **environ;
    char **to = environ;

    for (char **from = environ; *from; from++) {
        if (strncmp(*from, "LD_", 3) == 0 && n + 2 < limit) {
            argv[n++] = "-E";
            argv[n++] = *from;
        } else {
            *to++ = *from;
        }
    }
    *to = NULL;
    return n;
}

/* QEMU's core files are not the kernel's and land in the program's folder; and with their size limited to 0 it always
 * says that a signal kills the program, which the plugin listens for. */
static void vpt_launch(struct etch_recorder *r)
{
    struct etch_folder_story story = {.source = "vpt", .pid = (uint32_t)getpid()};
    struct vpt *v = r->state;
    struct rlimit no_core = {0, 0};
    static char option[8300];
    bool script = r->interpreter[0];
    size_t n = 0, given = 0, limit;
    const char **argv;

    while (r->options->argv[given])
        given++;
    limit = given + 256;
    argv = calloc(limit, sizeof(*argv));
    if (!argv)
        return;
    sprintf(option + etch_vpt_plugin_option(v->plugin, option, 8200), ",dir=%s", v->folder.path);
    argv[n++] = v->qemu;
    argv[n++] = "-plugin";
    argv[n++] = option;
    enter_sync(v);
    n = move_environment(argv, n, limit - given - 8);
    argv[n++] = "-0";
    argv[n++] = script ? r->interpreter : r->options->argv[0];
    argv[n++] = script ? r->interpreter : r->program;
    if (script && r->interpreter_argument[0])
        argv[n++] = r->interpreter_argument;
    if (script)
        argv[n++] = r->program;
    for (size_t i = 1; i < given; i++)
        argv[n++] = r->options->argv[i];
    if (getrlimit(RLIMIT_CORE, &no_core) == 0) {
        no_core.rlim_cur = 0;
        setrlimit(RLIMIT_CORE, &no_core);
    }
    snprintf(story.output, sizeof(story.output), "%s", r->options->output);
    etch_folder_tell(&v->folder, &story);
    etch_guarded_forget();
    execv(v->qemu, (char **)(uintptr_t)argv);
    free((void *)argv);
}

/* ---- Events ---- */

static int flush_accesses(struct etch_recorder *r, struct etch_error *err)
{
    struct vpt *v = r->state;
    Etch__Accesses accesses = ETCH__ACCESSES__INIT;

    accesses.n_accesses = v->n_accesses;
    accesses.accesses = v->access_list;
    v->n_accesses = 0;
    return etch_recorder_write_accesses(r, &accesses, err);
}

static int take_access(struct etch_recorder *r, const struct slot *s, const struct vpt_access *from,
                       struct etch_error *err)
{
    struct vpt *v = r->state;
    Etch__Access *a = &v->accesses[v->n_accesses];

    if (v->known && etch_vpt_known_access(v->known, s->tid, from->event.tsc))
        return 0;
    v->n_accesses++;
    etch__access__init(a);
    a->tsc = from->event.tsc;
    a->cpu = from->cpu;
    a->tid = s->tid;
    a->ip = from->ip;
    a->address = from->address;
    a->size = from->size;
    a->write = from->flags & VPT_ACCESS_WRITE;
    a->read = (from->flags & VPT_ACCESS_READ) != 0;
    /* Numbers begin at 1; 0 is an access that stands for itself, of which others to the same place are not told. */
    a->watch = from->watch < r->options->n_watches && v->watches[from->watch].here ? 0 : from->watch + 1;
    a->since = from->since;
    a->caller = from->caller;
    if (from->flags & VPT_ACCESS_VALUE) {
        a->known_case = ETCH__ACCESS__KNOWN_VALUE;
        a->value = from->value;
    }
    return v->n_accesses == ACCESSES_AT_ONCE ? flush_accesses(r, err) : 0;
}

static int take_image(struct etch_recorder *r, const struct slot *s, const struct vpt_image *from, uint32_t size,
                      struct etch_error *err)
{
    struct vpt *v = r->state;
    Etch__Image image = ETCH__IMAGE__INIT;
    struct etch_error ignored;
    struct etch_elf elf;
    char path[VPT_MAX_PATH + 1] = "";

    if (size < sizeof(*from) || from->path_size > VPT_MAX_PATH ||
        (uint64_t)from->path_size + from->code_size > size - sizeof(*from))
        return 0;
    memcpy(path, from + 1, from->path_size);
    if (strcmp(path, v->subject) == 0 && !etch_array_push(&v->subjects, s->pid))
        return out_of_memory(err);
    image.pid = s->pid;
    image.start = from->start;
    image.size = from->size;
    image.file_offset = from->file_offset;
    image.path = path;
    image.prot = 1 | 4;
    image.mapped_tsc = from->mapped_tsc;
    image.unmapped_tsc = from->unmapped_tsc;
    image.code.data = (uint8_t *)(uintptr_t)(from + 1) + from->path_size;
    image.code.len = from->code_size;
    if (path[0] && etch_elf_read(&elf, path, &ignored) == 0) {
        image.build_id.data = elf.build_id;
        image.build_id.len = elf.build_id_size;
    }
    return etch_recorder_write_image(r, &image, err);
}

/* A location that the instruction of a site was seen to use. */
static int take_found(struct etch_recorder *r, const struct vpt_note *note, struct etch_error *err)
{
    const struct vpt *v = r->state;
    Etch__Watch watch = ETCH__WATCH__INIT;
    uint32_t site = note->flags >> 8;

    if (site >= r->options->n_watches || note->value > UINT32_MAX)
        return 0;
    watch.id = (uint32_t)note->number + 1;
    watch.name = (char *)(uintptr_t)r->options->watches[site];
    watch.address = note->address;
    watch.size = (uint32_t)note->value;
    watch.reads = watch.writes = true;
    watch.armed_tsc = note->event.tsc;
    watch.emulated = true;
    watch.site = v->watches[site].address;
    if (note->number == UINT32_MAX) {
        watch.id = 0;
        watch.skipped = true;
        watch.skip_reason = (char *)(uintptr_t)"too many locations of sites";
    }
    return etch_recorder_write_watch(r, &watch, err);
}

static int take_armed(struct etch_recorder *r, const struct vpt_note *note, struct etch_error *err)
{
    struct vpt *v = r->state;
    Etch__Watch watch = ETCH__WATCH__INIT;
    const struct etch_record_watch *w;

    if (note->flags & 2)
        return take_found(r, note, err);
    if (note->number >= r->options->n_watches || v->armed[note->number])
        return 0;
    v->armed[note->number] = true;
    w = &v->watches[note->number];
    watch.id = (uint32_t)note->number + 1;
    watch.name = (char *)(uintptr_t)r->options->watches[note->number];
    watch.address = note->address;
    watch.size = (uint32_t)w->size;
    watch.reads = w->reads;
    watch.writes = w->writes;
    watch.armed_tsc = note->event.tsc;
    watch.emulated = true;
    if (note->flags & 1) {
        watch.initially_case = ETCH__WATCH__INITIALLY_INITIAL_VALUE;
        watch.initial_value = note->value;
    }
    return etch_recorder_write_watch(r, &watch, err);
}

static int take_exec(struct etch_recorder *r, const struct slot *s, const struct vpt_note *note, uint32_t size,
                     struct etch_error *err)
{
    Etch__Loss loss = ETCH__LOSS__INIT;
    char detail[VPT_MAX_PATH + 64];
    int length = note->text_size <= size - sizeof(*note) ? (int)note->text_size : 0;

    if (note->number) /* its own process records it */
        return 0;
    snprintf(detail, sizeof(detail), "%.*s runs outside of QEMU, not recorded", length, (const char *)(note + 1));
    loss.tid = s->tid;
    loss.tsc = note->event.tsc;
    loss.events = 1;
    loss.detail = detail;
    return etch_recorder_write_loss(r, &loss, err);
}

static int take_gap(struct etch_recorder *r, const struct slot *s, const struct vpt_note *note, struct etch_error *err)
{
    struct vpt *v = r->state;
    Etch__Loss loss = ETCH__LOSS__INIT;

    loss.cause = ETCH__LOSS_CAUSE__LOSS_OVERFLOW;
    loss.stream = (uint32_t)(s - v->slots.v);
    loss.tid = s->tid;
    loss.tsc = note->event.tsc;
    loss.events = 1;
    loss.detail = (char *)(uintptr_t)"control flow that the plugin could not follow";
    return etch_recorder_write_loss(r, &loss, err);
}

static bool is_subject(const struct vpt *v, uint32_t pid)
{
    for (size_t i = 0; i < v->subjects.n; i++)
        if (v->subjects.v[i] == pid)
            return true;
    return false;
}

static bool is_crash(uint32_t number)
{
    return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL || number == SIGABRT ||
           number == SIGTRAP || number == SIGSYS;
}

/* What ends a process, or may: where a handler that got a fault ends the process in its own way, the fault counts. The
 * program's own process goes before its children. */
static void take_fault(struct etch_recorder *r, const struct slot *s, const struct vpt_note *note)
{
    struct etch_source_failure *f = &r->failure;
    bool caught = note->event.type == VPT_EVENT_CAUGHT, own = s->tid == f->tid && s->pid == f->pid;

    if (f->seen && f->caught && own) {
        if (caught && note->flags & 2)
            memset(f, 0, sizeof(*f));
        else if (!caught)
            f->deadly = true;
        return;
    }
    if ((caught && note->flags & 2) || (f->seen && f->pid == (uint32_t)r->pid && s->pid != f->pid))
        return;
    if (s->pid != (uint32_t)r->pid && !(is_crash((uint32_t)note->value) && is_subject(r->state, s->pid)))
        return; /* children may be ended by whoever started them, and may be other programs */
    *f = (struct etch_source_failure){.seen = true,
                                      .address_known = note->flags & 1,
                                      .caught = caught,
                                      .deadly = !caught,
                                      .pid = s->pid,
                                      .tid = s->tid,
                                      .signal = (uint32_t)note->value,
                                      .code = (int)(note->value >> 32),
                                      .ip = note->number,
                                      .address = note->address,
                                      .tsc = note->event.tsc};
}

static int take_note(struct etch_recorder *r, const struct slot *s, const struct vpt_note *note, uint32_t size,
                     struct etch_error *err)
{
    struct vpt *v = r->state;
    struct child child = {(uint32_t)note->number, s->tid};

    if (size < sizeof(*note))
        return 0;
    switch (note->event.type) {
    case VPT_EVENT_CHILD:
        return etch_array_push(&v->children, child) ? 0 : out_of_memory(err);
    case VPT_EVENT_FAULT:
    case VPT_EVENT_CAUGHT:
        take_fault(r, s, note);
        return 0;
    case VPT_EVENT_EXEC:
        return take_exec(r, s, note, size, err);
    case VPT_EVENT_ARMED:
        return take_armed(r, note, err);
    case VPT_EVENT_GAP:
        return take_gap(r, s, note, err);
    default:
        return 0;
    }
}

static void copy_ring(uint8_t *to, const uint8_t *ring, uint64_t ring_size, uint64_t at, uint64_t size)
{
    uint64_t place = at & (ring_size - 1);
    uint64_t first = size < ring_size - place ? size : ring_size - place;

    memcpy(to, ring + place, first);
    memcpy(to + first, ring, size - first);
}

static int take_event(struct etch_recorder *r, const struct slot *s, uint32_t size, struct etch_error *err)
{
    const struct vpt *v = r->state;
    const struct vpt_event *event = (const struct vpt_event *)v->event;

    switch (event->type) {
    case VPT_EVENT_IMAGE:
        return take_image(r, s, (const struct vpt_image *)event, size, err);
    case VPT_EVENT_ACCESS:
        return size < sizeof(struct vpt_access) ? 0 : take_access(r, s, (const struct vpt_access *)event, err);
    default:
        return take_note(r, s, (const struct vpt_note *)event, size, err);
    }
}

/* The target can write what it likes into its own memory: sizes are checked before they are believed. */
static int take_events(struct etch_recorder *r, struct slot *s, struct etch_error *err)
{
    struct vpt *v = r->state;
    uint64_t tail = s->event_taken;
    /* Acquire: pairs with the plugin's release; whole events up to there. */
    uint64_t head = atomic_load_explicit(&s->shared->event_head, memory_order_acquire);

    if (tail <= head && head - tail > EVENT_SIZE) {
        s->damaged = true;
        return 0;
    }
    while (tail < head) {
        struct vpt_event event;

        copy_ring((uint8_t *)&event, s->events, EVENT_SIZE, tail, sizeof(event));
        if (event.size < sizeof(event) || event.size > sizeof(v->event) || event.size > head - tail) {
            s->damaged = true;
            break;
        }
        copy_ring(v->event, s->events, EVENT_SIZE, tail, event.size);
        if (take_event(r, s, event.size, err) < 0)
            return -1;
        tail += event.size;
    }
    s->event_taken = tail;
    if (flush_accesses(r, err) < 0) /* first: if etch is killed here, the ring still has them */
        return -1;
    /* Release: pairs with the plugin's acquire; it may overwrite what we have read. */
    atomic_store_explicit(&s->shared->event_tail, tail, memory_order_release);
    return 0;
}

/* ---- Synchronisation ---- */

static void flush_syncs(struct etch_recorder *r)
{
    struct vpt *v = r->state;
    Etch__Syncs syncs = ETCH__SYNCS__INIT;
    Etch__Sync *list[SYNCS_AT_ONCE];

    for (size_t i = 0; i < v->n_syncs; i++)
        list[i] = &v->syncs[i];
    syncs.n_syncs = v->n_syncs;
    syncs.syncs = list;
    v->n_syncs = 0;
    if (!v->sync_failed)
        v->sync_failed = etch_recorder_write_syncs(r, &syncs, &v->sync_error) < 0;
}

static void on_sync(void *context, uint32_t tid, const struct etch_sync_event *from)
{
    struct etch_recorder *r = context;
    struct vpt *v = r->state;

    etch_sync_event_record(&v->syncs[v->n_syncs++], tid, from);
    if (v->n_syncs == SYNCS_AT_ONCE)
        flush_syncs(r);
}

static void on_sync_lost(void *context, uint32_t tid, uint64_t events)
{
    struct etch_recorder *r = context;
    struct vpt *v = r->state;
    Etch__Loss loss = ETCH__LOSS__INIT;

    loss.cause = tid ? ETCH__LOSS_CAUSE__LOSS_RING_WRAPPED : ETCH__LOSS_CAUSE__LOSS_NO_RING;
    loss.tid = tid;
    loss.events = events;
    loss.detail =
        (char *)(uintptr_t)(tid ? "synchronisation events came faster than they could be read" : ETCH_SYNC_UNPLACED);
    if (!v->sync_failed)
        v->sync_failed = etch_recorder_write_loss(r, &loss, &v->sync_error) < 0;
}

static int take_syncs(struct etch_recorder *r, bool last, struct etch_error *err)
{
    struct vpt *v = r->state;
    const struct etch_sync_sink sink = {r, on_sync, on_sync_lost};

    if (!v->sync)
        return 0;
    etch_sync_reader_drain(v->sync, &sink, last);
    flush_syncs(r);
    if (v->sync_failed)
        *err = v->sync_error;
    return v->sync_failed ? -1 : 0;
}

/* ---- Flow ---- */

static uint64_t published(const struct slot *s)
{
    uint64_t a = atomic_load_explicit(&s->shared->states[0].head, memory_order_acquire);
    uint64_t b = atomic_load_explicit(&s->shared->states[1].head, memory_order_acquire);

    return a > b ? a : b; /* either was published after its packets */
}

static int write_ring(struct etch_recorder *r, const struct slot *s, uint32_t stream, uint64_t from, uint64_t to,
                      struct etch_error *err)
{
    const struct vpt *v = r->state;
    uint64_t size = v->flow_size;

    while (from < to) {
        uint64_t place = from & (size - 1);
        uint64_t n = to - from < size - place ? to - from : size - place;

        if (etch_recorder_write_flow(r, stream, from, s->flow + place, n, err) < 0)
            return -1;
        from += n;
    }
    return 0;
}

static void wake_thread(struct slot *s)
{
    atomic_fetch_add_explicit(&s->shared->tail_moved, 1, memory_order_release);
    syscall(SYS_futex, &s->shared->tail_moved, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static int take_flow(struct etch_recorder *r, struct slot *s, uint64_t head, uint64_t at_least, struct etch_error *err)
{
    const struct vpt *v = r->state;

    if (r->options->snapshot || head <= s->taken || head - s->taken < at_least)
        return 0;
    if (head - s->taken > v->flow_size) {
        s->damaged = true;
        return 0;
    }
    if (write_ring(r, s, (uint32_t)(s - v->slots.v), s->taken, head, err) < 0)
        return -1;
    s->taken = head;
    atomic_store_explicit(&s->shared->tail, head, memory_order_release);
    wake_thread(s);
    return 0;
}

/* The newest bytes. The plugin may have been killed while it wrote over the oldest: those are left out. */
static int take_snapshot(struct etch_recorder *r, struct slot *s, uint64_t head, struct etch_error *err)
{
    const struct vpt *v = r->state;
    uint64_t keep = v->flow_size - 1024;
    uint32_t stream = (uint32_t)(s - v->slots.v);

    if (head > keep) {
        Etch__Loss loss = ETCH__LOSS__INIT;

        s->taken = head - keep;
        loss.cause = ETCH__LOSS_CAUSE__LOSS_RING_WRAPPED;
        loss.stream = stream;
        loss.bytes = s->taken;
        loss.tid = s->tid;
        loss.detail = (char *)(uintptr_t)"older than the snapshot";
        if (etch_recorder_write_loss(r, &loss, err) < 0)
            return -1;
    }
    if (write_ring(r, s, stream, s->taken, head, err) < 0)
        return -1;
    s->taken = head;
    return 0;
}

/* ---- Threads ---- */

static bool map_slot(struct vpt *v, struct slot *s, size_t number)
{
    char name[32];
    struct vpt_thread *shared;
    int fd;

    snprintf(name, sizeof(name), "%zu.thread", number);
    fd = openat(v->folder.fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    s->mapping = etch_guarded_map(fd, VPT_PAGE + v->flow_size + EVENT_SIZE, !v->known);
    close(fd);
    if (!s->mapping)
        return false;
    shared = etch_guarded_at(s->mapping);
    /* Acquire: pairs with the plugin's release; the header is whole. */
    if (atomic_load_explicit(&shared->magic, memory_order_acquire) != VPT_MAGIC) {
        etch_guarded_unmap(s->mapping);
        s->mapping = NULL;
        return false;
    }
    s->shared = shared;
    s->pid = shared->pid;
    s->tid = shared->tid;
    if (v->known) {
        s->event_taken = atomic_load(&shared->event_tail);
        s->taken = etch_vpt_known_end(v->known, (uint32_t)number, atomic_load(&shared->tail));
    }
    s->flow = (const uint8_t *)shared + VPT_PAGE;
    s->events = s->flow + v->flow_size;
    return true;
}

static int count_process(struct etch_recorder *r, uint32_t pid, struct etch_error *err)
{
    struct vpt *v = r->state;

    r->summary->threads++;
    for (size_t i = 0; i < v->processes.n; i++)
        if (v->processes.v[i] == pid)
            return 0;
    r->summary->processes++;
    return etch_array_push(&v->processes, pid) ? 0 : out_of_memory(err);
}

/* The packets are those of a Coffee Lake, say, without any of its quirks. */
static int open_slot(struct etch_recorder *r, struct slot *s, size_t number, struct etch_error *err)
{
    struct vpt *v = r->state;
    Etch__Stream stream = ETCH__STREAM__INIT;
    Etch__PtConfig pt = ETCH__PT_CONFIG__INIT;

    if (!map_slot(v, s, number))
        return 0;
    s->state = SLOT_OPEN;
    pt.vendor = (char *)(uintptr_t)"GenuineIntel";
    pt.family = 6;
    pt.model = 158;
    pt.stepping = 10;
    stream.id = (uint32_t)number;
    stream.source = ETCH__SOURCE__SOURCE_VPT;
    stream.of_case = ETCH__STREAM__OF_TID;
    stream.tid = s->tid;
    stream.pid = s->pid;
    stream.pt = &pt;
    stream.snapshot = r->options->snapshot != 0;
    if (count_process(r, s->pid, err) < 0)
        return -1;
    if (v->known && etch_vpt_known_stream(v->known, stream.id))
        return 0;
    return etch_recorder_write_stream(r, &stream, err);
}

static uint32_t parent_of(const struct vpt *v, const struct slot *s)
{
    for (size_t i = v->children.n; i; i--)
        if (v->children.v[i - 1].tid == s->tid)
            return v->children.v[i - 1].parent;
    return s->shared->parent_tid;
}

/* Without a name of its own a thread bears QEMU's; the program's says more. */
static void name_thread(const struct etch_recorder *r, const struct vpt_thread *t, char name[32])
{
    const char *program = strrchr(r->program, '/');

    snprintf(name, 32, "%.15s", t->name);
    if (strcmp(name, "qemu-x86_64") == 0)
        snprintf(name, 32, "%.15s", program ? program + 1 : r->program);
}

static int write_thread(struct etch_recorder *r, const struct slot *s, struct etch_error *err)
{
    Etch__Thread thread = ETCH__THREAD__INIT;
    char name[32];

    name_thread(r, s->shared, name);
    thread.pid = s->pid;
    thread.tid = s->tid;
    thread.name = name;
    thread.start_tsc = s->shared->start_tsc;
    thread.end_tsc = atomic_load(&s->shared->end_tsc);
    thread.parent_tid = parent_of(r->state, s);
    thread.parent_pid = s->shared->parent_pid;
    return etch_recorder_write_thread(r, &thread, err);
}

/* What a thread had in hand when it was killed. Its memory is still now: the process is gone. */
static int write_tail(struct etch_recorder *r, struct slot *s, struct etch_error *err)
{
    const struct vpt *v = r->state;
    const struct vpt_state *state = &s->shared->states[atomic_load(&s->shared->current) & 1];
    uint8_t bytes[ETCH_VPT_TAIL_MAX];
    size_t size = etch_vpt_tail(bytes, state->tnt, state->at);

    if (!size || s->damaged || s->taken != atomic_load(&state->head))
        return 0;
    return etch_recorder_write_flow(r, (uint32_t)(s - v->slots.v), s->taken, bytes, size, err);
}

/* The newest state of a dead process, rather than the furthest head: one more packet may be in the ring than counts. */
static uint64_t final_head(const struct slot *s)
{
    return atomic_load(&s->shared->states[atomic_load(&s->shared->current) & 1].head);
}

/* A zombie writes no more. */
static bool is_alive(uint32_t pid)
{
    struct etch_process_status status;
    struct etch_tids tids;
    bool others;

    if (kill((pid_t)pid, 0) < 0 && errno != EPERM)
        return false;
    if (etch_process_status((pid_t)pid, (pid_t)pid, &status) < 0 || etch_process_threads((pid_t)pid, &tids) < 0)
        return false;
    others = tids.list.n > 1; /* the first thread may have ended before them */
    etch_array_free(&tids.list);
    return others || (status.state != 'Z' && status.state != 'X');
}

static int still_running(struct etch_recorder *r, const struct slot *s, struct etch_error *err)
{
    const struct vpt *v = r->state;
    Etch__Loss loss = ETCH__LOSS__INIT;

    loss.cause = ETCH__LOSS_CAUSE__LOSS_KILLED;
    loss.stream = (uint32_t)(s - v->slots.v);
    loss.tid = s->tid;
    loss.events = 1;
    loss.detail = (char *)(uintptr_t)"a child process went on after the program's end";
    return etch_recorder_write_loss(r, &loss, err);
}

/* What the program did to memory that is also its own. */
static int tell_damage(struct etch_recorder *r, const struct slot *s, struct etch_error *err)
{
    const struct vpt *v = r->state;
    Etch__Loss loss = ETCH__LOSS__INIT;

    if (!s->damaged && !etch_guarded_cut(s->mapping))
        return 0;
    loss.cause = ETCH__LOSS_CAUSE__LOSS_RING_GONE;
    loss.stream = (uint32_t)(s - v->slots.v);
    loss.tid = s->tid;
    loss.events = 1;
    loss.detail = (char *)(uintptr_t)(s->damaged ? "a ring's counts make no sense; the rest of it was left"
                                                 : "a ring was cut short while it was read");
    return etch_recorder_write_loss(r, &loss, err);
}

static void unmap_slot(struct slot *s)
{
    etch_guarded_unmap(s->mapping);
    s->mapping = NULL;
    s->shared = NULL;
    s->state = SLOT_DONE;
}

static int close_slot(struct etch_recorder *r, struct slot *s, struct etch_error *err)
{
    const struct vpt *v = r->state;
    char name[32];
    bool dead = atomic_load(&s->shared->ended) || !is_alive(s->pid);
    uint64_t head = dead ? final_head(s) : published(s);
    int status = take_events(r, s, err);

    if (status == 0)
        status = r->options->snapshot ? take_snapshot(r, s, head, err) : take_flow(r, s, head, 1, err);
    if (status == 0)
        status = dead ? write_tail(r, s, err) : still_running(r, s, err);
    if (status == 0)
        status = tell_damage(r, s, err);
    if (status == 0)
        status = write_thread(r, s, err);
    snprintf(name, sizeof(name), "%zu.thread", (size_t)(s - v->slots.v));
    if (status == 0 && !v->known) {
        unlinkat(v->folder.fd, name, 0);
        atomic_fetch_sub(&v->control->rings, VPT_PAGE + v->flow_size + EVENT_SIZE);
    }
    unmap_slot(s);
    return status;
}

/* ---- Turns ---- */

static int find_slots(struct etch_recorder *r, struct etch_error *err)
{
    struct vpt *v = r->state;
    uint32_t threads = atomic_load(&v->control->threads);
    struct slot fresh = {0};

    while (v->slots.n < threads && v->slots.n < MAX_THREADS)
        if (!etch_array_push(&v->slots, fresh))
            return out_of_memory(err);
    for (size_t i = 0; i < v->slots.n; i++)
        if (v->slots.v[i].state == SLOT_AWAITED && open_slot(r, &v->slots.v[i], i, err) < 0)
            return -1;
    return 0;
}

static int take_all(struct etch_recorder *r, uint64_t at_least, struct etch_error *err)
{
    struct vpt *v = r->state;

    if (find_slots(r, err) < 0 || take_syncs(r, false, err) < 0)
        return -1;
    for (size_t i = 0; i < v->slots.n; i++) {
        struct slot *s = &v->slots.v[i];
        uint64_t head;

        if (s->state != SLOT_OPEN)
            continue;
        /* Ended first, then the rest: what is written before the end is seen. */
        if (atomic_load_explicit(&s->shared->ended, memory_order_acquire)) {
            if (close_slot(r, s, err) < 0)
                return -1;
            continue;
        }
        head = published(s); /* before the events: code is known before it is needed */
        if (take_events(r, s, err) < 0 || take_flow(r, s, head, at_least, err) < 0)
            return -1;
    }
    return 0;
}

static int vpt_drain(struct etch_recorder *r, unsigned milliseconds, struct etch_error *err)
{
    struct vpt *v = r->state;
    uint32_t wake = atomic_load(&v->control->wake);
    struct timespec turn = {.tv_nsec = (long)milliseconds * 1000000};

    if (take_all(r, WRITE_AT_LEAST, err) < 0) {
        atomic_store(&v->control->closed, 1);
        for (size_t i = 0; i < v->slots.n; i++)
            if (v->slots.v[i].state == SLOT_OPEN)
                wake_thread(&v->slots.v[i]);
        return -1;
    }
    syscall(SYS_futex, &v->control->wake, FUTEX_WAIT, wake, &turn, NULL, 0);
    return 0;
}

static int report_refused(struct etch_recorder *r, struct etch_error *err)
{
    const struct vpt *v = r->state;
    Etch__Loss loss = ETCH__LOSS__INIT;
    uint32_t refused = atomic_load(&v->control->refused), limited = atomic_load(&v->control->limited);
    char detail[100];

    loss.detail = detail;
    if (limited) {
        snprintf(detail, sizeof(detail), "%u threads not recorded: the rings reached their bound (--max-rings)",
                 limited);
        loss.events = limited;
        loss.cause = ETCH__LOSS_CAUSE__LOSS_LIMIT;
        if (etch_recorder_write_loss(r, &loss, err) < 0)
            return -1;
    }
    if (refused <= limited)
        return 0;
    snprintf(detail, sizeof(detail), "%u threads not recorded: /dev/shm is full", refused - limited);
    loss.events = refused - limited;
    loss.cause = ETCH__LOSS_CAUSE__LOSS_NO_SPACE;
    return etch_recorder_write_loss(r, &loss, err);
}

static int report_starved(struct etch_recorder *r, struct etch_error *err)
{
    const struct vpt *v = r->state;
    Etch__Loss loss = ETCH__LOSS__INIT;
    uint32_t starved = atomic_load(&v->control->starved);
    char detail[120];

    if (!starved)
        return 0;
    snprintf(detail, sizeof(detail), "%u threads were recorded no further: etch was stopped or got no CPU", starved);
    loss.events = starved;
    loss.cause = ETCH__LOSS_CAUSE__LOSS_STARVED;
    loss.detail = detail;
    return etch_recorder_write_loss(r, &loss, err);
}

static int report_unarmed(struct etch_recorder *r, struct etch_error *err)
{
    const struct vpt *v = r->state;

    for (size_t i = 0; i < r->options->n_watches; i++) {
        Etch__Watch watch = ETCH__WATCH__INIT;

        if (v->armed[i] || v->watches[i].site)
            continue;
        watch.id = (uint32_t)i + 1;
        watch.name = (char *)(uintptr_t)r->options->watches[i];
        watch.skipped = true;
        watch.skip_reason = (char *)(uintptr_t)"the program never began";
        if (etch_recorder_write_watch(r, &watch, err) < 0)
            return -1;
    }
    return 0;
}

static int vpt_finish(struct etch_recorder *r, struct etch_error *err)
{
    struct vpt *v = r->state;

    if (take_all(r, 1, err) < 0)
        return -1;
    atomic_store(&v->control->closed, 1);
    for (size_t i = 0; i < v->slots.n; i++)
        if (v->slots.v[i].state == SLOT_OPEN && close_slot(r, &v->slots.v[i], err) < 0)
            return -1;
    if (v->sync && r->failure.seen)
        r->exception = etch_sync_exception(etch_sync_reader_memory(v->sync), r->failure.tid);
    return take_syncs(r, true, err) < 0 || report_refused(r, err) < 0 || report_starved(r, err) < 0 ||
                   report_unarmed(r, err) < 0
               ? -1
               : 0;
}

/* QEMU's own complaint, one line of it. */
static bool vpt_never_ran(struct etch_recorder *r, struct etch_error *err)
{
    const struct vpt *v = r->state;
    char log[sizeof(v->control->log) + 1] = "";

    if (atomic_load(&v->control->threads) || atomic_load(&v->control->refused))
        return false;
    if (!etch_vpt_takes_plugins(v->qemu)) {
        etch_error_set(err, "cannot record with vpt: %s takes no plugins", v->qemu);
        etch_error_advise(
            err, "etch cc --record and --source soft; or ./run qemu in etch's source, which builds one that does");
        return true;
    }
    memcpy(log, v->control->log, sizeof(v->control->log));
    log[strcspn(log, "\n")] = '\0';
    etch_error_set(err, "cannot run %s under QEMU: %.200s", r->program, log[0] ? log : "it ended before it began");
    etch_error_advise(err, "%s %s, to see what QEMU says", v->qemu, r->program);
    return true;
}

static void vpt_close(struct etch_recorder *r)
{
    struct vpt *v = r->state;

    if (!v)
        return;
    for (size_t i = 0; i < v->slots.n; i++)
        etch_guarded_unmap(v->slots.v[i].mapping);
    etch_guarded_unmap(v->control_mapping);
    etch_folder_remove(&v->folder);
    etch_array_free(&v->slots);
    etch_array_free(&v->children);
    etch_array_free(&v->processes);
    etch_array_free(&v->subjects);
    etch_sync_reader_free(v->sync);
    free(v);
    r->state = NULL;
}

/* ---- After etch's own death ---- */

/* The control block as a dead etch left it, believed as far as it makes sense. */
static int read_control(struct vpt *v, struct etch_record_options *o)
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

int etch_vpt_recover(struct etch_recorder *r, struct etch_folder *folder, struct etch_record_options *options,
                     const struct etch_vpt_known *known, struct etch_error *err)
{
    struct vpt *v = calloc(1, sizeof(*v));
    int status = -1;

    if (!v)
        return out_of_memory(err);
    v->folder = *folder;
    v->known = known;
    r->state = v;
    for (size_t i = 0; i < ACCESSES_AT_ONCE; i++)
        v->access_list[i] = &v->accesses[i];
    if (read_control(v, options) < 0)
        etch_error_set(err, "%s holds no rings of this version of etch", folder->path);
    else
        status = vpt_finish(r, err);
    v->folder = ETCH_FOLDER_NONE; /* the caller's */
    vpt_close(r);
    return status;
}

const struct etch_source etch_source_vpt = {
    .name = "vpt",
    .id = ETCH__SOURCE__SOURCE_VPT,
    .open = vpt_open,
    .launch = vpt_launch,
    .drain = vpt_drain,
    .finish = vpt_finish,
    .never_ran = vpt_never_ran,
    .close = vpt_close,
};
