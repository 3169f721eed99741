#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Hardware watchpoints: every access of two threads is there, with instruction, direction and value; four watches, five
# in two sets, a field on the heap through the instruction that uses it, a thread that is made later.
. "$(dirname "$0")/lib.sh"
has_watchpoints || skip "no hardware watchpoints here"
accesses=$ETCH_BUILD/tests/accesses
"$ETCH_CC" -O0 -g -pthread "$ETCH_SOURCE/tests/programs/native/counter.c" -o "$work/counter"
record() { expect 0 "$ETCH" record --source none --watch-budget none --watch-share 0 -o "$work/run.etch" "$@"; }
report() { "$accesses" "$work/run.etch" >"$work/accesses" || fail "the accesses cannot be read"; }

record --watch counter "$work/counter" 400
has "$work/out" "801 40"
has "$work/err" "1602 hits"
has "$work/err" "nothing lost"
report
python3 - "$work/accesses" <<'PY' || fail "the accesses are not those that were made"
import sys
rows = [l.split() for l in open(sys.argv[1])]
assert len(rows) == 1602, len(rows)                 # 800 reads and writes of two threads, 1 locked, 1 read at the end
counts = {}
for watch, tid, where, how, value in rows:
    f = where.split("+")[0]
    counts[f, how] = counts.get((f, how), 0) + 1
assert counts == {("count", "r"): 800, ("count", "w"): 800, ("later", "rw"): 1, ("main", "r"): 1}, counts
writes = [int(r[4]) for r in rows if "w" in r[3]]
assert writes == list(range(1, 802)), "the written values are out of order"
last = 0
for r in rows:                                      # a read sees the write before it
    if r[3] == "r":
        assert int(r[4]) == last, (r, last)
    else:
        last = int(r[4])
threads = {r[1] for r in rows if r[2].startswith("count")}
assert len(threads) == 2, threads
assert len({r[2] for r in rows if r[2].startswith("count")}) == 2   # one load, one store
PY
checks=$((checks + 1))

record --watch a --watch b:w --watch c:4:rw --watch d "$work/counter" 1
report
[ "$(awk '{print $1, $4, $5}' "$work/accesses" | sort)" = "1 w 1
2 w 2
3 w 3
4 w 4" ] || { cat "$work/accesses" >&2; fail "four watches on four variables"; }

five="--watch a --watch b --watch c --watch d --watch e"
record --set 0 $five "$work/counter" 1
report
[ "$(cut -d' ' -f1 "$work/accesses" | sort | tr '\n' ' ')" = "1 2 3 4 " ] || fail "the first set"
has "$work/err" "1 watches left to other runs"
record $five "$work/counter" 1 # the next set after the one in the file
report
[ "$(awk '{print $1, $4, $5}' "$work/accesses")" = "5 w 5" ] || fail "the second set"
"$ETCH" info --records "$work/run.etch" >"$work/records"
has "$work/records" "set 0 of 2; this run took set 1"
record $five "$work/counter" 1
report
[ "$(cut -d' ' -f1 "$work/accesses" | sort | tr '\n' ' ')" = "1 2 3 4 " ] || fail "and the first again"

# The register that holds the box is the compiler's choice: ask the instruction.
base=$(objdump -d "$work/counter" --disassemble=the_site 2>/dev/null | sed -n 's/.*mov *%r[a-z0-9]*,0x8(%\(r[a-z0-9]*\)).*/\1/p' | head -n 1)
if [ -n "$base" ]; then
  record --watch "@the_site=$base,,1,8:8" "$work/counter" 1
  report
  [ "$(awk '{print $3 == "main+0" ? "" : $4, $5}' "$work/accesses" | head -n 3 | tr '\n' ';')" = "w 10;w 20;w 40;" ] ||
    { cat "$work/accesses" >&2; fail "a heap field through a site"; }
  [ "$(cut -d' ' -f2 "$work/accesses" | head -n 3 | sort -u | wc -l)" -eq 2 ] || fail "two threads write the field"
  checks=$((checks + 1))
fi

# Fields and elements by the debug information.
record --watch 'things[2].value' --watch 'things[1].inner.small:w' "$work/counter" 1
report
[ "$(awk '{print $1, $4, $5}' "$work/accesses" | sort | tr '\n' ';')" = "1 w 22;2 w 7;" ] || { cat "$work/accesses" >&2; fail "fields"; }
"$ETCH" info "$work/run.etch" >"$work/info"
has "$work/info" "things[2].value at"

# A budget: the cut is said, and the program is not disturbed.
expect 0 "$ETCH" record --source none --watch-budget 50 -o "$work/run.etch" --watch counter "$work/counter" 400
has "$work/out" "801 40"
has "$work/err" "went beyond its budget"
"$ETCH" info "$work/run.etch" >"$work/info"
has "$work/info" "rate limited"

# What cannot be watched is said in words, and the program does not run.
for bad in "nosuch:no symbol" "nobox.field:no global" "things[2].x:no field" "things[9].value:elements" "things:bytes" "counter[3]:no element" "counter[3]:8:only 8 bytes" "counter+4:8:only 8 bytes" "*counter:points nowhere" \
  "counter+1:4:multiple" "0x10:3:length" "counter:r:reads alone"; do
  expect 125 "$ETCH" record --source none -o "$work/bad.etch" --watch "${bad%:*}" "$work/counter"
  has "$work/err" "cannot watch '${bad%:*}'"
  has "$work/err" "${bad##*:}"
  [ ! -s "$work/out" ] || fail "the program ran"
done
done_checking
