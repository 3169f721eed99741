#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# etch diagnose proves causes in the lab: the answer comes first, with the counts of its experiments.
. "$(dirname "$0")/lib.sh"
cd "$work"
export XDG_CACHE_HOME=$work/cache
corpus=$ETCH_SOURCE/tests/corpus

# proves BUG LEVEL FAILING PATTERN: etch diagnose proves a cause whose words match
proves() {
  local source=$corpus/$1/bug.c
  if [ -e "$source" ]; then
    "$ETCH" cc --record "$2" -g -pthread "$source" -o "$1"
  else
    "$ETCH" c++ --record -std=c++17 "$2" -g -pthread "${source}pp" -o "$1"
  fi
  expect 0 env COLUMNS=240 "$ETCH" diagnose --source soft --store "s-$1" --timeout 60 --bug "$3" --json sketch.json --sarif sketch.sarif --html sketch.html "./$1"
  grep -qE "^ CAUSE +A +$4" out || { cat out err >&2; fail "$1: the first cause is not $4"; }
  grep -qE 'Proven by experiment: 0 of (20|21|24) runs fail when this is turned round, 20 of 20 when it is enforced' <(tr '\n' ' ' <out | tr -s ' ') || { cat out err >&2; fail "$1: not proven"; }
  python3 - "$ETCH_SOURCE/docs/sketch.schema.json" <<'PY' || fail "$1: the JSON does not say proven"
import json, sys
s = json.load(open("sketch.json"))
top = s["predictors"][0]
assert top["sureness"] == "proven" and s["source"] == "lab", (top, s["source"])
assert top["experiment"]["turned_failed"] == 0 and top["experiment"]["turned"] >= 20, top
assert top["experiment"]["alone_failed"] == top["experiment"]["alone"] >= 20, top
assert all("experiment" not in p and p["sureness"] == "suspect" for p in s["predictors"][1:])
try:
    import jsonschema
    jsonschema.validate(s, json.load(open(sys.argv[1])))
except ImportError:
    pass
PY
  grep -q 'proven: turned round' sketch.sarif || fail "$1: not in SARIF"
  grep -q 'proven: turned round' sketch.html || fail "$1: not in HTML"
  checks=$((checks + 5))
}
proves atomicity-rwr -O0 bug.c 'atomicity +main bug.c:42 between user bug.c:25 and user bug.c:27 \(RWR of proc_info\)'
proves deadlock-abba -O2 hang 'lock_order +the lock taken at (back bug.c:29|forth bug.c:12)'
proves async-early-use -O0 bug.cpp:30 'order +ui::Session::line_height bug.cpp:30 before ui::Session::load bug.cpp:40'

# Each experiment is told, and what decided.
expect 0 "$ETCH" diagnose --explain --fresh --source soft --store s-atomicity-rwr --timeout 60 --bug bug.c ./atomicity-rwr
has out "turned round: T1 main bug.c:42 before T2 user bug.c:27: passes"
has out "decided: proven by 2 orders: turned round 0 of 20 fail, enforced 20 of 20 fail"

# A wrong answer is a failure in the lab too.
cat >sum.c <<'C'
#include <pthread.h>
#include <stdio.h>
static int sum;
static void *adder(void *unused)
{
    int old = sum;
    sum = old + 1;
    return unused;
}
int main(void)
{
    pthread_t a, b;
    pthread_create(&a, NULL, adder, NULL);
    pthread_create(&b, NULL, adder, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("sum %d\n", sum);
    return 0;
}
C
"$ETCH" cc --record -g -pthread sum.c -o sum
expect 0 env COLUMNS=240 "$ETCH" diagnose --source soft --timeout 60 --fails-if 'grep -qx "sum 1"' ./sum
grep -qE '^ CAUSE +A +atomicity +adder sum.c:7 between adder sum.c:6 and adder sum.c:7 \(RWW( of sum)?\)' out || { cat out err >&2; fail "sum.c: no cause"; }
has out "proven: turned round 0 of 20 fail, alone 20 of 20 fail"

# A mended program has no cause, and the lab says how far it looked.
"$ETCH" cc --record -DFIXED -g -pthread "$corpus/atomicity-rwr/bug.c" -o fixed
expect 1 "$ETCH" diagnose --source soft --runs 22 --timeout 60 ./fixed
has out "no failure in 22 runs"
has out "schedules of the lab"
expect 1 "$ETCH" diagnose --no-lab --source soft --runs 2 --timeout 60 ./fixed
! grep -q 'schedules of the lab' out || fail "--no-lab used the lab"

# This hardly ever fails natively, because the thread is far quicker than the sleep. The lab finds the failure and proves it.
cat >never.c <<'C'
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static int *shared;
static void *maker(void *unused)
{
    int *made = malloc(sizeof(*made));
    *made = 7;
    shared = made;
    return unused;
}
int main(void)
{
    pthread_t t;
    pthread_create(&t, NULL, maker, NULL);
    usleep(10000);
    int got = *shared;
    pthread_join(t, NULL);
    return got == 7 ? 0 : 2;
}
C
"$ETCH" cc --record -g -pthread never.c -o never
expect 0 env COLUMNS=240 "$ETCH" diagnose --source soft --timeout 60 ./never
grep -qE '^ CAUSE +A +order +main never.c:17 before maker never.c:9 \(RW of shared\)' out || { cat out err >&2; fail "never.c: no cause"; }
has out "proven: turned round 0 of 20 fail, alone 20 of 20 fail"
grep -qE "[0-9]+ of [0-9]+ native runs failed" out || fail "not said how often it failed natively"
done_checking
