#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# etch diagnose and etch sketch from the outside: the cause of a few bugs of the corpus, the fixed twin, the same bytes in any order,
# a second call that goes on, and input that is not what it should be.
. "$(dirname "$0")/lib.sh"
choose_flow
export LC_ALL=C COLUMNS=100
corpus=$ETCH_SOURCE/tests/corpus
cd "$work"
compile() { # NAME [FLAG...]
  local name=$1
  shift
  "$ETCH" cc $recorder -O0 -g -w "$corpus/$name/bug.c" -o "$name$(printf %s "$*" | tr -d ' ')" -pthread "$@"
}
line() { grep -n "//@$2\b" "$corpus/$1/bug.c" | cut -d: -f1; } # NAME LABEL
top() { # FIELD of the first predictor of $work/sketch.json
  python3 -c 'import json,sys; p=json.load(open("sketch.json"))["predictors"][0]; print(p[sys.argv[1]] if sys.argv[1] != "lines" else
" ".join(str(s["line"]) for s in p["statements"]))' "$1"
}
is() { # WANT GOT
  checks=$((checks + 1))
  [ "$1" = "$2" ] || fail "'$2', not '$1'"
}

# An order violation: the write before the read, by threads of other names.
compile pbzip2
expect 0 "$ETCH" diagnose --no-lab --time 200 --timeout 20 --json sketch.json --html sketch.html ./pbzip2
is order "$(top kind)"
failed=$(python3 -c 'import json; print(json.load(open("sketch.json"))["failing_place"]["line"])') # which use of the mutex: chance
grep -nE 'mutex_(un)?lock' "$corpus/pbzip2/bug.c" | grep -q "^$failed:" || fail "it failed at line $failed"
is "$(line pbzip2 null) $failed" "$(top lines)"
is WR "$(top pattern)"
is 1.0 "$(top f)"
has "$work/sketch.html" "pthread_mutex_unlock"
store=$(echo .etch/pbzip2-*)

# The same bundles in another order give the same bytes.
expect 0 "$ETCH" sketch ./pbzip2 --json one.json "$store"/*.etch
has "$work/out" "CAUSE"
cp out one.txt
expect 0 "$ETCH" sketch ./pbzip2 --json two.json $(ls -r "$store"/*.etch)
cp out two.txt
same one.json two.json
same one.txt two.txt

# A second call goes on.
before=$(ls "$store"/*.etch | wc -l)
expect 0 "$ETCH" diagnose --no-lab --runs 2 --timeout 20 --time 60 ./pbzip2
has "$work/err" "runs"
[ "$(ls "$store"/*.etch | wc -l)" -ge "$before" ] || fail "runs were forgotten"

# A value, without threads.
compile curl-965
expect 0 "$ETCH" diagnose --no-lab --time 200 --timeout 20 --json sketch.json ./curl-965
is value "$(top kind)"
has "$work/sketch.json" "urls->current == 0"

# The fixed twin: nothing is made up.
compile pbzip2 -DFIXED
expect 1 "$ETCH" diagnose --no-lab --runs 6 --timeout 60 ./pbzip2-DFIXED
has "$work/out" "no failure in 6 runs"

# The user's own check.
cat >check.c <<'C'
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    int n = atoi(getenv("ETCH_RUN")) % 2;
    if (n)
        puts("corrupt");
    return 0;
}
C
"$ETCH" cc $recorder -O0 -g check.c -o check
expect 0 "$ETCH" diagnose --no-lab --jobs 1 --runs 12 --timeout 20 --fails-if 'grep -q corrupt' ./check
has "$work/out" "the check failed"

# One failing run alone: a sketch, and no cause. Passing runs alone: said.
failing=$(for f in "$store"/*.etch; do "$ETCH" info "$f" | grep -q '^failure.*Segmentation' && echo "$f"; done | head -n 1)
passing=$(for f in "$store"/*.etch; do "$ETCH" info "$f" | grep -q '^failure' || echo "$f"; done | head -n 1)
expect 0 "$ETCH" sketch ./pbzip2 "$failing"
has "$work/out" "one failure, no comparison yet"
! grep -q CAUSE "$work/out" || fail "a cause from one run"
expect 1 "$ETCH" sketch ./pbzip2 "$passing"
has "$work/err" "none of the 1 runs failed"

# A bundle that was cut, one of another build, a source that has changed, no bundle at all.
head -c 2500 "$passing" >cut.etch
expect 0 "$ETCH" sketch ./pbzip2 "$failing" cut.etch
has "$work/out" "1 recording ends before the run did"
expect 1 "$ETCH" sketch ./pbzip2-DFIXED "$failing"
has "$work/err" "build"
mkdir changed
cp "$corpus/corpus.h" .
sed 's|"../corpus.h"|"../corpus.h"|' "$corpus/pbzip2/bug.c" >changed/bug.c
"$ETCH" cc $recorder -O0 -g -w changed/bug.c -o changed/program -pthread
expect 0 "$ETCH" diagnose --no-lab --runs 300 --time 100 --timeout 20 changed/program
echo '/* one line more */' >>changed/bug.c
expect 0 "$ETCH" sketch changed/program .etch/program-*/*.etch
has "$work/out" "has changed since"
expect 1 "$ETCH" sketch ./pbzip2 nothing.etch
expect 2 "$ETCH" sketch ./pbzip2
expect 2 "$ETCH" diagnose
expect 2 "$ETCH" diagnose --no-lab --jobs none ./pbzip2
done_checking
