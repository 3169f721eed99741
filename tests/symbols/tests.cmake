# SPDX-License-Identifier: MIT
# Symbols, and the formats that show them.
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
add_executable(symbolize tools/symbolize.c)
target_link_libraries(symbolize PRIVATE etch_options etch_symbols)
etch_unit(calls LINKS etch_views)
etch_unit(core LINKS etch_elf)
add_executable(core_seeds tools/core_seeds.c)
target_link_libraries(core_seeds PRIVATE etch_options)
etch_fuzz(core 15 LINKS etch_elf SEEDS $<TARGET_FILE:core_seeds>)
etch_unit(elf_bytes LINKS etch_elf)
etch_unit(spans LINKS etch_symbols)
etch_unit(symbols LINKS etch_symbols)
etch_unit(decode_views LINKS etch_decode_views PkgConfig::JANSSON)
etch_e2e(symbols)
etch_e2e(decode_source)
etch_fuzz(symbols 30 LINKS etch_symbols
  SEEDS bash ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/symbols_seeds.sh ${CMAKE_SOURCE_DIR} ${CMAKE_C_COMPILER})
