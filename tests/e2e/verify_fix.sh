#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# etch verify-fix: the mended program passes under the schedule that failed, the broken one does not.
. "$(dirname "$0")/lib.sh"
cd "$work"
export XDG_CACHE_HOME=$work/cache
bug=$ETCH_SOURCE/tests/corpus/atomicity-rwr/bug.c
"$ETCH" cc -g -pthread "$bug" -o broken
"$ETCH" cc -g -pthread -DFIXED "$bug" -o mended
expect 0 "$ETCH" explore --no-cause -o failing.etch ./broken
expect 0 "$ETCH" verify-fix --failing failing.etch --schedules 60 ./mended
has out "failing.etch: passes"
has out "explored: 60 schedules, 60 pass, 0 fail, 0 did not end"
grep -qE '^sure: before, [0-9]+ of 60 schedules failed; [0-9]+ must pass for 95 %, [0-9]+ for 99 %: both are reached' out || { cat out >&2; fail "not said how sure"; }
expect 1 "$ETCH" verify-fix --failing failing.etch --schedules 60 ./broken
has out "failing.etch: fails as before"
expect 0 "$ETCH" verify-fix --schedules 30 ./mended
has out "sure: the rate of failure is below 0.095 with 95 %"
expect 1 "$ETCH" verify-fix --failing no-such-file ./mended
expect 2 "$ETCH" verify-fix --schedules none ./mended
done_checking
