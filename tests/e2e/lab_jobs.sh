#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Several schedules at once give the result of one after the other: the same first failing schedule, the same schedule in the file. (Files differ in
# the numbers of processes, which are input.)
. "$(dirname "$0")/lib.sh"
cd "$work"
export XDG_CACHE_HOME=$work/cache
corpus=$ETCH_SOURCE/tests/corpus

# jobs_same PROG OPTION...: one job and five jobs print the same and write the same schedule
jobs_same() {
  local prog=$1 status=$2
  shift 2
  for jobs in 1 5; do
    expect "$status" "$ETCH" explore --no-cause --jobs $jobs "$@" -o $jobs.etch ./$prog
    sed "s/$jobs.etch/FILE/" out >out.$jobs
    [ "$status" -ne 0 ] || "$ETCH" replay --orders $jobs.etch >orders.$jobs 2>/dev/null || "$ETCH" replay $jobs.etch >orders.$jobs
  done
  cmp out.1 out.5 || fail "$prog $*: another result with five jobs"
  [ "$status" -ne 0 ] || cmp orders.1 orders.5 || fail "$prog $*: another schedule with five jobs"
  checks=$((checks + 2))
}
"$ETCH" cc -O0 -g -pthread "$corpus/atomicity-rww/bug.c" -o c0
"$ETCH" cc -O2 -g -pthread "$corpus/order-destroy/bug.c" -o c2
"$ETCH" c++ -std=c++17 -O2 -g -pthread "$corpus/template-queue/bug.cpp" -o pp
"$ETCH" cc -O2 -g -pthread -DFIXED "$corpus/atomicity-rww/bug.c" -o fixed
for seed in 0 100; do
  jobs_same c0 0 --seed $seed
  jobs_same c2 0 --seed $seed
  jobs_same pp 0 --seed $seed
done
jobs_same c0 0 --all --schedules 60 # the hash of all runs is in the text
jobs_same fixed 1 --schedules 60

# Instructions that share memory only in rare schedules are learnt late, when runs are ahead.
cat >late.c <<'C'
#include <pthread.h>
static volatile int turn, a, b, c, d, e;
static void *follow(void *from)
{
    int v[4];
    for (int i = 0; i < 4; i++)
        v[i] = turn;
    if (v[0] == 1)
        a++;
    if (v[0] == 1 && v[1] == 3)
        b++;
    if (v[0] == 1 && v[1] == 3 && v[2] == 5)
        c++;
    if (v[0] == 2 && v[1] == 4 && v[3] == 5)
        d++;
    if (v[0] == 3 && v[1] == 4 && v[2] == 5)
        e++;
    return from;
}
int main(void)
{
    pthread_t t;
    pthread_create(&t, NULL, follow, NULL);
    for (int i = 1; i <= 6; i++)
        turn = i;
    a++;
    b++;
    c++;
    d++;
    e++;
    pthread_join(t, NULL);
    return 0;
}
C
"$ETCH" cc -O1 -g -pthread late.c -o late
jobs_same late 1 --schedules 150

# Ctrl-C ends the search at once, without a failure, and leaves no process behind.
cat >busy.c <<'C'
#include <pthread.h>
#include <stdio.h>
static volatile int sink;
static void *work(void *from)
{
    FILE *f = fopen("begun", "w");
    fclose(f);
    for (;;)
        sink++;
    return from;
}
int main(void)
{
    pthread_t t;
    pthread_create(&t, NULL, work, NULL);
    pthread_join(t, NULL);
    return 0;
}
C
"$ETCH" cc -O1 -g -pthread busy.c -o busy_in_lab
for jobs in 1 3; do
  rm -f begun
  python3 - "$ETCH" $jobs >out 2>err <<'P'
import os, signal, subprocess, sys, time
# In a session of its own: the signal goes to the whole group, as from a terminal.
p = subprocess.Popen([sys.argv[1], "explore", "--timeout", "100", "--jobs", sys.argv[2], "./busy_in_lab"], start_new_session=True)
while not os.path.exists("begun"):
    time.sleep(0.05)
os.killpg(p.pid, signal.SIGINT)
try:
    print("status", p.wait(60))
except subprocess.TimeoutExpired:
    os.killpg(p.pid, signal.SIGKILL)
    print("still running")
P
  has out "status 1"
  has out "no failure in 0 schedules"
  for pid in $(pgrep -f '^./busy_in_lab$'); do
    [ "$(readlink "/proc/$pid/cwd")" != "$work" ] || fail "a run is left behind"
  done
  checks=$((checks + 1))
done
done_checking
