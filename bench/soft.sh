#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# soft.sh BUILD: what the software recorder costs: programs from Debian's sources and a pthread program of ours, built once per
# column with the same clang and options, run in turns; medians of the processor time, as ratios to the plain build. Targets: all
# recorded: geometric mean 1.15, worst 1.30; a slice 1.03; compiled in but off 1.02; 60 KB per million instructions.
# ETCH_BENCH_ROUNDS (11), ETCH_BENCH_SCALE (4: seconds per run), ETCH_BENCH_PROGRAMS, ETCH_BENCH_SOURCES (keeps sources).
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
. "$here/debian.bash"
. "$here/soft_programs.bash"
trap 'rm -rf "$work"; forget_sources' EXIT
rounds=${ETCH_BENCH_ROUNDS:-11}
programs=${ETCH_BENCH_PROGRAMS:-bzip2 lua sqlite threads}
columns=${ETCH_BENCH_COLUMNS:-plain full slice off guard functions tsan}

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

turned() { # ROUND: the columns, beginning with another one each round
  local all=($columns) first
  first=$(($1 % ${#all[@]}))
  echo "${all[@]:first}" "${all[@]:0:first}"
}

compile() { # PROGRAM COLUMN
  local flags="-O2 -g -w -o $work/$1.$2"
  case $2 in
  plain) make_program "$1" clang-19 $flags ;;
  full) make_program "$1" "$build/etch" cc --record $flags ;;
  slice) plan_of "$1" && make_program "$1" "$build/etch" cc --record-only="@$work/$1.plan" $flags ;;
  guard) make_program "$1" clang-19 $flags -fsanitize-coverage=trace-pc-guard "$work/hooks.o" ;;
  functions) make_program "$1" clang-19 $flags -finstrument-functions "$work/hooks.o" ;;
  tsan) make_program "$1" clang-19 $flags -fsanitize=thread ;;
  off) ln -sf "$1.full" "$work/$1.off" ;;
  esac
}

once() { # PROGRAM COLUMN: its processor time, appended
  local TIMEFORMAT='%U %S'
  case $2 in
  full | slice) export ETCH_RING=$work/rings ;;
  *) unset ETCH_RING ;;
  esac
  { time run_program "$1" "$work/$1.$2" 2>"$work/log"; } 2>"$work/time" || stop "$1.$2 failed"
  unset ETCH_RING
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
  (export ETCH_RING=$work/rings ETCH_BENCH_SCALE=1 && run_program "$1" "$work/$1.full")
  ring_bytes >"$work/$1.bytes"
  strip -o "$work/$1.bare" "$work/$1.plain" # valgrind of this age cannot read all of clang's DWARF
  printf '#!/bin/sh\nexec valgrind --tool=callgrind --callgrind-out-file=/dev/null --log-file="%s/count.%%p" "%s" "$@"\n' \
    "$work" "$work/$1.bare" >"$work/counted"
  chmod +x "$work/counted"
  rm -f "$work"/count.*
  (export ETCH_BENCH_SCALE=1 && run_program "$1" "$work/counted")
  awk '/Collected/ { sum += $4 } END { printf "%.0f\n", sum }' "$work"/count.* >"$work/$1.instructions"
}

# Bytes of code and constants, without and with the recorder
sizes() { size "$work/$1.plain" "$work/$1.full" | awk 'NR > 1 { print $1 }' >"$work/$1.sizes"; }

mkdir -p "$work/rings"
clang-19 -O2 -c "$here/soft_hooks.c" -o "$work/hooks.o"
for program in $programs; do
  prepare "$program"
  for column in $columns; do compile "$program" "$column"; done
  for ((round = 0; round < rounds; round++)); do # in turns, so that a noisy neighbour meets all of them, each time from another on
    for column in $(turned "$round"); do
      [ "$column" = tsan ] && ((round > 2)) && continue # far from the others: three are enough
      once "$program" "$column"
    done
  done
  volume "$program"
  sizes "$program"
done

python3 - "$work" "$programs" "$columns" <<'PY'
import math, statistics, sys
work, programs, columns = sys.argv[1], sys.argv[2].split(), sys.argv[3].split()
shown = [c for c in columns if c != "plain"]
def times(program, column):
    return [sum(map(float, line.split())) for line in open(f"{work}/{program}.{column}.times")]
print("%-10s %8s " % ("", "plain") + " ".join("%9s" % c for c in shown) + "   KB per million instructions")
ratios, volumes = {c: [] for c in shown}, []
for p in programs:
    plain = statistics.median(times(p, "plain"))
    for c in shown:
        ratios[c].append(statistics.median(times(p, c)) / plain)
    volumes.append(int(open(f"{work}/{p}.bytes").read()) / 1e3 / (int(open(f"{work}/{p}.instructions").read()) / 1e6))
    size = [int(line) for line in open(f"{work}/{p}.sizes")]
    print("%-10s %6.2f s " % (p, plain) + " ".join("%9.3f" % ratios[c][-1] for c in shown) +
          "   %.1f, code %.0f KB plain, %.0f KB with it" % (volumes[-1], size[0] / 1e3, size[1] / 1e3))
mean = {c: math.exp(statistics.mean(map(math.log, ratios[c]))) for c in shown}
print("%-10s %8s " % ("geo. mean", "") + " ".join("%9.3f" % mean[c] for c in shown))
print("%-10s %8s " % ("worst", "") + " ".join("%9.3f" % max(ratios[c]) for c in shown) + "   %.1f" % max(volumes))
def verdict(name, value, limit):
    print("%s: %.3f (target %.2f%s)" % (name, value, limit, "" if value <= limit else ", MISSED"))
verdict("all recorded, mean", mean["full"], 1.15)
verdict("all recorded, worst", max(ratios["full"]), 1.30)
verdict("a slice, median", statistics.median(ratios["slice"]), 1.03)
verdict("compiled in but off, mean", mean["off"], 1.02)
verdict("KB per million instructions, worst", max(volumes), 60)
PY
