#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# etch report --critical names the lock, its owner and the time. The programs measure their waits themselves.
. "$(dirname "$0")/lib.sh"
programs=$ETCH_SOURCE/tests/programs/report
cd "$work"

# build NAME HOW LEVEL [OPTION...]
build() {
  local language=c how=$2 level=$3 name=$1
  [ "$how" = cc ] || language=c++
  shift 3
  "$ETCH" "$how" --record "$level" -g -x "$language" "$@" "$programs/$name.c" -o "$name" -pthread || fail "$name was not built"
}

# run NAME SOURCE: a recording, its critical path in critical.json, and what the program said in $truth
run() {
  "$ETCH" record --source "$2" -o run.etch "./$1" >truth 2>err </dev/null || { cat err >&2; fail "$1 was not recorded"; }
  truth=$(cat truth)
  expect 0 "$ETCH" report run.etch --critical --json -o critical.json
  expect 0 "$ETCH" report run.etch --critical
}

# holds PYTHON: true of the JSON d, and of the program's own measure t
holds() {
  checks=$((checks + 1))
  python3 -c 'import json,sys
d = json.load(open("critical.json"))
t = float(sys.argv[2])
c = {x["name"]: x for x in d["contended"] if "name" in x}
assert eval(sys.argv[1]), (sys.argv[1], t)' "$1" "$truth" || { head -c 2000 critical.json >&2; fail "not $1"; }
}

for source in soft none; do
  for how in "cc -O0" "c++ -O2 -DOWN_DATA"; do
    # shellcheck disable=SC2086
    build convoy $how
    run convoy "$source"
    holds 'c["table_lock"]["kind"] == "lock" and c["table_lock"]["taken_at"].split(" in ")[1].split("(")[0] == "update"'
    # What etch stamped lies within what the program measured, and is nearly all of it: the rest is the calls themselves.
    holds 'c["table_lock"]["waited_ns"]["lo"] <= c["table_lock"]["waited_ns"]["hi"] <= t * 1.01'
    holds 'c["table_lock"]["waited_ns"]["hi"] >= t * 0.5'
    holds 'c["table_lock"]["owner"] in {x["tid"] for x in d["links"]} and c["table_lock"]["owned_ns"]["hi"] <= c["table_lock"]["waited_ns"]["hi"]'
    holds 'd["contended"][0]["name"] == "table_lock" or d["contended"][0]["kind"] == "join"'
    holds 'all(x["to_ns"] >= x["from_ns"] for x in d["links"])'
    holds 'all(a["to_ns"] <= b["to_ns"] + 1 for a, b in zip(d["links"], d["links"][1:]))'
    has out 'lock table_lock; held most by thread '
    has out 'which took it at convoy.c:'
  done
done

"$ETCH" c++ --record -O2 -g "$programs/convoy_std.cc" -o convoy_std -pthread || fail "convoy_std was not built"
run convoy_std soft
holds 'c["table_lock"]["kind"] == "lock" and "update" in c["table_lock"]["taken_at"]'
holds 'c["table_lock"]["waited_ns"]["lo"] <= c["table_lock"]["waited_ns"]["hi"] <= t * 1.01 and c["table_lock"]["waited_ns"]["hi"] >= t * 0.5'

build consumer cc -O2
run consumer soft
holds 'c["place_free"]["kind"] == "condition" and c["place_free"]["waited_ns"]["hi"] <= t * 1.01 and c["place_free"]["waited_ns"]["hi"] >= t * 0.5'
# The path goes through the consumer's work: 40 items of 2 ms.
holds 'sum(x["to_ns"] - x["from_ns"] for x in d["links"] if x["kind"] == "work" and x["tid"] == c["place_free"]["owner"]) >= 60e6'

# Without synchronisation events there is no path, and etch says why.
"$ETCH" record --source none --no-sync -o run.etch ./consumer >/dev/null 2>&1
expect 1 "$ETCH" report run.etch --critical
has err 'has no synchronisation events'
done_checking
