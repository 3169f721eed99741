#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# etch explore --exhaustive D: finds what needs D preemptions, and no less; says that nothing fails only after it tried all schedules.
. "$(dirname "$0")/lib.sh"
cd "$work"
export XDG_CACHE_HOME=$work/cache
narrow=$ETCH_SOURCE/tests/narrow

"$ETCH" c++ -std=c++17 -O0 -g -pthread "$narrow"/stop-worker/bug.cpp -o stop
expect 1 "$ETCH" explore --exhaustive 1 ./stop
has out "no interleaving with at most 1 preemption at these points fails: "
expect 0 "$ETCH" explore --no-cause --exhaustive 2 -o stop.etch ./stop
grep -qE '^no thread can run in schedule [0-9]+ \(with 2 preemptions\)' out || { cat out >&2; fail "no bug with 2 preemptions"; }
expect 0 "$ETCH" replay --times 3 stop.etch
has out "3 of 3 times the same run"

"$ETCH" cc -O2 -g -pthread "$narrow"/slot-stack/fixed.c -o stack
expect 1 "$ETCH" explore --exhaustive 2 --schedules 200 ./stack
has out "not complete: all interleavings with at most 1 preemption pass, some with 2 were not tried"
expect 1 "$ETCH" explore --exhaustive 2 --schedules 20 ./stack
has out "not complete: all interleavings with at most 0 preemptions pass, some with 1 were not tried"

# Nothing is left out wrongly: an order that needs three preemptions, found with three and not with two.
cat >steps.c <<'END'
#include <pthread.h>
#include <stdlib.h>
static volatile int a, b, seen;
static void *second(void *unused)
{
    if (a == 1) {
        b = 1;
        if (a == 2)
            b = 2;
    }
    return unused;
}
int main(void)
{
    pthread_t t;
    pthread_create(&t, NULL, second, NULL);
    a = 1;
    if (b == 1) {
        a = 2;
        if (b == 2)
            abort();
        a = 3;
    }
    a = 0;
    pthread_join(t, NULL);
    return 0;
}
END
"$ETCH" cc -O0 -g -pthread steps.c -o steps
expect 1 "$ETCH" explore --exhaustive 2 ./steps
has out "no interleaving with at most 2 preemptions at these points fails: "
expect 0 "$ETCH" explore --no-cause --exhaustive 3 -o steps.etch ./steps
has out "(with 3 preemptions)"

# A run that forks is not followed: the search says that it is not complete.
cat >forks.c <<'END'
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static void *work(void *unused)
{
    return unused;
}
int main(void)
{
    pthread_t t;
    pthread_create(&t, NULL, work, NULL);
    if (fork() == 0)
        _exit(0);
    wait(NULL);
    pthread_join(t, NULL);
    return 0;
}
END
"$ETCH" cc -O0 -g -pthread forks.c -o forks
expect 1 "$ETCH" explore --exhaustive 1 --schedules 60 ./forks
has out "exhaustive not complete"
expect 2 "$ETCH" explore --exhaustive 2 --strategy random ./forks
done_checking
