#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Compiled in but off, a program runs the code that clang made: it prints what it prints without a recorder, off and on, a function is
# still one function and a variable one variable, and its instructions are as many as without. Names of copies are the function's.
. "$(dirname "$0")/lib.sh"
programs=$ETCH_SOURCE/tests/programs
cd "$work"
sources="$programs/soft/worlds.c $programs/soft/worlds_other.c"

for flags in -O0 -O2 "-O2 -fPIC" "-O2 -fcf-protection=full" "-O3 -ffunction-sections -Wl,--gc-sections"; do
  clang-19 $flags $sources -o plain
  "$ETCH" cc --record $flags $sources -o worlds || fail "not built with $flags"
  ./plain >want
  ./worlds >got || fail "it fails, off, with $flags"
  same want got
  rm -rf rings && mkdir rings
  ETCH_RING=$work/rings ./worlds >got || fail "it fails, recording, with $flags"
  same want got
  [ -n "$(ls rings)" ] || fail "nothing recorded with $flags"
  ETCH_RECORDED=1 ./worlds >got || fail "it fails, counting, with $flags"
  same want got
done
# Whatever is passed and returned comes through, where both files have a recorder or only one.
for flags in -O0 -O1 -O2 "-O2 -fPIC" "-O3 -fcf-protection=full" "-O2 -pg -mfentry"; do
  clang-19 -w $flags "$programs"/soft/conventions{,_other}.c -lm -o plain
  ./plain >want
  for file in conventions conventions_other; do
    clang-19 -w $flags -c "$programs/soft/$file.c" -o $file.plain
    "$ETCH" cc --record -w $flags -c "$programs/soft/$file.c" -o $file.recorded
  done
  for kinds in "recorded recorded" "recorded plain" "plain recorded"; do
    set -- $kinds
    "$ETCH" cc --record $flags -x none conventions.$1 conventions_other.$2 -lm -o handed || fail "not linked: $kinds, $flags"
    for ring in "" "$work/rings"; do
      ETCH_RING=$ring ./handed >got || fail "$kinds, $flags, ring '$ring'"
      same want got
    done
  done
done
# Calls that are jumps stay so, where the stack is too small for anything else.
clang-19 -O2 "$programs/soft/threaded.c" -o plain
./plain 1000000 >want
for flags in -O2 "-O2 -fPIC"; do
  "$ETCH" cc --record $flags "$programs/soft/threaded.c" -o threaded
  for ring in "" "$work/rings"; do
    (ulimit -s 256 && ETCH_RING=$ring ./threaded 1000000 >got) || fail "calls that are jumps, $flags, ring '$ring'"
    same want got
  done
done
# Entered again and again, with a ring and without: where there is none, nothing but the recorder's own memory is written.
for level in -O0 -O1 -O2; do
  clang-19 $level "$programs/soft/called_back.c" -o plain
  ./plain >want
  "$ETCH" cc --record $level "$programs/soft/called_back.c" -o called_back
  for ring in "" "$work/rings"; do
    ETCH_RECORDED=1 ETCH_RING=$ring ./called_back >got || fail "called back, $level, ring '$ring'"
    same want got
  done
done
clang-19 $sources -O2 -o plain && ./plain >want
# One file with a recorder and one without, both ways; only some functions; and -S.
for recorded in worlds worlds_other; do
  other=$([ $recorded = worlds ] && echo worlds_other || echo worlds)
  clang-19 -O2 -c "$programs/soft/$other.c" -o other.o
  "$ETCH" cc --record -O2 "$programs/soft/$recorded.c" other.o -o mixed
  for ring in "" "$work/rings"; do
    ETCH_RING=$ring ./mixed >got || fail "only $recorded has a recorder, ring '$ring'"
    same want got
  done
done
"$ETCH" cc --record-only=interpret,add,by_alias,other_step -O2 $sources -o some
for ring in "" "$work/rings"; do
  ETCH_RING=$ring ./some >got || fail "only some functions, ring '$ring'"
  same want got
done
"$ETCH" cc --record -O2 -S "$programs/soft/worlds.c" -o worlds.s
"$ETCH" cc --record -O2 worlds.s "$programs/soft/worlds_other.c" -o assembled
./assembled >got
same want got

# C++: exceptions, inline functions and what they share between files.
clang++-19 -O2 -w "$programs/exceptions.cc" -pthread -o plain
"$ETCH" c++ --record -O2 -w "$programs/exceptions.cc" -pthread -o thrown
./plain >want
./thrown >got || fail "C++ fails, off"
same want got

# A plan's instructions are those of recorded code, and a program that is watched runs it, whatever records its control flow.
line=$(grep -n '//@fail' "$programs/plan.c" | cut -d: -f1)
for level in -O0 -O2; do
  "$ETCH" cc --record $level -g "$programs/plan.c" -o planned
  "$ETCH" slice planned --at "plan.c:$line" --sigma 6 --plan out.plan --json >out.json
  nm -S planned >symbols
  python3 - $level <<'P' || fail "the plan's instructions, $level"
import json, sys
names = []
for l in open("symbols"):
    w = l.split()
    if len(w) == 4:
        names.append((int(w[0], 16), int(w[1], 16), w[3]))
sites = [int(w["site"], 16) for s in json.load(open("out.json"))["plan"]["sets"] for w in s["watches"] if not int(w["global"], 16)]
assert sites
for site in sites:
    owner = [n for start, size, n in names if start <= site < start + size]
    assert owner and all(n.endswith(".etch") for n in owner), (hex(site), owner)
P
  rm -f watched.etch
  status=0
  "$ETCH" record --source none --plan out.plan -o watched.etch ./planned 1 >out 2>err || status=$?
  [ $status = 125 ] || "$ETCH" info watched.etch | grep -q 'watch .* q->.* at 0x' || fail "no instruction of the plan was run, $level"
  checks=$((checks + 1))
done

# As many instructions as without a recorder but for what starts and ends a process and enters main; and under names of its own.
"$ETCH" record --source vpt -o probe.etch true >/dev/null 2>probe.err || {
  echo "$checks checks; not how many instructions: no vpt here"
  exit 0
}
cat >spin.c <<'C'
#include <stdio.h>
static volatile int sink;
static int __attribute__((noinline)) inner(int x) { return x % 7 ? x + 1 : sink; }
int __attribute__((noinline)) outer(int x) { return x & 4 ? inner(x) : inner(x * 2) + 1; }
int main(void)
{
    for (int i = 0; i < 20000; i++)
        sink = outer(i) + (i % 3 ? 1 : 2);
    printf("%d\n", sink);
    return 0;
}
C
clang-19 -O2 -g spin.c -o plain
"$ETCH" cc --record -O2 -g spin.c -o spin
for name in plain spin; do
  "$ETCH" record --source vpt -o $name.etch ./$name >out 2>err || { cat err >&2; fail "no vpt of $name"; }
  "$ETCH" decode $name.etch --as insn --fields ip | wc -l >$name.n
done
[ $(($(cat spin.n) * 100)) -le $(($(cat plain.n) * 102)) ] || fail "off: $(cat spin.n) instructions, without a recorder $(cat plain.n)"
"$ETCH" decode spin.etch --as line | grep spin.c >lines
has lines "outer"
has lines "inner"
grep -F '.etch' lines && fail "a copy's name is shown"
"$ETCH" decode spin.etch --as call >calls
grep -F '.etch' calls && fail "a copy's name is shown in the tree of calls"
checks=$((checks + 3))
echo "$checks checks"
