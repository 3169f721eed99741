#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# report.sh BUILD: what etch report and etch bench are measured by.
# 1. A regression planted in one function of lua, sqlite and a C++ program: trials of 20 + 20 runs in which it
#    is found and no other function is blamed; and trials of the same build, in which anything that is claimed is a false
#    alarm. Each build is recorded 40 times in turn. A trial draws 20 runs of each side; of the same build 20 and the
#    other 20.
# 2. Decoding and reporting of many branches, and the same from an index.
# 3. Beside uftrace on the same program: overhead, size, time to report.
# ETCH_BENCH_TRIALS (20), ETCH_BENCH_RUNS (40) and ETCH_BENCH_PROGRAMS (cpp lua sqlite) for a quick look.
set -eu
build=$1
here=$(cd "$(dirname "$0")" && pwd)
etch=$build/etch
. "$here/debian.bash"
work=$(mktemp -d)
trap 'rm -rf "$work"; forget_sources' EXIT
trials=${ETCH_BENCH_TRIALS:-20} runs=${ETCH_BENCH_RUNS:-40}
half=$((runs / 2))
export ETCH_RING_BUDGET=off

# In C the plant is one volatile increment in each call of a small function, less than 1 % of the whole run; in C++ it
# is 1 % of the function. The function is not inlined in either build: its callers would truly be slower then.
# make_lua FOLDER PLANT
make_lua() {
  fetch lua5.4
  mkdir -p "$1" && cp -a "$sources"/lua5.4-*/. "$1"
  echo '#define DEB_HOST_MULTIARCH "x86_64-linux-gnu"' >"$1/src/lua5.4-deb-multiarch.h"
  sed -i 's|^const TValue \*luaH_getshortstr (Table \*t, TString \*key) {|static volatile unsigned planted; __attribute__((noinline)) &\n  PLANT;|' "$1/src/ltable.c"
  grep -q PLANT "$1/src/ltable.c"
  sed -i "s|PLANT;|$([ "$2" = no ] || echo 'planted++;')|" "$1/src/ltable.c"
  (cd "$1/src" && for f in *.c; do [ "$f" = luac.c ] || "$etch" cc --record -O2 -g -DLUA_USE_POSIX -w -c "$f"; done &&
    "$etch" cc --record -O2 -g *.o -lm -o ../program) >"$work/log" 2>&1
  cat >"$1/input" <<'LUA'
local t, s = {}, 42
for i = 1, 400 do s = (s * 1103515245 + 12345) % 2147483648; t[i] = string.char(97 + s % 26) .. s end
table.sort(t)
local n = 0
for i = 1, 2000 do n = n + #t[i % 400 + 1]; t.some = n; n = t.some end
print(n)
LUA
}

make_sqlite() {
  fetch sqlite3
  mkdir -p "$1"
  [ -s "$sources/amalgamation/sqlite3.c" ] || {
    cp -a "$sources"/sqlite3-*/. "$work/sqlite-source"
    (cd "$work/sqlite-source" && ./configure --disable-tcl && make sqlite3.c shell.c) >"$work/log" 2>&1
    mkdir -p "$sources/amalgamation" && cp "$work"/sqlite-source/{sqlite3.c,sqlite3.h,shell.c} "$sources/amalgamation"
  }
  cp "$sources"/amalgamation/* "$1"
  sed -i 's|^SQLITE_PRIVATE int sqlite3GetToken(const unsigned char \*z, int \*tokenType){|static volatile unsigned planted; __attribute__((noinline)) &\n  PLANT;|' "$1/sqlite3.c"
  grep -q PLANT "$1/sqlite3.c"
  sed -i "s|PLANT;|$([ "$2" = no ] || echo 'planted++;')|" "$1/sqlite3.c"
  (cd "$1" && "$etch" cc --record -O2 -g -w -DSQLITE_THREADSAFE=0 -DSQLITE_OMIT_LOAD_EXTENSION sqlite3.c shell.c -lm -o program) >"$work/log" 2>&1
  { echo 'create table t(a, b);'; for i in $(seq 300); do echo "insert into t values($((i * 7919 % 1009)), 'row $i');"; done
    echo 'select sum(a), count(distinct b) from t where a > 500;'; } >"$1/input"
}

make_cpp() {
  mkdir -p "$1"
  local extra=0
  [ "$2" = no ] || extra=1
  "$etch" c++ --record -O2 -g -x c++ -DEXTRA=$extra "$here/../tests/programs/report/regression.c" -o "$1/program" >"$work/log" 2>&1
  : >"$1/input"
}

# record_all NAME: runs of A and B in turn, in $work/NAME/{A,B}.runs
record_all() {
  local i side
  mkdir -p "$work/$1/A.runs" "$work/$1/B.runs"
  for i in $(seq -w "$runs"); do
    for side in A B; do
      "$etch" record --source soft --snapshot 32M --no-sync --clock 0 -o "$work/$1/$side.runs/$i.etch" \
        "$work/$1/$side/program" <"$work/$1/$side/input" >/dev/null 2>"$work/log"
    done
  done
}

# draw FROM FOLDER N: N runs by chance; the rest goes to FOLDER.rest
draw() {
  rm -rf "$2" "$2.rest" && mkdir "$2" "$2.rest"
  find "$1" -name '*.etch' | shuf --random-source=<(yes "$seed") >"$work/order"
  head -n "$3" "$work/order" | xargs -I{} ln -s {} "$2"
  tail -n +$(($3 + 1)) "$work/order" | xargs -I{} ln -s {} "$2.rest"
}

# verdict A B FUNCTION: found, alarm (another function, or anything where FUNCTION is empty), or nothing
verdict() {
  "$etch" report --diff "$1" "$2" --json 2>>"$work/log" | python3 -c '
import json, sys
d = json.load(sys.stdin)
names = {r["function"].split("(")[0] for r in d["rows"] if r.get("function") and r["verdict"] == "different" and r["measure"] == "instructions" and r["by"] > 0}
wanted = sys.argv[1]
print("lost" if d["lost"] else "alarm" if names - {wanted} else "found" if wanted in names and wanted else "nothing")' "$3"
}

printf '%-10s %-20s %16s %16s %16s\n' program 'function' 'found' 'others blamed' 'A/A alarms'
for program in ${ETCH_BENCH_PROGRAMS:-cpp lua sqlite}; do
  case $program in lua) function=luaH_getshortstr ;; sqlite) function=sqlite3GetToken ;; cpp) function=hash ;; esac
  "make_$program" "$work/$program/A" no || { echo "$program: not built" >&2; tail -n 3 "$work/log" >&2; continue; }
  "make_$program" "$work/$program/B" yes || { echo "$program: not built" >&2; tail -n 3 "$work/log" >&2; continue; }
  record_all "$program"
  found=0 blamed=0 alarms=0
  for seed in $(seq "$trials"); do
    draw "$work/$program/A.runs" "$work/a" "$half"
    draw "$work/$program/B.runs" "$work/b" "$half"
    case $(verdict "$work/a" "$work/b" $function) in found) found=$((found + 1)) ;; alarm) blamed=$((blamed + 1)) ;; esac
    case $(verdict "$work/a" "$work/a.rest" '') in nothing) ;; *) alarms=$((alarms + 1)) ;; esac
  done
  printf '%-10s %-20s %9d of %3d %9d of %3d %9d of %3d\n' "$program" "$function" "$found" "$trials" "$blamed" "$trials" "$alarms" "$trials"
done

# ---- Many branches ----
cat >"$work/many.c" <<'C'
#include <stdio.h>
__attribute__((noinline)) static unsigned leaf(unsigned a) { return (a & 1) ? a * 31 + 7 : a * 3; }
__attribute__((noinline)) static unsigned mid(unsigned a) { unsigned s = 0; for (int i = 0; i < 20; i++) { s += leaf(a + i); if (s & 64) s ^= i; } return s; }
int main(void) { unsigned s = 0; for (int i = 0; i < 400000; i++) s += mid(i); printf("%u\n", s); }
C
"$etch" cc --record -O2 "$work/many.c" -o "$work/many"
"$etch" record --source soft --snapshot 64M -o "$work/many.etch" "$work/many" >/dev/null 2>"$work/log"
# timed COMMAND...: CPU seconds and peak memory in $cpu, $peak
timed() {
  python3 - "$@" <<'P' >"$work/timed"
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
r = resource.getrusage(resource.RUSAGE_CHILDREN)
print(round(r.ru_utime + r.ru_stime, 2), r.ru_maxrss // 1024)
P
  read -r cpu peak <"$work/timed"
}
branches=$("$etch" report "$work/many.etch" --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["branches"])')
timed "$etch" report "$work/many.etch"
echo
awk "BEGIN { printf \"%.1f million branches: %.2f s CPU, %d MiB; 10^9 branches: %.0f s CPU, so %.0f s on two idle CPUs at best (aim 60 s)\n\", $branches / 1e6, $cpu, $peak, $cpu * 1e9 / $branches, $cpu * 5e8 / $branches }"
"$etch" report "$work/many.etch" --index "$work/index" >/dev/null
timed "$etch" report "$work/many.etch" --index "$work/index"
echo "the same from an index: $cpu s CPU, $peak MiB (aim 2 s)"

# ---- Beside uftrace ----
command -v uftrace >/dev/null || { echo "uftrace is not here"; exit 0; }
slow=$here/../tests/programs/report/slow_calls.c
"${ETCH_CC:-cc}" -O2 -pg "$slow" -o "$work/slow_pg"
"${ETCH_CC:-cc}" -O2 "$slow" -o "$work/slow"
"$etch" cc --record -O2 "$slow" -o "$work/slow_etch"
timed "$work/slow" && plain=$cpu
timed uftrace record -d "$work/uf" "$work/slow_pg" && theirs=$cpu
timed "$etch" record --source soft --snapshot 16M -o "$work/slow.etch" "$work/slow_etch" && ours=$cpu
timed uftrace report -d "$work/uf" && their_report=$cpu
timed "$etch" report "$work/slow.etch"
echo "slow_calls alone $plain s CPU; recorded by uftrace $theirs s, by etch $ours s (all of etch, with its start)"
echo "report: uftrace $their_report s, etch $cpu s; recording: uftrace $(du -sk "$work/uf" | cut -f1) KiB, etch $(du -k "$work/slow.etch" | cut -f1) KiB"
