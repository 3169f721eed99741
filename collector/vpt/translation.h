/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* Private to the plugin: the blocks that QEMU translated. They live as long as the process: a translated block may run
 * at any time. */
#ifndef ETCH_VPT_TRANSLATION_H
#define ETCH_VPT_TRANSLATION_H

#include "collector/vpt/qemu_plugin.h"

#include <stdbool.h>
#include <stdint.h>

/* `after` is the time of the exec that brought this program here; 0: the first program. `copies_code`: QEMU has version
 * 3 or later of its interface. */
void etch_vpt_translation_begin(uint64_t after, bool copies_code);

/* QEMU's callback: registers the callbacks of the block. */
void etch_vpt_translation_on(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);

/* A signal handler begins at `handler`. */
void etch_vpt_translation_handler(uint64_t handler);

void etch_vpt_translation_fork_lock(void);
void etch_vpt_translation_fork_unlock(void);

#endif
