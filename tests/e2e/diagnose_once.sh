#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Nothing is computed twice: a diagnosis of N runs decodes at most N recordings and loads each file's DWARF once, also when another
# failure becomes the commonest one on the way; a run's facts are found once for each of two uses; one picture is laid out, at the end.
. "$(dirname "$0")/lib.sh"
choose_flow
export LC_ALL=C COLUMNS=120 ETCH_LOG=diagnose:debug
cd "$work"
cat >twice.c <<'C'
#include <pthread.h>
#include <stdlib.h>

static int level, limit = 3;

static void *raise_level(void *by)
{
    level += *(int *)by;
    return NULL;
}

static void first(void)
{
    if (level > limit)
        abort();
}

static void second(void)
{
    if (level < 0)
        abort();
}

int main(void)
{
    int run = atoi(getenv("ETCH_RUN"));
    int by = run == 1 ? 9 : run % 3 == 0 ? -9 : 1;
    pthread_t thread;

    pthread_create(&thread, NULL, raise_level, &by);
    pthread_join(thread, NULL);
    first();
    second();
    return 0;
}
C
"$ETCH" cc $recorder -g -O0 twice.c -o twice -pthread
# count N: the Nth number of the line of counts
count() { sed -n 's/^etch: debug: diagnose: runs: //p' err | grep -o '[0-9]*' | sed -n "$1p"; }
at_most() { # WHAT LIMIT
  checks=$((checks + 1))
  [ "$(count "$1")" -le "$2" ] || { cat err >&2; fail "count $1 is $(count "$1"), more than $2"; }
}
kept=1 opened=2 decoded=3 dwarf=4 facts=5 rankings=6 pictures=7
files=$((1 + $(ldd twice | wc -l)))

expect 0 "$ETCH" diagnose --no-lab ./twice
runs=$(sed -n 's/^etch diagnose: \([0-9]*\) runs.*/\1/p' err)
[ "$runs" -ge 8 ] && [ -n "$(count $pictures)" ] || { cat err >&2; fail "no counts, or only $runs runs"; }
grep -q 'second()' out || { cat out >&2; fail "the commoner failure is not the one that is shown"; }
at_most $opened "$runs"
at_most $decoded "$runs"
at_most $dwarf "$files"
at_most $facts $((2 * runs))
at_most $pictures 1
checks=$((checks + 1))
[ "$(count $rankings)" -gt 2 ] && [ "$(count $dwarf)" -gt 0 ] && [ "$(count $decoded)" -gt 0 ] || { cat err >&2; fail "it counts nothing"; }

# Each room reports its decisions, and only the rooms that are asked do.
for decision in 'diagnose: run 1: ' 'diagnose: slices from ' 'diagnose: round 1: watches ' 'diagnose: round [0-9]* after .*ends: '; do
  checks=$((checks + 1))
  grep -qE "^etch: (debug|info): $decision" err || { cat err >&2; fail "no line for '$decision'"; }
done
grep -E '^etch: (debug|info): ' err | grep -vE '^etch: [a-z]+: diagnose: ' && fail "a room that was not asked reports"

# The same runs again: from the store, and as a sketch.
n=$(ls .etch/*/*.etch | wc -l)
expect 0 env ETCH_LOG=order,predict,flow,slicer "$ETCH" sketch ./twice .etch/*/*.etch
for decision in 'order: [0-9]* events' 'predict: [0-9]* candidates' 'predict: rank 1: F ' 'flow: .* instructions' 'slice: [0-9]* statements'; do
  checks=$((checks + 1))
  grep -qE "^etch: debug: $decision" err || { cat err >&2; fail "no line for '$decision'"; }
done
expect 0 "$ETCH" sketch ./twice .etch/*/*.etch
at_most $opened "$n"
at_most $decoded "$n"
at_most $dwarf "$files"
at_most $facts $((2 * n))
at_most $rankings 1
at_most $pictures 1
checks=$((checks + 1))
[ "$(count $kept)" -eq "$n" ] || { cat err >&2; fail "$(count $kept) of $n runs"; }
done_checking
