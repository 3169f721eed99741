#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# slice.sh BUILD: real programs from Debian's source packages, built unchanged with etch cc and with plain clang -g: what the
# bitcode costs in build time and size, and what a slice takes (processor time). Limits: 5 s and 2 GiB.
set -eu
etch=$(cd "$1" && pwd)/etch
work=$(mktemp -d)
. "$(dirname "$0")/debian.bash"
trap 'rm -rf "$work"; forget_sources' EXIT

seconds() { # COMMAND...: processor time, which does not depend on who else is at work
  local TIMEFORMAT='%U %S'
  { time "$@" >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; echo "slice.sh: $* failed" >&2; return 1; }; } 2>"$work/time"
  awk 'END { printf "%.1f", $1 + $2 }' "$work/time"
}
# row NAME PLAIN_SECONDS ETCH_SECONDS PLAIN_BINARY ETCH_BINARY FILE:LINE
row() {
  "$etch" slice "$5" --at "$6" --stats >"$work/slice" 2>"$work/stats"
  awk -v name="$1" -v plain="$2" -v ours="$3" -v a="$(stat -c %s "$4")" -v b="$(stat -c %s "$5")" -v loaded="$(size -A "$5" | awk '$1 == ".text" { print $2 }')" \
    -v stats="$(tr '\n' ' ' <"$work/stats")" -v head="$(head -n 1 "$work/slice")" 'BEGIN {
      match(stats, /model [0-9.]+/); model = substr(stats, RSTART + 6, RLENGTH - 6)
      match(stats, /slice [0-9.]+/); slice = substr(stats, RSTART + 6, RLENGTH - 6)
      match(stats, /peak [0-9]+/); peak = substr(stats, RSTART + 5, RLENGTH - 5)
      match(head, /: [0-9]+ lines, [0-9]+/); split(substr(head, RSTART + 2, RLENGTH - 2), part, / lines, /)
      verdict = (model + slice < 5 && peak + 0 < 2048) ? "within limits" : "BEYOND LIMITS"
      printf "%-10s %5.2fx %7.2fx %8.2f s %8.2f s %6d MiB %7d %9d  %s\n", name, ours / plain, b / a, model, slice, peak, part[1], part[2], verdict }'
}
printf '%-10s %6s %8s %10s %10s %10s %7s %9s\n' program build binary model slice memory lines IR

fetch sqlite3
mkdir "$work/sqlite" && cd "$work/sqlite"
cp -a "$sources"/sqlite3-*/. .
(./configure --disable-tcl && make sqlite3.c) >"$work/log" 2>&1 || { tail "$work/log" >&2; exit 1; }
plain=$(seconds clang-19 -g -O2 -w -shared -fPIC sqlite3.c -o plain.so)
ours=$(seconds "$etch" cc -O2 -w -shared -fPIC sqlite3.c -o etch.so)
line=$(grep -n 'pCur->apPage\[pCur->iPage\] = pCur->pPage;' sqlite3.c | head -n 1 | cut -d: -f1)
row sqlite3 "$plain" "$ours" plain.so etch.so "sqlite3.c:$line"

fetch memcached
for how in plain etch; do
  mkdir "$work/memcached-$how" && cd "$work/memcached-$how"
  cp -a "$sources"/memcached-*/. .
  [ $how = plain ] && compiler=clang-19 || compiler="$etch cc"
  CC=$compiler CFLAGS="-g -O2 -w" ./configure --disable-docs >"$work/log" 2>&1 || { tail "$work/log" >&2; exit 1; }
  eval "memcached_$how=$(seconds make -j2 memcached)"
done
line=$(grep -n 'refcount_decr(it) == 0' "$work/memcached-etch/items.c" | head -n 1 | cut -d: -f1)
row memcached "$memcached_plain" "$memcached_etch" "$work/memcached-plain/memcached" "$work/memcached-etch/memcached" "items.c:$line"

# its literals are older than C++11, which clang refuses without that option, with or without etch
fetch pbzip2
for how in plain etch; do
  mkdir "$work/pbzip2-$how" && cd "$work/pbzip2-$how"
  cp -a "$sources"/pbzip2-*/. .
  [ $how = plain ] && compiler=clang++-19 || compiler="$etch c++"
  eval "pbzip2_$how=$(seconds make CXX="$compiler" CXXFLAGS="-g -O2 -w -Wno-reserved-user-defined-literal -pthread -D_REENTRANT" pbzip2)"
done
line=$(grep -n 'pthread_mutex_unlock' "$work/pbzip2-etch/pbzip2.cpp" | sed -n 5p | cut -d: -f1)
row pbzip2 "$pbzip2_plain" "$pbzip2_etch" "$work/pbzip2-plain/pbzip2" "$work/pbzip2-etch/pbzip2" "pbzip2.cpp:$line"
