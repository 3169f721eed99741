#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Each allocation and each write of etch made to fail once: it ends by itself, says why, and calls nothing complete that is not. Here
# a sample of them; FAILURES=all takes every one.
. "$(dirname "$0")/lib.sh"
cd "$work"
cat >p.c <<'END'
#include <pthread.h>
#include <stddef.h>
static int *volatile nothing;
static void *work(void *how)
{
    long n = 0;
    for (int i = 0; i < 20; i++)
        n += i & 3 ? 1 : 2;
    return how ? (void *)(long)*nothing : (void *)n;
}
int main(int argc, char **argv)
{
    pthread_t t;
    (void)argv;
    pthread_create(&t, NULL, work, argc > 1 ? &t : NULL);
    pthread_join(t, NULL);
    return 0;
}
END
"$ETCH" cc --record -g -O1 -pthread -o p p.c
expect 0 "$ETCH" record --source soft --clock 0 -o run.etch ./p
expect 139 "$ETCH" record --source soft --clock 0 -o fail.etch ./p x
most=8 reports=
[ "${FAILURES:-}" != all ] || most=0 reports="sketch-json sketch-sarif"
python3 "$ETCH_SOURCE/tests/tools/failures.py" "$ETCH_BUILD/tests/libfail_calls.so" "$ETCH" "$work" $most \
  info info-json info-records decode decode-line decode-call decode-chrome record record-none slice sketch $reports ||
  fail "not each failure is borne"
checks=$((checks + 1))
done_checking
