#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# etch bench and etch report --diff: a planted regression of 1 % in one function is found and named, two equal builds differ in
# nothing, and the exit status says so.
. "$(dirname "$0")/lib.sh"
program=$ETCH_SOURCE/tests/programs/report/regression.c
cd "$work"

for how in cc:-O0 c++:-O2; do
  language=c
  [ "${how%:*}" = cc ] || language=c++
  "$ETCH" "${how%:*}" --record "${how#*:}" -g -x "$language" "$program" -o before
  "$ETCH" "${how%:*}" --record "${how#*:}" -g -x "$language" -DEXTRA=1 "$program" -o after
  expect 3 "$ETCH" bench -n 10 -- ./before -- ./after
  grep -Eq '^  slower +\+(0\.9|1\.0)[0-9] % .* instructions: .* hash(\(|$)' out || { cat out >&2; fail "$how: the regression is not named"; }
  ! grep -E '^  slower' out | grep -Eq ' (mix|parse)(\(|$)' || { cat out >&2; fail "$how: a function is blamed that is the same"; }
  expect 0 "$ETCH" bench -n 10 --json -- ./before -- ./before
  python3 -c 'import json,sys; d=json.load(open("out")); assert d["decided"] and not d["slower"] and not [x for x in d["rows"] if x["verdict"] == "different" and x["measure"] == "instructions"]' || { cat out >&2; fail "$how: equal builds differ"; }
done

# Faster is no failure.
expect 0 "$ETCH" bench -n 10 --json -- ./after -- ./before
python3 -c 'import json; d=json.load(open("out")); assert any(x["function"].split("(")[0] == "hash" and x["by"] < 0 for x in d["rows"] if "function" in x and x["verdict"] == "different")' || fail "faster is not found"

# Kept runs.
expect 0 "$ETCH" bench -n 10 --keep last-week -- ./before
[ "$(ls last-week/*.etch | wc -l)" -eq 10 ] || fail "runs were not kept"
expect 3 "$ETCH" bench -n 10 --against last-week -- ./after
has out hash
expect 0 "$ETCH" bench -n 10 --against last-week -- ./before
expect 1 "$ETCH" bench -n 2 --keep last-week -- ./before # the folder is there
expect 0 "$ETCH" report --diff last-week last-week
has out 'no difference'

# One run of each: nothing is claimed.
expect 0 "$ETCH" report --diff last-week/0001.etch last-week/0002.etch
has out 'not decided'

# Programs without a recorder: whole runs alone. A run that fails ends it.
"$ETCH_CC" "$program" -o plain
expect 0 "$ETCH" bench -n 3 -- ./plain -- ./plain
has out 'CPU time'
expect 1 "$ETCH" bench -n 3 -- ./plain -- false
has err 'ended with status 1'
expect 2 "$ETCH" bench -- ./plain
expect 2 "$ETCH" bench -n 0 -- ./plain -- ./plain
done_checking
