#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Bounds: of the bundle's size and of the rings' memory. The program is not disturbed, what ended it is still there, and what was
# left out is counted.
. "$(dirname "$0")/lib.sh"
cd "$work"
cat >locks.c <<'C'
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned sum;

static void *run(void *unused)
{
    for (unsigned i = 0; i < 40000; i++) {
        pthread_mutex_lock(&lock);
        sum += i % 3 ? i : 1;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

int main(void)
{
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, run, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    abort();
}
C
"$ETCH_CC" -O1 -g locks.c -o locks -pthread
# bounded: the bundle of the last run is small, whole, and has the failure and the loss
bounded() {
  [ "$(stat -c %s run.etch)" -lt 200000 ] || fail "the bundle has $(stat -c %s run.etch) bytes"
  expect 0 "$ETCH" info --verify run.etch
  expect 0 "$ETCH" info --records run.etch
  has out '"cause":"limit"'
  has out "the bundle reached its bound of"
  has out '"failure":'
  has out '"outcome":'
}
expect 134 "$ETCH" record --source none --clock 0 --max-size 100K -o run.etch -- ./locks
bounded
expect 134 "$ETCH" record --source none --clock 0 -o run.etch -- ./locks
expect 0 "$ETCH" info --records run.etch
! grep -q "reached its bound" out || fail "4 GiB were reached by $(stat -c %s run.etch) bytes"
"$ETCH" cc --record -O1 -g locks.c -o recorded -pthread
expect 134 "$ETCH" record --source soft --clock 0 --max-size 60K --snapshot 256K -o run.etch -- ./recorded
bounded
if has_vpt; then
  expect 134 "$ETCH" record --source vpt --max-size 100K -o run.etch -- ./locks
  bounded
  expect 134 "$ETCH" record --source vpt --max-rings 2500K -o run.etch -- ./locks
  expect 0 "$ETCH" info --verify run.etch
  expect 0 "$ETCH" info --records run.etch
  has out "the rings reached their bound"
fi
expect 125 "$ETCH" record --max-size 12 -- ./locks
expect 134 "$ETCH" record --source none --clock 0 --max-size none -o run.etch -- ./locks
done_checking
