#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Functions that the software recorder leaves out because of its budget: what is replayed is what was executed, up to the call of
# such a function and from its return on. Some functions are dark from the start, others go dark in the middle of a run.
. "$(dirname "$0")/lib.sh"
programs=$ETCH_SOURCE/tests/programs
compare=$ETCH_BUILD/tests/soft_compare
cd "$work"

# build NAME LEVEL
build() {
  local source=$programs/$1.c how=cc
  [ -f "$source" ] || { source=$programs/$1.cc; how=c++; }
  "$ETCH" $how --record "$2" -g "$source" -pthread -o "$(basename "$1")" || fail "$1 $2 was not built"
}

# replay MODE KB DARK PROGRAM ARG...: one run under vpt with these functions dark, and the comparison. DARK: names, or 0%
replay() {
  local mode=$1 kb=$2 dark=ETCH_RING_DARK=$3 said
  [ "$3" = 0% ] && dark=ETCH_RING_BUDGET=0%
  shift 3
  rm -rf rings *.etch && mkdir rings
  env "$dark" ETCH_RING="$work/rings" ETCH_RING_KB="$kb" "$ETCH" record --source vpt -o truth.etch "$@" >out 2>err || true
  "$ETCH" record --rings rings -o soft.etch 2>err || { cat err >&2; fail "$*: no rings"; }
  [ "$mode" = all ] && mode=
  said=$("$compare" truth.etch soft.etch $mode 2>&1) || { echo "$said" | tail -n 12 >&2; fail "$dark $* ($kb KB)"; }
  grep -q ', 0 dark calls' <<<"$said" && fail "$dark $*: nothing was dark"
  grep -q 'over the budget' err || { cat err >&2; fail "$dark $*: nobody said that functions are missing"; }
  checks=$((checks + 1))
  echo "$dark $* ($kb KB): $(tail -n 1 <<<"$said")"
}

# The list of a ring's dark functions, and what etch says of them, without vpt
cat >hot.c <<'C'
#include <stdio.h>
static volatile unsigned sink;
static __attribute__((noinline)) void inner(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        sink += i & 3 ? 1 : 2;
}
static __attribute__((noinline)) void rare(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        sink += i & 1;
}
int main(void)
{
    for (unsigned i = 0; i < 100000; i++) {
        inner(i % 64);
        if (i % 10000 == 0)
            rare(3);
    }
    printf("%u\n", sink);
    return 0;
}
C
"$ETCH" cc --record -O2 -g hot.c -o hot
./hot >want

# lit VARIABLE=VALUE...: a run with these variables
lit() {
  rm -rf rings *.etch && mkdir rings
  env "$@" ETCH_RING="$work/rings" ./hot >out
  same want out
  "$ETCH" record --rings rings -o soft.etch >out 2>&1 || { cat out >&2; fail "$*: no rings"; }
  "$ETCH" decode soft.etch --as call --last 200 >calls 2>&1 || fail "$*: not decoded"
}
lit ETCH_RING_BUDGET=off
grep -q 'over the budget' out && fail "dark without a budget"
grep -q 'inner' calls || fail "inner is not seen without a budget"
lit ETCH_RING_BUDGET=0%
grep -q 'over the budget' out || fail "nothing is dark with a budget of nothing"
lit ETCH_RING_BUDGET=0% ETCH_RING_KEEP=inner,main
grep -q 'over the budget' out && fail "a kept function went dark"
lit ETCH_RING_BUDGET=off ETCH_RING_DARK=inner
grep -q 'over the budget' out || fail "nobody said that inner was not recorded"
rm -rf rings
ETCH_RING_BUDGET= "$ETCH" record --source soft -o run.etch ./hot >out 2>&1 || true
checks=$((checks + 5))

has_vpt || { echo "$checks checks; no vpt to compare with"; exit 0; }
for level in -O0 -O2; do
  build recursion $level
  replay all 16384 0% ./recursion
  build jumps ${level/2/1} # at -O2 dive is a loop
  replay all 16384 dive ./jumps
  build exceptions $level
  replay all 16384 dive ./exceptions
  [ $level = -O2 ] || replay all 16384 attempt ./exceptions
  build soft/pointers $level
  replay all 16384 0% ./pointers
  replay pieces 16 0% ./pointers
  replay all 16384 by_half,last ./pointers
  build soft/threaded $level
  replay all 16384 0% ./threaded 2000
done
echo "$checks checks"
