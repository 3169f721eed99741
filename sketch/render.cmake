# SPDX-License-Identifier: MIT
# The renderers: functions of the message alone, so they link neither the decoder nor the analysis.
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
set(generated ${CMAKE_BINARY_DIR}/generated)
foreach(part css js)
  add_custom_command(
    OUTPUT ${generated}/sketch/render_html_${part}.h
    COMMAND ${CMAKE_COMMAND} -DIN=${CMAKE_CURRENT_SOURCE_DIR}/render_html.${part}
      -DOUT=${generated}/sketch/render_html_${part}.h -DNAME=render_html_${part} -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS render_html.${part} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake)
endforeach()
etch_room(sketch_render render_canvas.c render_exception.c render_html.c render_html_panel.c render_jansson.c render_json.c render_model.c render_sarif.c
  render_terminal.c ${generated}/sketch/render_html_css.h ${generated}/sketch/render_html_js.h
  LINKS etch_base etch_proto PkgConfig::JANSSON)
target_include_directories(etch_sketch_render PRIVATE ${generated})
