# SPDX-License-Identifier: MIT
# Recordings that others made (perf.data, LLDB's bundles) and the export for perf; without a PT decoder, so that it can be
# tested so.
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(DW REQUIRED IMPORTED_TARGET libdw libelf)
etch_room(import cuts.c find_binary.c lldb_trace.c perf_data.c perf_data_write.c perf_overlap.c perf_record.c
  perf_recording.c recording_fill.c
  LINKS etch_base etch_proto PkgConfig::ZSTD PkgConfig::JANSSON PkgConfig::DW)
