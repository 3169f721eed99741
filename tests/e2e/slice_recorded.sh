#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# From a run that etch record made: a failure in the C library is the caller's, and a call through a pointer has the targets
# that the run saw, where the program alone leaves all that fit.
. "$(dirname "$0")/lib.sh"
need_vpt
set +e
cd "$work" || exit 1
failed=0
fail() { echo "slice_recorded: $*"; failed=1; }
line_of() { grep -nE "//@$1( |$)" "$2" | cut -d: -f1; }
lines() { awk '/^  [ >]/ { print ($1 == ">") ? $4 : $3 }' "$1"; }
source=$ETCH_SOURCE/tests/programs/narrowed.c
"$ETCH" cc -O0 "$source" -o narrowed || exit 1
"$ETCH" record --source vpt -o run.etch -- ./narrowed >log 2>&1
status=$?
[ $status -eq 139 ] || fail "status $status rather than a segmentation fault"
"$ETCH" slice narrowed --at "narrowed.c:$(line_of fail "$source")" >static.out
"$ETCH" slice narrowed --failure run.etch >run.out 2>err || { cat err; fail "no slice"; }
[ "$(awk '/^  >/ { print $4 }' run.out)" = "$(line_of fail "$source")" ] || { cat run.out; fail "the failing line is wrong"; }
lines static.out | grep -qx "$(line_of fits "$source")" || fail "without a run, every function that fits must be in"
lines run.out | grep -qx "$(line_of fits "$source")" && fail "a function that was not called is in"
line_of in "$source" | while read -r n; do lines run.out | grep -qx "$n" || echo missing "$n"; done | grep . && fail "lines are missing"
exit $failed
