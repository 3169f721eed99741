#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What does not fit gets a clear answer in time: a schedule of another program, orders of lines without code and of threads that never
# come, a program that ends early, a program that loops for ever.
. "$(dirname "$0")/lib.sh"
cd "$work"
export XDG_CACHE_HOME=$work/cache

cat >race.c <<'END'
#include <pthread.h>
#include <stdlib.h>
static int *volatile made;
static void *use(void *unused)
{
    if (*made != 3)
        abort();
    return unused;
}
int main(void)
{
    static int value = 3;
    pthread_t t;
    made = &value;
    pthread_create(&t, NULL, use, NULL);
    made = NULL;
    pthread_join(t, NULL);
    return 0;
}
END
"$ETCH" cc -O0 -g -pthread race.c -o race
expect 0 "$ETCH" explore --no-cause -o race.etch ./race

# Another program under the same name: no line of the orders is there.
printf 'int main(void)\n{\n    return 0;\n}\n' >other.c
"$ETCH" cc -O0 -g -pthread other.c -o race
expect 1 "$ETCH" replay race.etch
has err "race.c"
# A program that ends before its threads come: the orders cannot be kept.
sed 's/^    pthread_create/    if (!getenv("GO"))\n        return 0;\n&/' race.c >race2.c && mv race2.c race.c
"$ETCH" cc -O0 -g -pthread race.c -o race
expect 1 "$ETCH" replay race.etch
grep -qE 'not kept|did not come|not the same' out || { cat out err >&2; fail "no answer for a program that ends early"; }
# The program is gone, or was built without etch.
mv race gone
expect 1 "$ETCH" replay race.etch
has err "race"
cc -g -pthread other.c -o race
expect 1 "$ETCH" replay race.etch
has err "has no bitcode"
mv gone race
# A damaged schedule.
head -c 300 race.etch >cut.etch
expect 1 "$ETCH" replay cut.etch
printf 'nonsense' >none.etch
expect 1 "$ETCH" replay none.etch

# Orders of a line without code, of a thread that is never made, and in a circle.
echo 'main.1 race.c:2 after main race.c:14' >orders
expect 1 "$ETCH" explore --script orders ./race
has err "this line has no code"
export GO=1
clears=$(grep -n 'made = NULL' race.c | cut -d: -f1)
echo "main race.c:$clears after main.7 race.c:6" >orders
expect 1 "$ETCH" explore --no-cause --schedules 3 --script orders ./race
has out "was not kept"
has out "main.7"
printf '%s\n' "main.1 race.c:6 after main race.c:$clears" "main race.c:$clears after main.1 race.c:6" >orders
expect 1 "$ETCH" explore --no-cause --schedules 3 --script orders ./race
has out "was not kept"

# A loop for ever, with and without points: ends at the limit, and counts as neither passing nor failing.
cat >loop.c <<'END'
#include <pthread.h>
static volatile int stop;
static void *wait(void *unused)
{
    while (!stop)
        ;
    return unused;
}
int main(int argc, char **argv)
{
    pthread_t t;
    (void)argv;
    pthread_create(&t, NULL, wait, NULL);
    if (argc > 1)
        for (unsigned i = 1; i;)
            __asm__ volatile("" : "+r"(i));
    pthread_join(t, NULL);
    return 0;
}
END
"$ETCH" cc -O0 -g -pthread loop.c -o loop
for argument in "" busy; do
  expect 1 timeout 120 "$ETCH" explore --schedules 2 --timeout 1 ./loop $argument
  has out "2 schedules did not end within the limits"
  expect 1 timeout 120 "$ETCH" explore --exhaustive 1 --schedules 2 --timeout 1 ./loop $argument
  has out "exhaustive not complete"
done
done_checking
