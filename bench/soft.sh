#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# soft.sh BUILD: what the software recorder costs. Real programs from Debian's sources and a program with threads, built plain and
# with the recorder (off, on, and on for a few functions), beside the peers that instrument control flow too: clang's
# trace-pc-guard with an empty callback, -finstrument-functions with empty hooks, ThreadSanitizer. Interleaved runs, processor
# time, medians of $RUNS (11), as ratios to plain. KB/M: kilobytes written per million instructions of the plain program.
# The sources come through apt with a list of its own, and are kept in ETCH_BENCH_SOURCES if that is set.
set -eu
build=$(cd "$1" && pwd)
etch=$build/etch
tree=$(cd "$(dirname "$0")/.." && pwd)
sources=${ETCH_BENCH_SOURCES:-$(mktemp -d)}
work=$(mktemp -d)
trap 'rm -rf "$work"; [ -n "${ETCH_BENCH_SOURCES:-}" ] || rm -rf "$sources"' EXIT
runs=${RUNS:-11}

# fetch PACKAGE: its unpacked source is in $sources/PACKAGE-*
fetch() {
  [ -n "$(find "$sources" -maxdepth 1 -type d -name "$1-*" -print -quit)" ] && return 0
  mkdir -p "$sources/apt/lists/partial" "$sources/apt/cache/archives/partial"
  [ -s "$sources/apt/sources.list" ] || {
    sed -n 's/^URIs: *//p;s/^deb  *\(\[[^]]*\] *\)\?\([^ ]*\) .*/\2/p' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
      grep -m1 '/debian/\?$' | sed 's|.*|deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] & bookworm main|' >"$sources/apt/sources.list"
    apt_own update -qq
  }
  (cd "$sources" && apt_own source -qq "$2")
}
apt_own() {
  apt-get -o Dir::Etc::SourceList="$sources/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
    -o Dir::State::Lists="$sources/apt/lists" -o Dir::Cache="$sources/apt/cache" -o APT::Sandbox::User=root "$@" >>"$sources/log" 2>&1
}

printf 'void __sanitizer_cov_trace_pc_guard(unsigned *g) { (void)g; }\nvoid __sanitizer_cov_trace_pc_guard_init(unsigned *a, unsigned *b) { (void)a; (void)b; }\n' >"$work/guard.c"
printf '__attribute__((no_instrument_function)) void __cyg_profile_func_enter(void *f, void *c) { (void)f; (void)c; }\n__attribute__((no_instrument_function)) void __cyg_profile_func_exit(void *f, void *c) { (void)f; (void)c; }\n' >"$work/hooks.c"
clang-19 -O2 -c "$work/guard.c" -o "$work/guard.o"
clang-19 -O2 -c "$work/hooks.c" -o "$work/hooks.o"

# make_all NAME SLICE FLAGS SOURCE...: one program in every way
make_all() {
  local name=$1 slice=$2 flags=$3
  shift 3
  # shellcheck disable=SC2086
  {
    clang-19 -O2 -w $flags "$@" -o "$work/$name-plain" -lm -pthread
    "$etch" cc --record -O2 -w $flags "$@" -o "$work/$name-soft" -lm -pthread
    "$etch" cc --record-only="$slice" -O2 -w $flags "$@" -o "$work/$name-slice" -lm -pthread
    clang-19 -O2 -w $flags -fsanitize-coverage=trace-pc-guard "$@" "$work/guard.o" -o "$work/$name-guard" -lm -pthread
    clang-19 -O2 -w $flags -finstrument-functions "$@" "$work/hooks.o" -o "$work/$name-hooks" -lm -pthread
    clang-19 -O2 -w $flags -fsanitize=thread "$@" -o "$work/$name-tsan" -lm -pthread
  }
}

# seconds COMMAND...: processor time
seconds() { { /usr/bin/time -f '%U %S' -o "$work/time" "$@" >/dev/null 2>&1 || true; } && awk 'END { print $1 + $2 }' "$work/time"; }

# measure NAME ARG...: a row
measure() {
  local name=$1 i way
  shift
  for i in $(seq "$runs"); do
    for way in plain off on slice guard hooks tsan; do
      [ $way = tsan ] && [ "$i" -gt 3 ] && continue
      local program=$work/$name-$way
      case $way in off | on) program=$work/$name-soft ;; esac
      rm -rf "$work/rings"
      mkdir "$work/rings"
      case $way in
      on | slice) ETCH_RING=$work/rings seconds "$program" "$@" >>"$work/$name.$way" ;;
      *) seconds "$program" "$@" >>"$work/$name.$way" ;;
      esac
    done
  done
  python3 - "$work/$name" "$name" <<'P'
import statistics, sys
base = statistics.median(map(float, open(sys.argv[1] + '.plain')))
row = ['%-8s %6.2f' % (sys.argv[2], base)]
for way in ('off', 'on', 'slice', 'guard', 'hooks', 'tsan'):
    row.append('%6.2f' % (statistics.median(map(float, open('%s.%s' % (sys.argv[1], way)))) / base))
print(' '.join(row), flush=True)
P
}

fetch bzip2 bzip2
fetch 'lua5.4' 'lua5.4' || true
printf '%-8s %6s %6s %6s %6s %6s %6s %6s\n' program plain off on slice guard hooks tsan
bz=$(find "$sources" -maxdepth 1 -type d -name 'bzip2-*' -print -quit)
make_all bzip2 mainSimpleSort,mainGtU "-D_FILE_OFFSET_BITS=64" "$bz"/{blocksort,huffman,crctable,randtable,compress,decompress,bzlib,bzip2}.c
head -c 6000000 "$build/etch-llvm" >"$work/data"
while [ "$(stat -c %s "$work/data")" -lt 6000000 ]; do cat "$build/etch-llvm" >>"$work/data"; done
measure bzip2 -k -c "$work/data"
lua=$(find "$sources" -maxdepth 1 -type d -name 'lua5.4-*' -print -quit)/src
find "$lua" -maxdepth 1 -name '*.c' ! -name luac.c | sort >"$work/lua.list"
mapfile -t files <"$work/lua.list"
make_all lua luaH_getint,luaH_get,luaV_finishget "-DLUA_COMPAT_5_3 -DLUA_USE_POSIX" "${files[@]}"
cat >"$work/work.lua" <<'L'
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local t = {}
for i = 1, 200000 do t[i] = (i * 7919) % 100003 end
table.sort(t)
local s = {}
for i = 1, 60000 do s[#s + 1] = tostring(i):rep(2) end
print(fib(29), #table.concat(s), t[1000])
L
measure lua "$work/work.lua"
make_all threads mixed "" "$tree/tests/programs/busy.c"
measure threads
