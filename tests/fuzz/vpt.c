/* SPDX-License-Identifier: MIT */
/* The memory that a program in QEMU shares with etch: events of any size and content, as the program may write them. */
#include "collector/vpt/vpt.h"
#include "collector/session/recorder.h"

#include <fcntl.h>
#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct etch_record_options options;
static struct etch_record_summary summary;
static struct etch_recorder recorder;
static struct vpt vpt;
static struct etch_vpt_control control;
static uint8_t events[VPT_EVENT_RING];
static _Alignas(4096) uint8_t header[VPT_PAGE];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    options.n_watches = 2;
    options.watches[0] = "counter";
    options.watches[1] = "@0x1000:4";
    etch_recorder_init(&recorder, 0, &summary);
    vpt.options = &options;
    vpt.sink = recorder.sink;
    vpt.pid = 1;
    vpt.control = &control;
    return 0;
}

/* The first byte says where in the ring the events begin. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct etch_vpt_slot slot = {.shared = (struct etch_vpt_thread *)header, .flow = events, .events = events};
    uint64_t tail = size ? (uint64_t)data[0] * 512 : 0;
    struct etch_error err;

    if (size < 1 || size - 1 > VPT_EVENT_RING / 2)
        return -1;
    for (size_t i = 1; i < size; i++)
        events[(tail + i - 1) % VPT_EVENT_RING] = data[i];
    atomic_store(&slot.shared->event_tail, tail);
    atomic_store(&slot.shared->event_head, tail + size - 1);
    if (etch_bundle_create_fd(&recorder.bundle, open("/dev/null", O_WRONLY | O_CLOEXEC), "fuzz", &err) < 0)
        return 0;
    recorder.broken = false;
    memset(vpt.armed, 0, sizeof(vpt.armed));
    etch_vpt_events_take(&vpt, &slot);
    vpt.batch.n = 0;
    etch_array_free(&vpt.subjects);
    etch_array_free(&vpt.children);
    etch_array_free(&vpt.processes);
    etch_bundle_writer_free(recorder.bundle);
    return 0;
}
