#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# etch cc is clang: same files, same diagnostics, same status in every mode; and the bitcode is in what it links.
set -u
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
failed=0
fail() { echo "cc: $*"; failed=1; }
has_bitcode() { readelf -SW "$1" | grep -qE ' \.(llvmbc|etchbc) '; }
slices() { "$ETCH" slice "$1" --at "$2" >out 2>err || { cat err; fail "no slice of $1 at $2"; }; }
cat >one.c <<'C'
int two(int);
int main(int argc, char **argv) { (void)argv; return two(argc) - 2; }
C
cat >two.c <<'C'
#include "two.h"
int two(int n)
{
    return n + ONE;
}
C
echo '#define ONE 1' >two.h
cat >bad.c <<'C'
int main(void) { int unused; return undeclared }
C
cc="$ETCH cc"

# same as clang, to the byte: [arguments] with what differs in a name taken out
same() {
  rm -rf a b && mkdir a b
  (cd a && cp ../*.c ../*.h . && "$ETCH_CC" "$@" >out 2>err; echo $? >status)
  (cd b && cp ../*.c ../*.h . && "$ETCH" cc "$@" >out 2>err; echo $? >status)
  for f in out err status; do
    cmp -s a/$f b/$f || { fail "$*: $f differs"; diff a/$f b/$f | head -5; }
  done
  [ "$(ls a)" = "$(ls b)" ] || fail "$*: made $(ls b | tr '\n' ' ') where clang made $(ls a | tr '\n' ' ')"
}
case $ETCH_CC in *clang*) ;; *) echo "skipped: the compiler of this build is not clang"; exit 77 ;; esac
same -Wall -Wextra -c bad.c
same -E two.c
same -fsyntax-only one.c
same -M two.c
same -MM two.c
same -c two.c
same -c -MD -MF deps two.c
same -c one.c two.c
same --version
same
same -c missing.c
same -O3 one.c two.c -o program
same -Wl,--no-such-option one.c two.c
same -dumpmachine
same -print-search-dirs
cmp -s a/err b/err || fail "errors differ"

$cc -c two.c -o dir.o && readelf -SW dir.o | grep -q ' \.etchbc ' || fail "an object left behind has LLVM's section name"
for level in -O0 -O1 -O2 -O3 -Os; do
  $cc $level one.c two.c -o program || fail "$level does not build"
  has_bitcode program || fail "$level: no bitcode"
  slices program two.c:4
  grep -q 'one.c' out || fail "$level: the slice does not reach the other file"
  ./program || fail "$level: the program is wrong"
done
$cc -c one.c && $cc -c two.c -ffunction-sections -fdata-sections && ar rcs libtwo.a two.o
$cc one.o libtwo.a -Wl,--gc-sections -o archive && has_bitcode archive && slices archive two.c:4
$cc -shared -fPIC -O2 two.c -o libtwo.so && has_bitcode libtwo.so && slices libtwo.so two.c:4
$cc one.c -L. -Wl,-rpath,"$dir" -ltwo -o shared && ./shared || fail "with a shared library"
$cc -S -O2 two.c && $cc -c two.s -o assembled.o && $cc one.o assembled.o -o from_s && slices from_s two.c:4
echo '-O2 one.c two.c -o "from file"' >arguments
$cc @arguments && slices 'from file' two.c:4
$cc -g0 -O2 one.c two.c -o weak && slices weak two.c:4
$cc -gline-tables-only one.c two.c -o weak && slices weak two.c:4
strip --strip-debug -o stripped program && has_bitcode stripped || fail "strip takes the bitcode"
printf 'int main(void){return 0;}' | $cc -x c - -o from_stdin && ./from_stdin || fail "from standard input"
$cc -fsanitize=address,undefined -O1 one.c two.c -o asan && ./asan && slices asan two.c:4
[ "$(readelf -n program | grep -c 'Build ID')" = 1 ] || fail "no build-id"
cat >t.cc <<'C'
#include <cstdio>
int main() { std::puts("x"); }
C
"$ETCH" c++ -O2 t.cc -o cxx && [ "$(./cxx)" = x ] && slices cxx t.cc:2 || fail "c++"
if command -v cmake >/dev/null; then
  mkdir cm && cp one.c two.c two.h cm && printf 'cmake_minimum_required(VERSION 3.20)\nproject(p C)\nadd_executable(p one.c two.c)\n' >cm/CMakeLists.txt
  CC="$ETCH cc" cmake -G Ninja -S cm -B cm/build >log 2>&1 && cmake --build cm/build >>log 2>&1 || { tail log; fail "cmake"; }
  has_bitcode cm/build/p || fail "cmake: no bitcode"
fi
# nothing but sections that are not loaded: the code is that of clang -g
"$ETCH_CC" -g -O2 -c two.c -o plain.o && $cc -O2 -c two.c -o ours.o
objcopy -O binary --only-section=.text plain.o plain.text && objcopy -O binary --only-section=.text ours.o ours.text
cmp plain.text ours.text || fail "the code differs from clang's"
exit $failed
