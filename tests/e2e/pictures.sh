#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Programs as users have them: the sentence on top names the root cause. In the lab, so that the machine's load does not count.
# The INI parser over 14 inputs is in diagnose_inputs.sh, the test of a CMake project in pictures_check.sh.
. "$(dirname "$0")/lib.sh"
export LC_ALL=C COLUMNS=120
programs=$ETCH_SOURCE/tests/programs/pictures
cd "$work"
line() { grep -nF -m1 -- "$2" "$programs/$1" | cut -d: -f1; }
sentence() { python3 -c 'import json; print(json.load(open("s.json"))["sentence"])' >sentence; }

# A raw pointer that escapes from a cache: the reaper destroys the session that the worker uses.
"$ETCH" c++ -std=c++17 -g -O0 -pthread "$programs/session_cache.cpp" -o cache
expect 0 "$ETCH" diagnose --source lab --json s.json --html cache.html --sarif cache.sarif ./cache
sentence
has sentence "T2 (reaper)"
has sentence "at line $(line session_cache.cpp 'delete quota')"
has sentence "before T1"
has sentence "at line $(line session_cache.cpp 's->quota->used')"
has sentence "Proven by experiment: 0 of"
python3 - <<'PY' || fail "the picture of the session cache"
import json
s = json.load(open("s.json"))
failing = [t for t in s["steps"] if t["failing"]]
assert len(failing) == 1, [t["place"] for t in failing]
assert any(0 in t["predictors"] for t in s["steps"]), "the cause has no row"
assert {t["thread"] for t in s["steps"] if 0 in t["predictors"]} == {0, 1}, "the cause is in two threads"
PY
expect 0 python3 "$ETCH_SOURCE/tests/sketch/schema.py" "$ETCH_SOURCE/docs/sketch.schema.json" s.json
expect 0 python3 "$ETCH_SOURCE/tests/sketch/sarif.py" cache.sarif
expect 0 python3 "$ETCH_SOURCE/tests/sketch/schema.py" "$ETCH_SOURCE/tests/sketch/sarif.schema.json" cache.sarif

# A lost wake-up: the signal comes between the look and the wait.
"$ETCH" cc -g -O0 -pthread "$programs/lost_wakeup.c" -o wakeup
expect 0 "$ETCH" diagnose --source lab --timeout 3 --json s.json ./wakeup
sentence
has sentence "wakes at line $(line lost_wakeup.c 'cond_signal')"
has sentence "begins to wait at line $(line lost_wakeup.c 'cond_wait')"
has sentence "nobody wakes it again"
done_checking
