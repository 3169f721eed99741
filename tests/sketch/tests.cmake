# SPDX-License-Identifier: MIT
# The pictures of a sketch.
add_library(sketch_samples STATIC sketch/samples.c)
target_link_libraries(sketch_samples PUBLIC etch_proto PRIVATE etch_options)
add_executable(sketch_picture sketch/picture.c)
target_link_libraries(sketch_picture PRIVATE etch_options etch_sketch_render sketch_samples)
set_target_properties(sketch_picture PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
etch_unit(render_terminal LINKS etch_sketch_render sketch_samples)
etch_unit(sentence LINKS etch_sketch_render)
etch_unit(unordered LINKS etch_sketch_render)
etch_e2e(sketch_picture)
etch_e2e(sketch_html)
etch_e2e(sketch_soft)
etch_fuzz(sketch 30 LINKS etch_sketch_render SEEDS $<TARGET_FILE:sketch_picture> --corpus)
