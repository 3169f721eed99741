#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# From a recorded failure: the failing statement is found through inlining, in the caller of a library, in each thread of a
# hang; and a bundle of another build is refused.
set -u
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
failed=0 tried=0
catch=$ETCH_BUILD/tests/catch_failure
fail() { echo "slice_failure: $*"; failed=1; }
line_of() { grep -nE "//@$1( |$)" "$2" | cut -d: -f1; }
# fails_at SOURCE LEVEL LABELS [HANG-MS]: the marks '>' of the slice are on exactly these lines. A race may fail elsewhere
# first, on a busy machine: then it is run again.
fails_at() {
  local source=$1 level=$2 labels=$3
  "$ETCH" cc "$level" -w "$source" -o program -pthread || { fail "$source does not build"; return; }
  for label in $labels; do line_of "$label" "$source"; done | sort -n >want
  for _ in $(seq 60); do
    rm -f run.etch
    "$catch" run.etch ./program ${4:-} >/dev/null 2>&1
    [ -s run.etch ] || continue
    "$ETCH" slice program --failure run.etch >out 2>err || { cat err; fail "$source $level: no slice"; return; }
    awk '/^  >/ { print $4 }' out | sort -n >got
    if [ -n "${4:-}" ]; then # other threads wait too: main in its join
      grep -vxf <(grep -n 'pthread_join' "$source" | cut -d: -f1) got >got2 || true
      mv got2 got
    fi
    cmp -s want got && { tried=$((tried + 1)); return; }
  done
  [ -s got ] && cat out
  fail "$source $level: in 60 runs no failure on line $(paste -sd, want)"
}
corpus=$ETCH_SOURCE/tests/corpus
for level in -O0 -O2; do
  fails_at "$ETCH_SOURCE/tests/programs/inlined_crash.c" $level fail
  fails_at "$corpus/memcached-127/bug.c" $level check
  fails_at "$corpus/deadlock-abba/bug.c" $level 'b1 a2' 300
done
fails_at "$corpus/curl-965/bug.c" -O0 length
fails_at "$corpus/pbzip2/bug.c" -O0 unlock
fails_at "$corpus/apache-21287/bug.c" -O0 free
fails_at "$corpus/lost-wakeup/bug.c" -O0 wait 300

"$ETCH" slice program --failure run.etch --plan next.plan >/dev/null || fail "no plan"
"$ETCH" info --records next.plan | grep -q '"plan"' || fail "the plan is not in its file"
echo 'int main(void){return 1;}' >other.c && "$ETCH" cc other.c -o other
"$ETCH" slice other --failure run.etch >out 2>err && fail "a failure of another program was taken"
grep -q 'no frame of the failure is in other' err || { cat err; fail "another program: not said"; }
# the build-id decides, whatever the path says
id_of() { readelf -n "$1" | sed -n 's/.*Build ID: //p'; }
"$ETCH" cc -O0 -w "$ETCH_SOURCE/tests/programs/inlined_crash.c" -o program && rm -f run.etch
"$catch" run.etch ./program 20000 "$(id_of program)" >/dev/null 2>&1
"$ETCH" slice program --failure run.etch >out 2>err || { cat err; fail "its own build was refused"; }
"$ETCH" cc -O1 -w "$ETCH_SOURCE/tests/programs/inlined_crash.c" -o program
"$ETCH" slice program --failure run.etch >out 2>err && fail "another build was taken"
grep -q "the failure is of another build: program has build-id $(id_of program)" err || { cat err; fail "another build: not said"; }
[ "$tried" = 10 ] || fail "only $tried of 10 failures"
exit $failed
