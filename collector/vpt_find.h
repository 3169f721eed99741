/* SPDX-License-Identifier: MIT */
/* Finds the two parts of vpt on this machine: QEMU, and etch's plugin for QEMU. */
#ifndef ETCH_COLLECTOR_VPT_FIND_H
#define ETCH_COLLECTOR_VPT_FIND_H

#include <stdbool.h>
#include <stddef.h>

/* $ETCH_VPT_QEMU; else the QEMU that ./run qemu built, beside this program or in ../lib/etch; else qemu-x86_64 along
 * PATH. */
bool etch_vpt_find_qemu(char *path, size_t size);

/* $ETCH_VPT_PLUGIN; else etch-vpt.so beside this program, as built, or in ../lib/etch, as installed. */
bool etch_vpt_find_plugin(char *path, size_t size);

/* Writes the value of QEMU's option -plugin for this file. Further options may be appended after a comma. Returns the
 * length. */
size_t etch_vpt_plugin_option(const char *plugin, char *option, size_t size);

/* The first line of `qemu --version`; false if `qemu` does not run. */
bool etch_vpt_qemu_version(const char *qemu, char *line, size_t size);

/* Return true if this QEMU loads plugins at all, and if this QEMU loads etch's plugin. Both functions run QEMU. */
bool etch_vpt_takes_plugins(const char *qemu);
bool etch_vpt_takes_plugin(const char *qemu, const char *plugin);

/* Returns true if vpt can record here: QEMU and the plugin exist, and QEMU loads the plugin. */
bool etch_vpt_usable(void);

#endif
