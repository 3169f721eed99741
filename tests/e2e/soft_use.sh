#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The software recorder as a user meets it: etch cc --record in its modes, etch record --source soft and auto, every view
# of etch decode, a diagnosis, and what is said where something is missing.
. "$(dirname "$0")/lib.sh"
programs=$ETCH_SOURCE/tests/programs
cd "$work"

# Objects, several sources at once, a dependency file, ETCH_RECORD for builds that cannot take options.
printf 'int twice(int x) { return x > 3 ? 2 * x : x; }\n' >a.c
printf 'int twice(int x);\nint main(int argc, char **argv) { (void)argv; return twice(argc) == 9; }\n' >b.c
expect 0 "$ETCH" cc --record -O2 -g -MD -c a.c -o a.o
[ -s a.d ] || fail "no dependency file"
expect 0 "$ETCH" cc --record -O2 -g a.o b.c -o both
expect 0 ./both
expect 0 env ETCH_RECORD=1 "$ETCH" cc -O1 -g a.c b.c -o both1
readelf -SW both1 | grep -q etchmap || fail "ETCH_RECORD=1 put no recorder in"
ls /tmp/etch-cc-* 2>/dev/null | head -n 3 >left || true
expect 0 "$ETCH" cc --record-only=twice -g a.c b.c -o only
readelf -sW only | grep -q 'twice.etch' || fail "no recorder in twice"
readelf -sW only | grep -q 'main.etch' && fail "a recorder in main, which was not asked for"

# What ran between the last call of code without a recorder and a crash is known, also where the function that called is left by
# then. Time is told before and after what may wait: a statement is known to be behind the pause that it is behind, and no time is
# said of it that it was not executed at.
cat >pause.c <<'C'
#include <x86intrin.h>
unsigned long long paused;
int pause(void) /* in place of the library's, which may wait */
{
    paused = __rdtsc();
    return 0;
}
C
"$ETCH" cc -O2 -g -c pause.c -o pause.o
cat >late.c <<'C'
#include <stdio.h>
#include <unistd.h>
#include <x86intrin.h>
int *volatile where;
extern unsigned long long paused;
__attribute__((noinline)) static void rest(void)
{
    pause();
}
int main(int argc, char **argv)
{
    unsigned long long from, to;
    int x = argc;

    (void)argv;
    x *= 5; /*@before*/
    rest();
    from = __rdtsc();
    x += 4; /*@between*/
    to = __rdtsc();
    printf("%llu %llu %llu\n", paused, from, to);
    fflush(stdout);
#ifdef DEEP
    rest();
#else
    usleep(1000);
#endif
    x *= 3;
    where = NULL;
    *where = x; /*@last*/
    return 0;
}
C
for level in -O0 -O2 "-O0 -DDEEP" "-O2 -DDEEP"; do
  expect 0 "$ETCH" cc --record $level -g late.c pause.o -o late
  expect 139 "$ETCH" record --source soft -o late.etch ./late
  "$ETCH" decode late.etch --as line >lines
  [ "$(tail -n 1 lines)" = "late.c:$(grep -n '@last' late.c | cut -d: -f1) main" ] || fail "the last line, $level: $(tail -n 1 lines)"
done
expect 0 "$ETCH" cc --record -O0 -g late.c pause.o -o late
expect 139 "$ETCH" record --source soft -o late.etch ./late
cp out spoken
"$ETCH" decode late.etch --as line --fields srcline,time >lines
read -r paused from to <spoken
times_of() { # MARK: of each time that its line ran
  grep "^late.c:$(grep -n "@$1" late.c | cut -d: -f1) " lines | sed 's/.* //; s/\.\./ /' | grep . || fail "no time of $1"
}
times_of between >times
while read -r lo hi; do
  [ "$lo" != "?" ] && ((lo >= paused)) || fail "not before $lo, and it is behind the pause at $paused"
  ((lo <= to)) || fail "not before $lo, which is after $to"
  [ "$hi" = "?" ] || ((hi >= from)) || fail "not after $hi, which is before $from"
done <times
times_of before >times
while read -r lo hi; do
  [ "$hi" != "?" ] && ((hi <= paused)) || fail "not after $hi, and it is before the pause at $paused"
done <times

# Locks are taken where the program has it, not in a stub of the recorder's. Every other start of the program deadlocks, whatever
# the machine is doing: a file says whose turn it is.
cat >abba.c <<'C'
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static int clash, moved;
static void *forth(void *arg)
{
    pthread_mutex_lock(&a); /*@a1*/
    if (clash)
        pthread_barrier_wait(&both);
    pthread_mutex_lock(&b); /*@b1*/
    moved++;
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return arg;
}
static void *back(void *arg)
{
    pthread_mutex_lock(&b); /*@b2*/
    if (clash)
        pthread_barrier_wait(&both);
    pthread_mutex_lock(&a); /*@a2*/
    moved--;
    pthread_mutex_unlock(&a);
    pthread_mutex_unlock(&b);
    return arg;
}
int main(void)
{
    pthread_t t1, t2;

    clash = unlink("turn") == 0;
    if (!clash)
        symlink("turn", "turn");
    pthread_barrier_init(&both, NULL, 2);
    pthread_create(&t1, NULL, forth, NULL);
    if (!clash)
        pthread_join(t1, NULL);
    pthread_create(&t2, NULL, back, NULL);
    if (clash)
        pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    return 0;
}
C
expect 0 "$ETCH" cc --record -O0 -g -w -pthread abba.c -o abba
"$ETCH" diagnose --no-lab --source soft --timeout 2 --time 40 --store abba.store ./abba >cause 2>&1 || true
has cause "lock_order"

# What another version of etch left, or compiled, is said to be that: nothing is read or linked wrongly.
rm -rf others && mkdir others
ETCH_RING=$work/others ./both1
printf '\002' | dd of="$(ls others/*)" bs=1 seek=8 conv=notrunc 2>/dev/null
expect 125 "$ETCH" record --rings others -o others.etch
has err "another version"
[ -n "$(ls others)" ] || fail "the rings are gone"
printf '.globl b\nb: call etch_soft_enter\nret\n' >older.s
expect 1 "$ETCH" cc --record older.s a.c b.c -o older
has err "etch_soft_enter"

# The functions of a slice, by its plan: also where they were inlined, and no other.
cat >sliced.c <<'C'
#include <stdlib.h>
static int table[8];
static int pick(int i) { return table[i & 7]; }
int far_away(int x);
int __attribute__((noinline)) far_away(int x) { return x > 2 ? x * 3 : x; }
int use(int i);
int __attribute__((noinline)) use(int i)
{
    int v = pick(i);
    if (v > 3) /*@*/
        abort();
    return v;
}
int main(int argc, char **argv)
{
    (void)argv;
    table[2] = argc > 1 ? 5 : 1;
    return use(2) + far_away(argc) == 99;
}
C
at=$(grep -n '/\*@' sliced.c | cut -d: -f1)
expect 0 "$ETCH" cc -O2 sliced.c -o sliced
expect 0 "$ETCH" slice sliced --at "sliced.c:$at" --sigma 2 --plan sliced.plan
expect 0 "$ETCH" cc --record-only=@sliced.plan -O2 -g sliced.c -o sliced
readelf -sW sliced >symbols
has symbols "use.etch"
grep -q "far_away.etch" symbols && fail "a recorder in far_away, which is not of the slice"
cat >picks.c <<'C'
int pick(int i);
int table[8];
inline __attribute__((always_inline)) int pick(int i) { return table[i & 7]; }
int main(int argc, char **argv) { (void)argv; return pick(argc) ? 3 : 0; }
C
expect 0 "$ETCH" cc -O2 picks.c -o picks
expect 0 "$ETCH" slice picks --at "picks.c:3" --sigma 1 --plan picks.plan
expect 0 "$ETCH" cc --record-only=@picks.plan -O2 -g picks.c -o picks
readelf -sW picks | grep -q "main.etch" || fail "no recorder in main, into which the slice was inlined"
expect 0 "$ETCH" record --source soft -o picks.etch ./picks
printf 'no slice' >no.plan
expect 1 "$ETCH" cc --record-only=@no.plan -c a.c
has "$work/err" "no.plan"
expect 1 "$ETCH" cc --record-only=@missing.plan -c a.c
has "$work/err" "missing.plan"

expect 1 "$ETCH" cc --record -c missing.c
has "$work/err" "missing.c"
expect 0 "$ETCH" cc --record -E a.c

# Configure scripts read what the driver prints: with -v each command, from which libtool learns what a library is linked with, and
# warnings about arguments. -### only prints.
written() { sed "s/[ab]-[0-9a-f]*\.o/x.o/g" "$1"; }
expect 0 "$ETCH" cc --record -O2 -v a.c b.c -o said
written "$work/err" >recorded.said
expect 0 "$ETCH" cc -O2 -v a.c b.c -o said
written "$work/err" >plain.said
same plain.said recorded.said
expect 0 "$ETCH" cc --record -Wl,-x -c a.c -o said.o
has "$work/err" "'linker' input unused"
expect 0 "$ETCH" cc --record '-###' a.c b.c -o unmade
[ ! -e unmade ] || fail "-### made a program"

# A template that one file only declares and a later one instantiates: the stub of the first is not taken for the function. Off, it
# called itself for ever; on, until the stack ended.
cat >box.h <<'EOF'
template <typename T> struct box {
    T value;
    explicit box(T v);
    T twice() const;
};
template <typename T> box<T>::box(T v) : value(v) {}
template <typename T> T box<T>::twice() const { return value + value; }
extern template struct box<int>;
EOF
printf '#include "box.h"\nint main(int n, char **) { return box<int>(n + 20).twice() - 42; }\n' >uses.cpp
printf '#include "box.h"\ntemplate struct box<int>;\n' >makes.cpp
for level in -O0 -O2; do
  expect 0 "$ETCH" c++ --record $level -g uses.cpp makes.cpp -o box
  expect 0 timeout -k 1 60 ./box
  expect 0 timeout -k 1 60 "$ETCH" record --source soft -o box$level.etch ./box
  expect 0 "$ETCH" decode --as call box$level.etch
  has "$work/out" "twice"
done

# auto takes soft where the program has it; each view works.
expect 0 "$ETCH" cc --record -g -pthread "$programs/threads.c" -o threads
expect 0 "$ETCH" record -o auto.etch ./threads
has "$work/err" "soft"
expect 0 "$ETCH" info --verify auto.etch
for view in insn branch line call chrome; do
  expect 0 "$ETCH" decode auto.etch --as $view
  [ -s "$work/out" ] || fail "nothing in view $view"
done
expect 0 "$ETCH" decode auto.etch --as call
has "$work/out" "main"

# What is missing is said.
cc -O2 a.c b.c -o plain
expect 125 "$ETCH" record --source soft -o no.etch ./plain
has "$work/err" "has no software recorder"
has "$work/err" "etch cc --record"
mkdir empty
expect 125 "$ETCH" record --rings empty -o no.etch
has "$work/err" "holds no rings"

# vfork shares memory with its child, and with it the ring; other threads write on meanwhile.
cat >vforks.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int stop;
static void *spin(void *arg)
{
    unsigned long n = 0;

    while (!stop)
        n += n % 3 ? 1 : 2;
    return arg;
}
int main(void)
{
    pthread_t t[2];
    int status, sum = 0;

    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, spin, NULL);
    for (int i = 0; i < 20; i++) {
        pid_t pid = i % 2 ? fork() : vfork();

        if (pid == 0)
            _exit(i);
        waitpid(pid, &status, 0);
        sum += WEXITSTATUS(status);
    }
    stop = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    printf("%d\n", sum);
    return 0;
}
C
expect 0 "$ETCH" cc --record -O2 -g -pthread vforks.c -o vforks
expect 0 "$ETCH" record --source soft -o vforks.etch ./vforks
has "$work/out" "190"
expect 0 "$ETCH" decode vforks.etch --as branch

# A crash, once: the failing line is the last one that is replayed.
expect 0 "$ETCH" cc --record -g -O0 "$programs/segv.c" -o segv
"$ETCH" record --source soft -o crash.etch ./segv >/dev/null 2>err || true
has err "Segmentation fault"
expect 0 "$ETCH" decode crash.etch --as line
[ -s "$work/out" ] || fail "no lines of the crash"
echo "$checks checks"
