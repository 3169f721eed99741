/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* Guest registers: where a signal came in between can be had from nowhere else. From version 2 on the plugin interface
 * has them. Version 1 has none, so this asks QEMU's own gdb server functions, which QEMU 7.2 exports in every build
 * that loads plugins. */
#ifndef ETCH_VPT_REGISTERS_H
#define ETCH_VPT_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>

/* gdb's numbers for x86-64, with version 1. */
enum etch_vpt_register { VPT_RDX = 3, VPT_RSI = 4, VPT_RDI = 5, VPT_RSP = 7, VPT_RIP = 16 };

/* True if this QEMU has version 2 or later of the plugin interface. */
bool etch_vpt_registers_are_offered(void);

/* Finds the functions; false where this QEMU does not show them. */
bool etch_vpt_registers_find(void);

/* The register of the calling thread's CPU. Right at the edges of blocks only. */
uint64_t etch_vpt_register_read(unsigned cpu, enum etch_vpt_register which);

#endif
