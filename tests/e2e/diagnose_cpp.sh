#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Each C++ bug of the corpus end to end: recorded, sliced, compared and drawn. The picture is of the labelled failure, and names nothing
# but the user's own functions. Programs take turns with the optimisation and with the source. A race may not show in so few runs on a
# busy machine, so some programs may pass every time; which is said. Whether the cause is right is bench/accuracy.sh's to measure.
. "$(dirname "$0")/lib.sh"
cd "$work"
corpus=$ETCH_SOURCE/tests/corpus
sources=(soft none)
has_vpt && sources=(soft vpt none)
levels=(-O0 -O2)
n=0 drawn=0 passed=()
for bug in "$corpus"/*/bug.cpp; do
  name=$(basename "$(dirname "$bug")")
  source=${sources[$((n % ${#sources[@]}))]} level=${levels[$((n / 2 % 2))]}
  n=$((n + 1))
  record=()
  [ "$source" != soft ] || record=(--record)
  "$ETCH" c++ "${record[@]}" -std=c++17 -g $level -w "$bug" -o "$name" -pthread || fail "$name does not build"
  status=0
  "$ETCH" diagnose --no-lab --source "$source" --timeout 4 --time 20 --runs 60 --json "$name.json" "./$name" >out 2>err || status=$?
  if grep -q 'no failure in\|none of the' out err; then
    passed+=("$name")
    continue
  fi
  [ $status -eq 0 ] || { cat out err >&2; fail "$name, $source $level: status $status"; }
  labels=$(sed -n 's/^failing: //p' "$(dirname "$bug")/ideal")
  lines=$(for label in $labels; do grep -n "//@$label\$" "$bug" | cut -d: -f1; done)
  checks=$((checks + 1)) drawn=$((drawn + 1))
  python3 - "$name.json" "$source" "$lines" <<'PY' || fail "$name, $source $level: the sketch is not of the failure at line $lines"
import json, sys
s = json.load(open(sys.argv[1]))
place, wanted = s["failing_place"], [int(n) for n in sys.argv[3].split()]
names = [t["name"] for t in s["threads"]]
library = [n for n in names if n.startswith("std::") or "_M_run" in n]
files = {step["place"]["file"] for step in s["steps"]}
good = place["line"] in wanted and not library and not any(f.startswith("/usr/") for f in files) and s["steps"]
sys.exit(0 if good else print(s["headline"], place, names, sorted(files)) or 1)
PY
done
echo "$drawn of $n drawn; passed every time: ${passed[*]:-none}"
[ $drawn -ge $((n * 2 / 3)) ] || fail "only $drawn of $n programs failed"
done_checking
