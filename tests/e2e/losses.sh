#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# "Nothing lost" is said only when it is so, and record, info and decode say the same of one recording.
. "$(dirname "$0")/lib.sh"
cd "$work"
cat >p.c <<'END'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static long n;
static void *work(void *rounds)
{
    for (long i = 0; i < (long)rounds; i++)
        n += i & 3 ? 1 : 2;
    return NULL;
}
int main(int argc, char **argv)
{
    pthread_t t;
    pthread_create(&t, NULL, work, (void *)(argc > 1 ? atol(argv[1]) : 10L));
    pthread_join(t, NULL);
    if (argc > 2)
        system(argv[2]); /* what befalls the rings meanwhile */
    printf("%ld\n", n);
    return 0;
}
END
"$ETCH" cc --record -g -O1 -pthread -o p p.c 2>/dev/null

# agree FILE WORDS [none]: record (in err), info and decode all say it; none: there is nothing to decode, which is an error
agree() {
  has err "$2"
  expect 0 "$ETCH" info "$1"
  has out "lost       $2"
  if [ -n "${3:-}" ]; then
    expect 1 "$ETCH" decode "$1"
    has err "holds no control flow"
    return
  fi
  expect 0 "$ETCH" decode "$1"
  has err "lost during the recording: $2"
}

expect 0 "$ETCH" record --source soft --clock 0 -o a.etch ./p
has err "nothing lost"
expect 0 "$ETCH" info a.etch
has out "lost       nothing"
expect 0 "$ETCH" decode a.etch
[ ! -s err ] || fail "decode says something of a whole recording: $(cat err)"

# ---- A ring that wrapped
expect 0 "$ETCH" record --source soft --clock 0 --snapshot 16K -o wrapped.etch ./p 1000000
agree wrapped.etch "ring wrapped (1)"

# ---- Rings that vanished, or were cut short
expect 0 "$ETCH" record --source soft --clock 0 -o gone.etch ./p 10 'rm -f "$ETCH_RING"/*.etch-rings'
agree gone.etch "no ring (2)" none
expect 0 "$ETCH" record --source soft --clock 0 -o short.etch ./p 10 'for f in "$ETCH_RING"/*.etch-rings; do cp "$f" "$f.x"; rm "$f"; head -c 180000 "$f.x" >"$f"; done'
has err "ring gone (1)"
expect 0 "$ETCH" record --source soft --clock 0 -o bad.etch ./p 10 'for f in "$ETCH_RING"/*.etch-rings; do rm "$f"; head -c 70000 /dev/zero >"$f"; done'
agree bad.etch "no ring (2), damaged (1)" none

# ---- Without etch, from the rings that are left
mkdir rings
ETCH_RING=$work/rings ./p 1000000 >/dev/null
expect 0 "$ETCH" record --rings rings -o rings.etch
agree rings.etch "ring wrapped (1)"

# ---- A cut file, a damaged one
head -c $(($(stat -c %s a.etch) - 1)) a.etch >cut.etch
expect 0 "$ETCH" info cut.etch
has out "lost       file cut (1)"
expect 0 "$ETCH" decode cut.etch
has err "lost during the recording: file cut (1)"
cp a.etch damaged.etch
printf 'X' | dd of=damaged.etch bs=1 seek=60 conv=notrunc status=none
expect 0 "$ETCH" info damaged.etch
has out "lost       damaged (1)"
expect 0 "$ETCH" decode damaged.etch
has err "lost during the recording: damaged (1)"

# ---- The binary was rebuilt since: that is said, where nothing can be decoded
sed -i 's/? 1 : 2/? 2 : 1/' p.c
"$ETCH" cc --record -g -O1 -pthread -o p p.c 2>/dev/null
for form in insn branch line call; do
  expect 0 "$ETCH" decode a.etch --as $form
  cat out err >both
  has both "unmapped code: no binary of the build that ran is there"
done
expect 0 "$ETCH" decode a.etch --fields ip
has err "unmapped code (2)"
done_checking
