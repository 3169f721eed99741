#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A full disk: the recorded program runs as ever, what was written stays readable, and what was lost is said, by the summary and by
# the exit status. A report is whole or not there.
. "$(dirname "$0")/lib.sh"
if [ -z "${ETCH_IN_NAMESPACE:-}" ]; then
  unshare -m true 2>/dev/null || skip "no mount namespace may be made here (needs root)"
  rm -rf "$work"
  ETCH_IN_NAMESPACE=1 exec unshare -m bash "$0"
fi
disk=$work/disk
mkdir "$disk"
mount -t tmpfs -o size=256k none "$disk" 2>/dev/null || skip "no tmpfs may be mounted here"
trap 'umount "$disk"; rm -rf "$work"' EXIT
cd "$work"

# fill KIB: leaves so much room
fill() {
  rm -f "$disk"/*
  head -c $(((256 - $1) * 1024)) /dev/zero >"$disk/filler"
}

cat >p.c <<'END'
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long n;
static void *work(void *rounds)
{
    for (long i = 0; i < (long)rounds; i++) {
        pthread_mutex_lock(&lock);
        n += i;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}
int main(void)
{
    pthread_t t[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, work, (void *)100000L);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    printf("n is %ld\n", n);
    return 7;
}
END
"$ETCH" cc --record -g -O1 -pthread -o p p.c
sources="none soft"
! has_vpt || sources="$sources vpt"
for source in $sources; do
  room=100
  [ $source != soft ] || room=24 # less than its rings take
  fill $room
  expect 125 "$ETCH" record --source $source --clock 0 -o "$disk/run.etch" ./p
  has out "n is 9999900000" # the program itself
  has err "no space (1)"
  has err "the recording is not whole: cannot write $disk/run.etch: No space left on device"
  if grep -q "nothing lost" err; then fail "$source: nothing lost, on a full disk"; fi
  expect 0 "$ETCH" info "$disk/run.etch"
  has out ", cut"
  has out "file cut (1)"
  expect 1 "$ETCH" info --verify "$disk/run.etch"
done

# ---- No room for the first byte: an older recording is as it was
fill 100
expect 7 "$ETCH" record --source none --clock 0 --no-sync -o "$disk/run.etch" ./p
cp "$disk/run.etch" before
head -c 300000 /dev/zero >"$disk/more" 2>/dev/null || true
expect 125 "$ETCH" record --source none --clock 0 --no-sync -o "$disk/run.etch" ./p
has err "No space left"
cat "$disk/run.etch.old" "$disk/run.etch" 2>/dev/null | cmp -n "$(stat -c %s before)" before - || fail "the older recording is gone"

# ---- Reports
cat >fails.c <<'END'
static int *volatile nothing;
int main(void) { return *nothing; }
END
"$ETCH" cc --record -g -O1 -o fails fails.c
expect 139 "$ETCH" record --source soft --clock 0 -o fails.etch ./fails
for form in html json sarif; do
  fill 0
  expect 1 "$ETCH" sketch ./fails fails.etch "--$form" "$disk/sketch"
  has err "No space left"
  [ ! -e "$disk/sketch" ] || fail "--$form: a part of the sketch is there"
  expect 1 bash -c '"$0" sketch ./fails fails.etch "--$1" - >/dev/full' "$ETCH" $form
  has err "No space left"
done
for form in line call chrome; do
  fill 0
  expect 1 "$ETCH" decode fails.etch --as $form -o "$disk/out"
  has err "No space left"
  [ "$(find "$disk" -name 'out*' | wc -l)" -eq 0 ] || fail "--as $form: a part of the output is there"
done
fill 0
expect 1 "$ETCH" slice ./fails --failure fails.etch --plan "$disk/plan"
has err "No space left"
[ ! -e "$disk/plan" ] || fail "a part of the plan is there"
expect 1 "$ETCH" diagnose --no-lab --store "$disk/store" --runs 3 ./fails
has err "etch diagnose: "
done_checking
