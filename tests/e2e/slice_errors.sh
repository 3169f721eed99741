#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What cannot be sliced is refused, with the reason and a way out: no bitcode, another build's, another LLVM's, no such line.
set -u
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
cd "$dir" || exit 1
cat >p.c <<'C'
#include <stdlib.h>

int main(int argc, char **argv)
{

    /* nothing here */

    (void)argv;
    if (argc > 9)
        abort();
    return 0;
}
C
# expect STATUS 'WORDS' ARGUMENT...: etch slice fails so, on one line
expect() {
  local status=$1 words=$2 got
  shift 2
  "$ETCH" slice "$@" >out 2>err
  got=$?
  if [ $got -ne "$status" ] || ! grep -qF -- "$words" err || [ "$(wc -l <err)" -ne 1 ] || [ -s out ]; then
    echo "etch slice $*: status $got, expected $status and '$words', said:"
    cat err
    failed=1
  fi
}
"$ETCH" cc -O2 p.c -o p || exit 1
"$ETCH" slice p --at p.c:10 >out || { echo "a good slice failed"; failed=1; }
grep -q '^slice of p from .*/p.c:10: 2 lines' out || { echo "unexpected slice:"; cat out; failed=1; }

expect 2 'which program?' --at p.c:3
expect 2 'from where?' p
expect 1 "cannot open nothing: No such file" nothing --at p.c:3
expect 1 'not a 64-bit little-endian ELF file' p.c --at p.c:3
expect 1 "is no place" p --at p.c
expect 1 'has no code from a file q.c' p --at q.c:3
expect 1 'there is no code on line 6 of p.c (try: line 8, the nearest with code)' p --at p.c:6
expect 1 'there is no code on line 900 of p.c (try: line 11' p --at p.c:900
expect 1 'there is no code at p.c:10:77' p --at p.c:10:77
expect 1 'cannot open no.etch' p --failure no.etch

"$ETCH_CC" -g p.c -o plain
expect 1 'it has no bitcode (try: build it with CC="etch cc"' plain --at p.c:10

# bitcode of other lines than the code's: the source moved, the section stayed
sed '1i// one more line' p.c >moved.c
mkdir moved && mv moved.c moved/p.c
(cd moved && "$ETCH" cc -O2 p.c -o p && objcopy --dump-section .llvmbc=../moved.bc p)
objcopy --remove-section .llvmbc p bare && objcopy --add-section .llvmbc=moved.bc bare stale
expect 1 "its bitcode is stale: main of $PWD/moved/p.c is on line 4 there, on line 3 in the code (try: compile $PWD/moved/p.c anew" stale --at p.c:10

# Two overloads of a header, of which one has code of its own and both are inlined, are no such thing, and neither is an inline function that
# two units have of different versions of a header.
cat >o.h <<'EOF'
#pragma once
struct list {
    volatile int n = 0;
    void push(const int &x) { n += x; }
    void push(long &&x) { n -= (int)x; }
#ifdef LONGER


#endif
    __attribute__((noinline)) int size() const { return n; }
};
namespace deep { inline int twice(int x) { return 2 * x; } inline int twice(long x) { return (int)x; } }
EOF
cat >o1.cc <<'EOF'
#include "o.h"
int other(list &l);
void (list::*volatile keep)(const int &) = &list::push;
int main(int argc, char **)
{
    list l;
    l.push(argc);
    l.push(4L);
    return deep::twice(l.size()) + other(l);
}
EOF
cat >o2.cc <<'EOF'
#define LONGER
#include "o.h"
int other(list &l)
{
    l.push(l.size());
    return deep::twice(l.size() + 0L);
}
EOF
for level in -O0 -O1 -O2; do
  "$ETCH" c++ $level o1.cc o2.cc -o o
  "$ETCH" slice o --at o2.cc:6 >out || { echo "$level: overloads"; failed=1; }
  grep -qF 'l.push(l.size())' out || { echo "$level: unexpected slice:"; cat out; failed=1; }
done

# bitcode of another LLVM, by its own word: the six-bit letters of "LLVM19" become those of "LLVM18"
objcopy --dump-section .llvmbc=own.bc p
printf 'not bitcode at all, but long enough' >noise.bc
objcopy --add-section .llvmbc=noise.bc bare noise
expect 1 'its bitcode is damaged' noise --at p.c:10
head -c $(($(wc -c <own.bc) / 2 / 4 * 4)) own.bc >cut.bc
objcopy --add-section .llvmbc=cut.bc bare cut
expect 1 'its bitcode is damaged' cut --at p.c:10
objcopy --strip-debug p nodebug
expect 1 'has no debug information' nodebug --at p.c:10
if command -v clang-14 >/dev/null; then
  clang-14 -g -Xclang -fembed-bitcode=bitcode p.c -o old 2>/dev/null && expect 1 'its bitcode is of another LLVM: LLVM14' old --at p.c:10
else
  echo "no clang-14: bitcode of another LLVM is tested in unit/bitcode only"
fi
exit $failed
