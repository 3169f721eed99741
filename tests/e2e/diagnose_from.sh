#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# etch diagnose --from: one recording of a failure is enough for a proof; no run has to fail here.
. "$(dirname "$0")/lib.sh"
cd "$work"
export XDG_CACHE_HOME=$work/cache
cat >early.c <<'C'
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
static int value = 5, *config;
static void *worker(void *unused)
{
    (void)unused;
    return (void *)(long)*config;
}
int main(void)
{
    pthread_t t;
    sem_t never;
    sem_init(&never, 0, 0);
    if (getenv("PASS"))
        config = &value;
    pthread_create(&t, NULL, worker, NULL);
    if (getenv("FAIL"))
        sem_wait(&never);
    config = &value;
    pthread_join(t, NULL);
    return 0;
}
C
"$ETCH" cc --record -g -pthread early.c -o early
expect 139 env FAIL=1 "$ETCH" record --source soft -o fail.etch ./early
expect 0 env PASS=1 "$ETCH" record --source soft -o pass.etch ./early

expect 0 env COLUMNS=240 "$ETCH" diagnose --timeout 60 --from fail.etch --json sketch.json ./early
grep -qE '^ CAUSE +A order +worker early.c:8 before main early.c:20 ' out || { cat out err >&2; fail "another cause"; }
has out 'The runs shown are of the lab. 1 of 1 native runs failed.'
python3 - <<'PY' || fail "not proven"
import json
top = json.load(open("sketch.json"))["predictors"][0]
assert top["sureness"] == "proven" and top["experiment"]["alone_failed"] >= 20, top
PY
checks=$((checks + 2))

# A recording that cannot be the start is named, with what to do.
expect 1 "$ETCH" diagnose --from pass.etch ./early
has err 'pass.etch has no failure (try: the recording of a run that failed'
sed 's/value = 5/value = 6/' early.c >other.c
"$ETCH" cc --record -g -pthread other.c -o other
expect 1 "$ETCH" diagnose --from fail.etch ./other
has err 'fail.etch is of another program, or of another build of it'
echo nonsense >nonsense.etch
expect 1 "$ETCH" diagnose --from nonsense.etch ./early
has err 'nonsense.etch is not an etch file'
done_checking
