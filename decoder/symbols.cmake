# SPDX-License-Identifier: MIT
# Addresses to source, and what is built on it: lines and calls. Apart from the PT decoder, so that it can be tested so.
pkg_check_modules(DW REQUIRED IMPORTED_TARGET libdw libelf)
etch_room(symbols block_cache.c callers.c calls.c lines.c spans.c symbols.c symbols_dwarf.c symbols_elf.c symbols_files.c returns.c thrown.c
  unwind.c variable.c
  LINKS etch_base etch_import etch_proto PkgConfig::DW)
