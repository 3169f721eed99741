#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The lab: a failing schedule is found, is the same each time it is repeated, and the fixed twin never fails.
. "$(dirname "$0")/lib.sh"
cd "$work"
export XDG_CACHE_HOME=$work/cache
corpus=$ETCH_SOURCE/tests/corpus

# build BUG LEVEL [OPTION...]: a program of the corpus at ./PROG
build() {
  local source=$corpus/$1/bug.c level=$2
  shift 2
  if [ -e "$source" ]; then
    "$ETCH" cc "$level" -g -pthread "$@" "$source" -o prog
  else
    "$ETCH" c++ -std=c++17 "$level" -g -pthread "$@" "${source}pp" -o prog
  fi
}

# finds BUG LEVEL HOW: within 100 schedules; then 20 of 20 repetitions are the same, and the fixed twin has no failure
finds() {
  build "$1" "$2"
  rm -f found.etch
  expect 0 "$ETCH" explore --schedules 100 -o found.etch ./prog
  has out "$3"
  has out "repeated   3 of 3"
  expect 0 "$ETCH" replay --times 20 found.etch
  has out "20 of 20 times the same run"
  build "$1" "$2" -DFIXED
  expect 1 "$ETCH" explore --schedules 40 ./prog
  has out "no failure in 40 schedules"
}
finds pbzip2 -O0 SIGSEGV
finds atomicity-rww -O2 SIGABRT
finds deadlock-abba -O0 "no thread can run"
finds lost-wakeup -O2 "no thread can run"
finds shared-ptr-reset -O0 SIGSEGV
finds template-queue -O2 SIG
finds order-destroy -O2 SIG
finds reader-again -O0 "no thread can run" # the lock prefers writers

# The cause by experiment: turned round the program passes, enforced alone it fails. Each is one that the corpus knows.
proves() { # BUG LEVEL PATTERN
  build "$1" "$2"
  expect 0 "$ETCH" explore -o cause.etch ./prog
  grep -A3 -E "^  proven +$3" out | grep -qE 'turned round: 0 of 2[0-9] fail; enforced alone: ([0-9]+) of \1 fail' ||
    { cat out >&2; fail "$1: not proven: $3"; }
  checks=$((checks + 1))
}
proves pbzip2 -O0 'T1 bug.c:39 main \(write\) before T2 bug.c:(15|18|22) consumer( #[0-9]+)? \(read\)'
proves order-init -O0 'T2 bug.c:11 worker \(read\) before T1 bug.c:24 main \(write\)'
proves atomicity-rwr -O0 'T1 bug.c:42 main \(write\) before T2 bug.c:27 user \(read\)'
proves shared-ptr-reset -O2 'T1 bug.cpp:32 .*drop \(write\) before T2 bug.cpp:52 .*timeout \(read\)'
proves lost-wakeup -O0 'T1 bug.c:37 main \(write\) before T2 bug.c:22 waiter \(write\)'

# A failure without other threads has no cause in the schedule.
echo 'int main(void) { return 3; }' >alone.c
"$ETCH" cc -g alone.c -o alone
expect 0 "$ETCH" explore -o alone.etch ./alone
has out "does not depend on the schedule"

# A hang says who waits for whom.
build deadlock-abba -O0
expect 0 "$ETCH" explore -o hang.etch ./prog
grep -qE 'T2 .*waits for a mutex that T3 holds' out || fail "T2 does not wait for T3"
grep -qE 'T3 .*waits for a mutex that T2 holds' out || fail "T3 does not wait for T2"
checks=$((checks + 2))

# The same search twice has the same points, with every strategy; another seed has others.
build pbzip2 -O0 -DFIXED
for strategy in queue random:1 pct:1,3 pos:1 surw:1; do
  "$ETCH" explore --strategy $strategy --schedules 20 ./prog >one || true
  "$ETCH" explore --strategy $strategy --schedules 20 ./prog >two || true
  has one "hash of all"
  same one two
done
"$ETCH" explore --strategy random:500 --schedules 20 ./prog >three || true
"$ETCH" explore --strategy random:1 --schedules 20 ./prog >one || true
! cmp -s one three || fail "another seed had the same points"
checks=$((checks + 1))

# Objects, an archive and a library of others: the link is repeated from its own folder.
mkdir -p parts/sub
cat >parts/a.c <<'C'
#include <pthread.h>
int add(int *); double root(double);
static int total;
static void *work(void *unused) { for (int i = 0; i < 2; i++) add(&total); return unused; }
int main(void)
{
    pthread_t t[2];
    for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, work, 0);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    return total == 4 && root(4.0) == 2.0 ? 0 : 3;
}
C
echo 'int add(int *p) { return *p = *p + 1; }' >parts/sub/b.c
printf '#include <math.h>\ndouble root(double x) { return sqrt(x); }\n' >parts/c.c
(cd parts && "$ETCH" cc -O0 -c a.c && "$ETCH" cc -O0 -c sub/b.c -o sub/b.o && ar rc libb.a sub/b.o && "$ETCH_CC" -c c.c &&
  "$ETCH" cc a.o c.o -L. -lb -lm -pthread -o parts)
expect 0 "$ETCH" explore -o parts.etch parts/parts
has out "exit status 3"
# ETCH_LAB=1 makes the lab build at once: it is there when an input of the link has gone.
rm -r "$XDG_CACHE_HOME"
(cd parts && ETCH_LAB=1 "$ETCH" cc a.o c.o -L. -lb -lm -pthread -o parts)
rm parts/c.o
expect 0 "$ETCH" explore -o parts2.etch parts/parts
has out "exit status 3"
rm -r "$XDG_CACHE_HOME"
expect 1 "$ETCH" explore parts/parts
has err "cannot repeat the link"
has err "c.o"

# What etch runs is in a folder that nobody else can write to.
mkdir -p open/etch/lab && chmod 777 open/etch/lab
XDG_CACHE_HOME=$work/open expect 1 "$ETCH" explore ./prog
has err "other users may write to that folder"
expect 1 env -u XDG_CACHE_HOME -u HOME "$ETCH" explore ./prog
has err "neither XDG_CACHE_HOME nor HOME is set"

# Bad input has an answer in words.
cat >plain.c <<'C'
int main(void) { return 0; }
C
"$ETCH_CC" plain.c -o plain
expect 1 "$ETCH" explore ./plain
has err "has no bitcode"
expect 1 "$ETCH" explore ./nothing
has err "cannot open ./nothing"
expect 2 "$ETCH" explore --strategy luck ./prog
expect 2 "$ETCH" explore
expect 2 "$ETCH" explore --schedules 0 ./prog
expect 1 "$ETCH" replay plain.c
build deadlock-abba -O2
expect 0 "$ETCH" replay hang.etch
has out "another build"
has out "the same failure by name"
cat >busy.c <<'C'
#include <pthread.h>
static _Atomic int stop;
static void *spin(void *unused) { while (!stop) ; return unused; }
int main(void) { pthread_t t; pthread_create(&t, 0, spin, 0); pthread_join(t, 0); return 0; }
C
"$ETCH" cc -O1 -g -pthread busy.c -o busy
expect 1 "$ETCH" explore --schedules 2 --timeout 2 ./busy
has out "2 schedules did not end within the limits"
done_checking
