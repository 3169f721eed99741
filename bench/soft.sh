#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# soft.sh BUILD: what the software recorder costs: programs from Debian's sources and a pthread program of ours, built once per
# column with the same clang and options, run in turns; medians of the processor time, as ratios to the plain build. Columns: full
# (all recorded, no budget), budget (always-on, 3 %), slice (four programs), off (compiled in, not recording), and peers. Targets:
# full: geometric mean 1.12, worst 1.30; budget: 1.03 on each; slice 1.03; off 1.02; 60 KB per million instructions.
# ETCH_BENCH_ROUNDS (7), ETCH_BENCH_SCALE (4: about a second per run), ETCH_BENCH_PROGRAMS, ETCH_BENCH_COLUMNS, ETCH_BENCH_SOURCES
# (keeps sources), ETCH_BENCH_WORK (keeps builds; what is there is not built again), ETCH_BENCH_VOLUME=0 (no volume: it takes long).
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
work=${ETCH_BENCH_WORK:-$(mktemp -d)}
. "$here/debian.bash"
. "$here/soft_programs.bash"
trap '[ -n "${ETCH_BENCH_WORK:-}" ] || rm -rf "$work"; forget_sources' EXIT
rounds=${ETCH_BENCH_ROUNDS:-7}
four='bzip2 lua sqlite threads'
programs=${ETCH_BENCH_PROGRAMS:-$four $more_programs}
columns=${ETCH_BENCH_COLUMNS:-plain full budget slice off guard functions}
unset ETCH_RING ETCH_RING_BUDGET

# plan_of PROGRAM: a file with the plan for the first eight statements of a slice, from a place where it could fail
plan_of() {
  local file text line
  case $1 in
  bzip2) file=$work/bzip2/compress.c text='wr = 0;' ;;
  lua) file=$work/lua/src/ltable.c text='"table index is nil"' ;;
  sqlite) file=$work/sqlite/sqlite3.c text='releasePage(apNew[i]);' ;;
  threads) file=$work/threads/soft_threads.c text='block = left ?' ;;
  esac
  line=$(grep -nF "$text" "$file" | head -n 1 | cut -d: -f1)
  make_program "$1" "$build/etch" cc -O2 -g -w -o "$work/$1.sliceable"
  "$build/etch" slice "$work/$1.sliceable" --at "$(basename "$file"):$line" --sigma 8 --plan "$work/$1.plan" >"$work/log" 2>&1 ||
    stop "no slice of $1"
}

turned() { # ROUND COLUMNS: the columns, beginning with another one each round
  local all=($2) first
  first=$(($1 % ${#all[@]}))
  echo "${all[@]:first}" "${all[@]:0:first}"
}

# columns_of PROGRAM: a slice needs a place in the program
columns_of() {
  if [[ " $four " == *" $1 "* ]]; then echo "$columns"; else echo "${columns/slice/}"; fi
}

compile() { # PROGRAM COLUMN: and the processor time that it takes
  local TIMEFORMAT='%U %S'
  [ -e "$work/$1.$2" ] || { time compile_new "$1" "$2" 2>&3; } 3>&2 2>"$work/$1.$2.build"
}

# compile_all PROGRAM: all columns. clang cannot build some C++ programs with -finstrument-functions: that cell stays empty.
compile_all() {
  local column
  for column in $(columns_of "$1"); do
    case $column in
    guard | functions) (compile "$1" "$column" 2>/dev/null) || true ;;
    *) compile "$1" "$column" ;;
    esac
  done
}

compile_new() {
  local flags="-O2 -g -w -o $work/$1.$2"
  case $2 in
  plain) make_program "$1" clang-19 $flags ;;
  full) make_program "$1" "$build/etch" cc --record $flags ;;
  slice) plan_of "$1" && make_program "$1" "$build/etch" cc --record-only="@$work/$1.plan" $flags ;;
  guard) make_program "$1" clang-19 $flags -fsanitize-coverage=trace-pc-guard "$work/hooks.o" ;;
  functions) make_program "$1" clang-19 $flags -finstrument-functions "$work/hooks.o" ;;
  tsan) make_program "$1" clang-19 $flags -fsanitize=thread ;;
  off | budget) ln -sf "$1.full" "$work/$1.$2" ;;
  esac
}

once() { # PROGRAM COLUMN: its processor time, appended
  local TIMEFORMAT='%U %S'
  case $2 in
  full | slice) export ETCH_RING=$work/rings ETCH_RING_BUDGET=off ;;
  budget) export ETCH_RING=$work/rings ;;
  esac
  { time run_program "$1" "$work/$1.$2" 2>"$work/log"; } 2>"$work/time" || stop "$1.$2 failed"
  unset ETCH_RING ETCH_RING_BUDGET
  [ "$1" = server ] && sed -n 's/^server //p' "$work/log" >"$work/time" # not the time of its clients
  cat "$work/time" >>"$work/$1.$2.times"
  rm -f "$work"/rings/*
}

# How many bytes a run left in its rings, over all wraps: whole chunks without their slack, counted in each ring's head.
ring_bytes() {
  python3 - "$work"/rings/* <<'PY'
import struct, sys
total = 0
for name in sys.argv[1:]:
    data = open(name, "rb").read()
    chunks, slots, used = struct.unpack_from("<III", data, 16)
    head = len(data) - slots * (1 + chunks) * 4096
    for slot in range(min(slots, used)):
        total += struct.unpack_from("<Q", data, head + slot * (1 + chunks) * 4096 + 8)[0] * (4096 - 512)
print(total)
PY
}

volume() { # PROGRAM: bytes of the recording build, and instructions of the plain one, of the same work
  rm -f "$work"/rings/*
  ETCH_BENCH_SCALE=1 feed "$1"
  (export ETCH_RING=$work/rings ETCH_RING_BUDGET=off ETCH_BENCH_SCALE=1 && run_program "$1" "$work/$1.full")
  ring_bytes >"$work/$1.bytes"
  strip -o "$work/$1.bare" "$work/$1.plain" # valgrind of this age cannot read all of clang's DWARF
  printf '#!/bin/sh\nexec valgrind --tool=callgrind --callgrind-out-file=/dev/null --log-file="%s/count.%%p" "%s" "$@"\n' \
    "$work" "$work/$1.bare" >"$work/counted"
  chmod +x "$work/counted"
  rm -f "$work"/count.*
  (export ETCH_BENCH_SCALE=1 && run_program "$1" "$work/counted")
  awk '/Collected/ { sum += $4 } END { printf "%.0f\n", sum }' "$work"/count.* >"$work/$1.instructions"
}

# Bytes of code and constants, without and with the recorder; also of its library
sizes() {
  local column
  for column in plain full; do
    { size "$work/$1.$column" "$work/$1.$column".lib/*.so 2>/dev/null || true; } | awk 'NR > 1 { n += $1 } END { print n + 0 }'
  done >"$work/$1.sizes"
}

mkdir -p "$work/rings"
clang-19 -O2 -c "$here/soft_hooks.c" -o "$work/hooks.o"
for program in $programs; do
  prepare "$program"
  rm -f "$work/$program".*.times
  compile_all "$program"
  for ((round = 0; round < rounds; round++)); do # in turns, so that a noisy neighbour meets all of them, each time from another on
    for column in $(turned "$round" "$(columns_of "$program")"); do
      [ ! -e "$work/$program.$column" ] || once "$program" "$column"
    done
  done
  [[ ${ETCH_BENCH_VOLUME:-1} = 0 || " $four " != *" $program "* ]] || volume "$program"
  sizes "$program"
done

python3 "$here/soft_table.py" "$work" "$programs" "$columns"
