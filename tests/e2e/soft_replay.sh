#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The software recorder's gate: what is replayed is what was executed. Each program is built with etch cc --record and run
# once under vpt, which sees every instruction; the rings that the program wrote in that very run are replayed, and both
# are compared node by node. From the start with large rings; the newest part with rings that wrapped many times.
# ETCH_LONG=1: also the programs that take long.
. "$(dirname "$0")/lib.sh"
programs=$ETCH_SOURCE/tests/programs
compare=$ETCH_BUILD/tests/soft_compare
cd "$work"
need_vpt

# build NAME OPTIMISATION
build() {
  local source=$programs/$1.c how=cc
  [ -f "$source" ] || { source=$programs/$1.cc; how=c++; }
  "$ETCH" $how --record "$2" -g "$source" -pthread -o "$1$2" || fail "$1 $2 was not built"
}

# replay MODE KB PROGRAM ARG...: one run, both recordings, the comparison; MODE is soft_compare's, or all
replay() {
  local mode=$1 kb=$2 said
  shift 2
  rm -rf rings truth.etch soft.etch
  mkdir rings
  ETCH_RING=$work/rings ETCH_RING_KB=$kb "$ETCH" record --source vpt -o truth.etch "$@" >out 2>err || true
  "$ETCH" record --rings rings -o soft.etch 2>err || { cat err >&2; fail "$*: no rings"; }
  [ "$mode" = all ] && mode=
  said=$("$compare" truth.etch soft.etch $mode 2>&1) || { echo "$said" | tail -n 12 >&2; fail "$* ($kb KB)"; }
  checks=$((checks + 1))
  echo "$* ($kb KB): $(echo "$said" | tail -n 1)"
}

for level in -O0 -O2; do
  for name in loops switches recursion callbacks jumps exceptions threads forks; do
    build $name $level
    replay all 16384 ./$name$level
  done
  for name in switches callbacks exceptions loops; do
    replay part 16 ./$name$level
  done
done
build signals -O2
replay apart 16384 ./signals-O2
for level in -O1 -O3; do
  build jumps $level
  replay all 16384 ./jumps$level
done
if [ "${ETCH_LONG:-0}" != 0 ]; then
  for level in -O0 -O2; do
    for name in storm signals; do
      build $name $level
      replay apart 16384 ./$name$level
    done
    build busy $level
    replay all 65536 ./busy$level
    replay part 64 ./busy$level
  done
fi

# A library and a program, both with a recorder, write one ring per thread; calls between them and back are in order.
cat >lib.c <<'C'
#include <stdlib.h>
int twist(int (*f)(int), int n);
static int inner(int x) { return x % 3 ? x * 2 : x / 3; }
int twist(int (*f)(int), int n)
{
    int sum = 0;

    for (int i = 0; i < n; i++)
        sum += f(i) + inner(i);
    return sum;
}
C
cat >use.c <<'C'
#include <stdio.h>
int twist(int (*f)(int), int n);
static int bend(int x) { return x & 1 ? -x : x; }
int main(void)
{
    int total = 0;

    for (int i = 0; i < 20; i++)
        total += twist(bend, i);
    printf("%d\n", total);
    return 0;
}
C
"$ETCH" cc --record -O2 -g -shared -fPIC lib.c -o libtwist.so
"$ETCH" cc --record -O2 -g use.c -L. -ltwist -Wl,-rpath,"$work" -o use
replay all 16384 ./use
replay part 16 ./use

# Calls through pointers, in a program and in code that could be a library's; and a recorder in one function only, which is
# called from where there is none.
for flags in -O0 -O2 "-O2 -fPIC"; do
  "$ETCH" cc --record $flags -g "$programs/soft/pointers.c" -o pointers
  replay all 16384 ./pointers
  replay part 16 ./pointers
done
"$ETCH" cc --record-only=restricted -O2 -g "$programs/soft/pointers.c" -o pointers
replay all 16384 ./pointers
readelf -sW pointers | grep -q 'main.etch' && fail "a recorder in main, which was not asked for"

# All kinds of arguments and results, between files, to code with a recorder and without; the same code on two ways.
for flags in -O0 -O2 "-O2 -fPIC" -O3; do
  "$ETCH" cc --record -w $flags -g "$programs"/soft/conventions{,_other}.c -lm -o handed
  replay all 16384 ./handed
  replay part 16 ./handed
done

# Calls through pointers that are jumps.
for level in -O0 -O2; do
  "$ETCH" cc --record $level -g "$programs/soft/threaded.c" -o threaded
  replay all 16384 ./threaded 2000
  replay part 16 ./threaded 2000
done

# Code that does not ask whether its chunk has room, over and over: behind one another, and deeper and deeper.
{
  echo '#define OWN __attribute__((noinline)) static'
  echo 'OWN int leaf(int x) { return x & 1 ? x * 3 + 1 : x ^ 5; }'
  echo 'OWN int deep0(int x) { return x; }'
  for ((i = 1; i < 1200; i++)); do echo "OWN int deep$i(int x) { return deep$((i - 1))(leaf(x)) + 1; }"; done
  echo 'OWN int chain(int x) {'
  for ((i = 0; i < 1200; i++)); do echo 'x = leaf(x);'; done
  echo 'return x; }'
  echo 'int main(void) { int x = 1; for (int i = 0; i < 9; i++) x = chain(x) + deep1199(x); return x == 0; }'
} >room.c
for level in -O0 -O2; do
  "$ETCH" cc --record $level -g room.c -o room
  replay all 16384 ./room
  replay part 16 ./room
done

# Two files, of which both or only one has a recorder: what calls out and is called back leaves no byte of its own in between, only that
# it went out and that it left.
cat >calls.c <<'C'
#include <stdlib.h>
int other(int (*f)(int), int x);
int quiet(int x);
static int again(int x) { return quiet(x) + 1; }
static int deeper(int x) { return x > 90 ? other(again, x - 1) : quiet(x); }
static int straight(int x) { return quiet(quiet(quiet(x))); }
static int by_value(const void *a, const void *b)
{
    return quiet(*(const int *)a) - quiet(*(const int *)b);
}
int main(void)
{
    int v[64], sum = 0;

    for (int i = 0; i < 64; i++)
        v[i] = i * 37 % 64;
    qsort(v, 64, sizeof(v[0]), by_value);
    for (int i = 0; i < 600; i++)
        sum += other(again, i) + other(straight, i) + other(deeper, i % 100) + straight(i);
    return sum == 0;
}
C
cat >called.c <<'C'
int other(int (*f)(int), int x);
int quiet(int x);
int quiet(int x) { return x + 3; }
int other(int (*f)(int), int x) { return f(x) + f(x + 1); }
C
for level in -O0 -O2; do
  clang-19 $level -fno-omit-frame-pointer -g -c called.c -o plain.o # else it is not known after a wrap who called in, which is said
  "$ETCH" cc --record $level -g -c called.c -o recorded.o
  for object in plain.o recorded.o; do
    "$ETCH" cc --record $level -g calls.c $object -o calls
    replay all 16384 ./calls
    replay part 16 ./calls
  done
  clang-19 $level -fno-omit-frame-pointer -g -c calls.c -o plain.o
  "$ETCH" cc --record $level -g plain.o called.c -o calls
  replay all 16384 ./calls
  replay pieces 16 ./calls # called out through a pointer: whether to what calls in is not seen from there
done
# Code that keeps no frame pointers hides who called it: after a wrap that is not known, which is said, and nothing wrong is shown.
cat >hides.c <<'C'
int with(int (*f)(int), ...);
static volatile int sum;
static int step(int x) { return x & 1 ? (sum++, x) : (sum += 2, x); }
static __attribute__((noinline)) int inner(int x)
{
    int r = with(step, x);

    sum += r & 4 ? 1 : 0;
    if (r & 8)
        sum += 3;
    return r;
}
static __attribute__((noinline)) int outer(int x)
{
    int r = inner(x);

    if (r & 2)
        sum++;
    r += inner(x + 1);
    if (r & 16)
        sum += 5;
    return r;
}
int main(void)
{
    for (int i = 0; i < 3000; i++)
        sum += i & 1 ? outer(i) : -outer(i + 2);
    return 0;
}
C
cat >hidden.c <<'C'
#include <stdarg.h>
int with(int (*f)(int), ...)
{
    va_list a;
    int x;

    va_start(a, f);
    x = va_arg(a, int);
    va_end(a);
    return f(x) + f(x + 1) + f(x + 2);
}
C
for level in -O0 -O2; do
  clang-19 -O2 -fomit-frame-pointer -w -c hidden.c -o hidden.o
  "$ETCH" cc --record $level -g hides.c hidden.o -o hides
  replay all 16384 ./hides
  replay pieces 16 ./hides
done
"$ETCH" cc --record -O2 -g "$programs/soft/worlds.c" "$programs/soft/worlds_other.c" -o worlds
replay all 16384 ./worlds

# Only some functions have a recorder, and one is called by a signal handler in the middle of the other.
cat >alarm.c <<'C'
#include <signal.h>
#include <sys/time.h>
static volatile int ticks;
static volatile unsigned sink;
static void __attribute__((noinline)) tick(void)
{
    if (++ticks % 3)
        sink += 2;
}
static void on_alarm(int signal) { tick(); sink += (unsigned)signal; }
static void __attribute__((noinline)) spin(void)
{
    for (unsigned i = 0; ticks < 25; i++)
        sink += i % 5 == 3 ? 1 : i % 7 == 2 ? 3 : 2;
}
int main(void)
{
    struct itimerval every = {{0, 3000}, {0, 3000}};

    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &every, 0);
    spin();
    return 0;
}
C
"$ETCH" cc --record-only=tick,spin -O2 -g alarm.c -o alarm
replay apart 65536 ./alarm

# Off, the program does what it did, and writes nothing.
rm -rf rings
mkdir rings
./jumps-O2 >out
clang-19 -O2 "$programs/jumps.c" -o plain && ./plain >want
same want out
[ -z "$(ls rings)" ] || fail "a ring without being asked"
echo "$checks checks"
