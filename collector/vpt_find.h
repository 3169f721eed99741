/* SPDX-License-Identifier: MIT */
/* Where vpt's two parts are on this machine: QEMU, and etch's plugin for it. */
#ifndef ETCH_COLLECTOR_VPT_FIND_H
#define ETCH_COLLECTOR_VPT_FIND_H

#include <stdbool.h>
#include <stddef.h>

/* qemu-x86_64, along PATH. */
bool etch_vpt_find_qemu(char *path, size_t size);

/* $ETCH_VPT_PLUGIN; else etch-vpt.so beside this program, as built, or in ../lib/etch, as installed. */
bool etch_vpt_find_plugin(char *path, size_t size);

/* Whether this QEMU loads plugins: found out by running it. */
bool etch_vpt_takes_plugins(const char *qemu);

/* Whether vpt can record here: both parts are there, and QEMU loads plugins. */
bool etch_vpt_usable(void);

#endif
