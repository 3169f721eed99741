#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Functions that the software recorder leaves out because of its budget: what is replayed is what was executed, up to the call of
# such a function and from its return on. Some functions are dark from the start, others go dark in the middle of a run.
. "$(dirname "$0")/lib.sh"
unset ETCH_RING_BUDGET
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
"$ETCH" info soft.etch >out
grep -q '^dark .*: inner$' out || { cat out >&2; fail "etch info does not name inner"; }
"$ETCH" info --json soft.etch | grep -q '"detail": "functions not recorded.*inner"' || fail "etch info --json does not name inner"
grep -q 'not recorded.*: inner$' calls || fail "etch decode does not name inner"

# Without etch the budget is 3 %. Who asks etch for a recording gets all of it, unless he asks for a budget.
lit ETCH_RING_KB=64
"$ETCH" info soft.etch >out
grep -q '^dark .*over the budget of 3.0 %: inner' out || { cat out >&2; fail "there is no budget"; }
rm -rf rings
env -u ETCH_RING_BUDGET "$ETCH" record --source soft -o run.etch ./hot >out 2>&1
grep -q 'over the budget' out && fail "etch record has a budget that nobody asked for"
rm -f run.etch
ETCH_RING_BUDGET=0% "$ETCH" record --source soft -o run.etch ./hot >out 2>&1
grep -q 'over the budget' out || fail "etch record did not keep the budget"

# What a plan says is kept.
"$ETCH" slice ./hot --at hot.c:6 --sigma 2 --plan hot.plan >out || fail "no slice"
keep=$(sed -n 's/^always-on: ETCH_RING_KEEP=//p' out)
[ "$keep" = inner ] || { cat out >&2; fail "the plan keeps '$keep'"; }
lit ETCH_RING_BUDGET=0% ETCH_RING_KEEP=$keep
"$ETCH" info soft.etch >out
grep -q '^dark .*inner' out && { cat out >&2; fail "the plan's function went dark"; }

# A function goes dark while it runs: `main` is called once.
lit ETCH_RING_BUDGET=0%
"$ETCH" info soft.etch >out
grep -q '^dark .*main' out || { cat out >&2; fail "main did not go dark in its loop"; }
for level in -O0 -O1 -O2 -O3; do
  build soft/loops $level
  build soft/throwing $level
  for program in loops throwing; do
    ./$program 3000 >want.$program
    rm -rf rings && mkdir rings
    ETCH_RING_BUDGET=0% ETCH_RING="$work/rings" ./$program 3000 >out
    same want.$program out
    "$ETCH" record --rings rings -o soft.etch >out 2>&1 || { cat out >&2; fail "$program: no rings"; }
    "$ETCH" decode soft.etch --as call >calls 2>&1 || fail "$program: not decoded"
    checks=$((checks + 1))
  done
done

# A stripped program has no names, but places.
strip -o bare hot && mv hot whole && mv bare hot
lit ETCH_RING_DARK=inner
"$ETCH" info soft.etch >out
grep -q '^dark .*: hot+0x' out || { cat out >&2; fail "a stripped program's dark function has no place"; }
mv whole hot
checks=$((checks + 12))

# In a sketch: the failing statement is there, the dark function is named, and nothing is called complete.
cat >fails.cc <<'C'
#include <cstdlib>
#include <thread>
static volatile unsigned sink;
struct queue {
    __attribute__((noinline)) void push(unsigned n) { for (unsigned i = 0; i < n; i++) sink = sink + (i & 3 ? 1 : 2); }
};
static void work(unsigned n)
{
    queue q;
    for (unsigned i = 0; i < n; i++)
        q.push(i % 8);
    if (n == 50)
        std::abort();
}
int main()
{
    std::thread t(work, 50);
    t.join();
}
C
for level in -O0 -O2; do
  "$ETCH" c++ --record $level -g fails.cc -pthread -o fails
  rm -rf rings && mkdir rings
  (ulimit -c 0; ETCH_RING_DARK=queue::push ETCH_RING="$work/rings" ./fails >out 2>&1) && fail "fails did not fail"
  "$ETCH" sketch ./fails --rings rings >out 2>&1 || { cat out >&2; fail "no sketch"; }
  grep -q 'std::abort()' out || { cat out >&2; fail "the sketch has no failing statement"; }
  tr -s ' \n' ' ' <out | grep -q 'LOST over the budget.* queue::push' || { cat out >&2; fail "the sketch does not name what is dark"; }
  grep -q 'Nothing was lost' out && fail "the sketch says that nothing was lost"
  checks=$((checks + 3))
done

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
  build soft/loops $level
  replay all 16384 0% ./loops
  [ $level = -O2 ] || replay pieces 16 0% ./loops # at -O2 nothing is dark in so little
  build soft/throwing $level
  replay all 16384 0% ./throwing
  build soft/threaded $level
  replay all 16384 0% ./threaded 2000
done
build recursion -O1
replay all 16384 0% ./recursion
build soft/pointers -O3
replay pieces 16 0% ./pointers
build soft/threaded -O3
replay pieces 16 0% ./threaded 2000
build exceptions -O3
replay all 16384 dive ./exceptions
echo "$checks checks"
