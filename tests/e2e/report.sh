#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# etch report: calls are counted as they were made, bounds hold, and the slowest calls are named with their reasons.
. "$(dirname "$0")/lib.sh"
programs=$ETCH_SOURCE/tests/programs/report
cd "$work"

# holds FILE PYTHON: the expression is true of the JSON d
holds() {
  checks=$((checks + 1))
  python3 -c 'import json,sys
d = json.load(open(sys.argv[1]))
f = {x["name"].split("(")[0]: x for x in d.get("functions", [])}
assert eval(sys.argv[2]), sys.argv[2]' "$1" "$2" || { head -c 3000 "$1" >&2; fail "$1: not $2"; }
}

# check_table FILE: counts of slow_calls, and bounds that hold whatever the clock did
check_table() {
  expect 0 "$ETCH" report --json -o table.json "$1"
  holds table.json 'f["handle"]["calls"] == 1000 and f["insert"]["calls"] == 60000 and f["rehash"]["calls"] == 1 and f["backoff"]["calls"] == 1'
  holds table.json 'f["put"]["calls"] == 60000 + 49152' # what the table held when it grew
  holds table.json 'all(x["total_instructions"] >= x["instructions"] for x in d["functions"])'
  holds table.json 'sum(x["instructions"] for x in d["functions"]) == d["instructions"]'
  holds table.json 'f["backoff"]["wait_ns"] >= 3e6'
  holds table.json 'd["losses"] == 0'
}

# check_slowest FILE: one command names both calls and why
check_slowest() {
  expect 0 "$ETCH" report --slowest handle --json -o slowest.json "$1"
  holds slowest.json 'd["calls"] == 1000'
  holds slowest.json '[x for x in d["slowest"] if x["number"] == 701][0]["wait_ns"] >= 3e6'
  holds slowest.json 'any(y["kind"] == "wait" and y["ns"] >= 3e6 and y["share"] > 0.5 for x in d["slowest"] if x["number"] == 701 for y in x["differences"])'
  holds slowest.json 'any(y["kind"] == "path" and y["function"].split("(")[0] == "rehash" and y["calls"] == 1 and y["share"] > 0.5 for x in d["slowest"] if x["number"] == 820 for y in x["differences"])'
  expect 0 "$ETCH" report "$1" --slowest handle
  has out 'call 701, '
  has out 'longer in '
  has out 'insert'
  has out 'rehash'
}

for how in cc:-O0 cc:-O2 c++:-O0 c++:-O2; do
  language=c
  [ "${how%:*}" = cc ] || language=c++
  "$ETCH" "${how%:*}" --record "${how#*:}" -g -x "$language" "$programs/slow_calls.c" -o slow_calls || fail "$how: not built"
  expect 0 "$ETCH" record --source soft --snapshot 16M -o soft.etch ./slow_calls
  check_table soft.etch
  holds table.json 'all(x["total_ns"]["lo"] <= x["total_ns"]["hi"] and x["self_ns"]["lo"] <= x["self_ns"]["hi"] for x in d["functions"])'
  holds table.json 'all(x["total_ns"]["hi"] <= d["threads"][0]["elapsed_ns"]["hi"] * 1.000001 for x in d["functions"])'
  holds table.json 'f["backoff"]["max"]["ns"]["lo"] >= 3e6 and f["backoff"]["total_ns"]["lo"] >= 3e6'
  holds table.json 'f["put"]["total_ns"]["lo"] <= f["put"]["total_ns"]["hi"] - f["backoff"]["wait_ns"] or f["put"]["total_ns"]["hi"] < f["main"]["total_ns"]["hi"]'
  check_slowest soft.etch
done

if has_vpt; then
  for level in -O0 -O2; do
    "$ETCH_CC" "$level" -g "$programs/slow_calls.c" -o slow_plain
    expect 0 "$ETCH" record --source vpt -o vpt.etch ./slow_plain
    check_table vpt.etch
    holds table.json 'd["unit"] == "instructions" and f["rehash"]["max"]["instructions"]["lo"] == f["rehash"]["max"]["instructions"]["hi"] == f["rehash"]["total_instructions"]'
    check_slowest vpt.etch
  done
fi

# The bounds hold what the program measured itself: it measures each call from within and from around.
for how in cc:-O0 cc:-O2 c++:-O2; do
  language=c
  [ "${how%:*}" = cc ] || language=c++
  "$ETCH" "${how%:*}" --record "${how#*:}" -g -x "$language" "$programs/bounds.c" -o bounds
  "$ETCH" record --source soft --snapshot 16M -o bounds.etch ./bounds >truth 2>err || fail "bounds was not recorded"
  expect 0 "$ETCH" report bounds.etch --json -o bounds.json
  python3 - "$("$ETCH" info bounds.etch --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["host"]["tsc_hz"])')" <<'P' || fail "$how: a bound does not hold"
import json, sys
ns = 1e9 / float(sys.argv[1])
within, around = ([int(x) * ns for x in line.split()] for line in open("truth"))
work = [f for f in json.load(open("bounds.json"))["functions"] if f["name"].split("(")[0] == "work"][0]
assert work["calls"] == 2000 and work["left_out"] <= 1, work
spans = [work["total_ns"]] + [work[k]["ns"] for k in ("p50", "p90", "p99", "max")]
for span, least, most in zip(spans, within, around):
    assert span["lo"] <= span["hi"], span
    assert span["lo"] <= most * 1.001 + 50 and span["hi"] >= least * 0.999 - 50, (span, least, most)
assert work["wait_ns"] >= 10 * 200e3 and work["max"]["ns"]["lo"] >= 200e3, work
P
  checks=$((checks + 1))
done

# Filters, and views of one function.
expect 0 "$ETCH" report soft.etch --function rehash
has out rehash
! grep -q backoff out || fail "--function rehash shows backoff"
expect 0 "$ETCH" report soft.etch --above 2ms
has out backoff
expect 0 "$ETCH" report soft.etch --histogram handle --by caller
has out 'by main'
expect 0 "$ETCH" report soft.etch --histogram handle --json
holds out 'sum(x["count"] for x in d["most"]) == 1000 and sum(x["count"] for x in d["least"]) == 1000'
expect 1 "$ETCH" report soft.etch --histogram no_such_function
has err "no recorded function is called 'no_such_function'"
expect 1 "$ETCH" report soft.etch --above soon
expect 2 "$ETCH" report
expect 2 "$ETCH" report soft.etch --slowest handle --histogram handle

# A ring that wrapped: the loss is shown, and calls across it are left out of percentiles.
expect 0 "$ETCH" record --source soft -o wrapped.etch ./slow_calls
expect 0 "$ETCH" report wrapped.etch
has out 'lost       ring wrapped'
has out 'left out'

# An index gives the same, and is made anew when the recording is another one.
expect 0 "$ETCH" report soft.etch
cp out table.txt
expect 0 "$ETCH" report soft.etch --index soft.index
same out table.txt
cp soft.index first.index
expect 0 "$ETCH" report soft.etch --index soft.index
same out table.txt
cmp -s soft.index first.index || fail "the index was made twice"
expect 0 "$ETCH" report soft.etch --slowest handle --index soft.index
has out 'call 701, '
printf x | dd of=soft.index bs=1 seek=300 conv=notrunc 2>dd.err # damage: found by the checksum
expect 0 "$ETCH" report soft.etch --index soft.index
same out table.txt
cp soft.etch again.etch
expect 0 "$ETCH" report again.etch --index soft.index --json
holds out 'f["handle"]["calls"] == 1000'
! cmp -s soft.index first.index || fail "the index of another recording was taken"

# Two runs are one population.
expect 0 "$ETCH" report soft.etch soft.etch --json -o two.json
holds two.json 'f["handle"]["calls"] == 2000'

# Against uftrace, which counts calls by its own hooks.
if command -v uftrace >/dev/null; then
  "$ETCH_CC" -O1 -pg -g "$programs/slow_calls.c" -o slow_pg
  if uftrace record -d uf.data ./slow_pg >/dev/null 2>uf.err; then
    uftrace report -d uf.data -f call --no-pager 2>/dev/null >uf.txt || true
    for name in handle insert put rehash backoff; do
      theirs=$(awk -v n="$name" '$NF == n { print $1 }' uf.txt)
      ours=$(python3 -c 'import json,sys; print([x["calls"] for x in json.load(open("two.json"))["functions"] if x["name"].split("(")[0] == sys.argv[1]][0] // 2)' "$name")
      [ "$theirs" = "$ours" ] || { cat uf.txt >&2; fail "$name: uftrace counts '$theirs' calls, etch $ours"; }
      checks=$((checks + 1))
    done
  fi
fi
done_checking
