/* SPDX-License-Identifier: MIT */
/* Where vpt's two parts are on this machine: QEMU, and etch's plugin for it. */
#ifndef ETCH_COLLECTOR_VPT_FIND_H
#define ETCH_COLLECTOR_VPT_FIND_H

#include <stdbool.h>
#include <stddef.h>

/* $ETCH_VPT_QEMU; else the one that ./run qemu built, beside this program or in ../lib/etch; else qemu-x86_64 along
 * PATH.
 */
bool etch_vpt_find_qemu(char *path, size_t size);

/* $ETCH_VPT_PLUGIN; else etch-vpt.so beside this program, as built, or in ../lib/etch, as installed. */
bool etch_vpt_find_plugin(char *path, size_t size);

/* What QEMU's option -plugin takes for this file, so far; more may be appended behind a comma. Returns its length. */
size_t etch_vpt_plugin_option(const char *plugin, char *option, size_t size);

/* The first line of `qemu --version`; false where it does not run. */
bool etch_vpt_qemu_version(const char *qemu, char *line, size_t size);

/* Whether this QEMU loads plugins, and this one: found out by running it. */
bool etch_vpt_takes_plugins(const char *qemu);
bool etch_vpt_takes_plugin(const char *qemu, const char *plugin);

/* Whether vpt can record here: both parts are there, and the one takes the other. */
bool etch_vpt_usable(void);

#endif
