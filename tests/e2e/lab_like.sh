#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# etch replay --like: the orders of locks that a native recording proves are enforced in the lab, so the run fails there in the same way.
. "$(dirname "$0")/lib.sh"
cd "$work"
export XDG_CACHE_HOME=$work/cache

# Fails in one order of twelve locked sections out of 34,650. Outside the lab an environment variable makes that order.
cat >order.c <<'END'
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char seen[16];
static int turn;
static const char *forced;

static void visit(char name)
{
    int done = 0;
    while (!done) {
        if (forced)
            while (forced[__atomic_load_n(&turn, __ATOMIC_ACQUIRE)] != name)
                usleep(1000);
        pthread_mutex_lock(&lock);
        seen[strlen(seen)] = name;
        pthread_mutex_unlock(&lock);
        if (forced)
            __atomic_store_n(&turn, turn + 1, __ATOMIC_RELEASE);
        done = 1;
    }
}

static void *run(void *name)
{
    for (int i = 0; i < 4; i++)
        visit(*(char *)name);
    return NULL;
}

int main(void)
{
    char names[] = "abc";
    pthread_t threads[3];
    forced = getenv("FORCED");
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, run, &names[i]);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    if (strcmp(seen, "bacbbcaacbca") == 0)
        abort();
    return 0;
}
END
cp order.c order.cpp
sed -i 's/static void visit/#include <mutex>\nstatic std::mutex guard;\n&/; s/pthread_mutex_lock(&lock)/guard.lock()/; s/pthread_mutex_unlock(&lock)/guard.unlock()/' order.cpp

try() { # COMPILER ARGUMENT...
  "$ETCH" "$@" -g -pthread -o order
  expect 134 env FORCED=bacbbcaacbca "$ETCH" record --source none -o order.etch ./order
  expect 1 "$ETCH" explore --no-cause --schedules 40 ./order
  expect 0 "$ETCH" replay --like order.etch --schedules 40 -o again.etch
  grep -qE '^recorded +SIGABRT; [0-9]+ synchronisations, [0-9]+ with lines, [1-9][0-9]* orders proven, [1-9][0-9]* enforced' out ||
    { cat out >&2; fail "$*: no orders"; }
  has out "SIGABRT in schedule "
  expect 0 "$ETCH" replay --times 3 again.etch
  has out "3 of 3 times the same run"
}
try cc -O0 order.c
try cc -O2 order.c
try c++ -std=c++17 -O2 order.cpp

# A run that passed gives nothing to look for, and other files are refused.
expect 0 "$ETCH" record --source none -o passed.etch ./order
expect 1 "$ETCH" replay --like passed.etch
has err "did not fail"
expect 1 "$ETCH" replay --like order.c
expect 2 "$ETCH" replay --like order.etch --exhaustive 2
done_checking
