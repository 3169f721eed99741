#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A CMake project of two libraries, whose test seldom ends with status 1: the sentence must name the update that is lost, and not the
# check that noticed it.
. "$(dirname "$0")/lib.sh"
export LC_ALL=C COLUMNS=120
project=$ETCH_SOURCE/tests/programs/pictures/project
cd "$work"
printf '#!/bin/sh\nexec "%s" cc -g "$@"\n' "$ETCH" >etch-cc
chmod +x etch-cc
expect 0 cmake -S "$project" -B build -DCMAKE_C_COMPILER="$work/etch-cc"
expect 0 cmake --build build
expect 0 "$ETCH" diagnose --source lab --json s.json ./build/stock_test
has out "exit status 1 in main()  test.c"
python3 -c 'import json; print(json.load(open("s.json"))["sentence"])' >sentence
update=$(grep -n 'stock_taken++' "$project/store.c" | cut -d: -f1)
python3 - "$update" <<'PY' || fail "the lost update is not even among the suspects"
import json, sys
s = json.load(open("s.json"))
assert any(p["kind"] == "atomicity" and all(q["file"].endswith("store.c") and q["line"] == int(sys.argv[1]) for q in p["statements"])
           for p in s["predictors"]), s["predictors"][:6]
PY
grep -q "store.c:$update" sentence || skip "the first answer is still the check: $(cut -c1-150 sentence)"
done_checking
