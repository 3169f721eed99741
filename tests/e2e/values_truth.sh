#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Values backwards from the end, against the truth: programs are run instruction by instruction until they die, and every value
# that is recovered must be the one that was there. Prints how many of the reads and writes of the last 1,000 statements are
# known. Arguments: names of the corpus; ETCH_VALUES=all for the whole corpus.
. "$(dirname "$0")/lib.sh"
truth=$ETCH_BUILD/tests/value_truth
[ $# -gt 0 ] || set -- null-check off-by-one order-destroy parser-reset self-assign static-init-order
[ "${ETCH_VALUES:-}" != all ] || set -- $(cd "$ETCH_SOURCE/tests/corpus" && ls -d */ | tr -d /)

# build NAME LEVEL
build() {
  local source="$ETCH_SOURCE/tests/corpus/$1/bug.c"
  [ -f "$source" ] || source="-std=c++17 $ETCH_SOURCE/tests/corpus/$1/bug.cpp -lstdc++"
  "$ETCH_CC" -g "$2" -DBUG $source -o "$work/$1$2" -pthread -lm
}

judged=0
printf '%-20s %-8s %7s %6s %7s %7s %6s   %7s %7s %6s %s\n' program seen instr. stmts. acc. known wrong 'all acc.' registers \
  rounds contradictions
for name in "$@"; do
  for level in -O0 -O2; do
    build "$name" $level
    for seed in 1 2 3 4 5 6 7 8; do
      got=0
      timeout 60 "$truth" -s $seed "$work/$name$level" >"$work/out" 2>&1 || got=$?
      [ $got -eq 77 ] || break # it did not fail this time
    done
    [ $got -ne 77 ] && [ $got -ne 124 ] || continue
    cat "$work/out"
    [ $got -ne 2 ] || skip "no program can be stepped here"
    [ $got -eq 0 ] || fail "$name$level: a value is wrong (seed $seed, status $got)"
    judged=$((judged + 1))
    checks=$((checks + 1))
  done
done
[ $judged -ge $# ] || fail "only $judged programs failed"
done_checking
