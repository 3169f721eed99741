#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Real synchronisation, recorded by etch record, ordered from the bundle, against tickets that the program drew: nothing is
# wrong, by clocks, without them and with both. ETCH_SYNC_ROUNDS sets how long.
. "$(dirname "$0")/lib.sh"
"$ETCH_CC" -O1 -g -pthread "$ETCH_SOURCE/tests/programs/native/ordered.c" -o "$work/ordered"
for generations in 1 2; do # two: thread handles are used again
  expect 0 "$ETCH" record --source none --clock 0.5 -o "$work/run.etch" "$work/ordered" "$work/log" "${ETCH_SYNC_ROUNDS:-60}" $generations
  has "$work/err" "nothing lost"
  expect 0 "$ETCH_BUILD/tests/ordered" syncs "$work/run.etch" "$work/log"
  cat "$work/out"
  [ "$(grep -c ' 0 wrong' "$work/out")" -eq 4 ] || fail "wrong pairs"
done
done_checking
