#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# One grammar of --watch: the same argument finds the same location with every source, and a source that cannot watch a
# form says why.
. "$(dirname "$0")/lib.sh"
cd "$work"
cat >places.cc <<'END'
struct pair { int first; struct { char small; short wide; } inner; };
namespace ns { volatile int counter; }
volatile int table[4];
volatile pair pairs[3];
volatile long whole;
extern "C" __attribute__((noinline)) void touch(volatile int *at) { *at = 9; }
int main()
{
    ns::counter = 1;
    table[2] = 2;
    pairs[1].inner.wide = 3;
    pairs[2].first = 4;
    whole = 5;
    touch(&table[3]);
    return 0;
}
END
"$ETCH" c++ -O0 -g places.cc -o places
"$ETCH" c++ --record -O0 -g places.cc -o places_recorded

# seen: each watch, its length, and whether it saw an access
seen() {
  "$ETCH" info --records run.etch | python3 -c '
import json, sys
names, hits = {}, set()
for line in sys.stdin:
    r = json.loads(line)
    if "watch" in r and not r["watch"].get("skipped"):
        names[r["watch"]["id"]] = r["watch"]["name"], r["watch"]["size"]
    for a in r.get("accesses", {}).get("accesses", []):
        hits.add(a["watch"])
for i in sorted(names):
    print(*names[i], "seen" if i in hits else "not seen")'
}

# Debug registers are four: two runs.
same_with_all() {
  local first= source program
  for source in none soft vpt; do
    program=./places
    [ $source != soft ] || program=./places_recorded
    if [ $source = vpt ]; then has_vpt || continue; else has_watchpoints || continue; fi
    expect 0 "$ETCH" record --source $source -o run.etch "$@" -- $program
    seen >"seen.$source"
    ! grep "not seen" "seen.$source" >&2 || fail "a watch saw nothing with $source"
    [ -z "$first" ] && first=$source || same "seen.$first" "seen.$source"
  done
  [ -n "$first" ] || skip "neither vpt nor hardware watchpoints here"
}
same_with_all --watch ns::counter --watch 'table[2]:4:w' --watch table+12:4 --watch whole
same_with_all --watch 'pairs[1].inner.wide' --watch 'pairs[2].first:w'

# refused SOURCE WATCH WORDS
refused() {
  expect 125 "$ETCH" record --source "$1" -o bad.etch --watch "$2" -- ./places
  has err "cannot watch '$2'"
  has err "$3"
}
if has_vpt; then
  refused vpt '*whole' "points nowhere then"
  refused vpt '@touch=rdi,,1,0:4' "not from registers"
  refused vpt 'table+16:4' "only 16 bytes"
  expect 0 "$ETCH" record --source vpt -o run.etch --watch "@touch+$((16#$(objdump -d --disassemble=touch places | awk '/movl/ {sub(":", "", $1); print $1}') - 16#$(nm places | awk '$3 == "touch" {print $1}'))):4" -- ./places
  "$ETCH" info --records run.etch | grep -q '"site"' || fail "the instruction of a name was not found"
fi
if has_watchpoints; then
  refused none '@touch:4' "only vpt sees"
  refused none '@touch:4:here' ":here is of vpt"
  refused none 'whole:r' "reads alone"
fi
done_checking
