# SPDX-License-Identifier: MIT
# The renderers: functions of the message alone, so they link neither the decoder nor the analysis.
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
etch_room(sketch_render render_canvas.c render_html.c render_model.c render_terminal.c
  LINKS etch_base etch_proto PkgConfig::JANSSON)
