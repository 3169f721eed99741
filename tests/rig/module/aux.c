/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
#include "aux.h"
#include "rig.h"

#include <linux/slab.h>

static atomic_t live = ATOMIC_INIT(0);

unsigned rig_aux_live(void)
{
    return (unsigned)atomic_read(&live);
}

void *rig_aux_setup(struct perf_event *event, void **pages, int n_pages, bool snapshot)
{
    struct rig_aux *aux;

    if (n_pages <= 0 || (n_pages & (n_pages - 1)))
        return NULL;
    aux = kzalloc(sizeof(*aux), GFP_KERNEL);
    if (!aux)
        return NULL;
    aux->pages = pages;
    aux->size = (unsigned long)n_pages << PAGE_SHIFT;
    aux->snapshot = snapshot;
    atomic_inc(&live);
    return aux;
}

void rig_aux_free(void *aux)
{
    kfree(aux);
    atomic_dec(&live);
}

/* Output can stop at the end of a page only; one byte of a ring stays free in perf's counting. */
static bool reset(struct rig_aux *aux, struct perf_output_handle *handle)
{
    unsigned long end = (handle->head + handle->size + 1) & PAGE_MASK;
    unsigned long wake = handle->wakeup & PAGE_MASK;

    aux->at = handle->head & (aux->size - 1);
    aux->filled = 0;
    aux->full = false;
    if (aux->snapshot)
        return true;
    if (end <= handle->head)
        return false;
    aux->room = end - handle->head;
    if (wake > end - PAGE_SIZE || wake <= handle->head)
        wake = end - PAGE_SIZE;
    aux->wake = wake > handle->head ? wake - handle->head : aux->room;
    return true;
}

struct rig_aux *rig_aux_begin(struct perf_output_handle *handle, struct perf_event *event)
{
    struct rig_aux *aux = perf_aux_output_begin(handle, event);

    if (!aux)
        return NULL;
    if (!reset(aux, handle)) {
        perf_aux_output_flag(handle, PERF_AUX_FLAG_TRUNCATED);
        perf_aux_output_end(handle, 0);
        return NULL;
    }
    return aux;
}

void rig_aux_end(struct perf_output_handle *handle, struct rig_aux *aux)
{
    if (aux->full)
        perf_aux_output_flag(handle, PERF_AUX_FLAG_TRUNCATED);
    if (aux->snapshot)
        handle->head = aux->at;
    perf_aux_output_end(handle, aux->snapshot ? aux->size : aux->filled);
}

void rig_aux_put(struct rig_aux *aux, const u8 *bytes, size_t n)
{
    if (!aux->snapshot && aux->filled + n > aux->room) {
        n = aux->room - aux->filled;
        aux->full = true; /* the packet is cut, as it would be */
    }
    while (n) {
        size_t in_page = aux->at & ~PAGE_MASK;
        size_t part = min(n, PAGE_SIZE - in_page);

        memcpy((u8 *)aux->pages[aux->at >> PAGE_SHIFT] + in_page, bytes, part);
        bytes += part;
        n -= part;
        aux->filled += part;
        aux->at = (aux->at + part) & (aux->size - 1);
    }
}
