#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Decoded == executed: what comes out of the packets is, instruction for instruction and thread by thread, what the truth
# log says. The log comes from a callback before each instruction and knows nothing of packets (collector/vpt/truth.h).
. "$(dirname "$0")/lib.sh"
need_vpt
programs=$ETCH_BUILD/tests/programs
cd "$work"

# decode BUNDLE TID: addresses, one a line. By etch; by libipt's own instruction decoder with PLAIN=1.
decode() {
  if [ -n "${PLAIN:-}" ] || ! "$ETCH" help decode >/dev/null 2>&1; then
    "$ETCH_BUILD/tests/plain_decode" "$1" "$2"
  else
    "$ETCH" decode "$1" --as insn --fields ip --thread "$2"
  fi
}

# Instructions that ran to their end, and the one that the thread died of, with which the log ends: without those that
# faulted and were tried again or handled, and without the unused room at the end of the log
finished() {
  tr -d '\0' <"$1" | sed -e '$s/ fault$//' -e '/ fault$/d'
}

# record NAME STATUS: leaves NAME/run.etch and NAME/*.truth
record() {
  mkdir "$1"
  expect "$2" "$ETCH" record -o "$1/run.etch" --truth "$1" -- "$programs/$1"
  expect 0 "$ETCH" info --verify "$1/run.etch"
}

# compare NAME [killed]: every thread. One that was killed, by SIGKILL or because another one failed, was somewhere in a
# block: all before it is there; how far it got in that one, of some ten instructions in these programs, nobody but the
# log knows.
compare() {
  local log tid threads=0 n
  for log in "$1"/*.truth; do
    tid=${log%.truth}
    tid=${tid##*.}
    finished "$log" >want
    decode "$1/run.etch" "$tid" >got 2>err || { cat err >&2; fail "$1: thread $tid does not decode"; }
    [ -s want ] || fail "$1: nothing in $log"
    if [ "${2:-}" = killed ] && ! grep -q ' fault$' "$log"; then
      n=$(wc -l <got)
      [ $(($(wc -l <want) - n)) -le 40 ] || fail "$1: thread $tid: $n of $(wc -l <want) instructions decoded"
      head -n "$n" want >begun
      mv begun want
    fi
    checks=$((checks + 1))
    cmp -s want got || { diff want got | head -n 20 >&2; fail "$1: thread $tid: decoded and executed differ"; }
    threads=$((threads + 1))
  done
  echo "$1: $threads threads, $(cat "$1"/*.truth | tr -d '\0' | wc -l) instructions"
}

# failing_ip NAME: as the bundle says
failing_ip() {
  "$ETCH" info --json "$1/run.etch" | grep -A12 '"failure"' | sed -n 's/.*"ip": "0x\([0-9a-f]*\)".*/\1/p'
}

for name in loops recursion callbacks callbacks-nopie switches jumps signals storm threads forks loader exceptions jit \
  loops-static signals-static threads-static exceptions-static; do
  record $name 0
  compare $name
done
for name in segv segv-static crash; do
  record $name 139
  compare $name killed
  # The last instruction that the failing thread began is the one that failed.
  last=$(cat $name/*.truth | tr -d '\0' | sed -n 's/ fault$//p')
  [ "$last" = "$(failing_ip $name)" ] || fail "$name: failed at $(failing_ip $name), the last instruction was $last"
  tid=$("$ETCH" info --json "$name/run.etch" | grep -A12 '"failure"' | sed -n 's/.*"tid": \([0-9]*\).*/\1/p')
  [ "$("$ETCH" decode "$name/run.etch" --as insn --fields ip --thread "$tid" --last 1)" = "$last" ] ||
    fail "$name: the last decoded instruction is not the one that failed"
  checks=$((checks + 1))
done
record wild 139
compare wild
record aborts 134
compare aborts

# A snapshot: what is decoded is the end of what ran.
mkdir snapshot
expect 0 "$ETCH" record -o snapshot/run.etch --snapshot 32K --truth snapshot -- "$programs/exceptions"
for log in snapshot/*.truth; do
  tid=${log%.truth}
  finished "$log" >want
  decode snapshot/run.etch "${tid##*.}" >got 2>err || { cat err >&2; fail "snapshot: does not decode"; }
  n=$(wc -l <got)
  [ "$n" -gt 10000 ] && [ "$n" -lt "$(wc -l <want)" ] || fail "snapshot: $n instructions"
  tail -n "$n" want | cmp - got || fail "snapshot: not the end of what ran"
  checks=$((checks + 1))
done

# Killed from outside, at any instruction
for turn in 1 2 3 4 5; do
  rm -rf endless running
  mkdir endless
  "$ETCH" record -o endless/run.etch --truth endless -- "$programs/endless" >running 2>err &
  etch=$!
  until [ -s running ]; do sleep 0.02; done
  sleep 0.0$((turn * 13 % 7))
  kill -KILL "$(pgrep -P $etch)"
  wait $etch && fail "killed, but status 0"
  compare endless killed
done
done_checking
