#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Calls by name between recorded functions, in every way that a program is linked. A function of a shared library may be
# replaced by the program or by LD_PRELOAD: the one that wins without a recorder wins with one. Where nothing is replaced
# calls stay direct, which the rings show by their size. What is replayed is what ran, each time.
. "$(dirname "$0")/lib.sh"
compare=$ETCH_BUILD/tests/soft_compare
cd "$work"

cat >low.c <<'C'
#include "calls.h"
int low(int x) { return x & 1 ? x * 3 : x + 7; }
int pass_on(int x) { return low(x) + 1; }
int only_passes(int x) { return pass_on(x); }
int __attribute__((noinline)) near(int x) { return x % 5 ? x - 1 : x; }
int near_user(int x) { return near(x) + 2; }
double mixed(int a, double b, long c, float d) { return a > 3 ? b * (double)c : b + (double)d; }
long many(int a, int b, int c, int d, int e, int f, int g, int h) { return a & 1 ? g - h : b + c + d + e + f; }
int __attribute__((weak)) soft(int x) { return x & 2 ? x : -x; }
int soft_user(int x) { return soft(x) * 2; }
int count(int n, ...) { return n & 1 ? n : 2 * n; }
int (*address(void))(int) { return low; }
C
cat >calls.h <<'C'
int low(int x);
int pass_on(int x);
int only_passes(int x);
int near(int x);
int near_user(int x);
double mixed(int a, double b, long c, float d);
long many(int a, int b, int c, int d, int e, int f, int g, int h);
int soft(int x);
int soft_user(int x);
int count(int n, ...);
int (*address(void))(int);
long high(int n);
int own(int x);
C
cat >high.c <<'C'
#include "calls.h"
int __attribute__((noinline)) own(int x) { return x > 50 ? x / 2 : x + 1; }
long high(int n)
{
    long sum = 0;

    for (int i = 0; i < n; i++) {
        sum += low(i) + only_passes(i) + near_user(i) + own(i) + soft_user(i) + soft(i) + count(3, i, i + 1);
        sum += (long)mixed(i, 1.5, i, 2.5f) + many(i, 2, 3, 4, 5, 6, 7, i);
        sum += address()(i);
    }
    return sum + (address() == low);
}
C
cat >main.c <<'C'
#include "calls.h"
#include <stdio.h>
int main(void)
{
    printf("%ld\n", high(300) + low(4) + (address() == low));
    return 0;
}
C
cat >preload.c <<'C'
int low(int x) { return 1000 + x; }
int near(int x) { return 2000 + x; }
int pass_on(int x) { return 3000 + x; }
int soft(int x) { return 4000 + x; }
double mixed(int a, double b, long c, float d) { return a + b + (double)c + (double)d; }
C
cat >winner.c <<'C'
#include "calls.h"
#include <stdio.h>
int low(int x) { return x % 3 ? 7 : 9 + x; }
int main(void)
{
    printf("%ld\n", high(300) + low(4) + (address() == low));
    return 0;
}
C
clang-19 -O1 -fno-omit-frame-pointer -shared -fPIC preload.c -o preload.so

# one NAME: how the program of that name prints without a recorder, then with, off and on, alone and behind preload.so
one() {
  "./$1.plain" >want
  "./$1" >out && same want out
  rm -rf rings && mkdir rings
  ETCH_RING=$work/rings ETCH_RING_KB=256 "./$1" >out && same want out
  LD_PRELOAD=$work/preload.so "./$1.plain" >want.preloaded
  LD_PRELOAD=$work/preload.so "./$1" >out && same want.preloaded out
  LD_PRELOAD=$work/preload.so ETCH_RING=$work/rings "./$1" >out && same want.preloaded out
}

# replay MODE KB PROGRAM [PRELOADED]: what ran is what is replayed
replay() {
  local said
  has_vpt || return 0
  rm -rf rings truth.etch soft.etch
  mkdir rings
  LD_PRELOAD=${4:-} ETCH_RING=$work/rings ETCH_RING_KB=$2 "$ETCH" record --source vpt -o truth.etch "$3" >out 2>err || true
  "$ETCH" record --rings rings -o soft.etch 2>err || { cat err >&2; fail "$*: no rings"; }
  said=$("$compare" truth.etch soft.etch ${1#all} 2>&1) || { echo "$said" | tail -n 12 >&2; fail "$*"; }
  checks=$((checks + 1))
}

# bytes PROGRAM: how many the program's own thread wrote
bytes() {
  rm -rf rings && mkdir rings
  ETCH_RING=$work/rings ETCH_RING_KB=1024 "$1" >/dev/null
  python3 - rings <<'P'
import glob, struct, sys
CHUNK, SLACK = 4096, 512
(name,) = glob.glob(sys.argv[1] + "/*")
data = open(name, "rb").read()
chunks, slots = struct.unpack_from("<II", data, 16)
total, at = 0, len(data) - slots * (1 + chunks) * CHUNK + SLACK
while at + CHUNK <= len(data) and struct.unpack_from("<I", data, at)[0] == 0x6b6e6863:
    total += len(data[at:at + CHUNK].rstrip(b"\0")) - 56
    at += CHUNK
assert total > 0, "no chunk"
print(total)
P
}

# objects COMPILER FLAGS...
objects() {
  local how=$1
  shift
  for f in low high main winner; do $how "$@" -g -w -c $f.c -o $f.o; done
}

# shapes SUFFIX LEVEL: one program, linked in many ways; with the suffix .plain without a recorder
shapes() {
  local suffix=$1 level=$2 how
  how="clang-19"
  [ -n "$suffix" ] || how="$ETCH cc --record"
  objects "$how" $level -fPIC
  $how -shared low.o high.o -o "libshared$suffix.so"
  $how $level -fPIC main.o -L. "-l:libshared$suffix.so" -Wl,-rpath,"$work" -o "shared$suffix"
  $how $level -fPIC winner.o -L. "-l:libshared$suffix.so" -Wl,-rpath,"$work" -o "replaced$suffix"
  if [ $level != -O0 ]; then
    $how low.o high.o main.o -o "pic$suffix"
    rm -f libcalls.a && ar rc libcalls.a low.o high.o
    $how main.o libcalls.a -o "archive$suffix"
    $how -static main.o libcalls.a -o "static$suffix"
    $how -shared -Wl,-Bsymbolic low.o high.o -o "libsymbolic$suffix.so"
    $how $level -fPIC main.o -L. "-l:libsymbolic$suffix.so" -Wl,-rpath,"$work" -o "symbolic$suffix"
  fi
  objects "$how" $level -fPIC -fno-semantic-interposition
  $how -shared low.o high.o -o "liblocal$suffix.so"
  $how main.o -L. "-l:liblocal$suffix.so" -Wl,-rpath,"$work" -o "local$suffix"
  [ $level != -O0 ] || return 0
  objects "$how" $level
  $how low.o high.o main.o -o "direct$suffix"
  objects "$how" $level -fPIC -fvisibility=protected
  $how -shared low.o high.o -o "libprotected$suffix.so"
  $how main.o -L. "-l:libprotected$suffix.so" -Wl,-rpath,"$work" -o "protected$suffix"
  objects "$how" $level -fno-pie -fno-pic # takes the address of low, which then is its own entry in place of the library's
  $how -no-pie main.o -L. "-l:libshared$suffix.so" -Wl,-rpath,"$work" -o "fixed$suffix"
}

for level in -O0 -O2; do
  names='shared replaced local'
  [ $level = -O0 ] || names="$names direct pic archive static symbolic protected fixed"
  shapes .plain $level
  shapes '' $level
  for name in $names; do
    one $name
    replay all 1024 ./$name
  done
  replay all 1024 ./shared "$work/preload.so"
  replay part 16 ./shared "$work/preload.so"
done
replay part 16 ./shared
replay part 16 ./replaced

# Direct calls leave next to nothing in the rings; calls over an entry leave ten bytes and more each.
few=$(bytes ./direct)
for name in pic archive static symbolic shared local protected; do
  n=$(bytes ./$name)
  checks=$((checks + 1))
  [ "$n" -le $((few + few / 2)) ] || fail "$name writes $n bytes, direct $few"
done

# stamps OBJECT NUMBER: so many calls of the runtime for the time, two for each call that may wait, one for one that only releases
stamps() {
  checks=$((checks + 1))
  local n
  n=$(objdump -dr "$1" | grep -c 'etch_soft_stamp') || true
  [ "$n" -eq "$2" ] || fail "$1 asks for the time in $n places, not $2"
}

# A program's own functions that begin as a library's do, or have the name but other parameters, get no time.
cat >names.c <<'C'
#include <pthread.h>
#include <sys/socket.h>
int send_bits(int a, int b), recv_all(int a), wait_list(int a), sem_value(int a), pthread_spare(int a), mtx_count(int a);
int writer(int a), accept_it(int a), cnd_all(int a), epoll_all(int a), poll(int a), sleep(int a, int b, int c);
extern pthread_key_t key;
int all(int a)
{
    a += send_bits(a, 1) + recv_all(a) + wait_list(a) + sem_value(a) + pthread_spare(a) + mtx_count(a) + writer(a);
    a += accept_it(a) + cnd_all(a) + epoll_all(a) + poll(a) + sleep(a, a, a);
    return a + (pthread_getspecific(key) != 0) + pthread_setspecific(key, &a) + pthread_equal(pthread_self(), 0);
}
C
cat >waits.c <<'C'
#include <pthread.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>
int all(pthread_mutex_t *m, pthread_cond_t *c, sem_t *s, char *b, mtx_t *t)
{
    pthread_mutex_lock(m);
    pthread_cond_wait(c, m);
    pthread_mutex_unlock(m);
    sem_wait(s);
    mtx_lock(t);
    return (int)(send(1, b, 1, 0) + recv(1, b, 1, 0) + write(1, b, 1)) + wait(0) + waitpid(1, 0, 0) + (int)sleep(1);
}
C
for level in -O0 -O2; do
  "$ETCH" cc --record $level -w -c names.c -o names.o && stamps names.o 0
  "$ETCH" cc --record $level -c waits.c -o waits.o && stamps waits.o 21
done

# Operators of C++ whose names begin as those of new and delete do.
cat >number.h <<'C'
struct number { int v; };
bool operator!=(number a, number b);
bool operator!(number a);
number operator-(number a);
number operator/(number a, number b);
number &operator/=(number &a, int b);
C
cat >number.cc <<'C'
#include "number.h"
bool operator!=(number a, number b) { return a.v & 1 ? a.v != b.v : a.v / 2 != b.v; }
bool operator!(number a) { return a.v % 3 ? !a.v : a.v > 7; }
number operator-(number a) { return a.v > 9 ? number{-a.v} : number{a.v}; }
number operator/(number a, number b) { return b.v ? number{a.v / b.v} : number{1}; }
number &operator/=(number &a, int b) { a.v /= b ? b : 1; return a; }
C
cat >numbers.cc <<'C'
#include "number.h"
#include <cstdio>
int main()
{
    int sum = 0;

    for (int i = 0; i < 500; i++) {
        number a{i}, b{i % 7}, *c = new number{i};

        sum += (a != b) + !a + (-a).v + (a / b).v + (*c /= 2).v;
        delete c;
    }
    std::printf("%d\n", sum);
}
C
for flags in -O0 -O2 "-O2 -fPIC"; do
  "$ETCH" c++ --record $flags -g number.cc numbers.cc -o numbers
  replay all 1024 ./numbers
  replay part 16 ./numbers
  n=$(bytes ./numbers)
  checks=$((checks + 1))
  [ "$n" -le 8000 ] || fail "operators of $flags write $n bytes" # an entry from outside would be ten for each call
done

# Inline functions and templates: each file has its own copy, of which the linker and the loader take one.
cat >steps.h <<'C'
__attribute__((noinline)) inline int step(int x) { return x & 1 ? x + 1 : x / 2; }
template <typename T> __attribute__((noinline)) T twice(T x) { return step((int)x) > 20 ? x + x : x; }
struct shape {
    virtual ~shape() {}
    virtual int area(int x) { return step(x) + twice(x); }
};
int first(int n);
int second(int n);
C
cat >first.cc <<'C'
#include "steps.h"
int first(int n)
{
    int sum = 0;
    shape s;

    for (int i = 0; i < n; i++)
        sum += step(i) + twice(i) + (int)twice((long)i) + s.area(i) + second(i & 3);
    return sum;
}
C
cat >second.cc <<'C'
#include "steps.h"
int second(int n) { return n > 1 ? step(n) * 2 : twice(n); }
C
cat >whole.cc <<'C'
#include "steps.h"
#include <cstdio>
int main() { std::printf("%d\n", first(400) + step(3) + twice(5)); }
C
cat >thin.cc <<'C'
#include <cstdio>
int first(int n);
int main() { std::printf("%d\n", first(400)); }
C
echo 'int step(int x) { return 500 - x; } template <typename T> T twice(T x); template <> int twice<int>(int x) { return 70 + x; }' >preload.cc
clang++-19 -O1 -fno-omit-frame-pointer -shared -fPIC preload.cc -o preload.so

# cpp SUFFIX COMPILER...: the program and its library. In "mixed" the copies without a recorder come first.
cpp() {
  local suffix=$1 f
  shift
  for f in first second whole thin; do "$@" -O2 -g -fPIC -c $f.cc -o $f.o; done
  clang++-19 -O2 -g -fPIC -fno-omit-frame-pointer -c second.cc -o bare.o
  "$@" first.o second.o thin.o -o "linked$suffix"
  "$@" -shared first.o second.o -o "libsteps$suffix.so"
  "$@" -shared bare.o first.o -o "libmixed$suffix.so"
  "$@" thin.o -L. "-l:libsteps$suffix.so" -Wl,-rpath,"$work" -o "thin$suffix"
  "$@" whole.o -L. "-l:libsteps$suffix.so" -Wl,-rpath,"$work" -o "whole$suffix"
  "$@" thin.o -L. "-l:libmixed$suffix.so" -Wl,-rpath,"$work" -o "mixed$suffix"
}

cpp .plain clang++-19
cpp '' "$ETCH" c++ --record
for name in linked thin whole mixed; do
  one $name
  replay all 1024 ./$name
  replay part 16 ./$name
done
replay all 1024 ./thin "$work/preload.so"
few=$(bytes ./linked) n=$(bytes ./thin)
checks=$((checks + 1))
[ "$few" -le 6000 ] && [ "$n" -le 6000 ] || fail "inline functions write $few and $n bytes"
done_checking
