#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Each program of the corpus fails in some runs, in the way that its ideal file says, and passes in others, by itself; its fixed
# twin does not fail. Runs until both were seen, at most $tries times; before other work where it may, because threads that
# wait for a CPU do not race.
set -u
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
tries=1000 fixed_runs=8 failed=0 total=0
run_one() { # PROGRAM: prints "passed", "signal N", "exit N" or "hang"
  nice -n -15 timeout -s KILL 2 "$1" >/dev/null 2>&1
  local status=$?
  case $status in
  0) echo passed ;;
  137) echo hang ;;
  *) [ $status -gt 128 ] && echo "signal $((status - 128))" || echo "exit $status" ;;
  esac
}
for source in "$ETCH_SOURCE"/tests/corpus/*/bug.c*; do
  name=$(basename "$(dirname "$source")")
  want=$(sed -n 's/^fails: //p' "$(dirname "$source")/ideal")
  compiler=cc
  case $source in *.cpp) compiler='c++ -std=c++17' ;; esac
  "$ETCH" $compiler -O0 -w "$source" -o "$dir/bug" -pthread || exit 1
  "$ETCH" $compiler -O0 -w -DFIXED "$source" -o "$dir/fixed" -pthread || exit 1
  passed=0 failures=0
  for i in $(seq $tries); do
    got=$(run_one "$dir/bug" 2>/dev/null)
    total=$((total + 1))
    case $got in
    passed) passed=$((passed + 1)) ;;
    "$want") failures=$((failures + 1)) ;;
    *) echo "$name: failed with '$got' rather than '$want'"; failed=1 ;;
    esac
    [ $passed -gt 0 ] && [ $failures -gt 0 ] && break
  done
  [ $passed -gt 0 ] || { echo "$name: never passed in $tries runs"; failed=1; }
  [ $failures -gt 0 ] || { echo "$name: never failed in $tries runs"; failed=1; }
  for i in $(seq $fixed_runs); do
    got=$(run_one "$dir/fixed" 2>/dev/null)
    [ "$got" = passed ] || { echo "$name: the fixed twin failed: $got"; failed=1; }
  done
done
echo "$total runs"
exit $failed
