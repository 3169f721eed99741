/* SPDX-License-Identifier: MIT */
/* What the terminal behind a stream can show, for pictures. */
#ifndef ETCH_CLI_TERMINAL_H
#define ETCH_CLI_TERMINAL_H

#include "sketch/render.h"

#include <stdio.h>

/* Width by COLUMNS, else by the terminal, else 120. Colour on terminals only, and not where NO_COLOR is set or TERM is
 * dumb; lines and arrows on terminals whose locale is UTF-8 only. A pipe gets plain ASCII. `all` is left false. */
struct etch_render_terminal etch_terminal_ask(FILE *stream);

#endif
