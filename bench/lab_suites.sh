#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# lab_suites.sh BUILD: real programs, built by their own build systems with etch cc, in the lab. Each does its work under `queue` and
# under ETCH_BENCH_SCHEDULES other schedules (100), with the heap checked. A program that passes outside the lab must pass: what fails
# is counted, and is a false report until somebody shows the bug. ETCH_BENCH_SOURCES keeps sources.
# ETCH_BENCH_PROGRAMS: pbzip2 xz memcached sqlite leveldb.
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
. "$here/debian.bash"
trap 'rm -rf "$work"; forget_sources' EXIT
export XDG_CACHE_HOME=$work/cache
schedules=${ETCH_BENCH_SCHEDULES:-100}
false_reports=0

stop() {
  tail -n 20 "$work/log" >&2
  echo "lab_suites.sh: $1" >&2
  exit 1
}

copy() { # PACKAGE: its source in $work/PACKAGE
  fetch "$1"
  cp -a "$sources/$1"-*/ "$work/$1"
}

make_pbzip2() {
  copy pbzip2
  cd "$work/pbzip2"
  make CXX="$build/etch c++" CXXFLAGS="-g -O2 -w -Wno-reserved-user-defined-literal -pthread -D_REENTRANT" pbzip2
}

make_xz() {
  copy xz-utils
  cd "$work/xz-utils"
  CC="$build/etch cc" CFLAGS="-g -O2 -w" ./configure --disable-shared --disable-nls --disable-doc && make
  cp src/xz/xz "$work/xz"
}

make_memcached() {
  copy memcached
  cd "$work/memcached"
  CC="$build/etch cc" CFLAGS="-g -O2 -w" ./configure --disable-docs && make memcached testapp sizes
}

make_sqlite() {
  copy sqlite3
  cd "$work/sqlite3"
  ./configure --disable-tcl && make sqlite3.c
  "$build/etch" cc -g -O2 -w -DSQLITE_THREADSAFE=1 -I. "$here/lab_sqlite.c" sqlite3.c -o "$work/sqlite" -pthread -ldl -lm
}

make_leveldb() {
  copy leveldb
  cd "$work/leveldb"
  CC="$build/etch cc" CXX="$build/etch c++" cmake -S . -B build -DCMAKE_BUILD_TYPE=RelWithDebInfo -DLEVELDB_BUILD_TESTS=OFF \
    -DLEVELDB_BUILD_BENCHMARKS=OFF -DHAVE_SNAPPY=OFF -DHAVE_CRC32C=OFF -DHAVE_TCMALLOC=OFF
  cmake --build build -j2
  "$build/etch" c++ -std=c++17 -g -O2 -Iinclude "$here/lab_leveldb.cpp" build/libleveldb.a -o "$work/leveldb.test" -pthread
}

# try NAME PROGRAM ARG...: what it does, outside and in the lab
try() {
  local name=$1 status=0 how
  shift
  timeout 60 "$@" >/dev/null 2>&1 </dev/null || { printf '%-28s fails outside the lab\n' "$name"; return; }
  for how in "queue 1" "surw $schedules"; do
    set -- "$@"
    status=0
    "$build/etch" explore --no-cause --all --strategy "${how% *}:1" --schedules "${how#* }" --timeout 120 -o "$work/found.etch" "$@" \
      >"$work/out" 2>"$work/err" </dev/null || status=$?
    rm -f "$work/found.etch"
    case $status in
    1) if [ -s "$work/err" ]; then head -c 200 "$work/err"; else printf '%-28s %-6s %4s schedules, 0 fail%s\n' "$name" "${how% *}" "${how#* }" "$(sed -n 's/^\([0-9]* schedules\? did not end\).*/, \1/p' "$work/out")"; fi ;;
    *)
      printf '%-28s %-6s %4s schedules, %s\n' "$name" "${how% *}" "${how#* }" "$(grep -m1 '^failing' "$work/out" || head -n 1 "$work/out")"
      head -n 8 "$work/out" | sed 's/^/    /'
      false_reports=$((false_reports + 1))
      ;;
    esac
  done
}

try_pbzip2() {
  head -c 300000 /dev/urandom >"$work/random"
  try "pbzip2, compress" "$work/pbzip2/pbzip2" -kf -p3 -b1 "$work/random"
  cp "$work/random.bz2" "$work/again.bz2"
  try "pbzip2, decompress" "$work/pbzip2/pbzip2" -dkf -p2 "$work/again.bz2"
  cmp "$work/random" "$work/again" || false_reports=$((false_reports + 1))
  try "pbzip2, test" "$work/pbzip2/pbzip2" -t -p2 "$work/again.bz2"
}

try_xz() {
  head -c 300000 /dev/urandom >"$work/random"
  try "xz -T2, compress" "$work/xz" -kf -T2 --block-size=65536 -1 "$work/random"
  try "xz -T2, test" "$work/xz" -t -T2 "$work/random.xz"
}

try_memcached() {
  try "memcached, sizes" "$work/memcached/sizes"
}

try_sqlite() {
  try "sqlite, threads" "$work/sqlite"
}

try_leveldb() {
  try "leveldb, threads" "$work/leveldb.test" "$work/db"
}

for program in ${ETCH_BENCH_PROGRAMS:-pbzip2 xz sqlite leveldb}; do
  (make_"$program") >"$work/log" 2>&1 || stop "cannot build $program"
  try_"$program"
done
echo "$false_reports false reports"
[ $false_reports = 0 ]
