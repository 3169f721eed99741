/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* Guest registers; see registers.h. */
#include "collector/vpt/registers.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

/* glib's, the two fields that everybody may read. */
struct byte_array {
    uint8_t *data;
    unsigned len;
};

/* glib's, and QEMU's description of a register in it. */
struct array {
    void *data;
    unsigned len;
};

struct descriptor {
    void *handle;
    const char *name, *feature;
};

static void *(*get_cpu)(int index);
static int (*read_register)(void *cpu, struct byte_array *to, int number);
static struct byte_array *(*array_new)(void);
static uint8_t *(*array_free)(struct byte_array *array, int with_data);
static struct array *(*offered_list)(void);
static int (*read_offered)(void *handle, struct byte_array *to);
static char *(*list_free)(struct array *list, int with_data);

static bool find(void *function, const char *name)
{
    void *symbol = dlsym(RTLD_DEFAULT, name);

    memcpy(function, &symbol, sizeof(symbol));
    return symbol != NULL;
}

bool etch_vpt_registers_are_offered(void)
{
    return find(&offered_list, "qemu_plugin_get_registers") && find(&read_offered, "qemu_plugin_read_register");
}

bool etch_vpt_registers_find(void)
{
    if (!find(&array_new, "g_byte_array_new") || !find(&array_free, "g_byte_array_free"))
        return false;
    if (etch_vpt_registers_are_offered())
        return find(&list_free, "g_array_free");
    return find(&get_cpu, "qemu_get_cpu") && find(&read_register, "x86_cpu_gdb_read_register");
}

/* The same for all CPUs; NULL: QEMU has no register of that name. May be asked on a CPU's own thread only. */
static void *handle_of(enum etch_vpt_register which)
{
    static const char *const names[] = {
        [VPT_RDX] = "rdx", [VPT_RSI] = "rsi", [VPT_RDI] = "rdi", [VPT_RSP] = "rsp", [VPT_RIP] = "rip"};
    static _Atomic(void *) handles[VPT_RIP + 1];
    void *handle = atomic_load_explicit(&handles[which], memory_order_relaxed); /* whoever stores stores the same */
    struct array *list;

    if (handle)
        return handle;
    list = offered_list();
    for (unsigned i = 0; i < list->len; i++) {
        const struct descriptor *d = (const struct descriptor *)list->data + i;

        if (strcmp(d->name, names[which]) != 0)
            continue;
        handle = d->handle;
        break;
    }
    list_free(list, 1);
    atomic_store_explicit(&handles[which], handle, memory_order_relaxed);
    return handle;
}

/* How many bytes came. */
static int read_into(struct byte_array *array, unsigned cpu, enum etch_vpt_register which)
{
    void *source;

    if (offered_list) {
        source = handle_of(which);
        return source ? read_offered(source, array) : 0;
    }
    source = get_cpu ? get_cpu((int)cpu) : NULL;
    return source ? read_register(source, array, (int)which) : 0;
}

uint64_t etch_vpt_register_read(unsigned cpu, enum etch_vpt_register which)
{
    struct byte_array *array = array_new();
    uint64_t value = 0;

    if (read_into(array, cpu, which) >= 8 && array->len >= 8)
        memcpy(&value, array->data, sizeof(value));
    array_free(array, 1);
    return value;
}
