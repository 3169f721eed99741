/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* Guest registers; see registers.h. */
#include "collector/vpt/registers.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/* glib's, the two fields that everybody may read. */
struct byte_array {
    uint8_t *data;
    unsigned len;
};

static void *(*get_cpu)(int index);
static int (*read_register)(void *cpu, struct byte_array *to, int number);
static struct byte_array *(*array_new)(void);
static uint8_t *(*array_free)(struct byte_array *array, int with_data);

static bool find(void *function, const char *name)
{
    void *symbol = dlsym(RTLD_DEFAULT, name);

    memcpy(function, &symbol, sizeof(symbol));
    return symbol != NULL;
}

bool vpt_registers_find(void)
{
    return find(&get_cpu, "qemu_get_cpu") && find(&read_register, "x86_cpu_gdb_read_register") &&
           find(&array_new, "g_byte_array_new") && find(&array_free, "g_byte_array_free");
}

uint64_t vpt_register_read(unsigned cpu, enum vpt_register which)
{
    void *state = read_register ? get_cpu((int)cpu) : NULL;
    struct byte_array *array;
    uint64_t value = 0;

    if (!state)
        return 0;
    array = array_new();
    if (read_register(state, array, (int)which) >= 8 && array->len >= 8)
        memcpy(&value, array->data, sizeof(value));
    array_free(array, 1);
    return value;
}
