#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# soft_real.sh BUILD: is what the software recorder replays what ran, on real code? Programs from Debian's sources are built with
# etch cc --record and run once each under vpt, which sees every instruction; the rings of that very run are replayed, and the nodes
# that both passed are compared, thread by thread: from the start with large rings, and the newest part with rings that wrapped.
# ETCH_BENCH_PROGRAMS, ETCH_BENCH_SOURCES (keeps sources). Fails where one differs.
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
. "$here/debian.bash"
. "$here/soft_programs.bash"
trap 'rm -rf "$work"; forget_sources' EXIT
programs=${ETCH_BENCH_PROGRAMS:-bzip2 lua sqlite threads pbzip2 memcached}
export ETCH_BENCH_SCALE=1 ETCH_RING_BUDGET=off
different=0

compile() { # PROGRAM
  case $1 in
  pbzip2 | memcached) make_package "$1" "$build/etch" record "$work/$1.full" ;;
  *) make_program "$1" "$build/etch" cc --record -O2 -g -w -o "$work/$1.full" ;;
  esac
}

# once PROGRAM KB COMMAND...: one run and its comparison
once() {
  local program=$1 kb=$2 how=
  shift 2
  ((kb < 1024)) && how=part
  [ "$program" = memcached ] && how=${how:-cut} # its threads go on until the process ends
  rm -rf "$work/rings"
  mkdir "$work/rings"
  ETCH_RING=$work/rings ETCH_RING_KB=$kb "$build/etch" record --source vpt -o "$work/truth.etch" -- "$@" >"$work/log" 2>&1 </dev/null || true
  "$build/etch" record --rings "$work/rings" -o "$work/soft.etch" >"$work/log" 2>&1 || stop "$program: no rings"
  if "$build/tests/soft_compare" "$work/truth.etch" "$work/soft.etch" $how >"$work/said" 2>&1; then
    printf '%-10s %6d KB  %s\n' "$program" "$kb" "$(tail -n 1 "$work/said")"
  else
    printf '%-10s %6d KB  DIFFERENT\n' "$program" "$kb"
    tail -n 8 "$work/said"
    different=1
  fi
}

# visit SOCKET: waits for memcached, has it do something, and asks it to end
visit() {
  python3 - "$1" <<'PY'
import os, socket, sys, time
s = socket.socket(socket.AF_UNIX)
for attempt in range(600):
    try:
        s.connect(sys.argv[1])
        break
    except OSError:
        time.sleep(0.1)
for i in range(20):
    s.sendall(b"set k%d 0 0 5\r\nvalue\r\nget k%d\r\nincr n 1\r\n" % (i, i // 2))
s.sendall(b"stats\r\nshutdown\r\n")
while s.recv(4096):
    pass
PY
}

head -c 20000 "$here/soft_threads.c" >"$work/text"
for program in $programs; do
  prepare "$program"
  compile "$program"
  for kb in 65536 16; do
    case $program in
    bzip2) once bzip2 $kb "$work/bzip2.full" -k -f -9 "$work/text" && once bzip2 $kb "$work/bzip2.full" -d -c "$work/text.bz2" ;;
    pbzip2) once pbzip2 $kb "$work/pbzip2.full" -p2 -b1 -k -f "$work/text" && once pbzip2 $kb "$work/pbzip2.full" -p2 -d -c "$work/text.bz2" ;;
    lua) once lua $kb "$work/lua.full" "$here/soft_real.lua" ;;
    sqlite) once sqlite $kb "$work/sqlite.full" :memory: ".read $here/soft_real.sql" ;;
    threads) once threads $kb "$work/threads.full" 2 ;;
    memcached)
      rm -f "$work/socket"
      visit "$work/socket" &
      once memcached $kb "$work/memcached.full" -A -s "$work/socket" -t 2 -m 8 -u root
      wait
      ;;
    esac
  done
done
exit $different
