#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The software recorder as a user meets it: etch cc --record in its modes, etch record --source soft and auto, every view
# of etch decode, a diagnosis, and what is said where something is missing.
. "$(dirname "$0")/lib.sh"
programs=$ETCH_SOURCE/tests/programs
cd "$work"

# Objects, several sources at once, a dependency file, ETCH_RECORD for builds that cannot take options.
printf 'int twice(int x) { return x > 3 ? 2 * x : x; }\n' >a.c
printf 'int twice(int x);\nint main(int argc, char **argv) { (void)argv; return twice(argc) == 9; }\n' >b.c
expect 0 "$ETCH" cc --record -O2 -g -MD -c a.c -o a.o
[ -s a.d ] || fail "no dependency file"
expect 0 "$ETCH" cc --record -O2 -g a.o b.c -o both
expect 0 ./both
expect 0 env ETCH_RECORD=1 "$ETCH" cc -O1 -g a.c b.c -o both1
readelf -SW both1 | grep -q etchmap || fail "ETCH_RECORD=1 put no recorder in"
ls /tmp/etch-cc-* 2>/dev/null | head -n 3 >left || true
expect 0 "$ETCH" cc --record-only=twice -g a.c b.c -o only
readelf -sW only | grep -q 'twice.etch' || fail "no recorder in twice"
readelf -sW only | grep -q 'main.etch' && fail "a recorder in main, which was not asked for"
expect 1 "$ETCH" cc --record -c missing.c
has "$work/err" "missing.c"
expect 0 "$ETCH" cc --record -E a.c

# auto takes soft where the program has it; each view works.
expect 0 "$ETCH" cc --record -g -pthread "$programs/threads.c" -o threads
expect 0 "$ETCH" record -o auto.etch ./threads
has "$work/err" "soft"
expect 0 "$ETCH" info --verify auto.etch
for view in insn branch line call chrome; do
  expect 0 "$ETCH" decode auto.etch --as $view
  [ -s "$work/out" ] || fail "nothing in view $view"
done
expect 0 "$ETCH" decode auto.etch --as call
has "$work/out" "main"

# What is missing is said.
cc -O2 a.c b.c -o plain
expect 125 "$ETCH" record --source soft -o no.etch ./plain
has "$work/err" "has no software recorder"
has "$work/err" "etch cc --record"
mkdir empty
expect 125 "$ETCH" record --rings empty -o no.etch
has "$work/err" "holds no rings"

# A crash, once: the failing line is the last one that is replayed.
expect 0 "$ETCH" cc --record -g -O0 "$programs/segv.c" -o segv
"$ETCH" record --source soft -o crash.etch ./segv >/dev/null 2>err || true
has err "Segmentation fault"
expect 0 "$ETCH" decode crash.etch --as line
[ -s "$work/out" ] || fail "no lines of the crash"
echo "$checks checks"
