# SPDX-License-Identifier: MIT
# Damaged bundles, through everything that reads bundles.
add_library(damaged_bundles STATIC damage/damage.c damage/input.c damage/message.c damage/readers.c damage/records.c)
target_link_libraries(damaged_bundles PUBLIC etch_diagnose etch_slicer etch_sketch etch_sketch_render etch_decoder etch_collector
  etch_proto PkgConfig::JANSSON PRIVATE etch_options Threads::Threads)
add_executable(pack_runs damage/pack.c damage/records.c)
target_link_libraries(pack_runs PRIVATE etch_options etch_decoder etch_views)
add_executable(edit_bundle damage/edit_bundle.c damage/records.c)
target_link_libraries(edit_bundle PRIVATE etch_options etch_proto)
add_executable(read_damaged damage/read_damaged.c)
target_link_libraries(read_damaged PRIVATE etch_options damaged_bundles)
# One input takes a twentieth of a second: the limit of a minute holds on a machine that has much else to do.
etch_fuzz(runs 30 LINKS damaged_bundles OPTIONS -timeout=60 -max_len=400000 -close_fd_mask=1
  SEEDS bash ${CMAKE_CURRENT_SOURCE_DIR}/damage/seeds.sh $<TARGET_FILE:etch> $<TARGET_FILE:pack_runs>)
etch_e2e(sketch_damaged TIMEOUT 1200)
