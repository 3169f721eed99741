#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Schedules by name: a replay survives another build, a changed program has an answer with the place, and a script
# enforces orders.
. "$(dirname "$0")/lib.sh"
cd "$work"
export XDG_CACHE_HOME=$work/cache
corpus=$ETCH_SOURCE/tests/corpus

# build LEVEL: ./bug.c or ./bug.cpp at ./prog
build() {
  if [ -e bug.c ]; then
    "$ETCH" cc "$1" -g -pthread -I"$corpus" bug.c -o prog
  else
    "$ETCH" c++ -std=c++17 "$1" -g -pthread -I"$corpus" bug.cpp -o prog
  fi
}

# survives BUG LEVEL: found, and found again by name after comments were added
survives() {
  rm -f bug.c bug.cpp found.etch
  cp "$corpus/$1"/bug.c* .
  sed -i "s|\"\\.\\./corpus.h\"|\"corpus.h\"|" bug.c*
  build "$2"
  expect 0 "$ETCH" explore -o found.etch ./prog
  ! grep -q 'for this build only' out || fail "$1 $2: $(cat out)"
  expect 0 "$ETCH" replay --by-name --times 3 found.etch
  has out "3 of 3 times the same failure by name"
  sed -i -e '1i // A comment.\n// Another one.' -e 's|^\( *\)pthread_create|\1// Makes a thread.\n&|' -e 's|;$|; // end|' bug.c*
  build "$2"
  expect 0 "$ETCH" replay --times 3 found.etch
  has out "another build"
  has out "3 of 3 times the same failure by name"
}
survives shared-ptr-reset -O0
survives deadlock-abba -O0
survives lost-wakeup -O2
survives pbzip2 -O0

# The program has changed: a line that an order names is not there any more.
line=$("$ETCH" replay --orders found.etch | grep -o '`[^`]*`' | head -1 | tr -d '`')
[ -n "$line" ] || fail "the orders have no line"
grep -vF "$line" bug.c >changed.c
mv changed.c bug.c
build -O0
expect 1 "$ETCH" replay found.etch
has err "hard desync: the program has changed"
has err "is no code of the program any more"

# A script: the order decides, whatever the strategy does elsewhere.
cat >order.c <<'C'
#include <pthread.h>
#include <stdlib.h>
static volatile int ready;
static int *volatile data;
static void *use(void *unused)
{
    int seen = ready;
    if (seen && *data != 5)
        abort();
    return unused;
}
int main(void)
{
    static int five = 5;
    pthread_t t;
    pthread_create(&t, NULL, use, NULL);
    ready = 1;
    data = &five;
    pthread_join(t, NULL);
    return 0;
}
C
for level in -O0 -O1; do
  "$ETCH" cc $level -g -pthread order.c -o order
  printf '# use reads between the two\nmain.1 order.c:7 (read) after main order.c:17 (write)\nmain order.c:18 (write) after main.1 order.c:8\n' >fails
  expect 0 "$ETCH" explore --script fails -o scripted.etch ./order
  has out "SIGSEGV in schedule 1 "
  expect 0 "$ETCH" replay --times 5 scripted.etch
  has out "5 of 5 times the same run"
done
"$ETCH" cc -O0 -g -pthread order.c -o order
printf 'T2 begin after main order.c:19\n' >passes
expect 1 "$ETCH" explore --strategy script:passes --schedules 50 ./order
has out "no failure in 50 schedules"
! grep -q 'not kept' out || fail "the order was not kept"

# Bad scripts: each has an answer in words, and in time. The program has no bug now.
sed -i 's/if (seen && /if (seen \&\& data \&\& /' order.c
"$ETCH" cc -O0 -g -pthread order.c -o order
printf 'main order.c:9 after order\n' >wrong
expect 1 "$ETCH" explore --script wrong ./order
has err "line 1 of the script is not understood"
printf 'main order.c:2 after main.1 order.c:7\n' >wrong
expect 1 "$ETCH" explore --script wrong ./order
has err "order.c:2: this line has no code"
has err "nearest line"
printf 'main other.c:2 after main.1 order.c:7\n' >wrong
expect 1 "$ETCH" explore --script wrong ./order
has err "the program has no code of other.c"
printf 'main order.c:19 after main.2 begin\n' >wrong
expect 1 "$ETCH" explore --script wrong --schedules 5 --strategy queue ./order
has out "main.2 begin never came: no such thread began"
has out "not kept in 5 of 5 schedules"
printf 'main order.c:19 after main.1 order.c:7 #9\n' >wrong
expect 1 "$ETCH" explore --script wrong --schedules 5 --strategy queue ./order
has out "order.c:7 #9 never came: the thread had ended"
printf 'main.1 order.c:7 #7 after main order.c:18\n' >wrong
expect 1 "$ETCH" explore --script wrong --schedules 5 --strategy queue ./order
has out "hard desync  order 1 of 1 was not kept"
expect 1 "$ETCH" explore --script nothing ./order
has err "cannot read nothing"

# A thread in a long loop without points: the limit of time ends the run.
cat >busy.c <<'C'
#include <pthread.h>
static int x;
static void *work(void *unused) { for (volatile long i = 0; i < 100000000000; i++) ; x = 1; return unused; }
int main(void) { pthread_t t; pthread_create(&t, 0, work, 0); x = 2; pthread_join(t, 0); return 0; }
C
"$ETCH" cc -O1 -g -pthread busy.c -o busy
printf 'main busy.c:4 (write) after main.1 end\n' >wrong
expect 1 "$ETCH" explore --script wrong --schedules 1 --timeout 1 ./busy
has out "1 schedules did not end within the limits"
done_checking
