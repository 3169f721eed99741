#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program whose threads wait for each other for ever is ended within seconds where its hang is to be ended at all; one
# that anything could still wake is not, and neither is one that nobody asked to end.
. "$(dirname "$0")/lib.sh"
source=$ETCH_SOURCE/tests/programs/native/waits.c
"$ETCH_CC" -O0 -g -pthread "$source" -o "$work/waits"
"$ETCH_CC" -O0 -g -pthread -DALARM "$source" -o "$work/waits_alarm"
found="all threads wait for each other"
[ -e /proc/$$/task/$$/children ] || skip "this kernel does not tell children"
[ -e /proc/$$/timers ] || skip "this kernel does not tell timers"
limits="--wall 20 --kill"

# The runs of a diagnosis that hang: one that was waited for would take longer than all may.
"$ETCH" cc -g -w -O0 -pthread "$ETCH_SOURCE/tests/corpus/deadlock-abba/bug.c" -o "$work/abba"
start=$SECONDS
expect 0 "$ETCH" diagnose --no-lab --source none --store "$work/store" --timeout 100 --time 90 --fresh "$work/abba"
[ $((SECONDS - start)) -lt 60 ] || fail "hanging runs were waited for, $((SECONDS - start)) s"
has "$work/out" "CAUSE  A lock_order"
has "$work/out" "$found"

for way in ring itself join; do
  for limit in "--wall 20 --kill" "--hang 20 --kill"; do
    start=$SECONDS
    expect 137 "$ETCH" record --source none --clock 0 $limit -o "$work/run.etch" "$work/waits" $way
    [ $((SECONDS - start)) -lt 8 ] || fail "$way was waited for, $((SECONDS - start)) s"
    has "$work/err" "$found"
    "$ETCH" info --records "$work/run.etch" >"$work/records"
    has "$work/records" "$found"
  done
done

# wakes STATUS PROGRAM ARGUMENTS...: it ends by itself, with that status
wakes() {
  local want=$1
  shift
  expect "$want" "$ETCH" record --source none --clock 0 $limits -o "$work/run.etch" "$@"
  has "$work/out" waits
  [ "$want" -ne 0 ] || has "$work/out" woken
  ! grep -q "$found" "$work/err" || fail "'$*' was taken for stuck"
}
for way in poll nanosleep limit child; do
  wakes 0 "$work/waits" $way
done
wakes 142 "$work/waits" timer
wakes 0 "$work/waits_alarm" alarm
wakes 142 "$work/waits_alarm" deadly_alarm
wakes 142 "$work/waits_alarm" alarm_before_exec "$work/waits"

# Woken by others, as late.
(sleep 3 && "$work/waits" post "$work/shared") &
wakes 0 "$work/waits" stranger "$work/shared"
(sleep 3 && pid=$(program_of "$(cat "$work/etch_pid")") && kill -USR1 "$pid") &
sh -c 'echo $$ >"$0"; exec "$@"' "$work/etch_pid" "$ETCH" record --source none --clock 0 $limits -o "$work/run.etch" \
  "$work/waits" signal >"$work/out" 2>"$work/err" || { cat "$work/err" >&2; fail "a handler's wait was ended"; }
has "$work/out" woken

# Without --kill, and without a limit, it is left alone.
for limit in "--wall 20" "--kill" ""; do
  sh -c 'echo $$ >"$0"; exec "$@"' "$work/etch_pid" "$ETCH" record --source none --clock 0 $limit -o "$work/run.etch" \
    "$work/waits" ring >"$work/out" 2>"$work/err" &
  sleep 4
  pid=$(program_of "$(cat "$work/etch_pid")") || fail "a program was ended that nobody asked to end ($limit)"
  checks=$((checks + 1))
  kill -9 "$pid"
  wait $! || true
  ! grep -q "$found" "$work/err" || fail "nobody asked what it waits for ($limit)"
done
done_checking
