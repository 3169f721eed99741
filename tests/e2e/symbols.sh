#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every instruction of small programs, built in many ways, has the function, line and inlined calls that llvm-symbolizer
# finds. Two differences are its own and taken out: it names the source file where there is no line ("crtstuff.c:0:0"),
# and it calls linkage stubs by the symbol before them; those are compared with objdump instead.
set -eu
for tool in llvm-symbolizer-19 llvm-objdump-19 objcopy objdump gcc g++ clang++-19; do
  command -v "$tool" >/dev/null || { echo "skipped: no $tool"; exit 77; }
done
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
symbolize=$ETCH_BUILD/tests/symbolize
c=$ETCH_SOURCE/tests/symbols/sample.c
cc=$ETCH_SOURCE/tests/symbols/sample.cc
cd "$dir"
failed=0

addresses() { # FILE SECTION...
  local file=$1 section
  shift
  for section in "$@"; do
    llvm-objdump-19 -d -j "$section" --no-show-raw-insn --no-leading-headers "$file" |
      awk '/^ *[0-9a-f]+:/ { sub(":", "", $1); print "0x" $1 }'
  done
}

check() { # FILE WHAT
  addresses "$1" .text >addresses
  llvm-symbolizer-19 --obj="$1" --no-demangle --inlines <addresses | sed -E 's|^[^/]+:0:0$|??:0:0|' >expected
  "$symbolize" "$1" <addresses >found
  [ "$(wc -l <addresses)" -gt 50 ] || { echo "too few addresses in $1"; failed=1; }
  if diff expected found >differences; then
    echo "$(wc -l <addresses) addresses, $(grep -c . expected) lines the same: $2"
  else
    echo "DIFFERENT: $2"
    head -n 20 differences
    failed=1
  fi
}

clang-19 -O2 -g -o a1 "$c" && check a1 "clang -O2 -g"
clang-19 -O0 -g -gdwarf-4 -o a2 "$c" && check a2 "clang -O0, DWARF 4"
clang-19 -O2 -gline-tables-only -o a3 "$c" && check a3 "clang -gline-tables-only"
clang-19 -O2 -o a4 "$c" && check a4 "no debug information"
gcc -O2 -g -o a5 "$c" && check a5 "gcc -O2 -g"
gcc -O2 -g -no-pie -o a6 "$c" && check a6 "gcc, not position independent"
gcc -O2 -g -shared -fPIC -o liba7.so "$c" && check liba7.so "a shared library"
clang++-19 -O2 -g -o b1 "$cc" && check b1 "clang++ -O2 -g"
clang++-19 -O0 -g -o b2 "$cc" && check b2 "clang++ -O0"
g++ -O2 -g -o b3 "$cc" && check b3 "g++ -O2 -g"
g++ -O2 -g -gz -flto -o b4 "$cc" 2>/dev/null && check b4 "g++, LTO, compressed sections"
clang++-19 -O2 -g -gsplit-dwarf -c -o b5.o "$cc" && clang++-19 -o b5 b5.o && check b5 "clang++ -gsplit-dwarf"

# Separate debug files say what the whole file says, by link and by build-id; a file of another build says nothing.
addresses b3 .text >addresses
"$symbolize" b3 <addresses >whole
objcopy --only-keep-debug b3 b3.debug
objcopy --strip-all --add-gnu-debuglink=b3.debug b3 stripped
"$symbolize" stripped <addresses | cmp - whole && echo "by .gnu_debuglink the same" || failed=1
id=$(readelf -n stripped | awk '/Build ID/ { print $3 }')
mkdir -p "debug/.build-id/${id:0:2}"
mv b3.debug "debug/.build-id/${id:0:2}/${id:2}.debug"
"$symbolize" stripped --debug-dir debug <addresses | cmp - whole && echo "by build-id the same" || failed=1
cp b1 "debug/.build-id/${id:0:2}/${id:2}.debug"
"$symbolize" stripped --debug-dir debug <addresses >other
if grep -q sample.cc other; then
  echo "DIFFERENT: a debug file of another build was believed"
  failed=1
fi

# Stubs of the procedure linkage table, lazy, bound at start, and with endbr64.
for flags in "-Wl,-z,lazy" "-Wl,-z,now" "-fcf-protection=full -Wl,-z,ibtplt"; do
  # shellcheck disable=SC2086
  gcc -O2 $flags -o p "$c"
  objdump -d p | awk '/^[0-9a-f]+ <.*@plt>:$/ { gsub(/[<>:]/, "", $2); print "0x" $1, $2 }' >stubs
  [ -s stubs ] || { echo "no stubs with $flags"; failed=1; }
  awk '{ print $1 }' stubs | "$symbolize" p | grep '@plt' >found || true
  awk '{ print $2 }' stubs | diff - found && echo "$(wc -l <stubs) stubs the same: $flags" || failed=1
done
exit $failed
