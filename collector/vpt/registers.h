/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* Guest registers. Version 1 of the plugin interface has none, but where a signal came in between can be had from
 * nowhere else: so this asks QEMU's own gdb server functions, which its program exports (as every build does that can
 * load plugins through glib's modules). */
#ifndef ETCH_VPT_REGISTERS_H
#define ETCH_VPT_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>

/* gdb's numbers for x86-64. */
enum vpt_register { VPT_RDX = 3, VPT_RSI = 4, VPT_RDI = 5, VPT_RSP = 7, VPT_RIP = 16 };

/* Finds the functions; false where this QEMU does not show them. */
bool vpt_registers_find(void);

/* The register of the calling thread's CPU. Right at the edges of blocks only. */
uint64_t vpt_register_read(unsigned cpu, enum vpt_register which);

#endif
