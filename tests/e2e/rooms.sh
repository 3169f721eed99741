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
may binary "base proto" "protobuf-c|elfutils|dwarf|gelf|libelf"
may collector "base proto binary calibrate" "protobuf-c|intel-pt|Zydis"
may decoder "base proto binary" "Zydis|protobuf-c|jansson|zstd"
may slicer "base proto binary" "llvm-c|protobuf-c|Zydis"
may sketch "base proto binary decoder" "protobuf-c|jansson"
may report "base proto binary decoder" "protobuf-c"
may diagnose "base proto binary calibrate collector decoder slicer sketch report" "protobuf-c|sqlite3"

# A header in a sub-folder is private to its room: other rooms go through the door, the headers in the room's folder.
for room in collector decoder slicer sketch; do
  bad=$(grep -rnE "^ *#include \"$room/[a-z_]+/" --include='*.[ch]' base proto binary calibrate collector decoder slicer sketch report diagnose cli |
    grep -v "^$room/" || true)
  [ -z "$bad" ] || fail "a private header of $room/ is used outside: $bad"
  checks=$((checks + 1))
done

# binary/ alone reads ELF and DWARF. Its headers that say "Private to binary/" give out libelf and libdw.
bad=$(grep -rnE '^ *#include <(elfutils|dwarf|gelf|libelf)' --include='*.[ch]' base proto calibrate collector decoder slicer sketch report diagnose cli || true)
[ -z "$bad" ] || fail "ELF or DWARF is read outside of binary/: $bad"
for header in $(grep -l 'Private to binary/' binary/*.h); do
  bad=$(grep -rn "#include \"$header\"" --include='*.[ch]' base proto calibrate collector decoder slicer sketch report diagnose cli || true)
  [ -z "$bad" ] || fail "a private header of binary/ is used outside: $bad"
done
# elf.h's numbers and types: exec.c runs inside QEMU and maps.c and pool.c inside the recorded program, which link nothing of ours; library.c reads
# the auxiliary vector of a process; link_note.c writes an object.
bad=$(grep -rlE '^ *#include <elf\.h>' --include='*.[ch]' base proto calibrate collector decoder slicer sketch report diagnose cli |
  grep -vxE 'collector/vpt/exec\.c|collector/soft/(maps|pool)\.c|collector/native/library\.c|slicer/lab/link_note\.c' || true)
[ -z "$bad" ] || fail "ELF headers are parsed outside of binary/: $bad"
checks=$((checks + 3))

# inside FOLDER FOLDERS: the folders of the same room whose private headers its files may include
inside() {
  local folder=$1 room=${1%%/*} others=$2 bad
  bad=$(grep -rnE "^ *#include \"$room/[a-z_]+/" --include='*.[ch]' "$folder" |
    grep -vE "#include \"(${folder}${others:+|${others// /|}})/" || true)
  [ -z "$bad" ] || fail "$folder/ reaches through an inner wall: $bad"
  checks=$((checks + 1))
}
inside decoder/recording ""
inside decoder/flow ""
inside decoder/order ""
inside decoder/values ""
inside collector/session ""
inside collector/policy ""
inside collector/sync "collector/session"
inside collector/native "collector/session collector/sync collector/policy"
inside collector/core "collector/session collector/native"
inside collector/pt "collector/session"
inside collector/soft "collector/session"
inside collector/vpt "collector/session collector/sync"
inside collector/lab ""
inside collector/left "collector/session collector/native collector/soft"
# The session knows sources by their public headers alone, and one of them by name in one place; a source knows no other source.
bad=$(grep -lE '\betch_source_(pt|soft|vpt)\b' collector/*/*.c | grep -vE '^collector/(session/record|pt/(pt|group)|soft/rings|vpt/vpt)\.c$' || true)
[ -z "$bad" ] || fail "a source is known by name: $bad"
# Every recording is written by session/recorder.c: no other file of the collector writes to a bundle.
bad=$(grep -nE '\betch_bundle_(create|write|write_flow|finish|discard)\(' collector/*/*.c | grep -v '^collector/session/recorder\.c:' || true)
[ -z "$bad" ] || fail "a bundle is written past session/recorder.h: $bad"
checks=$((checks + 2))
inside slicer/model ""
inside slicer/instrument "slicer/model"
inside slicer/slice "slicer/model"
inside slicer/plan "slicer/model slicer/slice"
inside slicer/lab "slicer/model"
inside sketch/runs ""
inside sketch/predict "sketch/runs"
inside sketch/explain "sketch/runs sketch/predict"
inside sketch/render ""
# The plugin runs inside QEMU: it has libipt's encoder and Zydis; the collector itself has neither.
bad=$(grep -rlE '#include <(intel-pt|Zydis)' --include='*.[ch]' collector | grep -v '^collector/vpt/' || true)
[ -z "$bad" ] || fail "the collector itself uses a decoder's library: $bad"

# A recorded program must not die of a fault of etch: the folders that have parts inside it use no assertions.
bad=$(grep -rln 'base/assert.h' collector/soft collector/sync collector/lab collector/vpt || true)
[ -z "$bad" ] || fail "an assertion may end the recorded program: $bad"
checks=$((checks + 1))

# Every file that etch writes goes through base/output.h. What runs inside the recorded program cannot, and makes its files alone.
bad=$(grep -rnE '\b(fopen|fdopen|freopen)\([^;]*"[wa]|\bcreat\(|O_CREAT' --include='*.[ch]' base proto binary calibrate collector decoder slicer sketch report diagnose cli |
  grep -vE '^base/output\.c:|O_CREAT \| (O_EXCL|O_NOFOLLOW)' || true)
[ -z "$bad" ] || fail "a file is written past base/output.h: $bad"
bad=$(grep -rnE '\bmkdir\([^;]*, 07[1-7]' --include='*.[ch]' base proto binary calibrate collector decoder slicer sketch report diagnose cli || true)
[ -z "$bad" ] || fail "a folder is made for others too: $bad"
checks=$((checks + 1))

# Every source says its licence in its first two lines.
bad=$(find . \( -name 'build*' -o -name .git \) -prune -o -type f \( -name '*.[ch]' -o -name '*.cc' -o -name '*.sh' -o -name '*.cmake' \
  -o -name CMakeLists.txt -o -name '*.proto' -o -name run \) -print | while read -r f; do
  head -n 2 "$f" | grep -q 'SPDX-License-Identifier: ' || echo "$f"
done)
[ -z "$bad" ] || fail "no SPDX line in: $bad"
checks=$((checks + 1))
done_checking
