#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The walls of docs/architecture.md: what each room may include. A forbidden library does not link anyway; this names the line.
. "$(dirname "$0")/lib.sh"
cd "$ETCH_SOURCE"

# may ROOM ROOMS LIBRARIES: the rooms and the outside headers (as a grep -E pattern) that its files may include
may() {
  local room=$1 rooms=$2 libraries=$3 bad
  [ -d "$room" ] || return 0
  bad=$(grep -rnE '^ *#include "' --include='*.[ch]' "$room" |
    grep -vE "#include \"($room|${rooms// /|})/[a-z0-9_./-]+\"" || true)
  [ -z "$bad" ] || fail "$room/ reaches through a wall: $bad"
  bad=$(grep -rnE '^ *#include <(llvm-c|intel-pt|elfutils|dwarf|gelf|libelf|Zydis|sqlite3|jansson|zstd|protobuf-c)' --include='*.[ch]' "$room" |
    grep -vE "#include <($libraries)" || true)
  [ -z "$bad" ] || fail "$room/ uses a library that is not its own: $bad"
  checks=$((checks + 1))
}

may base "base" "none"
may proto "base" "zstd|protobuf-c"
may calibrate "base" "none"
may collector "base proto calibrate" "protobuf-c|intel-pt|Zydis|libelf|gelf"
may decoder "base proto" "intel-pt|elfutils|dwarf|gelf|libelf|Zydis|protobuf-c|jansson|zstd"
may slicer "base proto" "llvm-c|protobuf-c|elfutils|dwarf|gelf|libelf|Zydis"
may sketch "base proto decoder" "protobuf-c|jansson|sqlite3"
# The plugin runs inside QEMU: it has libipt's encoder and Zydis; the collector itself has neither.
bad=$(grep -rlE '#include <(intel-pt|Zydis)' --include='*.[ch]' collector | grep -v '^collector/vpt/' || true)
[ -z "$bad" ] || fail "the collector itself uses a decoder's library: $bad"

# Every source says its licence in its first two lines.
bad=$(find . \( -name 'build*' -o -name .git \) -prune -o -type f \( -name '*.[ch]' -o -name '*.cc' -o -name '*.sh' -o -name '*.cmake' \
  -o -name CMakeLists.txt -o -name '*.proto' -o -name run \) -print | while read -r f; do
  head -n 2 "$f" | grep -q 'SPDX-License-Identifier: ' || echo "$f"
done)
[ -z "$bad" ] || fail "no SPDX line in: $bad"
checks=$((checks + 1))
done_checking
